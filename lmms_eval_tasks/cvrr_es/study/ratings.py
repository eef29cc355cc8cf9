"""Ratings of candidate answers, one row for each: what the study's tasks, debate and report share.

They come from saved samples of our judges or from files. A file holds one JSON object a line:

    {"dimension": "partial_actions", "question": "partial_actions/012",
     "video": "partial_actions/v3.mp4", "candidate": "TimeChat", "judge": "GPT-4o",
     "round": "first", "rating": 4, "reason": "...", "status": "ok"}

Rows that cannot be right, such as with a rating off the scale, are collected, a line each: they
stop, unless the user leaves them out (`--allow-bad-items`). Ratings that are all the same, and
judges that rated only part, are no errors: `notes` tells of them.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import ConfigDict, Field, StrictBool, StrictFloat, TypeAdapter, ValidationError

from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS, JUDGE_TASKS, RATINGS, ROUNDS
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.judges.verdict import Status
from lmms_eval_tasks.utils import saved_runs
from lmms_eval_tasks.utils.media.video_checks import bad_items, stop
from lmms_eval_tasks.utils.released_files import read_lines
from lmms_eval_tasks.utils.validation import told as told_of

OK = Status.OK.value


class Item(NamedTuple):
    """What a rating is of: one candidate's answer to one question."""

    question: str
    candidate: str


def _one_of(names: Iterable[str]) -> Any:
    return Field(pattern=f"^({'|'.join(names)})$")


@dataclass(frozen=True)
class RatingRow:
    """One judge's rating of one answer.

    Attributes:
        dimension: a slug of labels.DIMENSIONS.
        question: id of the question, `DIMENSION/NNN` (its place in the annotations, from 1).
        video: `DIMENSION/NAME`, the cluster of intervals, since names of two dimensions are not
            comparable; "" if it is not known.
        candidate: who answered.
        judge: who rated.
        round: one of labels.ROUNDS.
        rating: 1 to 5; None where it failed.
        reason: what the judge gave for it; "" if nothing.
        status: ok, or why there is no rating (parse_failure, empty_answer, ...).
        empty: whether the candidate's answer was empty (the published scripts skip such answers).
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    dimension: Annotated[str, _one_of(DIMENSIONS)]
    question: str
    video: str
    candidate: Annotated[str, Field(pattern=r"\S")]
    judge: Annotated[str, Field(pattern=r"\S")]
    round: Annotated[str, _one_of(ROUNDS)]
    rating: Annotated[StrictFloat, Field(ge=min(RATINGS), le=max(RATINGS))] | None
    reason: str = ""
    status: str = OK
    empty: StrictBool = False

    @property
    def item(self) -> Item:
        """What was rated."""
        return Item(self.question, self.candidate)

    def as_dict(self) -> dict[str, Any]:
        """Plain types, for a line of a file."""
        return asdict(self)


def folded(name: str) -> str:
    """A name's letters and digits, in one case: "GPT-4o mini" and "gpt4o_Mini" are one model."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", name).casefold()))


_FIELDS = {field.name for field in fields(RatingRow)}
_SAMPLES = re.compile(r"_samples_(?P<task>.+)\.jsonl$")


class Loaded(NamedTuple):
    """Rows in the order of their files, each once, and what was left out.

    Attributes:
        rows: those that can be used.
        problems: file and line -> what is wrong; nothing unless it is left out by the user's leave.
        runs: saved ones among the files.
    """

    rows: list[RatingRow]
    problems: Mapping[str, str]
    runs: list[saved_runs.Run]


def read(paths: Sequence[Path]) -> list[RatingRow]:
    """The ratings in files and folders; in folders all *.jsonl, of saved samples our judges'.

    Raises:
        DataError: there are none, a file cannot be read, or rows cannot be right and
            `--allow-bad-items` was not given.
    """
    return load(paths).rows


