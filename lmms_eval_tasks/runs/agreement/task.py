"""What `lmms-eval-tasks agreement` compares: a release's answers, their published scores, a judge.

A benchmark takes part with a module `published` (the protocol below; movierecapsqa/published.py).
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.utils.score_agreement import Pair

if TYPE_CHECKING:
    from lmms_eval_tasks.judges import Judge
    from lmms_eval_tasks.judges.costs import Asked


class Answer(Protocol):
    """A released answer; the benchmark knows more of it."""

    @property
    def question_id(self) -> str:
        """Of the whole release."""

    @property
    def by(self) -> str:
        """A model's name, or `Published.PEOPLE`."""

    @property
    def number(self) -> int:
        """Of several answers by people to one question, from 0."""

    @property
    def video(self) -> str:
        """The cluster of the intervals."""

    @property
    def text(self) -> str:
        """The answer itself."""

    @property
    def scores(self) -> Mapping[str, int | None]:
        """The published ones, by dimension."""

    @property
    def is_scored(self) -> bool:
        """Whether it has a published score in any dimension."""


class Data(Protocol):
    """A release."""

    file: Path
    digest: str
    answers: Sequence[Any]  # of Answer
    models: list[str]
    left_out: Mapping[str, str]  # what does not fit the schema, where the user allowed it


class Published(Protocol):
    """What each `lmms_eval_tasks.<name>.published` module offers."""

    DIMENSIONS: tuple[str, ...]  # with published scores
    SCALE: Sequence[int]  # all scores that there are
    PEOPLE: str  # in place of a model's name
    VERDICTS: int  # of an answer, for the progress bar
    ASSUMED: str  # by estimates, in words
    FULL_SET: int  # answers that the paper judges
    FULL_SET_IS: str  # the same in words

    def read(self, source: Path) -> Data:
        """The answers in a data file or its folder; DataError if they cannot be used."""

    def groups(self) -> Mapping[str, Sequence[str]]:
        """The paper's groups of models: title -> names."""

    def judged(self, who: Judge, answer: Any) -> Any:
        """What a judge says of an answer: an item with its `status`; trouble becomes one."""

    def ours(self, done: Any, dimension: str) -> float | None:
        """Our score of what `judged` returned; None where the judge failed."""

    def checks(self, judged: Sequence[tuple[Any, Any]]) -> list[str]:
        """What else to know about the answers that were judged: a line each."""

    def as_dict(self, answer: Any, done: Any) -> Mapping[str, Any]:
        """An answer and what our judge said, for JSON."""

    def requests(self, answer: Any) -> Sequence[Asked]:
        """What would be asked about an answer, with stand-ins for what is not known before."""


class Task(NamedTuple):
    """What is compared."""

    benchmark: str
    published: Published
    data: Data
    models: list[str]  # whose answers are judged, people not among them
    asked: list[Answer]  # the answers to judge: those with published scores

    def numbers(
        self, judged: Sequence[tuple[Answer, Any]], dimension: str
    ) -> tuple[list[Pair], list[Pair]]:
        """The pairs of the answers that were judged, and of all answers of the release."""
        ours = {_key(one): self.published.ours(found, dimension) for one, found in judged}
        pairs = {
            _key(one): Pair(
                one.by, one.question_id, one.video, ours.get(_key(one)), one.scores[dimension]
            )
            for one in self.data.answers
        }
        return [one for key, one in pairs.items() if key in ours], list(pairs.values())


def _key(answer: Answer) -> tuple[str, str, int]:
    return answer.question_id, answer.by, answer.number


def module(benchmark: str) -> Published:
    """The benchmark's module `published`.

    Raises:
        TasksError: it has no published scores, or is none of ours.
    """
    from lmms_eval_tasks import benchmarks

    package = f"lmms_eval_tasks.{benchmark}"
    if benchmark.isidentifier() and find_spec(package) and find_spec(f"{package}.published"):
        return cast(Published, importlib.import_module(f"{package}.published"))
    known = [name for name in benchmarks.NAMES if find_spec(f"lmms_eval_tasks.{name}.published")]
    raise TasksError(
        f"{benchmark}: no benchmark whose release has answers with published scores; there are: "
        f"{', '.join(known) or 'none'}"
    )


def load(benchmark: str, published: Published, source: Path, models: str | None) -> Task:
    """Read a release, and find the answers to judge.

    Args:
        benchmark: its name.
        published: its module.
        source: the data file or its folder.
        models: names, separated by commas; people may be one. None: all.

    Raises:
        TasksError: the data cannot be used, or `models` names one that is not in them.
    """
    data = published.read(source)
    there = [*data.models, published.PEOPLE]
    forms = {name.lower(): name for name in there}
    named = there if models is None else [name.strip() for name in models.split(",")]
    if unknown := [name for name in named if name.lower() not in forms]:
        raise TasksError(
            f"--models: {data.file} has no answers of {', '.join(map(repr, unknown))}; it has "
            f"some of: {', '.join(there)}"
        )
    wanted = {forms[name.lower()] for name in named}
    asked = [answer for answer in data.answers if answer.is_scored and answer.by in wanted]
    if not asked:
        raise TasksError(f"{data.file}: no answer of {', '.join(sorted(wanted))} has a score")
    return Task(benchmark, published, data, [m for m in data.models if m in wanted], asked)


def coverage(task: Task) -> list[str]:
    """Which answers there are, and which have no published scores, and why."""
    from lmms_eval_tasks.utils.answers import reply_status

    whole: Sequence[Answer] = task.data.answers
    questions, videos = ({getattr(one, name) for one in whole} for name in ("question_id", "video"))
    lines = [
        f"{task.data.file} (data {task.data.digest}): {len(questions)} questions on {len(videos)} "
        f"videos, answers of {len(task.data.models)} models"
    ]
    if task.data.left_out:
        lines.append(f"left out: {len(task.data.left_out)} segments that do not fit the schema")
    for name in [*task.data.models, task.published.PEOPLE]:
        own = [one for one in whole if one.by == name]
        without = Counter(reply_status(one.text) for one in own if not one.is_scored)
        why = [
            f"{n} {'with a text' if status == 'ok' else status}" for status, n in without.items()
        ]
        line = f"{name}: {sum(one.is_scored for one in own)} of {len(own)} answers have scores"
        lines.append(line + (f"; without: {', '.join(why)}" if why else ""))
    return lines
