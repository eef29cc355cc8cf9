"""The protocol of a benchmark. Read this file first: the types are the architecture.

    released files -> look -> docs -> prompt -> host -> model -> reply -> score <-> judge -> item
    items -> metrics -> numbers -> tables

A benchmark says four things: what its items are (`Benchmark.docs`), what a model is given
(`Task.prompt`), what a reply is worth (`Task.score`), and which numbers come of it (`Task.metrics`,
`Benchmark.joins`). Running, checking, judging later, rescoring, estimating, intervals and tables
are written once, in host/, runs/ and report/, and know no benchmark.

Docs and items are plain mappings, as lmms-eval and its JSON logs hold them. Each task says in a
TypedDict which fields its own have, so that mypy refuses a wrong key or a wrong type: D is a doc
that the model is given, K is what the log keeps of it, and I is the item, K and what `score`
returned.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, cast

from typing_extensions import NotRequired, ReadOnly, TypeVar

from lmms_eval_tasks import leaderboards, settings
from lmms_eval_tasks.errors import DataError, JudgeError, TasksError
from lmms_eval_tasks.judges.verdict import DEBATE, PANEL, Criterion, Scoring
from lmms_eval_tasks.media import sources
from lmms_eval_tasks.media.sources import CheckedSource, Source
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.conditions import Condition, Kind
from lmms_eval_tasks.utils.metrics import aggregate, rating_means
from lmms_eval_tasks.utils.metrics.aggregate import GradedItem, Outcome
from lmms_eval_tasks.utils.metrics.rating_means import DimensionRating
from lmms_eval_tasks.utils.released_files import DataStatus, Release

if TYPE_CHECKING:
    from rich.console import RenderableType

    from lmms_eval_tasks.judges import JudgeConfig
    from lmms_eval_tasks.prompts import Prompt

# Of any task, for code that knows no benchmark:
Doc = Mapping[str, Any]  # one thing that a model is asked
Item = Mapping[str, Any]  # one reply and what it is worth; what the log keeps
Items = Sequence[Item]
Fields = Mapping[str, object]
Units = Mapping[str, tuple[str, float]]  # what a number is the mean of: id -> cluster and value

# A doc, the fields of it that the log keeps, and an item. D and I are contravariant: a metric of
# items with few fields serves for items with more.
D = TypeVar("D", bound=Fields, contravariant=True, default=Any)  # noqa: PLC0105
K = TypeVar("K", bound=Fields, default=Any)
I = TypeVar("I", bound=Fields, contravariant=True, default=Any)  # noqa: E741, PLC0105
T = TypeVar("T", bound=Fields)
S = TypeVar("S", bound=Fields)
R = TypeVar("R")

SAME = object()  # of Part.simple
ASKED = "asked_hash"  # the field of an item that holds the hash of what was asked
NAMED = 20  # records of one line about what is left out
REBUILT = 12  # hex digits of it that can be made from the item's other fields


class Scored(Outcome):
    """The fields that every scoring returns (`Task.score`), and those that a run adds to them."""

    asked_hash: NotRequired[ReadOnly[str]]  # of what was asked (`Task.hash_of`)
    reply: NotRequired[ReadOnly[str]]  # the model's text
    refused: NotRequired[ReadOnly[bool]]  # a judged reply that looks like a refusal
    verdicts: NotRequired[ReadOnly[Mapping[str, Mapping[str, Any]]]]  # by the name of the ask


def select_fields(doc: T, kind: type[T]) -> T:
    """The fields of a doc that a smaller type has, in that type's order, for `Task.keep`."""
    return cast(T, {name: doc[name] for name in kind.__annotations__ if name in doc})


class Part(NamedTuple):
    """A part of what a model is given, in the order of the parts."""

    kind: Literal["text", "image", "images", "video", "audio"]  # images are made together
    given: Any  # the text; a path; a picture; or a function that makes it when it is asked for
    simple: Any = SAME  # what a simple model gets instead: a list of visuals, or another text


class Cut(NamedTuple):
    """A clip or pictures that have to be made of a video before a doc can be shown."""

    name: str  # what is left out if it cannot be made: a question, a segment, a video
    window: tuple[Any, ...]  # docs with the same window share what is made
    make: Callable[[], object]  # makes it, or finds it; a MediaError says why it cannot


