"""Ratings of candidates' answers, a row each; the study's tasks, debate and report share them.

They come from saved samples of our judges, or from files with one JSON object a line:

    {"dimension": "partial_actions", "question": "partial_actions/012",
     "video": "partial_actions/v3.mp4", "candidate": "TimeChat", "judge": "GPT-4o",
     "round": "first", "rating": 4, "reason": "...", "status": "ok"}

Rows with errors, such as a rating off the scale, are collected, a line each: they raise an error,
unless the user leaves them out (`--allow-bad-items`). A judge whose ratings are all the same, or
who rated only some answers, is no error: see `rating_notes`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import ConfigDict, Field, StrictBool, StrictFloat, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS, JUDGE_TASKS, RATINGS, ROUNDS
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.judges.verdict import Status
from lmms_eval_tasks.media.sources import bad_items, stop
from lmms_eval_tasks.utils import saved_runs
from lmms_eval_tasks.utils.json_files import digest
from lmms_eval_tasks.utils.released_files import read_lines
from lmms_eval_tasks.utils.validation import validation_problems as told_of

OK = Status.OK.value
_SOME = Field(pattern=r"\S")


class AnswerKey(NamedTuple):
    """The key of a rated answer: a candidate's answer to a question."""

    question: str
    candidate: str


def _one_of(names: Iterable[str]) -> FieldInfo:
    field: FieldInfo = Field(pattern=f"^({'|'.join(names)})$")
    return field


@dataclass(frozen=True)
class RatingRow:
    """One judge's rating of one answer."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    dimension: Annotated[str, _one_of(DIMENSIONS)]
    question: str  # the id, `DIMENSION/NNN`: the question's place in the annotations, from 1
    # `DIMENSION/NAME`, the cluster of intervals: two dimensions may use the same name for different
    # videos.
    video: str
    candidate: Annotated[str, _SOME]  # the model that answered
    judge: Annotated[str, _SOME]  # the model that rated
    round: Annotated[str, _one_of(ROUNDS)]
    rating: Annotated[StrictFloat, Field(ge=min(RATINGS), le=max(RATINGS))] | None
    reason: str = ""  # the judge's
    status: str = OK  # else the reason for no rating (parse_failure, empty_answer, ...)
    empty: StrictBool = False  # the candidate's answer is empty; published scripts skip it
    rated: str = ""  # hash of question, video and answer (`rated_hash`); "" if not known

    @property
    def item(self) -> AnswerKey:
        """The key of the rated answer."""
        return AnswerKey(self.question, self.candidate)

    def as_dict(self) -> dict[str, object]:
        """The row in plain types, for a line of a file."""
        return {name: one for name, one in asdict(self).items() if name != "rated" or one}


def rated_hash(question: str, video: str, answer: str) -> str:
    """The hash of an answer, its question and its video: an id is only a place in a file."""
    return digest([question.strip(), video, answer])


class Same(NamedTuple):
    """The ratings of the answers at hand."""

    rows: list[RatingRow]
    others: int  # number of ratings of other questions, videos or answers: left out


def same(rows: Iterable[RatingRow], expected: Mapping[AnswerKey, str]) -> Same:
    """The rows without ratings of something else under the same ids.

    Args:
        rows: ratings by any judge.
        expected: the hash of each answer at hand; rows of further answers stay.
    """
    given = list(rows)
    kept = [row for row in given if row.rated in ("", expected.get(row.item, row.rated))]
    return Same(kept, len(given) - len(kept))


def folded(name: str) -> str:
    """A name's letters and digits in lower case: "GPT-4o mini" and "gpt4o_Mini" are equal."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", name).casefold()))


_FIELDS = {field.name for field in fields(RatingRow)}
_SAMPLES = re.compile(r"_samples_(?P<task>.+)\.jsonl$")


class Loaded(NamedTuple):
    """Rows in the order of their files, without repeats, and the rows that the user leaves out."""

    rows: list[RatingRow]
    problems: Mapping[str, str]  # file and line -> error
    runs: list[saved_runs.SavedRun]  # the saved runs among the files


def read_ratings(paths: Sequence[Path]) -> list[RatingRow]:
    """Return the rows of `load_ratings`."""
    return load_ratings(paths).rows


