"""`lmms-eval-tasks facts`: a user's own recap becomes facts, questions and labels (3.2 and 3.3).

Segments are asked about side by side by the writer (judges/writer.py), so that a run can be
resumed. One that is in the file already, made from the same narration by the same model with the
same instructions, is kept as it is, hand corrections too. Anything else under its id is refused.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lmms_eval_tasks.console import say
from lmms_eval_tasks.errors import DataError, JudgeError
from lmms_eval_tasks.judges import JudgeConfig, writer
from lmms_eval_tasks.judges.config import KEY
from lmms_eval_tasks.judges.verdict import NONE
from lmms_eval_tasks.judges.writer import Written
from lmms_eval_tasks.movierecapsqa.facts import steps
from lmms_eval_tasks.movierecapsqa.facts.recap_file import Narrated
from lmms_eval_tasks.movierecapsqa.facts.steps import folded
from lmms_eval_tasks.movierecapsqa.schema import UNLABELLED, Segment
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.json_files import write_json
from lmms_eval_tasks.utils.prompts import Prompt
from lmms_eval_tasks.utils.validation import told

PAPER_MODEL = "gpt-4.1"  # paper, 3.2
GENERATED = "generated"  # our field in a segment: how it was made
Entry = dict[str, Any]  # a segment as the file has it


def model(spec: str | None, env: Mapping[str, str]) -> JudgeConfig:
    """The model that writes, in the forms of a judge; None is the paper's GPT-4.1.

    Raises:
        JudgeError: it cannot be used, or is no single language model.
    """
    spec = (spec or PAPER_MODEL).strip()
    at_openai = re.fullmatch(r"[\w./-]+(?<!\.yml)(?<!\.yaml)", spec) and spec != NONE
    if at_openai and not env.get(KEY, "").strip():
        raise JudgeError(
            f"--model: a model at OpenAI (unset: {PAPER_MODEL}) needs a key: set {KEY}, or name "
            "one at an endpoint of your own, MODEL@BASE_URL"
        )
    return writer.writer(spec, env, "--model", "one language model writes the facts", PAPER_MODEL)


@dataclass(frozen=True)
class Plan:
    """A recap's segments, by id how each comes about, and those that the file has."""

    file: Path
    config: JudgeConfig
    prompt: Prompt
    segments: Sequence[Narrated]
    made_from: Mapping[str, Mapping[str, str]]
    append: bool

    @property
    def todo(self) -> list[Narrated]:
        """Segments that the file lacks.

        Raises:
            DataError: it holds what must not be touched.
        """
        there = _own(self)
        return [one for one in self.segments if one.id not in there]


def plan(segments: Sequence[Narrated], config: JudgeConfig, file: Path, *, append: bool) -> Plan:
    """What is to be done; nobody is asked.

    Raises:
        PromptError: the user's instructions do not fit.
    """
    given = writer.load("facts", steps.STEPS)
    made = {one.id: _made_from(one, config, given) for one in segments}
    return Plan(file, config, given, segments, made, append)


def _made_from(segment: Narrated, config: JudgeConfig, given: Prompt) -> dict[str, str]:
    text = json.dumps([dict(segment.released), segment.narration], sort_keys=True)
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
    return {
        "model": config.label,
        "settings": config.fingerprint,
        "prompt": given.hash,
        "input": digest,
    }


# What has to be the same in a segment that is kept. Other settings are no other writer: more room
# for a reply may be what a segment needs.
_SAME = {
    "input": "another narration, dialogue or time",
    "model": "another model",
    "prompt": "other instructions",
}


def _own(planned: Plan) -> dict[str, Entry]:
    """The recap's segments that the file has, by id."""
    file, wanted = planned.file, planned.made_from
    there = {entry["id"].strip(): entry for entry in _read(file)}
    if not planned.append and (others := [name for name in there if name not in wanted]):
        raise DataError(
            f"{file}: holds other segments ({others[0]}): add to them with --append, or name "
            "another file"
        )
    own = {name: there[name] for name in wanted if name in there}
    for name, entry in own.items():
        before, now, why = entry.get(GENERATED), wanted[name], ""
        if not isinstance(before, dict):
            why = "which this command did not make"
        elif other := [what for key, what in _SAME.items() if before.get(key) != now[key]]:
            why = f"made with {other[0]}"
        if why:
            raise DataError(
                f"{file}: has a segment {name} already, {why}: remove it there or name another file"
            )
        try:
            Segment.model_validate(entry)
        except ValidationError as error:
            raise DataError(f"{file}, segment {name}: {told(error)}") from None
    return own