class TableRow(NamedTuple):
    """The numbers of one task or group, for tables."""

    task: str
    values: Mapping[str, object]  # by metric
    model: str = ""  # where there are several
    invalid: bool = False  # too many failures
    marks: str = ""  # of other doubts, which stand behind its name in a table


@dataclass(frozen=True)
class Metric(Generic[I]):
    """One number of items of the type I."""

    name: str  # as in tables and files
    # Of some items, in whatever order; None where there is none.
    of: Callable[[Sequence[I]], float | None]
    where: Callable[[I], bool] | None = None  # the items that it is of; all unless told
    better: bool | None = True  # higher is; None if neither way is better
    # Fields of an item that `of` needs, if the metric stands in the host's table; `a.b` is the part
    # b of the field a.
    shown: tuple[str, ...] | None = None
    mean: str = ""  # the field that it is the plain mean of, for the host's standard errors
    # What it is the mean of: items by id, or pools of them. Its interval, and the difference of two
    # models, are of these; without them they rest on the number without one cluster each.
    units: Callable[[Sequence[I]], Units] | None = None
    share: bool = False  # lies in 0..1
    sure: bool = False  # has an interval though it is neither shown nor a mean of units

    @property
    def has_interval(self) -> bool:
        """Return whether it has an interval: some that have none take minutes to compute once."""
        return self.sure or self.shown is not None or self.units is not None

    def own(self, items: Sequence[I]) -> Sequence[I]:
        """The items that it is of."""
        return items if self.where is None else [item for item in items if self.where(item)]


@dataclass(frozen=True)
class Join(Generic[I]):
    """Numbers of several tasks together, in the row of a group; I is what their items share."""

    group: str  # name of the host's group, and of the row
    tasks: tuple[str, ...]  # whose items are joined
    # The numbers by name, from whole items by task; empty if too few tasks are there.
    of: Callable[[Mapping[str, Sequence[I]]], Mapping[str, float | None]]
    # The numbers that stand in the host's table, and the fields of an item that they need.
    shown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # What the user should know of a join over saved runs.
    notes: Callable[[Mapping[str, Sequence[I]]], Iterable[str]] = lambda sides: ()  # noqa: ARG005
    counted: str = ""  # the number that says how many questions were joined
    shares: Collection[str] = ()  # its numbers that lie in 0..1
    # What those of its numbers that are plain means are the means of.
    units: Mapping[str, Callable[[Mapping[str, Sequence[I]]], Units]] = field(default_factory=dict)


@dataclass(frozen=True)
class Task(Generic[D, K, I]):
    """One task of the host."""

    name: str
    prompt: Callable[[D], Sequence[Part]]  # what the model is given for a doc
    # What the log keeps of a doc: all that `score` reads, in plain types.
    keep: Callable[[D], K]
    # What a reply to a kept doc is worth; a generator where a judge is asked (asking.py).
    score: Callable[[K, str], Scoring[Fields] | Fields]
    metrics: Sequence[Metric[I]]
    # Fields of an item that say what was asked: question or options, media and setting, reference.
    # Two runs' items are the same if these are; ids may depend on an order.
    identity: Collection[str] = ()
    # Further numbers, which depend on what the items are of (candidates); in our section alone.
    more: Callable[[Sequence[I]], Sequence[Metric[I]]] = lambda items: ()  # noqa: ARG005
    # How many of its video's frames a model should see, where the protocol says it.
    frames: Callable[[D], int | None] = lambda doc: None  # noqa: ARG005
    # What the log says of the media that were handed over; a file may be gone by then.
    handed: Callable[[D], Fields] = lambda doc: {}  # noqa: ARG005
    # What is scored of several items at once, when all are there: each scoring returns further
    # fields of one item, whose id stands before it. Not in the host's table.
    together: Callable[[Sequence[I]], Iterable[tuple[str, Scoring[Fields]]]] | None = None
    asks: Collection[str] = ()  # names of its asks; empty where nothing is judged
    extra: str = ""  # packages that its numbers need beyond a plain install (extras.py)
    kept: Collection[str] = ()  # fields without which a saved item cannot be scored again
    blank: Fields = field(default_factory=dict)  # of an item whose scoring broke
    # What else the results tell of its items, beside counts by status and intervals.
    details: Callable[[Sequence[I]], Fields] = lambda items: {}  # noqa: ARG005
    # What the user should know of the numbers of a saved run.
    notes: Callable[[Sequence[I]], Sequence[str]] = lambda items: ()  # noqa: ARG005
    # A reply as a model may give it, for estimates; of a doc and its number.
    stand_in: Callable[[D, int], str] = lambda doc, number: ""  # noqa: ARG005
    cluster: str = "video"  # the field that says which items belong together (intervals)
    # Fields by which its first number is split in reports, and how that is drawn.
    splits: Mapping[str, Literal["dots", "star", "heat"]] = field(default_factory=dict)
    # What an item belongs to that counts only as a whole, such as a pool; "" of none.
    pool: Callable[[I], str] = lambda item: ""  # noqa: ARG005

    def log_fields(self, doc: D) -> dict[str, object]:
        """The fields of a doc for the log (`keep`), with the hash of what is asked."""
        kept = self.keep(doc)
        return {**kept, ASKED: self.hash_of(kept, doc.get("question"))}

    def hash_of(self, item: Fields, question: object = None) -> str:
        """The hash of what an item asks; "" if its fields do not say.

        Args:
            item: of this task.
            question: the question's text, which not every task's items hold.

        Returns:
            REBUILT hex digits of the item's own fields, and behind them 8 of the question if it is
            known: a log without hashes has the first part alone.
        """
        found = {name: item[name] for name in self.identity if name in item}
        if not found:
            return ""
        return digest([self.name, found], REBUILT) + (
            "" if question is None else digest(question, 8)
        )


