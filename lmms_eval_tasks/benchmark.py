"""The protocol of a benchmark. Read this file first: its types are the architecture.

    released files -> load -> docs -> prompt -> lmms-eval -> model -> reply
    reply -> score <-> judge -> item
    items -> metrics -> numbers -> tables

A benchmark defines four things: its docs (`Benchmark.docs`), the prompt of a doc (`Task.prompt`),
the score of a reply (`Task.score`), and metrics of the scored items (`Task.metrics`,
`Benchmark.joint_metrics`). Everything else is written once and knows no benchmark: running,
checking, judging later, rescoring, estimating, intervals, tables (host/, runs/, report/).
docs/your_benchmark.md is a whole benchmark on one page.

Docs and items are plain mappings, as lmms-eval and its JSON logs hold them. Each task says in a
TypedDict which fields its own have, so that mypy refuses a wrong key or a wrong type: D is a doc
that the model is given, K is what the log keeps of it, and I is the item, K and what `score`
returned.
"""

from __future__ import annotations

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
from lmms_eval_tasks.utils.json_files import digest
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

SAME = object()  # default of Part.simple_content
ASKED = "asked_hash"  # the field of an item that holds the hash of what was asked
NAMED = 20  # records of one line about what is left out
REBUILT = 12  # hex digits of that hash that can be made from the item's other fields


class Scored(Outcome):
    """The fields that every scoring returns (`Task.score`), and those that a run adds to them."""

    asked_hash: NotRequired[ReadOnly[str]]  # of what was asked (`Task.hash_of`)
    reply: NotRequired[ReadOnly[str]]  # the model's text
    refused: NotRequired[ReadOnly[bool]]  # a judged reply that looks like a refusal
    verdicts: NotRequired[ReadOnly[Mapping[str, Mapping[str, Any]]]]  # by the name of the ask


def select_fields(doc: T, kind: type[T]) -> T:
    """The fields of a doc that a smaller type has, in that type's order, for `Task.log_fields`."""
    return cast(T, {name: doc[name] for name in kind.__annotations__ if name in doc})


class Part(NamedTuple):
    """One part of a prompt: a text, pictures, a video or sound. Models get the parts in order."""

    kind: Literal["text", "image", "images", "video", "audio"]  # `images`: several at once
    content: Any  # the text; the path of a file; a picture; or a function that returns one of these
    # For lmms-eval's simple models, if it differs: a list of visuals, or another text.
    simple_content: Any = SAME


class MediaJob(NamedTuple):
    """A clip or pictures to make of a video before a doc can be shown."""

    name: str  # the record that is left out if it cannot be made: a question, a segment, a video
    key: tuple[Any, ...]  # docs with the same key share the clip
    make: Callable[[], object]  # makes or finds it; raises a MediaError with the reason


class TableRow(NamedTuple):
    """The numbers of one task or group, for tables."""

    task: str
    values: Mapping[str, object]  # by the metric's name
    model: str = ""  # its name, in a table of several models
    invalid: bool = False  # the run is INVALID
    marks: str = ""  # signs behind the row's name that stand for other conditions


@dataclass(frozen=True)
class Metric(Generic[I]):
    """One number of a task's items of type I."""

    name: str  # in tables and files
    # Returns the number for some items in any order; None if they have none.
    compute: Callable[[Sequence[I]], float | None]
    include: Callable[[I], bool] | None = None  # the items that count; default all
    higher_is_better: bool | None = True  # None if neither direction is better
    # The item's fields that `compute` reads, if the metric is a column of lmms-eval's own table;
    # `a.b` is key b of field a.
    host_fields: tuple[str, ...] | None = None
    mean_field: str = ""  # the field whose plain mean the metric is, for lmms-eval's standard error
    # If the metric is a mean: the values that it averages, by item or pool id. They give a t
    # interval and paired differences; other metrics get a jackknife over clusters.
    per_unit: Callable[[Sequence[I]], Units] | None = None
    is_share: bool = False  # the number lies in 0..1
    always_interval: bool = False  # compute an interval without `host_fields` and `per_unit`

    @property
    def has_interval(self) -> bool:
        """True if an interval is computed; for some metrics one takes minutes."""
        return self.always_interval or self.host_fields is not None or self.per_unit is not None

    def own(self, items: Sequence[I]) -> Sequence[I]:
        """The items that count (`include`)."""
        return items if self.include is None else [item for item in items if self.include(item)]


