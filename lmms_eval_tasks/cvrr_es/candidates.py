"""Candidates and their answers, put to the questions of the release (joining.py has the rules).

    MODEL/DIMENSION.json                          a list of {Q, A}; A is the model's answer
    RUN_samples_cvrr_es_DIMENSION.jsonl           written by the host with --log_samples

Some released questions begin with image tokens ("<image> <image>\\n..."), some answers end in
"</s>": both are taken off and counted. Nothing is guessed and nothing is lost quietly: an answer
that cannot be joined is told, with its file, and stops unless the user leaves such items out
(`--allow-bad-items`). Empty answers are kept and counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from lmms_eval_tasks import settings
from lmms_eval_tasks.cvrr_es.joining import fold, join
from lmms_eval_tasks.cvrr_es.labels import ANSWERS, DIMENSIONS, dimension_of
from lmms_eval_tasks.cvrr_es.release import Asked, Release
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils import released_files, saved_runs
from lmms_eval_tasks.utils.media.video_checks import LEAVE_OUT
from lmms_eval_tasks.utils.replies import answers as replies

# <image>, <video>, <|image|>, <image_1>, <im_start>, <ImageHere>: what prompts put in for pictures.
_TOKEN = r"<\|?(?:image|img|im|video|vid|frame)(?:[_ ]?\w+)?\|?>"
_TOKENS = re.compile(rf"^(?:\s*{_TOKEN})+\s*", re.IGNORECASE)
_END = re.compile(r"(?:\s*</s>)+\s*$")


class Answer(NamedTuple):
    """One entry of a file.

    Attributes:
        id: of the question, as our saved samples have it; "" in predictions.
        question: without image tokens; "" if the file does not say.
        text: what the candidate said, without "</s>"; None if the entry holds no text.
    """

    id: str
    question: str
    text: str | None


class Answers(NamedTuple):
    """A candidate's answers in one dimension.

    Attributes:
        file: where they are from.
        entries: in the file's order.
        tokens: questions that began with image tokens.
        ends: answers that ended in "</s>".
    """

    file: Path
    entries: Sequence[Answer]
    tokens: int = 0
    ends: int = 0


Candidates = dict[str, dict[str, Answers]]  # name -> dimension -> what it said


@dataclass(frozen=True)
class Aligned:
    """A candidate's answers to the questions of a release.

    Attributes:
        candidate: its name.
        answers: question id -> answer as it stands, in the release's order.
        empty: ids of the questions whose answer holds no letter, digit or symbol.
        tokens: questions that began with image tokens, which were taken off.
        ends: answers that ended in "</s>", which was taken off.
        ways: how many answers were joined in each way (joining.py; `id` in saved samples).
        problems: what does not fit, a line each; these answers are left out.
        notes: what to know of those that fit, a line each.
    """

    candidate: str
    answers: Mapping[str, str]
    empty: tuple[str, ...]
    tokens: int
    ends: int
    ways: Mapping[str, int]
    problems: tuple[str, ...]
    notes: tuple[str, ...]


def fitting(paths: Sequence[Path], release: Release) -> list[Aligned]:
    """The candidates in files and folders, their answers put to the release's questions.

    Raises:
        DataError: as `read`; a candidate has no answer that fits; or answers do not fit and the
            user did not allow to leave them out, with every problem in a line.
    """
    found = [align(name, own, release) for name, own in read(paths).items()]
    for one in found:
        if not one.answers:
            raise DataError(f"{one.candidate}: not one answer fits the release: {one.problems[0]}")
    problems = [problem for one in found for problem in one.problems]
    if problems and not settings.value(settings.ALLOW_BAD_ITEMS):
        lines = "\n".join(f"  {problem}" for problem in problems)
        raise DataError(f"answers do not fit the release:\n{lines}\n{LEAVE_OUT}")
    return found


def align(name: str, given: Mapping[str, Answers], release: Release) -> Aligned:
    """Put a candidate's answers to the release's questions; raises nothing.

    Answers to questions that cannot be used themselves (`release.problems`) are left out, as the
    questions are. Dimensions that the release lacks are noted and not looked into.
    """
    found: dict[str, str] = {}
    ways: Counter[str] = Counter()
    problems: list[str] = []
    for dimension, places in release.places.items():
        if (own := given.get(dimension)) is None:
            problems.append(f"{name}: no answers in {dimension} ({len(places):,} questions)")
            continue
        has_ids = any(one.id for one in own.entries)
        joined, how, wrong = (_by_id if has_ids else _by_text)(own.entries, places)
        ways.update(how)
        if bad := [one for one in joined.values() if one.text is None]:
            wrong.append(f"whose `A` is no text: {len(bad):,}, such as {bad[0].question!r}")
        problems += [f"{own.file}: answers {problem}" for problem in wrong]
        if missing := [place for place in places if place.id not in joined]:
            told = f"questions without an answer: {len(missing):,}, first {missing[0].id}"
            problems.append(f"{own.file}: {told} ({missing[0].question})")
        found |= {place: one.text for place, one in joined.items() if one.text is not None}
    unasked = [dimension for dimension in given if dimension not in release.places]
    ordered = {one.id: found[one.id] for one in release.questions if one.id in found}
    return Aligned(
        candidate=name,
        answers=ordered,
        empty=tuple(n for n, text in ordered.items() if replies.reply_status(text) == "empty"),
        tokens=sum(own.tokens for own in given.values()),
        ends=sum(own.ends for own in given.values()),
        ways=dict(ways),
        problems=tuple(problems),
        notes=(f"{name}: answers in {', '.join(unasked)}: not in the release",) if unasked else (),
    )


# Answers by the ids of their questions, how many were joined in each way, and what is wrong.
_Joined = tuple[dict[str, Answer], Mapping[str, int], list[str]]


def _by_text(entries: Sequence[Answer], places: Sequence[Asked]) -> _Joined:
    """Entries of a predictions file, by what they say that they answer."""
    joined, ways, left = join(
        [(fold(one.question), fold(one.text or "")) for one in entries],
        [fold(place.question) for place in places],
    )
    problems = [
        f"{told}: {len(left[kind]):,}, first {entries[left[kind][0]].question!r}"
        for kind, told in (
            ("unknown", "to a question that is not in the release"),
            ("several", "to a question that is answered more than once"),
            ("open", "to a repeated question in another order than the release's"),
        )
        if left[kind]
    ]
    return {places[place].id: entries[number] for number, place in joined.items()}, ways, problems


def _by_id(entries: Sequence[Answer], places: Sequence[Asked]) -> _Joined:
    """The same of saved samples, whose ids are the release's."""
    asked = {place.id: fold(place.question) for place in places}
    good = {
        one.id: one
        for one in entries
        if one.id in asked and fold(one.question) in ("", asked[one.id])
    }
    bad = [one.id for one in entries if one.id not in good]
    what = "to other questions than the release has under their ids: another version?"
    problems = [f"{what} {len(bad):,}, first {bad[0]}"] if bad else []
    return good, {"id": len(good)} if good else {}, problems