def digest(value: object, digits: int = 12) -> str:
    """The first hex digits of the SHA-256 of plain types as JSON."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:digits]


@dataclass(frozen=True)
class LoadedData:
    """The data of a run as they were before its model was built.

    A benchmark whose docs need more than the release and its videos adds it in a subclass.
    """

    release: Any  # the benchmark's own subclass of Release
    sources: Sequence[CheckedSource] = ()  # the files beside the data that were looked at

    @property
    def digest(self) -> str:
        """The hash of the data."""
        return str(self.release.digest)

    def source(self, task: str) -> CheckedSource | None:
        """The first source that a task needs; None if it needs none or none was looked at."""
        return next((one for one in self.sources if task in one.source.tasks), None)

    def left_out(self, task: str) -> dict[str, str]:
        """The reason for each record that a task leaves out, by the record's id."""
        lost = dict(self.release.problems)
        for one in self.sources:
            if task in one.source.tasks:
                lost |= one.left_out
        return lost


class Ran(NamedTuple):
    """A run's part of one benchmark, once it is done."""

    loaded: LoadedData | None  # None if nobody knows any more
    names: Sequence[str]  # of the tasks that were run
    left_out: Mapping[str, Mapping[str, str]]  # by task and name, with the reason
    items: Mapping[str, Items]  # of each task


class KnownAnswer(NamedTuple):
    """An answer whose verdict is known before a judge is asked."""

    task: str  # whose judge it is put to
    doc: Item  # the question, as the log keeps it (`Task.keep`)
    text: str  # the answer
    # The right verdicts, by the name of the ask, the main one first; empty where none is known.
    known: Mapping[str, float]


@dataclass(frozen=True)
class KnownAnswers:
    """Answers with known verdicts, to check a judge with (`lmms-eval-tasks agreement`)."""

    answers: Sequence[KnownAnswer]
    source: Sequence[str]  # lines that say where answers and verdicts are from
    scale: Sequence[int]  # all verdicts that there are, ascending; (0, 1) is refused, accepted
    clusters: str = "videos"  # what the docs' `Task.cluster` names
    # Further tables from the items of all answers, and their content for JSON; the flag says that
    # too many verdicts failed.
    tables: Callable[[Items, bool], tuple[Sequence[RenderableType], dict[str, object]]] | None = (
        None
    )