@dataclass(frozen=True)
class JointMetric(Generic[I]):
    """Numbers of several tasks' items together; I is what these items have in common."""

    group: str  # lmms-eval's group of the tasks, and the name of the row
    tasks: tuple[str, ...]  # names of the joined tasks
    # Returns the numbers by name, given items by task; empty if too few tasks were run.
    compute: Callable[[Mapping[str, Sequence[I]]], Mapping[str, float | None]]
    # The numbers that are columns of lmms-eval's table, with the item's fields that they read.
    host_fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Lines for the user about numbers that were joined over saved runs.
    notes: Callable[[Mapping[str, Sequence[I]]], Iterable[str]] = lambda items: ()  # noqa: ARG005
    count_name: str = ""  # the number that counts the joined questions
    share_names: Collection[str] = ()  # names of numbers in 0..1
    # For numbers that are means: the values that they average, as in Metric.per_unit.
    per_unit: Mapping[str, Callable[[Mapping[str, Sequence[I]]], Units]] = field(
        default_factory=dict
    )


@dataclass(frozen=True)
class Task(Generic[D, K, I]):
    """One task of lmms-eval."""

    name: str
    prompt: Callable[[D], Sequence[Part]]  # returns what the model gets for a doc
    # Returns the doc's fields for the log: all that `score` reads, in plain types.
    log_fields: Callable[[D], K]
    # Returns further fields of the item, given the log's fields and the reply. A task with a judge
    # is a generator that yields its requests (judges/asking.py).
    score: Callable[[K, str], Scoring[Fields] | Fields]
    metrics: Sequence[Metric[I]]
    # The item's fields that say what was asked: question or options, media, setting, reference.
    # Items of two runs are paired if these are equal; an id may depend on an order.
    identity: Collection[str] = ()
    # Returns metrics whose names depend on the items, such as one for each candidate.
    extra_metrics: Callable[[Sequence[I]], Sequence[Metric[I]]] = lambda items: ()  # noqa: ARG005
    # Returns how many frames of the video the model should see, if the protocol says it.
    frames: Callable[[D], int | None] = lambda doc: None  # noqa: ARG005
    # Returns fields for the log about the media that the model got.
    media_log: Callable[[D], Fields] = lambda doc: {}  # noqa: ARG005
    # Scores several items at once, after all replies: yields an item's id and a scoring that
    # returns further fields of it. Not in lmms-eval's table.
    score_jointly: Callable[[Sequence[I]], Iterable[tuple[str, Scoring[Fields]]]] | None = None
    judgements: Collection[str] = ()  # names of what the judge is asked; empty without a judge
    extra: str = ""  # the extra whose packages the metrics need (utils/extras.py)
    required_fields: Collection[str] = ()  # a saved item without one cannot be scored again
    failed_item: Fields = field(default_factory=dict)  # the item's fields if `score` raised
    # Returns further facts about the task's items for the results file.
    details: Callable[[Sequence[I]], Fields] = lambda items: {}  # noqa: ARG005
    # Returns lines for the user about a saved run's numbers.
    notes: Callable[[Sequence[I]], Sequence[str]] = lambda items: ()  # noqa: ARG005
    # Returns a reply that a model could give, for estimates; given a doc and its number.
    example_reply: Callable[[D, int], str] = lambda doc, number: ""  # noqa: ARG005
    cluster_field: str = "video"  # items with the same value are one cluster of the intervals
    # Fields by which a report splits the first metric, and how it draws that.
    splits: Mapping[str, Literal["dots", "star", "heat"]] = field(default_factory=dict)
    # Returns the id of the item's pool, which counts only as a whole; "" without one.
    pool: Callable[[I], str] = lambda item: ""  # noqa: ARG005

    def log_entry(self, doc: D) -> dict[str, object]:
        """The doc's fields for the log, with the hash of what is asked."""
        kept = self.log_fields(doc)
        return {**kept, ASKED: self.hash_of(kept, doc.get("question"))}

    def hash_of(self, item: Fields, question: object = None) -> str:
        """The hash of what an item asks (`identity`); "" if it has none of these fields.

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
    """One benchmark's tasks of a finished run."""

    loaded: LoadedData | None  # the data; None if they cannot be read any more
    names: Sequence[str]  # names of the tasks
    left_out: Mapping[str, Mapping[str, str]]  # by task and id of the record, the reason
    items: Mapping[str, Items]  # by task