# --- files ----------------------------------------------------------------------------------------


def read(paths: Sequence[Path]) -> Candidates:
    """The candidates in files and folders, in the order of the paths, then by name.

    Args:
        paths: folders of one candidate's predictions, folders of such folders, saved samples, or
            folders with saved samples.

    Raises:
        DataError: a path is not there or holds no answers; a file is of another form; a candidate
            has two files of a dimension.
    """
    found: Candidates = {}
    for path in dict.fromkeys(path.expanduser().resolve() for path in paths):
        if not path.exists():
            raise DataError(f"{path}: no such file or folder")
        if path.is_file() and path.suffix == ".json":
            raise DataError(f"{path}: name its folder, whose name is the candidate's")
        given = [*_predictions(path), *_saved(path)]
        if not given:
            raise DataError(
                f"{path}: no answers of a candidate (expected MODEL/DIMENSION.json with {{Q, A}}, "
                f"or *_samples_{ANSWERS}DIMENSION.jsonl)"
            )
        for name, dimension, answers in given:
            other = found.setdefault(name, {}).setdefault(dimension, answers)
            if other.file != answers.file:
                raise DataError(
                    f"two files with answers in {dimension} by {name}: {other.file} and "
                    f"{answers.file}; name one of them, or rename a folder"
                )
    return {
        name: {slug: own[slug] for slug in DIMENSIONS if slug in own} for name, own in found.items()
    }


def _predictions(path: Path) -> Iterator[tuple[str, str, Answers]]:
    """Name, dimension and answers of predictions as released."""
    if not path.is_dir():
        return
    own = any((path / f"{dimension}.json").is_file() for dimension in DIMENSIONS)
    for folder in [path] if own else sorted(path.iterdir()):
        for dimension in DIMENSIONS:
            if (file := folder / f"{dimension}.json").is_file():
                yield folder.name, dimension, _predicted(file)


def _predicted(file: Path) -> Answers:
    content = released_files.read_json(file)
    if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
        raise DataError(f"{file}: expected a list of {{Q, A}}")
    if not content:
        raise DataError(f"{file}: holds no answers")
    questions = [_without(_TOKENS, row.get("Q")) for row in content]
    texts = [_without(_END, row.get("A")) for row in content]
    return Answers(
        file,
        [Answer("", q or "", text) for (q, _), (text, _) in zip(questions, texts, strict=True)],
        tokens=sum(found for _, found in questions),
        ends=sum(found for _, found in texts),
    )


def _without(pattern: re.Pattern[str], text: object) -> tuple[str | None, bool]:
    """A text without what `pattern` finds, and whether it found any; None if it is no text."""
    if not isinstance(text, str):
        return None, False
    cleaned, found = pattern.subn("", text, count=1)
    return cleaned.strip(), bool(found)


def _saved(path: Path) -> Iterator[tuple[str, str, Answers]]:
    """The same of saved runs; of a folder those of our tasks, whatever else was saved there."""
    files = [path] if path.is_file() else sorted(path.rglob(f"*_samples_{ANSWERS}*.jsonl"))
    for run in map(saved_runs.read, files):
        dimension = dimension_of(run.task)
        if not dimension:
            raise DataError(f"{run.file}: {run.task} is no task with answers of CVRR-ES")
        items = saved_runs.saved_items(run)
        names = list(dict.fromkeys(item.get("candidate") or "" for item in items))
        if len(names) > 1:
            raise DataError(
                f"{run.file}: answers of {names[0]} and of {names[1]}; one file, one model"
            )
        # Without the run's results file it is the folder, which the host calls after the model.
        name = "".join(names) or run.model or run.file.parent.name
        entries = [
            Answer(item["id"], item.get("question") or "", _reply(item["reply"])) for item in items
        ]
        yield name, dimension, Answers(run.file, entries)


def _reply(given: str) -> str:
    """A saved reply as an answer.

    Reasoning is left out. The host's own error text and a reply that was cut off in its reasoning
    are nothing that the candidate said: empty, as a reply without any content is.
    """
    lost = replies.reply_status(given) in ("model_error", "truncated")
    return "" if lost else replies.strip_reasoning(given)[0].strip()