class Benchmark:
    """A benchmark: subclassed once in each `lmms_eval_tasks/<name>/tasks.py` (`BENCHMARK`)."""

    name: ClassVar[str]  # of its folder here, of that under the data root, first part of its tasks
    title: ClassVar[str]  # for people
    how_to_get: ClassVar[str]  # where the data are
    records: ClassVar[str]  # plural of what is left out as a whole: items, segments, questions
    paper_counts: ClassVar[Mapping[str, int]] = {}  # the full set's (Release.counts)
    paper_judge: ClassVar[str]  # the model that judges in the paper
    one_judge: ClassVar[str] = ""  # why several judges in one cannot judge here
    headline: ClassVar[int] = 1  # how many of `tables` stand without being asked for
    tasks: Mapping[str, Task]
    joins: Sequence[Join] = ()
    # What is done before the model is loaded, counted; and what cannot be done with a task's items.
    cuts: ClassVar[tuple[str, str]] = ("segments cut", "segments of {} can be cut")
    whole_videos: ClassVar[bool] = False  # a cut's name is a video's: a user allows it as such

    # --- data: what is there, what can be asked ------------------------------------------------

    def read(self, place: Path, /) -> Release:
        """Read and validate the data in a folder, or a data file.

        Raises:
            TasksError: they are not there, or cannot be used; names the place of the first error.
        """
        raise NotImplementedError

    def sources(self, release: Any, names: Sequence[str]) -> Sequence[Source]:  # noqa: ARG002
        """The files that tasks need beside the data file, the main videos first."""
        return ()

    def complaints(self, release: Any, names: Sequence[str]) -> list[str]:  # noqa: ARG002
        """Messages about what else in the data keeps these tasks from being run."""
        return []

    def load(
        self, names: Sequence[str], *, videos: bool = True, only: Collection[str] | None = None
    ) -> LoadedData:
        """Read the user's data and look at the files that these tasks need.

        Args:
            names: of tasks.
            videos: look at the video files too; an estimate needs none.
            only: the docs' `video_path`s to look at (`--limit`); others are taken for good. None is
                all of them.

        Raises:
            DataError: they are not there, or something in them is bad that the user did not allow;
                says all of it.
        """
        release = self.read(settings.required_folder(self.name, self.title, self.how_to_get))
        wanted = [one for one in self.sources(release, names) if videos or not one.is_video]
        checked = [sources.check(one, only) for one in wanted if one.tasks]
        records = f"{self.title} {self.records}"
        total = release.n_records + len(release.problems)
        complaints = sources.bad_items(release.problems, f"of {total:,} {records} cannot be used")
        complaints += self.complaints(release, names)
        complaints += [line for one in checked for line in one.complaints(records)]
        sources.stop(release.place, complaints)
        return LoadedData(release, checked)

    def docs(self, loaded: LoadedData, task: str) -> Sequence[Doc]:
        """A task's docs, in an order and with ids that depend on the data alone."""
        raise NotImplementedError

    def cut(self, doc: Doc) -> Cut | None:  # noqa: ARG002
        """The media to make before the model is loaded; None where the doc needs none."""
        return None

    def data_notes(self, release: Any) -> list[str]:  # noqa: ARG002
        """Lines for `data status` that are this benchmark's own."""
        return []

    def _status(self, place: Path) -> DataStatus:
        release = self.read(place)
        found = [sources.check(one) for one in self.sources(release, [*self.tasks]) if one.is_video]
        of_paper = [released_files.compared(release.counts, self.paper_counts)]
        notes = [*(of_paper if self.paper_counts else []), *self.data_notes(release)]
        if len(found) > 1:
            notes += [one.summary(self.records) for one in found]
        bad = {name: why for one in reversed(found) for name, why in one.bad.items()}
        notes += [f"{name}: {why}" for name, why in {**release.problems, **bad}.items()]
        missing = {name: why for one in found for name, why in one.missing.items()}
        videos = {window.video for one in found for window in one.source.windows.values()}
        usable = len(videos - missing.keys())
        return DataStatus(release.place, release.digest, release.counts, usable, missing, notes)

    def status(self, root: Path) -> DataStatus:
        """Look at the data under a data root, without raising."""
        place = root / self.name
        try:
            if not place.is_dir():
                return DataStatus(place, problem=self.how_to_get)
            return self._status(place)
        except TasksError as error:
            return DataStatus(place, problem=str(error))

    def files(self, source: Path) -> Mapping[str, Path]:
        """The files of a release that are there: place below the benchmark's folder -> file.

        Args:
            source: a folder, or the data file, as the user has it or as `prepare` left it.

        Raises:
            TasksError: it is not there, or does not fit.
        """
        release = self.read(source)
        there = dict(release.files)
        for one in self.sources(release, [*self.tasks]):
            for window in one.windows.values():
                if window.path.is_file():
                    there[f"{window.folder}/{window.path.name}"] = window.path
        return there

    def prepare(self, source: Path, root: Path, link: bool) -> str:
        """Validate `source` and put it under `root`, as copies or links; what to tell the user.

        Raises:
            TasksError: it is not there, does not fit, or other data is in the way.
        """
        given, target = self.files(source.expanduser().absolute()), root / self.name
        released_files.place(target, given, link)
        if hidden := given.keys() - self.files(target).keys():
            raise DataError(f"{target}: another file there hides {min(hidden)}; remove it first")
        status = self._status(target)
        done = f"{'linked' if link else 'copied'} {len(given)} files to {target}"
        return "\n".join([done, *status.notes, *filter(None, [released_files.listed(status.bad)])])

    def tasks_of(self, row: str) -> tuple[str, ...]:
        """The tasks whose items a row's numbers are of: itself, or those that a group joins."""
        joined = next((one.tasks for one in self.joins if one.group == row), ())
        return (row,) if row in self.tasks else joined

    # --- prompts and the judge ------------------------------------------------------------------

    def prompts(self, names: Sequence[str]) -> Mapping[str, Prompt]:  # noqa: ARG002
        """The prompt files that these tasks use, by what they are for.

        Raises:
            PromptError: the user's file does not fit.
        """
        return {}

    def criteria(self) -> Sequence[Criterion]:
        """The criteria that its judge is asked now, for the check before a run."""
        return ()

    def judge_prompt(self) -> Prompt | None:
        """The judge's prompts in use."""
        return None

    def suited(self, judge: JudgeConfig) -> JudgeConfig:
        """The judge as this benchmark needs it, such as with room for long replies.

        Raises:
            JudgeError: it cannot be a judge here.
        """
        if self.one_judge and judge.provider in (PANEL, DEBATE):
            raise JudgeError(
                f"the judge {judge.label} is several judges, {self.one_judge}: name one model for "
                f"{self.title}, and judge again with another (judge --judge)"
            )
        return judge

    def judge_notes(self, judge: JudgeConfig) -> dict[str, object]:  # noqa: ARG002
        """Facts on the judge for the results, beside its settings and prompt or in their place."""
        return {}

    def known_answers(self, place: Path, *, whole: bool = False) -> KnownAnswers | None:  # noqa: ARG002
        """The answers in a folder whose verdicts are known before a judge is asked.

        Args:
            place: a folder with this benchmark's data, or its data file.
            whole: all of them are going to be judged, so that `KnownAnswers.tables` can be made.

        Returns:
            None if the data there hold no such answers.

        Raises:
            TasksError: the data cannot be read.
        """
        return None

    def check(self, names: Sequence[str], loaded: LoadedData) -> None:
        """Check what else can be checked before a model is built.

        Raises:
            TasksError: what is wrong, and what to do.
        """

    # --- results --------------------------------------------------------------------------------

    def describe(self, ran: Ran) -> tuple[dict[str, object], list[Condition]]:
        """Where data and media came from, for the results, and conditions of the numbers.

        Here: the data, and what each task left out. A benchmark adds its own to both.
        """
        if ran.loaded is None:
            return {}, []
        release = ran.loaded.release
        left_out = {name: dict(lost) for name, lost in ran.left_out.items() if lost}
        kind = "folder" if release.place.is_dir() else "file"
        about = {kind: str(release.place), "hash": release.digest, **release.counts}
        conditions = []
        for name, lost in left_out.items():
            alike = tuple(one for one in left_out if left_out[one] == lost)
            if name == alike[0]:
                of = () if len(alike) == len(ran.names) else alike
                first, shown = min(lost), ", ".join(sorted(lost)[:NAMED])
                told = f"{len(lost)} {self.records} left out ({shown}), such as {first}: "
                told += lost[first]
                line = f"{', '.join(of)}: {told}" if of else told
                conditions.append(Condition(Kind.LEFT_OUT, line, of))
        return {"data": about, "left_out": left_out}, conditions

    def board(self) -> Mapping[str, Any]:
        """The layouts of the tables, and the paper's figures (the form: leaderboards/__init__.py).

        Without layouts in its file: one table with a column for each metric.
        """
        if "layouts" in (board := leaderboards.stored(self.name)):
            return board
        metrics = [metric.name for task in self.tasks.values() for metric in task.metrics]
        columns = [{"metric": one} for one in dict.fromkeys(metrics)]
        names = {"task": "{task} {given}"}
        return {**board, "layouts": [{"title": self.title, "names": names, "columns": columns}]}

    def tables(self, rows: Sequence[TableRow]) -> Sequence[RenderableType]:
        """The paper's tables (rich renderables); those without a number are left out.

        The first ones are the headline; the others are splits (`--tables all`).
        """
        from lmms_eval_tasks.tables import layouts

        return layouts.tables(self.board(), self.table_rows(rows))

    def table_rows(self, rows: Sequence[TableRow]) -> Sequence[TableRow]:
        """The rows with what else `board`'s layouts name: numbers that follow from several rows."""
        return rows

    def reread(
        self,
        items: Items,
        *,
        judged: bool,  # noqa: ARG002 - whether a judge was named for them
    ) -> Items:
        """A run's saved items before they are scored again, as with a reference that came later.

        Raises:
            DataError: an item lacks what the tasks write.
        """
        return items

    def notes(self, asked: Mapping[str, Items]) -> Sequence[str]:  # noqa: ARG002
        """Lines about a model's saved runs together; an item has `id` and `status` here."""
        return ()