class KnownAnswer(NamedTuple):
    """An answer with a known right verdict, to test a judge with."""

    task: str  # name of the task whose judge is asked
    doc: Item  # the question's fields in the log (`Task.log_fields`)
    text: str  # the answer
    # The right verdicts by name (`Task.judgements`), the main one first; empty if none is known.
    known: Mapping[str, float]


@dataclass(frozen=True)
class KnownAnswers:
    """Answers with known verdicts, for `lmms-eval-tasks agreement`."""

    answers: Sequence[KnownAnswer]
    source: Sequence[str]  # lines that say where answers and verdicts come from
    scale: Sequence[int]  # all possible verdicts, ascending; (0, 1) is wrong, right
    clusters: str = "videos"  # plural of what `Task.cluster_field` names
    # Returns further tables of all answers' items, and their content for JSON. The flag says that
    # too many verdicts failed.
    tables: Callable[[Items, bool], tuple[Sequence[RenderableType], dict[str, object]]] | None = (
        None
    )


class Benchmark:
    """A benchmark. Its package subclasses this once and names an instance as its entry point."""

    name: ClassVar[str]  # also of its folder under the data root, and how its tasks' names begin
    title: ClassVar[str]  # the name for people
    how_to_get: ClassVar[str]  # a sentence: where the data can be had
    records: ClassVar[str]  # plural of what is left out as a whole: items, segments, questions
    paper_counts: ClassVar[Mapping[str, int]] = {}  # Release.counts of the full set
    paper_judge: ClassVar[str]  # the judge's model in the paper
    one_judge: ClassVar[str] = ""  # why a panel cannot judge here; "" if it can
    headline: ClassVar[int] = 1  # number of `tables` that `--tables headline` prints
    tasks: Mapping[str, Task]  # by name
    joint_metrics: Sequence[JointMetric] = ()
    # Two message fragments: for the progress bar, and for the error when no item can be prepared.
    media_messages: ClassVar[tuple[str, str]] = ("segments cut", "segments of {} can be cut")
    # True if MediaJob.name is a video: then --allow-missing-videos leaves out what cannot be made.
    whole_videos: ClassVar[bool] = False

    # --- data ---------------------------------------------------------------------------------

    def read(self, place: Path, /) -> Release:
        """Read and validate the data in a folder, or a data file.

        Raises:
            TasksError: they are not there, or cannot be used; names the place of the first error.
        """
        raise NotImplementedError

    def _read(self, place: Path) -> Release:
        """As `read`; a folder or file that the user may not read is a DataError too."""
        try:
            return self.read(place)
        except OSError as error:
            raise DataError(f"{error.filename or place}: {error.strerror or error}") from None

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
        release = self._read(settings.required_folder(self.name, self.title, self.how_to_get))
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
        """A task's docs without the records that are left out (`LoadedData.left_out`).

        Their order and their ids depend on the data alone, so that `--limit`, ranks and later runs
        agree. A doc has `id`, `video`, `video_path` if it shows one, and what `prompt` reads.
        """
        raise NotImplementedError

    def media_job(self, doc: Doc) -> MediaJob | None:  # noqa: ARG002
        """The media to make for a doc before the model is loaded; None if it needs none."""
        return None

    def data_notes(self, release: Any) -> list[str]:  # noqa: ARG002
        """Lines for `data status` that are this benchmark's own."""
        return []

    def _status(self, place: Path) -> DataStatus:
        release = self._read(place)
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
            if not place.exists():
                return DataStatus(place, problem=self.how_to_get)
            return self._status(place)
        except TasksError as error:
            return DataStatus(place, problem=str(error))

    def files(self, source: Path) -> Mapping[str, Path]:
        """The files of a release, videos included, by their places below the benchmark's folder.

        Args:
            source: a folder, or the data file, as released or as `prepare` left it.

        Raises:
            TasksError: it is not there, or does not fit.
        """
        release = self._read(source)
        there = dict(release.files)
        for one in self.sources(release, [*self.tasks]):
            for window in one.windows.values():
                if window.path.is_file():
                    there[f"{window.folder}/{window.path.name}"] = window.path
        return there

    def prepare(self, source: Path, root: Path, link: bool) -> str:
        """Validate the files of `source` and put them under `root`, as copies or links.

        Returns:
            Lines for the user: the number of files, then those of `data status`.

        Raises:
            TasksError: it is not there, does not fit, or other data is in the way.
        """
        given, target = self.files(source.expanduser().absolute()), root / self.name
        released_files.place(target, given, link)
        if hidden := given.keys() - self.files(target).keys():
            raise DataError(
                f"{target}: another file there takes precedence over {min(hidden)}; remove it first"
            )
        status = self._status(target)
        done = f"{'linked' if link else 'copied'} {len(given)} files to {target}"
        return "\n".join([done, *status.notes, *filter(None, [released_files.listed(status.bad)])])

    def tasks_of(self, row: str) -> tuple[str, ...]:
        """The tasks behind a row of numbers: the task of that name, or those that a group joins."""
        joined = next((one.tasks for one in self.joint_metrics if one.group == row), ())
        return (row,) if row in self.tasks else joined

    # --- prompts and the judge ------------------------------------------------------------------

    def prompts(self, names: Sequence[str]) -> Mapping[str, Prompt]:  # noqa: ARG002
        """The prompt files that these tasks use, by a name for each use.

        Raises:
            PromptError: the user's file does not fit.
        """
        return {}

    def criteria(self) -> Sequence[Criterion]:
        """The criteria that the judge would be asked now, for the check before a run."""
        return ()

    def judge_prompt(self) -> Prompt | None:
        """The prompt file of the judge, ours or the user's; None without one."""
        return None

    def configure_judge(self, judge: JudgeConfig) -> JudgeConfig:
        """Return the judge with settings that this benchmark needs, such as longer replies.

        Raises:
            JudgeError: this judge cannot be used here.
        """
        if self.one_judge and judge.provider in (PANEL, DEBATE):
            raise JudgeError(
                f"the judge {judge.label} consists of several judges, "
                f"{self.one_judge}: name one model for {self.title}; "
                "lmms-eval-tasks judge --judge SPEC adds another judge later"
            )
        return judge

    def describe_judge(self, judge: JudgeConfig) -> dict[str, object]:  # noqa: ARG002
        """Further facts about the judge for the results; they replace settings of the same name."""
        return {}

    def known_answers(self, place: Path, *, whole: bool = False) -> KnownAnswers | None:  # noqa: ARG002
        """Answers with known verdicts in this benchmark's data, to test a judge with.

        Args:
            place: a folder with the data, or the data file.
            whole: True if all answers will be judged, as `KnownAnswers.tables` needs.

        Returns:
            None if the data have no such answers.

        Raises:
            TasksError: the data cannot be read.
        """
        return None

    def check(self, names: Sequence[str], loaded: LoadedData) -> None:
        """Check whatever else can be checked before the model is loaded.

        Raises:
            TasksError: what is wrong, and what to do.
        """

    # --- results --------------------------------------------------------------------------------

    def describe(self, ran: Ran) -> tuple[dict[str, object], list[Condition]]:
        """Facts for the results file, and conditions of the numbers.

        Here the data, and what each task left out; a benchmark adds its own.
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
                told = f"{len(lost)} {self.records} skipped ({shown}), such as {first}: "
                told += lost[first]
                line = f"{', '.join(of)}: {told}" if of else told
                conditions.append(Condition(Kind.LEFT_OUT, line, of))
        return {"data": about, "left_out": left_out}, conditions

    def board(self) -> Mapping[str, Any]:
        """The layouts of the tables and the paper's figures (form: leaderboards/__init__.py).

        Default: those in the package's leaderboard.json; without layouts, one table with a column
        for each metric.
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
        """Add to the rows the numbers that `board` needs and that follow from several rows."""
        return rows

    def upgrade_items(
        self,
        items: Items,
        *,
        judged: bool,  # noqa: ARG002 - whether a judge was named for them
    ) -> Items:
        """Change a saved run's items before they are scored again.

        For items of an earlier version, and for references that came later.

        Raises:
            DataError: an item lacks what the tasks write.
        """
        return items

    def notes(self, asked: Mapping[str, Items]) -> Sequence[str]:  # noqa: ARG002
        """Lines about one model's saved runs together; items have only `id` and `status` here."""
        return ()


