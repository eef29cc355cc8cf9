"""What the judge is asked, which replies it may give, and who it may be."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from lmms_eval_tasks import prompts, settings
from lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_tasks.commands import authors_prompts
from lmms_eval_tasks.errors import JudgeError, PromptError
from lmms_eval_tasks.haven.tasks import BENCHMARK as haven  # noqa: N811
from lmms_eval_tasks.judges import reader
from lmms_eval_tasks.judges.engine import exact_schema, render, schema_of
from lmms_eval_tasks.movierecapsqa import baselines, judge, tasks
from lmms_eval_tasks.movierecapsqa.judge import WORDS
from lmms_eval_tasks.movierecapsqa.tasks import BENCHMARK
from lmms_eval_tasks.runs import prepare
from tests.checks import own_prompts
from tests.movierecapsqa.asking import CLAIMS, CONTEXT, labelled

LABELS = Path(__file__).parents[1] / "cases" / "movierecapsqa_labels.json"


def test_words_of_labels() -> None:
    for dimension, written, expected in json.loads(LABELS.read_text(encoding="utf-8"))["words"]:
        if expected is None:
            with pytest.raises(ValueError, match="none of"):
                judge.read_label(dimension, written)
        else:
            assert judge.read_label(dimension, written) == expected


# --- replies ------------------------------------------------------------------------------------


def read(dimension: str, reply: Any) -> Any:
    text = reply if isinstance(reply, str) else json.dumps(reply)
    return reader.read_reply(text, judge.dimension_criterion(dimension, 2).schema, CLAIMS)


def pairs(*labels: tuple[Any, str], **more: Any) -> dict[str, Any]:
    given = [{"id": number, "label": label} for number, label in labels]
    return {"labels": given, "reason": "", "score": 3, **more}


def test_one_label_for_every_claim_and_a_score() -> None:
    """Also with claim text and a reason for each label, as the authors' texts ask for it."""
    ours = [{"id": 1, "claim": "c", "label": "*SUPPORTED* (S)"}, {"id": 2, "label": "NC"}]
    theirs = [
        {"claim_number": number, "claim_text": "c", "label": label, "supporting_facts": ["f"]}
        for number, label in ((1, "SUPPORTED"), (2, "NOT_CHECKABLE"))
    ]
    told = {"score_justification": "some", "explanation": "all in all"}
    for reply in (
        pairs((2, "not_checkable"), (1, "supported")),
        pairs(("2", "Not checkable"), (1.0, "SUPPORTED"), score="3/5"),
        f"Here it is:\n```json\n{labelled(['supported', 'not-checkable'])}\n```",
        str(pairs((1, "supported"), (2, "not_checkable"))),
        {"labels": ours, "score": 3},
        {"claim_evaluations": theirs, "factuality_score": 3, **told},
        {"claim_evaluations": theirs, "factuality_score": 3, "score": 3},
    ):
        found = read("factuality", reply)
        assert [(one.id, one.label) for one in found.labels] == [
            (1, "supported"),
            (2, "not_checkable"),
        ]
        assert judge.dimension_criterion("factuality", 2).score(found) == 3
    for bad in (
        {"claim_evaluations": theirs, "relevance_score": 3, **told},  # another dimension's
        {"claim_evaluations": theirs[:1], "factuality_score": 3, **told},
        {"claim_evaluations": theirs, "factuality_score": 3, "score": 4},
    ):
        with pytest.raises(reader.UnreadableError):
            read("factuality", bad)


def test_the_exact_schema_holds_what_the_reader_asks_for() -> None:
    """It is one of the replies that the general one allows, and each of its replies is read."""
    criterion = judge.dimension_criterion("relevance", 2)
    exact = exact_schema(criterion, 4096)
    both, general = Draft202012Validator(exact), Draft202012Validator(schema_of(criterion.schema))
    good = pairs((1, "relevant"), (2, "irrelevant"))
    assert both.is_valid(good)
    assert general.is_valid(good)
    assert read("relevance", good).score == 3
    for bad in (
        pairs((1, "relevant")),
        pairs((1, "relevant"), (2, "relevant"), (3, "relevant")),
        pairs((1, "relevant"), (1, "relevant")),
        pairs((2, "relevant"), (1, "relevant")),
        pairs((1, "relevant"), (2, "supported")),  # another dimension's
        pairs((1, "relevant"), (2, "relevant"), score=6),
        pairs((1, "relevant"), (2, "relevant"), reason="x" * 601),
        pairs((1, "relevant"), (2, "relevant"), more=1),
    ):
        assert not both.is_valid(bad), bad