def _read(file: Path) -> list[Entry]:
    content = released_files.read_json(file) if file.exists() else []
    if not isinstance(content, list) or not all(
        isinstance(entry, dict) and isinstance(entry.get("id"), str) for entry in content
    ):
        raise DataError(f"{file}: expected a list of segments with ids; name another file")
    return content


def build(planned: Plan) -> tuple[list[Entry], list[Written[Entry]]]:
    """Ask about the segments that the file lacks, and write it where any was made.

    A segment that fails is left out and told; all others are written.

    Returns:
        The recap's segments that are in the file now, and what became of those asked about.

    Raises:
        TasksError: the model cannot be used, or the file holds what must not be touched.
    """
    config, given, todo = planned.config, planned.prompt, planned.todo
    writer.start(config, [step.criterion(given) for step in steps.STEPS], given.name)

    def each(done: Written[Entry]) -> None:
        made = done.made
        what = "failed"
        if made is not None:
            what = f"{len(made['facts'])} facts, {len(made['questions'])} questions"
        say(f"{done.unit}: {what}")

    units = {one.id: steps.unit(given, one) for one in todo}
    written = writer.write(units, config, "movierecapsqa facts", each)
    made = {
        one.unit: {**one.made, GENERATED: dict(planned.made_from[one.unit])}
        for one in written
        if one.made is not None
    }
    own = _own(planned) | made  # read again: another recap may have been added meanwhile
    entries = [own[name] for name in planned.made_from if name in own]
    if made:
        others = [one for one in _read(planned.file) if one["id"].strip() not in planned.made_from]
        write_json(planned.file, [*others, *entries])
    return entries, written


# --- what is told ---------------------------------------------------------------------------------


def lines(planned: Plan, entries: Sequence[Entry], made: int) -> Iterator[str]:
    """What is in the file, and what a person should look at."""
    questions = [(entry, question) for entry in entries for question in entry["questions"]]
    yield (
        f"{planned.file}: {len(entries)} of the recap's {len(planned.segments)} segments "
        f"({made} made now, {len(entries) - made} kept), "
        f"{sum(len(entry['facts']) for entry in entries)} facts, {len(questions)} questions"
    )
    for name in ("modality", "category"):
        counts = Counter(question.get(name) or UNLABELLED for _, question in questions)
        yield f"{name}: {', '.join(f'{label} {n}' for label, n in counts.most_common())}"
    for entry, question in questions:
        asked = question["question"]
        if leaks(asked, question.get("datasetAnswer") or ""):
            yield f"to look at: {entry['id']}/{question['qid']}: holds its answer: {asked}"
        if names := names_left(asked, entry["facts"]):
            place = f"{entry['id']}/{question['qid']}"
            yield f"to look at: {place}: still names {', '.join(names)}: {asked}"


def leaks(question: str, answer: str) -> bool:
    """Whether a question holds all words of its answer that carry meaning.

    These are the words of at least four letters and the numbers, or all words if there are none.
    """
    words = set(folded(answer).split())
    content = {word for word in words if len(word) >= 4 or word.isdigit()} or words
    return bool(content) and content <= set(folded(question).split())


# A word inside a sentence, or behind a title (Dr. Curtis): at a beginning all are capitalised.
_INSIDE = re.compile(r"(?:(?<=[^.!?\s]\s)|(?<=\W[A-Z]\w\.\s))\w\w+")


def names_left(question: str, facts: Sequence[str]) -> list[str]:
    """Words of a question that look like names of its segment's facts: capitalised in both."""
    said = " ".join(facts)
    inside, anywhere = (set(found) for found in (_INSIDE.findall(said), re.findall(r"\w+", said)))
    own = set(_INSIDE.findall(question))
    return [
        word
        for word in re.findall(r"\w\w+", question)
        if word[0].isupper() and (word in inside or (word in own and word in anywhere))
    ]