def option_set(variable: settings.Setting[Any]) -> list[Condition]:
    """The condition that a setting differs from its default; [] if it does not."""
    line = settings.told(variable)
    return [Condition(Kind.OPTION, line)] if line else []


def split(metric: Metric[S], by: str, values: Iterable[str], prefix: str = "") -> list[Metric[S]]:
    """Copies of a metric for the items with each value of a field, named NAME_PREFIXVALUE."""
    inner = metric.include or (lambda _: True)

    def part(value: str) -> Metric[S]:
        return replace(
            metric,
            name=f"{metric.name}_{prefix}{value}",
            include=lambda item: inner(item) and item.get(by) == value,
            host_fields=None,
            mean_field="",
        )

    return [part(value) for value in values]


def accuracies(name: str) -> list[Metric[GradedItem]]:
    """The share of right items in its three forms (aggregate.py)."""
    return [
        Metric(
            name,
            aggregate.accuracy,
            host_fields=("status", "right"),
            mean_field="right",
            per_unit=aggregate.rights,
            is_share=True,
        ),
        Metric(f"{name}_valid", aggregate.accuracy_valid),
        Metric(f"{name}_failed", aggregate.count_failed, higher_is_better=False),
    ]


def pool_accuracies(name: str, size: int) -> list[Metric[GradedItem]]:
    """The share of pools of `size` items that are right in all, likewise."""

    def of_pools(
        statistic: Callable[[Sequence[GradedItem]], R],
    ) -> Callable[[Sequence[GradedItem]], R]:
        return lambda items: statistic(aggregate.pools(items, size))

    plain, *others = (replace(one, compute=of_pools(one.compute)) for one in accuracies(name))
    shown, units = ("id", "status", "right"), of_pools(aggregate.rights)
    return [replace(plain, host_fields=shown, mean_field="", per_unit=units), *others]


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
        Metric(f"{name}_failed", failed, higher_is_better=False),
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
        Metric(count, aggregate.count_refusals, higher_is_better=None),
        *(Metric(name, aggregate.if_refusals_wrong(of)) for name, of in beside.items()),
    ]
