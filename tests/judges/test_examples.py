"""No example in a packaged prompt is a verdict: small models give back what they are shown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lmms_eval_tasks import prompts, registry
from lmms_eval_tasks.cvrr_es import judge as cvrr_judge
from lmms_eval_tasks.cvrr_es.study import reference, replies
from lmms_eval_tasks.haven.records import steps as haven_steps
from lmms_eval_tasks.judges import Criterion, reader, writer
from lmms_eval_tasks.judges.engine import render
from lmms_eval_tasks.judges.providers.exchange import JudgeReply
from lmms_eval_tasks.movierecapsqa import baselines
from lmms_eval_tasks.movierecapsqa.facts import steps as facts_steps
from lmms_eval_tasks.movierecapsqa.settings import JUDGED_BASELINES
from tests.checks import table


def criteria() -> dict[str, Criterion]:
    """All criteria with a packaged prompt: of judges, and of models that write data."""
    found = [one for name in registry.NAMES for one in registry.load_benchmark(name).criteria()]
    found += [
        *baselines.criteria(JUDGED_BASELINES).values(),
        reference.reference_criterion(),
    ]
    for name, own in (("build", haven_steps.STEPS), ("facts", facts_steps.STEPS)):
        found += [step.criterion(writer.load_step_prompt(name, own)) for step in own]
    return {f"{one.name} {hash((one.system, one.template)):x}": one for one in found}


CRITERIA = criteria()


def examples(text: str) -> Iterator[str]:
    """Every `{...}` of a text, the inner ones too, and each with its placeholders as texts."""
    for start in (match.start() for match in re.finditer(r"\{", text)):
        depth = 0
        for match in re.finditer(r"[{}]", text[start:]):
            depth += 1 if match[0] == "{" else -1
            if depth == 0:
                yield text[start : start + match.end()]
                break


def filled(example: str) -> Iterator[str]:
    """An example as it stands, and with texts in place of what stands in angle brackets."""
    yield example
    yield re.sub("<([^<>]*)>", r'"\1"', example)
    yield re.sub("(<[^<>]*>)", r'"\1"', example)


def shown(criterion: Criterion) -> str:
    """The request about some item."""
    names = prompts.placeholders(criterion.system) | prompts.placeholders(criterion.template)
    fields = {name: [] if name in criterion.images else f"some {name}" for name in names}
    messages = render(criterion, fields)
    return "\n".join(str(message["content"]) for message in messages)


@table("name", CRITERIA)
def test_no_example_is_a_verdict(name: str) -> None:
    criterion = CRITERIA[name]
    for example in examples(shown(criterion)):
        for schema_only, reply in enumerate(filled(example)):
            if not schema_only:  # its schema alone refuses it, whatever the prompt is
                assert refuses(criterion, reply), reply
            found = reader.read_verdict(criterion, {}, JudgeReply(reply), "judge")
            assert found.score is None, reply


def refuses(criterion: Criterion, reply: str) -> bool:
    try:
        reader.read_reply(reply, criterion.schema, (), criterion.bare, criterion.labels)
    except reader.UnreadableError:
        return True
    return False


def test_there_are_examples() -> None:
    """Else the test above would pass whatever the reader does."""
    found = {name: len([*examples(shown(one))]) for name, one in CRITERIA.items()}
    assert len(found) > 15
    assert sum(map(bool, found.values())) >= 14


def test_the_study() -> None:
    text = cvrr_judge.request("What does the dog do?", "It runs.")
    own = [*examples(text)]
    assert own
    for reply in (one for example in own for one in filled(example)):
        assert replies.read_rating(reply).rating is None, reply