BOTH = ((1, "supported"), (2, "supported"))


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (pairs(*BOTH, (3, "supported")), "one label for each of 2 claims"),
        (pairs((1, "supported"), (1, "unsupported")), "one label for each"),
        (pairs((1, "supported"), (2.5, "supported")), "integer"),
        (pairs((1, "supported"), (True, "supported")), "integer"),
        (pairs((1, "supported"), ("9" * 5000, "supported")), "labels"),
        (pairs((1, "supported"), (2, "relevant")), "a label that is none of supported"),
        (pairs(*BOTH, score=6), "score"),
        (pairs(*BOTH, score=4.5), "score"),
        (pairs(*BOTH, score="4/10"), "another scale"),
        (pairs(*BOTH, mean=3), "unknown key"),
        ({"labels": ["supported", "supported"], "reason": "", "score": 3}, "labels"),
        ("Score: 3", "no object"),
    ],
)
def test_anything_else_is_no_verdict(reply: Any, said: str) -> None:
    with pytest.raises(reader.UnreadableError, match=said) as caught:
        read("factuality", reply)
    assert caught.value.status == "parse_failure"


def test_what_counts_as_a_claim() -> None:
    criterion = judge.claims_criterion()
    for given, kept in (
        (["", "  ", "\n", "-", "...", "\u200b"], []),
        ([" He runs. ", "", "He runs. "], ["He runs.", "He runs."]),
        (["He\n2. runs\r\n\taway"], ["He 2. runs away"]),
        (["È rosso", "他跑了", "7"], ["È rosso", "他跑了", "7"]),
    ):
        for key in ("claims", "atomic_claims"):
            found = reader.read_reply(json.dumps({key: given}), criterion.schema)
            assert (found.claims, criterion.score(found)) == (kept, len(kept))  # type: ignore[attr-defined]
    for reply in ('{"claims": "He runs."}', '{"claims": [1]}', '["He runs."]', "He runs.", "{}"):
        with pytest.raises(reader.UnreadableError):
            reader.read_reply(reply, criterion.schema)


# --- the user's prompts and judges --------------------------------------------------------------


@pytest.mark.parametrize("kind", ["panel", "debate"])
@pytest.mark.parametrize("benchmark", [BENCHMARK, haven])
def test_several_judges_cannot_judge(benchmark: Benchmark, kind: str, tmp_path: Path) -> None:
    file = tmp_path / "judge.yml"
    file.write_text(f"{kind}: [a@http://localhost:1/v1, b@http://localhost:1/v1]\n")
    with pytest.raises(JudgeError, match=r"several judges.*name one model"):
        prepare.check_judge(benchmark, str(file))


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("task", {"only_frames": "{question} {dialogue}"}, "unknown placeholder {dialogue}"),
        ("judge", {"claims": "{question} {candidate} {facts}"}, "{facts}"),
        ("baselines", {"read": "{question} {candidate} {reference}"}, "{reference}"),
    ],
)
def test_prompts_of_the_user_that_do_not_fit(
    name: str, changes: dict[str, str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a model or a judge would not be told, or must not."""
    read = {
        "task": tasks.task_prompts,
        "judge": judge.load_judge_prompts,
        "baselines": baselines.prompt,
    }
    own_prompts(tmp_path, monkeypatch, "movierecapsqa", name, **changes)
    with pytest.raises(PromptError, match=rf"{name}\.yml.*{re.escape(said)}"):
        read[name]()


DIMENSION = """Mark it.
{{ question }}
{{ claims }}
{% raw %}{"claim_evaluations": [{"claim_number": 1}]}{% endraw %}
"""
FACTS = "{{ facts }} {{ context }}"


def test_the_authors_own_texts_are_whole_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the form of their files; the sentences are made up."""
    clone, own = tmp_path / "clone", tmp_path / "own"
    texts = dict.fromkeys(("factuality", "relevance"), DIMENSION + FACTS)
    texts |= {"coherence": DIMENSION, "claim_extraction": "Split {{ answer }}, for {{ question }}"}
    (clone / "eval" / "prompts").mkdir(parents=True)
    for name, text in texts.items():
        (clone / "eval" / "prompts" / f"movierecaps_{name}.jinja").write_text(text)
    code = 'class A:\n    def __init__(self):\n        self.system_message = "You split."\n'
    (clone / "eval" / "evaluator.py").write_text(code)
    authors_prompts.write_prompts("movierecapsqa", clone, own)
    monkeypatch.setenv(settings.PROMPTS, str(own))
    prompts.forget()
    claims = judge.claims_criterion()
    assert claims.system == "You split."
    assert claims.template.startswith("Split {candidate}, for {question}")
    for dimension in WORDS:
        asked = judge.request_fields(CONTEXT, dimension, "Who?", CLAIMS)
        (user,) = render(judge.dimension_criterion(dimension, 2), asked)
        assert user["content"].startswith("Mark it.\nWho?\n<")
        assert '{"claim_evaluations": [{"claim_number": 1}]}' in user["content"]
        shown = "Tommy was a scientist." in user["content"]
        assert shown is (dimension != "coherence")
    prompts.forget()