def load_ratings(paths: Sequence[Path]) -> Loaded:
    """The ratings in files and folders; in a folder from all *.jsonl, but only our judges' samples.

    Raises:
        DataError: there are none, a file cannot be read, or rows have errors and
            `--allow-bad-items` was not given.
    """
    # The ratings of each judge for an item in a round: place and row; a row may be repeated.
    located: dict[tuple[str, str, str, str], list[tuple[str, RatingRow]]] = {}
    problems: dict[str, str] = {}
    runs: list[saved_runs.SavedRun] = []
    for place, entry in _entries(paths, runs):
        try:
            row = _row(entry)
        except ValidationError as error:
            problems[place] = told_of(error)
        except ValueError as error:
            problems[place] = str(error)
        else:
            key = (row.question, row.candidate, row.judge, row.round)
            located.setdefault(key, []).append((place, row))
    rows = []
    for (first, row), *more in located.values():
        if all(other == row for _, other in more):
            rows.append(row)
            continue
        for place, _ in more:  # it is not known which one is right
            problems[place] = (
                f"another rating of {row.candidate}'s answer to {row.question} "
                f"by {row.judge} ({row.round}) is at {first}: both are skipped"
            )
    first_rows: dict[AnswerKey, RatingRow] = {}
    for row in rows:
        if row.rated:
            first_rows.setdefault(row.item, row)
    for row in rows:
        other = first_rows.get(row.item, row)
        if row.rated not in ("", other.rated):
            problems[f"{row.question}, {row.candidate}, {row.judge} ({row.round})"] = (
                f"rates another question, video or answer than {other.judge} "
                f"({other.round}) under the same id: the runs have different "
                "data"
            )
    rows = same(rows, {item: row.rated for item, row in first_rows.items()}).rows
    where = ", ".join(map(str, paths))
    if not rows:
        example = next((f"; {place}: {why}" for place, why in problems.items()), "")
        raise DataError(f"{where}: no usable ratings{example}")
    stop(where, bad_items(problems, "ratings cannot be used"))
    return Loaded(rows, problems, runs)


def rating_notes(rows: Sequence[RatingRow], items: Collection[AnswerKey]) -> Iterator[str]:
    """Yield lines for readers: on constant judges, and on judges that did not rate all items."""
    every = set(items)
    by_judge: dict[tuple[str, str], list[RatingRow]] = {}
    for row in rows:
        by_judge.setdefault((row.judge, row.round), []).append(row)
    for (judge, name), own in by_judge.items():
        rated = {row.item for row in own if row.rating is not None}
        whole = [row.rating for row in own if row.rating in RATINGS]
        if len(set(whole)) == 1 and len(whole) > 1:
            yield (
                f"{judge} ({name}): all {len(whole):,} ratings are "
                f"{whole[0]:g}: the kappa of a constant judge is 0, and there "
                "is none between two constant judges"
            )
        if part := every - rated:
            why = Counter(row.status for row in own if row.rating is None and row.item in part)
            causes = [f"{number:,} {status}" for status, number in sorted(why.items())]
            if absent := len(part) - why.total():
                causes.append(f"{absent:,} without a row")
            yield (
                f"{judge} ({name}): rated {len(every & rated):,} of {len(every):,} answers "
                f"({', '.join(causes)})"
            )


def _entries(
    paths: Sequence[Path], runs: list[saved_runs.SavedRun]
) -> Iterator[tuple[str, object]]:
    """Yield place and content of every line of files and item of saved runs; extend `runs`."""

    def is_ours(file: Path) -> bool:
        samples = _SAMPLES.search(file.name)
        return samples is None or samples["task"] in JUDGE_TASKS

    files: dict[Path, None] = {}
    for path in (path.expanduser() for path in paths):
        if not path.exists():
            raise DataError(f"{path}: no such file or folder")
        own = [path] if path.is_file() else sorted(filter(is_ours, path.rglob("*.jsonl")))
        if not own or not is_ours(own[0]):
            raise DataError(
                f"{path}: no ratings (*.jsonl, or *_samples_TASK.jsonl of {', '.join(JUDGE_TASKS)})"
            )
        files |= dict.fromkeys(file.resolve() for file in own)
    for file in files:
        if _SAMPLES.search(file.name):
            runs.append(run := saved_runs.read_saved_run(file))
            for item in saved_runs.saved_items(run):
                entry = {n: item[n] for n in _FIELDS & item.keys()}
                if {"asked", "video", "answer"} <= item.keys():
                    asked, video = str(item["asked"]), str(item["video"])
                    entry["rated"] = rated_hash(asked, video, str(item["answer"]))
                yield f"{file}, {item['id']}", entry
        else:
            for number, entry in read_lines(file):
                yield f"{file}, line {number}", entry


@cache
def _adapter() -> TypeAdapter[RatingRow]:
    return TypeAdapter(RatingRow)


def _row(entry: object) -> RatingRow:
    """Return a validated row.

    Raises:
        ValueError: the row's error.
    """
    row = _adapter().validate_python(entry)
    for name, value in (("question", row.question), ("video", row.video)):
        if not value.startswith(f"{row.dimension}/"):
            raise ValueError(f"{name}: {value!r} does not belong to {row.dimension}")
    if (row.rating is None) == (row.status == OK):
        raise ValueError(f"rating: {row.rating} does not fit the status {row.status!r}")
    return row