def load(paths: Sequence[Path]) -> Loaded:
    """As `read`, with what was left out.

    Raises:
        DataError: as `read`.
    """
    # Every judge's rating of an item in a round, by these: place and row, which may be repeated.
    found: dict[tuple[str, str, str, str], list[tuple[str, RatingRow]]] = {}
    problems: dict[str, str] = {}
    runs = []
    for file in _files(paths):
        if not _is_ours(file):
            raise DataError(f"{file}: no task of judges ({', '.join(JUDGE_TASKS)})")
        saved = saved_runs.read(file) if _SAMPLES.search(file.name) else None
        runs += [saved] if saved else []
        for place, entry in _rows(file, saved):
            try:
                row = _row(entry)
            except ValueError as error:
                problems[place] = (
                    told_of(error) if isinstance(error, ValidationError) else f"{error}"
                )
                continue
            key = (row.question, row.candidate, row.judge, row.round)
            found.setdefault(key, []).append((place, row))
    rows = []
    for (first, row), *more in found.values():
        if all(other == row for _, other in more):
            rows.append(row)
            continue
        for place, other in more:  # nobody knows which one counts
            problems[place] = (
                f"another rating of {other.candidate}'s answer to {other.question} by "
                f"{other.judge} ({other.round}) is at {first}: none of them is kept"
            )
    where = ", ".join(map(str, paths))
    if not rows:
        told = next((f"; {place}: {why}" for place, why in problems.items()), "")
        raise DataError(f"{where}: no ratings that can be used{told}")
    stop(where, bad_items(problems, "ratings cannot be used"))
    return Loaded(rows, problems, runs)


def notes(rows: Sequence[RatingRow], items: Collection[Item]) -> list[str]:
    """What to know of ratings that can be used: a line each."""
    every = set(items)
    by_judge: dict[tuple[str, str], list[RatingRow]] = {}
    for row in rows:
        by_judge.setdefault((row.judge, row.round), []).append(row)
    told = []
    for (judge, name), own in by_judge.items():
        rated = {row.item for row in own if row.rating is not None}
        whole = [row.rating for row in own if row.rating in RATINGS]
        if len(set(whole)) == 1 and len(whole) > 1:
            told.append(
                f"{judge} ({name}): all {len(whole):,} ratings are {whole[0]:g}: a constant "
                "judge's kappa is 0, and none with another that always gives the same"
            )
        if part := every - rated:
            why = Counter(row.status for row in own if row.rating is None and row.item in part)
            absent = len(part) - sum(why.values())
            causes = [f"{number:,} {status}" for status, number in sorted(why.items())]
            causes += [f"{absent:,} without a row"] if absent else []
            told.append(
                f"{judge} ({name}): rated {len(every & rated):,} of {len(every):,} answers "
                f"({', '.join(causes)})"
            )
    return told


def _files(paths: Sequence[Path]) -> list[Path]:
    found: dict[Path, None] = {}
    for path in (path.expanduser() for path in paths):
        if not path.exists():
            raise DataError(f"{path}: no such file or folder")
        own = [path] if path.is_file() else sorted(filter(_is_ours, path.rglob("*.jsonl")))
        if not own:
            raise DataError(
                f"{path}: no ratings (*.jsonl, or *_samples_TASK.jsonl of {', '.join(JUDGE_TASKS)})"
            )
        found |= dict.fromkeys(file.resolve() for file in own)
    return list(found)


def _is_ours(file: Path) -> bool:
    samples = _SAMPLES.search(file.name)
    return samples is None or samples["task"] in JUDGE_TASKS


def _rows(file: Path, run: saved_runs.Run | None) -> Iterator[tuple[str, Any]]:
    """Place and content of every line of a file, or of every item of a saved run."""
    if run is None:
        yield from ((f"{file}, line {number}", entry) for number, entry in read_lines(file))
        return
    for item in saved_runs.saved_items(run):
        yield f"{file}, {item['id']}", {n: value for n, value in item.items() if n in _FIELDS}


@cache
def _adapter() -> TypeAdapter[RatingRow]:
    return TypeAdapter(RatingRow)


def _row(entry: Any) -> RatingRow:
    """A checked row.

    Raises:
        ValueError: what is wrong with it.
    """
    given = {"video": "", **entry} if isinstance(entry, Mapping) else entry
    row = _adapter().validate_python(given)
    if not row.question.startswith(f"{row.dimension}/"):
        raise ValueError(f"question: {row.question!r} is no id of {row.dimension}")
    if (row.rating is None) == (row.status == OK):
        raise ValueError(f"rating: {row.rating} does not go with the status {row.status!r}")
    if row.video and "/" not in row.video:  # written by hand, with the file's name alone
        return replace(row, video=f"{row.dimension}/{row.video}")
    return row