def option_set(variable: str) -> list[Condition]:
    """The condition that the user set a variable of the settings; [] if it is not set."""
    line = settings.told(variable)
    return [Condition(Kind.OPTION, line)] if line else []


def split(metric: Metric[S], by: str, values: Iterable[str], prefix: str = "") -> list[Metric[S]]:
    """A metric of the items with each value of a field; NAME_PREFIXVALUE."""
    inner = metric.where or (lambda _: True)

    def part(value: str) -> Metric[S]:
        return replace(
            metric,
            name=f"{metric.name}_{prefix}{value}",
            where=lambda item: inner(item) and item.get(by) == value,
            shown=None,
            mean="",
        )

    return [part(value) for value in values]


def accuracies(name: str) -> list[Metric[GradedItem]]:
    """The share of right items in its three forms (aggregate.py)."""
    return [
        Metric(
            name,
            aggregate.accuracy,
            shown=("status", "right"),
            mean="right",
            units=aggregate.rights,
            share=True,
        ),
        Metric(f"{name}_valid", aggregate.accuracy_valid),
        Metric(f"{name}_failed", aggregate.count_failed, better=False),
    ]


def pool_accuracies(name: str, size: int) -> list[Metric[GradedItem]]:
    """The share of pools of `size` items that are right in all, likewise."""

    def of_pools(
        statistic: Callable[[Sequence[GradedItem]], R],
    ) -> Callable[[Sequence[GradedItem]], R]:
        return lambda items: statistic(aggregate.pools(items, size))

    plain, *others = (replace(one, of=of_pools(one.of)) for one in accuracies(name))
    shown, units = ("id", "status", "right"), of_pools(aggregate.rights)
    return [replace(plain, shown=shown, mean="", units=units), *others]


