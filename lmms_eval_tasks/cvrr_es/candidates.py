"""Candidates and their answers, put to the questions of the release (joining.py has the rules).

What does not fit is told in one line each, with the file and its first place. Nothing is guessed
and nothing is lost quietly: an answer that cannot be joined is a problem, which stops unless the
user leaves such items out (`--allow-bad-items`). Empty answers are kept and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lmms_eval_tasks import settings
from lmms_eval_tasks.cvrr_es import candidate_files, candidate_joins
from lmms_eval_tasks.cvrr_es.candidate_files import Answers
from lmms_eval_tasks.cvrr_es.labels import ANSWERS, DIMENSIONS
from lmms_eval_tasks.cvrr_es.schema import Release
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.runs import rescore
from lmms_eval_tasks.utils import answers as replies
from lmms_eval_tasks.utils.video_checks import LEAVE_OUT


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
        ways: how many answers were joined in each way (joining.WAYS; `id` in saved samples).
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
        DataError: as `read` and `check`.
    """
    found = [align(one, release) for one in read(paths)]
    check(found)
    return found


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
    folders = [path] if candidate_files.is_predictions(path) else sorted(path.iterdir())
    for folder in folders:
        if candidate_files.is_predictions(folder):
            yield Candidate(folder.name, candidate_files.predictions(folder))


def _sample_files(path: Path) -> list[Path]:
    """A file as it is; of a folder the samples of our tasks, whatever else a run saved there."""
    if path.is_file():
        return [path]
    return sorted(path.rglob(f"*_samples_{ANSWERS}*.jsonl"))


def _saved(files: Sequence[Path]) -> Iterator[Candidate]:
    """Saved runs, one for each dimension, joined to candidates by their model."""
    by_model: dict[str, dict[str, Answers]] = {}
    for run in map(rescore.read, files):
        if not candidate_files.is_answers(run):
            raise DataError(f"{run.file}: {run.task} is no task with answers of CVRR-ES")
        name, dimension = candidate_files.told_by(run)
        own = by_model.setdefault(name, {})
        if dimension in own:
            raise DataError(
                f"{run.file}: a second run of {run.task} by {name}, beside {own[dimension].file}; "
                "name one of them"
            )
        own[dimension] = candidate_files.saved(run)
    for name, found in by_model.items():
        yield Candidate(name, {slug: found[slug] for slug in DIMENSIONS if slug in found})


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
        part = candidate_joins.joined(given, places)
        ways.update(part.ways)
        problems += part.problems
        notes += part.notes
        found |= part.answers
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


def check(aligned: Sequence[Aligned]) -> None:
    """Stop where answers do not fit the release and the user did not allow to leave them out.

    Raises:
        DataError: with every problem in a line; or a candidate has no answer at all that fits.
    """
    for one in aligned:
        if not one.answers:
            first = one.problems[0] if one.problems else "no dimension in common"
            raise DataError(f"{one.candidate}: not one answer fits the release: {first}")
    problems = [problem for one in aligned for problem in one.problems]
    if problems and not settings.allow_bad_items():
        lines = "\n".join(f"  {problem}" for problem in problems)
        raise DataError(f"answers do not fit the release:\n{lines}\n{LEAVE_OUT}")
