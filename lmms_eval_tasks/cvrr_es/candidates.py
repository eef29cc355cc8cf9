"""Candidates and their answers, put to the questions of the release (joining.py has the rules).

    MODEL/DIMENSION.json                          a list of {Q, A}; A is the model's answer
    RUN_samples_cvrr_es_DIMENSION.jsonl           written by the host with --log_samples

Some released questions begin with image tokens ("<image> <image>\\n..."), some answers end in
"</s>": both are taken off and counted. What does not fit is told in one line each, with the file
and its first place. Nothing is guessed and nothing is lost quietly: an answer that cannot be joined
is a problem, which stops unless the user leaves such items out (`--allow-bad-items`). Empty answers
are kept and counted.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.cvrr_es import joining
from lmms_eval_tasks.cvrr_es.joining import Answer, Answers
from lmms_eval_tasks.cvrr_es.labels import ANSWERS, DIMENSIONS, dimension_of
from lmms_eval_tasks.cvrr_es.release import Release
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils import released_files, saved_runs
from lmms_eval_tasks.utils.media.video_checks import LEAVE_OUT
from lmms_eval_tasks.utils.replies import answers as replies

# <image>, <video>, <|image|>, <image_1>, <im_start>, <ImageHere>: what prompts put in for pictures.
_TOKEN = r"<\|?(?:image|img|im|video|vid|frame)(?:[_ ]?\w+)?\|?>"
_TOKENS = re.compile(rf"^(?:\s*{_TOKEN})+\s*", re.IGNORECASE)
_END = re.compile(r"(?:\s*</s>)+\s*$")


@dataclass(frozen=True)
class Candidate:
    """A model and what it said.

    Attributes:
        name: of the predictions' folder, or of the saved run's model.
        answers: by dimension.
    """

    name: str
    answers: Mapping[str, Answers]


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
    found = [align(one, release) for one in read(paths)]
    for one in found:
        if not one.answers:
            first = one.problems[0] if one.problems else "no dimension in common"
            raise DataError(f"{one.candidate}: not one answer fits the release: {first}")
    problems = [problem for one in found for problem in one.problems]
    if problems and not settings.value(settings.ALLOW_BAD_ITEMS):
        lines = "\n".join(f"  {problem}" for problem in problems)
        raise DataError(f"answers do not fit the release:\n{lines}\n{LEAVE_OUT}")
    return found


def align(candidate: Candidate, release: Release) -> Aligned:
    """Put a candidate's answers to the release's questions; raises nothing.

    Answers to questions that cannot be used themselves (`release.problems`) are left out, as the
    questions are. Dimensions that the release lacks are noted and not looked into.
    """
    found: dict[str, str] = {}
    ways: Counter[str] = Counter()
    problems: list[str] = []
    notes: list[str] = []
    for dimension, places in release.places.items():
        given = candidate.answers.get(dimension)
        if given is None:
            problems.append(
                f"{candidate.name}: no answers in {dimension} ({len(places):,} questions)"
            )
            continue
        joined, how, wrong = joining.joined(given, places)
        ways.update(how)
        problems += wrong
        found |= {name: one.text or "" for name, one in joined.items()}
    if unasked := [name for name in candidate.answers if name not in release.places]:
        notes.append(f"{candidate.name}: answers in {', '.join(unasked)}: not in the release")
    ordered = {one.id: found[one.id] for one in release.questions if one.id in found}
    return Aligned(
        candidate=candidate.name,
        answers=ordered,
        empty=tuple(n for n, text in ordered.items() if replies.reply_status(text) == "empty"),
        tokens=sum(given.tokens for given in candidate.answers.values()),
        ends=sum(given.ends for given in candidate.answers.values()),
        ways=dict(ways),
        problems=tuple(problems),
        notes=tuple(notes),
    )


def read(paths: Sequence[Path]) -> tuple[Candidate, ...]:
    """The candidates in files and folders, in the order of the paths, then by name.

    Args:
        paths: folders of one candidate's predictions, folders of such folders, saved samples, or
            folders with saved samples.

    Raises:
        DataError: a path is not there or holds no answers; a file is of another form; two
            candidates have one name; a candidate has two saved runs of a dimension.
    """
    places = dict.fromkeys(path.expanduser().resolve() for path in paths)
    own: list[Candidate] = []
    files: dict[Path, None] = {}
    for path in places:
        if not path.exists():
            raise DataError(f"{path}: no such file or folder")
        if path.is_file() and path.suffix == ".json":
            raise DataError(f"{path}: name its folder, whose name is the candidate's")
        predicted, saved = list(_predictions(path)), _sample_files(path)
        if not predicted and not saved:
            raise DataError(
                f"{path}: no answers of a candidate (expected MODEL/DIMENSION.json with {{Q, A}}, "
                f"or *_samples_{ANSWERS}DIMENSION.jsonl)"
            )
        own += predicted
        files |= dict.fromkeys(saved)
    found: dict[str, Candidate] = {}
    for candidate in [*own, *_saved(list(files))]:
        other = found.setdefault(candidate.name, candidate)
        if other is not candidate:
            raise DataError(
                f"two candidates are called {candidate.name}: {_folder(other)} and "
                f"{_folder(candidate)}; name one of them, or rename a folder"
            )
    return tuple(found.values())


def _folder(candidate: Candidate) -> Path:
    return next(iter(candidate.answers.values())).file.parent


def _predictions(path: Path) -> Iterator[Candidate]:
    if not path.is_dir():
        return
    folders = [path] if _is_predictions(path) else sorted(path.iterdir())
    for folder in filter(_is_predictions, folders):
        found = {
            dimension: _predicted(file)
            for dimension in DIMENSIONS
            if (file := folder / f"{dimension}.json").is_file()
        }
        yield Candidate(folder.name, found)


def _is_predictions(folder: Path) -> bool:
    return any((folder / f"{dimension}.json").is_file() for dimension in DIMENSIONS)


def _predicted(file: Path) -> Answers:
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
    return Answers(file, tuple(entries), tokens, ends)


def _without(pattern: re.Pattern[str], text: object) -> tuple[str | None, bool]:
    """A text without what `pattern` finds, and whether it found any; None if it is no text."""
    if not isinstance(text, str):
        return None, False
    cleaned, found = pattern.subn("", text, count=1)
    return cleaned.strip(), bool(found)


# --- saved samples ------------------------------------------------------------------------------


def _sample_files(path: Path) -> list[Path]:
    """A file as it is; of a folder the samples of our tasks, whatever else a run saved there."""
    if path.is_file():
        return [path]
    return sorted(path.rglob(f"*_samples_{ANSWERS}*.jsonl"))


def _saved(files: Sequence[Path]) -> Iterator[Candidate]:
    """Saved runs, one for each dimension, joined to candidates by their model."""
    by_model: dict[str, dict[str, Answers]] = {}
    for run in map(saved_runs.read, files):
        dimension = dimension_of(run.task)
        if not dimension:
            raise DataError(f"{run.file}: {run.task} is no task with answers of CVRR-ES")
        items = saved_runs.saved_items(run)
        name = _named(run, items)
        own = by_model.setdefault(name, {})
        if dimension in own:
            raise DataError(
                f"{run.file}: a second run of {dimension} by {name}, beside {own[dimension].file}; "
                "name one of them"
            )
        own[dimension] = Answers(run.file, tuple(map(_answer, itertools.count(1), items)))
    for name, found in by_model.items():
        yield Candidate(name, {slug: found[slug] for slug in DIMENSIONS if slug in found})


def _named(run: saved_runs.Run, items: Sequence[Mapping[str, Any]]) -> str:
    """The candidate: who the run's items say; else its model.

    Without the run's results file it is the folder, which the host calls after the model.

    Raises:
        DataError: the items name different candidates.
    """
    named = [item.get("candidate") for item in items]
    names = list(dict.fromkeys(name for name in named if isinstance(name, str) and name))
    if len(names) > 1:
        raise DataError(f"{run.file}: answers of {names[0]} and of {names[1]}; one file, one model")
    return names[0] if names else run.model or run.file.parent.name


def _answer(number: int, item: Mapping[str, Any]) -> Answer:
    """A saved reply as an answer.

    Reasoning is left out. The host's own error text and a reply that was cut off in its reasoning
    are nothing that the candidate said: empty, as a reply without any content is.
    """
    given, question = item["reply"], item.get("question")
    lost = replies.reply_status(given) in ("model_error", "truncated")
    reply = "" if lost else replies.strip_reasoning(given)[0].strip()
    return Answer(number, item["id"], question.strip() if isinstance(question, str) else "", reply)