def rating_metrics(
    name: str,
    rated: Callable[[Sequence[S]], Sequence[DimensionRating]],
    asked: Callable[[Sequence[S]], Sized] | None = None,
) -> list[Metric[S]]:
    """A judge's ratings: the mean of those that count, how many failed, and the share that counts.

    Args:
        rated: the ratings of some items.
        asked: what should have one, if that is more than those.
    """
    wanted = asked or rated

    def failed(items: Sequence[S]) -> int:
        return len(wanted(items)) - len(rating_means.values(rated(items)))

    def coverage(items: Sequence[S]) -> float | None:
        number = len(wanted(items))
        return (number - failed(items)) / number if number else None

    return [
        Metric(f"{name}_valid", lambda items: rating_means.mean_valid(rated(items))),
        Metric(f"{name}_failed", failed, better=False),
        Metric(f"{name}_coverage", coverage),
    ]


def refusals(
    count: str, headline: Mapping[str, Callable[[Sequence[S]], float | None]]
) -> list[Metric[S]]:
    """The number of judged answers that look like refusals, and headline numbers with them wrong.

    Args:
        count: name of their number.
        headline: numbers by name, which `NAME_refusals_wrong` gives as if all of them were wrong.
    """
    beside = {f"{name}_refusals_wrong": of for name, of in headline.items()}
    return [
        Metric(count, aggregate.count_refusals, better=None),
        *(Metric(name, aggregate.if_refusals_wrong(of)) for name, of in beside.items()),
    ]
