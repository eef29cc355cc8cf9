"""Candidates' answers as files hold them: the released predictions, or saved samples of our tasks.

    MODEL/DIMENSION.json                          a list of {Q, A}; A is the model's answer
    ../judge_results/MODEL/DIMENSION.json         beside the folder of the models: published
                                                  judgements, which hold the question, the reference
                                                  and the answer together (joining.py)
    RUN_samples_cvrr_es_DIMENSION.jsonl           written by the host with --log_samples

Some released questions begin with image tokens ("<image> <image>\\n..."), some answers end in
"</s>": both are taken off and counted.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from lmms_eval_tasks.cvrr_es.joining import Judgements, fold
from lmms_eval_tasks.cvrr_es.labels import ANSWERS, DIMENSIONS
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.runs import rescore
from lmms_eval_tasks.utils import answers, released_files

JUDGEMENTS = "judge_results"

# <image>, <video>, <|image|>, <image_1>, <im_start>, <ImageHere>: what prompts put in for pictures.
_TOKEN = r"<\|?(?:image|img|im|video|vid|frame)(?:[_ ]?\w+)?\|?>"
_TOKENS = re.compile(rf"^(?:\s*{_TOKEN})+\s*", re.IGNORECASE)
_END = re.compile(r"(?:\s*</s>)+\s*$")


class Answer(NamedTuple):
    """One entry of a file.

    Attributes:
        entry: its number in the file, from 1 on.
        id: of the question, as our saved samples have it; "" in predictions.
        question: without image tokens; "" if the file does not say.
        text: what the candidate said, without "</s>"; None if the entry holds no text.
    """

    entry: int
    id: str
    question: str
    text: str | None


@dataclass(frozen=True)
class Answers:
    """A candidate's answers in one dimension.

    Attributes:
        file: where they are from.
        entries: in the file's order.
        tokens: questions that began with image tokens.
        ends: answers that ended in "</s>".
        judged: the published judgements of these answers; empty without.
    """

    file: Path
    entries: tuple[Answer, ...]
    tokens: int
    ends: int
    judged: Judgements


def is_predictions(folder: Path) -> bool:
    """Whether a folder holds one candidate's predictions."""
    return any((folder / f"{dimension}.json").is_file() for dimension in DIMENSIONS)


def predictions(folder: Path) -> dict[str, Answers]:
    """One candidate's answers by dimension.

    Raises:
        DataError: a file is no list of {Q, A}; names it.
    """
    beside = folder.parent.parent / JUDGEMENTS / folder.name
    return {
        dimension: _predicted(file, beside / file.name)
        for dimension in DIMENSIONS
        if (file := folder / f"{dimension}.json").is_file()
    }


def _predicted(file: Path, judgements: Path) -> Answers:
    content = released_files.read_json(file)
    if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
        raise DataError(f"{file}: expected a list of {{Q, A}}")
    if not content:
        raise DataError(f"{file}: holds no answers")
    entries: list[Answer] = []
    tokens = ends = 0
    for number, row in enumerate(content, 1):
        question, n_tokens = _without(_TOKENS, row.get("Q"))
        text, n_ends = _without(_END, row.get("A"))
        tokens, ends = tokens + n_tokens, ends + n_ends
        entries.append(Answer(number, "", question or "", text))
    judged = _judgements(judgements) if judgements.is_file() else {}
    return Answers(file, tuple(entries), tokens, ends, judged)


def _without(pattern: re.Pattern[str], text: object) -> tuple[str | None, bool]:
    """A text without what `pattern` finds, and whether it found any; None if it is no text."""
    if not isinstance(text, str):
        return None, False
    cleaned, found = pattern.subn("", text, count=1)
    return cleaned.strip(), bool(found)


def _judgements(file: Path) -> Judgements:
    """References by question and answer; rows of another form say nothing and are passed over.

    Published rows are [{pred, score, reason}, {q, a, pred}]; a few have another nesting.
    """
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for asked in _triples(released_files.read_json(file)):
        question, _ = _without(_TOKENS, asked["q"])
        text, _ = _without(_END, asked["pred"])
        if question is not None and text is not None and isinstance(asked["a"], str):
            found[fold(question), fold(text)].append(fold(asked["a"]))
    return dict(found)


def _triples(content: Any) -> Iterator[Mapping[str, Any]]:
    """Every object with q, a and pred, however deep in lists."""
    waiting = [content]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting += reversed(one)
        elif isinstance(one, dict) and {"q", "a", "pred"} <= one.keys():
            yield one


# --- saved samples ------------------------------------------------------------------------------


def is_answers(run: rescore.Run) -> bool:
    """Whether a saved run is of a task whose replies are answers to the release's questions."""
    return run.task.removeprefix(ANSWERS) in DIMENSIONS and run.task.startswith(ANSWERS)


def told_by(run: rescore.Run) -> tuple[str, str]:
    """The candidate and the dimension of a saved run.

    The candidate is who its items say; else the run's model; without the run's results file the
    folder, which the host calls after the model.

    Raises:
        DataError: its items name different candidates.
    """
    named = [item.get("candidate") for item in items(run)]
    names = list(dict.fromkeys(name for name in named if isinstance(name, str) and name))
    if len(names) > 1:
        raise DataError(f"{run.file}: answers of {names[0]} and of {names[1]}; one file, one model")
    name = names[0] if names else run.model or run.file.parent.name
    return name, run.task.removeprefix(ANSWERS)


def items(run: rescore.Run) -> list[dict[str, Any]]:
    """What our tasks wrote of each sample, from under the metric that has it whole.

    Raises:
        DataError: a sample lacks it; names the line.
    """
    found = []
    for number, sample in enumerate(run.samples, 1):
        item = next(filter(_is_item, sample.values()), None)
        if item is None:
            raise DataError(
                f"{run.file}, line {number}: no item with `id`, `dimension` and `reply` of a "
                f"{ANSWERS}* task"
            )
        found.append(item)
    return found


def saved(run: rescore.Run) -> Answers:
    """The answers of a saved run of one dimension.

    Reasoning is left out. The host's own error text and a reply that was cut off in its reasoning
    are nothing that the candidate said: empty, as a reply without any content is.

    Raises:
        DataError: a sample lacks what these tasks write; names the line.
    """
    entries = []
    for number, item in enumerate(items(run), 1):
        given = item["reply"]
        lost = answers.reply_status(given) in ("model_error", "truncated")
        reply = "" if lost else answers.strip_reasoning(given)[0].strip()
        question = item.get("question")
        question = question.strip() if isinstance(question, str) else ""
        entries.append(Answer(number, item["id"], question, reply))
    return Answers(run.file, tuple(entries), tokens=0, ends=0, judged={})


def _is_item(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(value.get(name), str) for name in ("id", "dimension", "reply")
    )
