"""The protocol of a benchmark. Read this file first: its types are the architecture.

    released files -> load -> docs -> prompt -> lmms-eval -> model -> reply
    reply -> score <-> judge -> item
    items -> metrics -> numbers -> tables

A doc is one question to a model. An item is one reply with its score, in the form of the log.
Numbers are computed from items alone, so that a saved run can be scored and judged again.

To write a benchmark:

1. Subclass `Benchmark` once. The subclass has to define `name`, `title`, `how_to_get`, `records`,
   `paper_judge`, `tasks`, `read_release` and `docs`; everything else has a default. `read_release`
   validates the released files, and `docs` returns a task's docs. `sources` lists the videos, if
   there are any.
2. Make one `Task` for each task of lmms-eval. `prompt` turns a doc into the parts that the model
   gets, `log_fields` selects the doc's fields for the log, `score` turns a reply into the fields
   of an item, and `metrics` turn items into numbers.
3. If a number needs the items of several tasks, add a `JointMetric`.
4. Write a YAML file for each task. It names functions that are the same for all benchmarks, such
   as `process_docs: !function lmms_eval_tasks.host.task_functions.docs_TASK`
   (host/task_functions.py).
5. Name an instance of the class as an entry point (registry.py). `lmms_eval --tasks TASK` then runs
   the task, and `lmms-eval-tasks doctor --tasks TASK` checks it.

Everything else is written once, for all benchmarks: running, checking, judging later, rescoring,
estimating, intervals and tables (host/, runs/, report/). docs/your_benchmark.md is a complete
benchmark on one page.

Docs and items are plain mappings, as in lmms-eval and its JSON logs. Each task declares their
fields in TypedDicts, so that mypy refuses a wrong key or a wrong type. Three type variables name
these TypedDicts: D is the doc, K is the part of the doc that the log keeps, and I is the item,
which is K with the fields that `score` returned.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, cast

from typing_extensions import NotRequired, ReadOnly, TypeVar

from lmms_eval_tasks import leaderboards, settings
from lmms_eval_tasks.errors import DataError, JudgeError, TasksError
from lmms_eval_tasks.judges.verdict import DEBATE, PANEL, Criterion, ScoringSteps
from lmms_eval_tasks.media import downloads, sources
from lmms_eval_tasks.media.downloads import GitFiles, HubFiles
from lmms_eval_tasks.media.sources import CheckedSource, Source
from lmms_eval_tasks.utils import interrupts, released_files
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

# Types of docs and items of any task, for code that knows no benchmark:
Doc = Mapping[str, Any]  # one question to a model, with the paths of its media and its reference
Item = Mapping[str, Any]  # the log's fields of a doc, with the reply and its score
Items = Sequence[Item]
Fields = Mapping[str, object]
Units = Mapping[str, tuple[str, float]]  # the values that a mean averages: id -> cluster and value
# The values of a mean of groups' means: id -> group, cluster and value.
GroupUnits = Mapping[str, tuple[str, str, float]]

# D is a doc, K the doc's fields that the log keeps, and I an item. D and I are contravariant: a
# metric of items with few fields also serves for items with more fields.
D = TypeVar("D", bound=Fields, contravariant=True, default=Any)  # noqa: PLC0105
K = TypeVar("K", bound=Fields, default=Any)
I = TypeVar("I", bound=Fields, contravariant=True, default=Any)  # noqa: E741, PLC0105
T = TypeVar("T", bound=Fields)
S = TypeVar("S", bound=Fields)
R = TypeVar("R")

SAME = object()  # default of Part.simple_content
ASKED = "asked_hash"  # the item's field that holds the hash of the question (`Task.hash_of`)
NAMED = 20  # at most so many left-out records are named in one line
REBUILT = 12  # first hex digits of this hash, which depend only on the item's `identity`


class Scored(Outcome):
    """The item's fields that every `Task.score` returns, and the fields that a run adds to them."""

    asked_hash: NotRequired[ReadOnly[str]]  # hash of the question (`Task.hash_of`)
    reply: NotRequired[ReadOnly[str]]  # the model's text
    refused: NotRequired[ReadOnly[bool]]  # a judged reply that looks like a refusal
    # The judge's verdicts by the name of the request (`Task.judgements`).
    verdicts: NotRequired[ReadOnly[Mapping[str, Mapping[str, Any]]]]


def select_fields(doc: T, kind: type[T]) -> T:
    """Return the doc's fields that the TypedDict `kind` declares, in its order."""
    return cast(T, {name: doc[name] for name in kind.__annotations__ if name in doc})


class Part(NamedTuple):
    """One part of a prompt: a text, pictures, a video or sound. Models get the parts in order."""

    kind: Literal["text", "image", "images", "video", "audio"]  # `images` is several pictures
    content: Any  # the text; the path of a file; a picture; or a function that returns one of these
    # The content for lmms-eval's simple models, if it differs: a list of visuals, or another text.
    simple_content: Any = SAME


class MediaJob(NamedTuple):
    """A job that cuts a clip or pictures from a video before the model is loaded."""

    name: str  # id of the record that is left out if the job fails: a question, a segment, a video
    key: tuple[Any, ...]  # docs whose jobs have the same key share the clip
    # Makes the media or finds them in the cache; raises a MediaError with the reason.
    make: Callable[[], object]


class TableRow(NamedTuple):
    """A row of a table: the metrics of one task or one group."""

    task: str
    values: Mapping[str, object]  # metric's name -> value
    model: str = ""  # the model's name, in a table of several models
    invalid: bool = False  # the run is INVALID
    marks: str = ""  # signs behind the row's name that stand for further conditions of its numbers


@dataclass(frozen=True)
class Metric(Generic[I]):
    """One number that is computed from a task's items, which have type I."""

    name: str  # the metric's name in tables and files
    # Returns the number for items in any order; None if the items have no such number.
    compute: Callable[[Sequence[I]], float | None]
    include: Callable[[I], bool] | None = None  # True for an item that counts; default: all count
    higher_is_better: bool | None = True  # None if neither direction is better
    # The item's fields that `compute` reads, if the metric is a column of lmms-eval's own table;
    # `a.b` means key b of field a. None: the metric is no column there.
    host_fields: tuple[str, ...] | None = None
    # If the metric is the plain mean of a field of the items: this field, from which lmms-eval
    # computes a standard error.
    mean_field: str = ""
    # If the metric is a mean: returns the values that it averages, by item or pool id. With these
    # values, the interval is a t interval and two models are compared in pairs; other metrics get a
    # jackknife over clusters.
    per_unit: Callable[[Sequence[I]], Units] | None = None
    # If the metric is the mean of groups' means: returns the values that these average, by item or
    # pool id. The jackknife then sums these values, and does not compute the metric again.
    per_group_unit: Callable[[Sequence[I]], GroupUnits] | None = None
    is_share: bool = False  # the number lies in 0..1

    @property
    def has_interval(self) -> bool:
        """True if an interval is computed for this metric; for some metrics that takes minutes."""
        fields = (self.host_fields, self.per_unit, self.per_group_unit)
        return any(one is not None for one in fields)

    def counted_items(self, items: Sequence[I]) -> Sequence[I]:
        """Return the items that count for this metric (`include`)."""
        return items if self.include is None else [item for item in items if self.include(item)]


@dataclass(frozen=True)
class JointMetric(Generic[I]):
    """Numbers that need the items of several tasks, whose common fields are I."""

    group: str  # lmms-eval's group of these tasks, and the name of the row in tables
    tasks: tuple[str, ...]  # names of the joined tasks
    # Returns the numbers by name, given the items by task; empty if too few of the tasks were run.
    compute: Callable[[Mapping[str, Sequence[I]]], Mapping[str, float | None]]
    # The numbers that are columns of lmms-eval's own table, with the item's fields that they read.
    host_fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Returns lines for the user about the numbers of several saved runs together.
    notes: Callable[[Mapping[str, Sequence[I]]], Iterable[str]] = lambda items: ()  # noqa: ARG005
    count_name: str = ""  # name of the number that counts the joined questions; "" without one
    share_names: Collection[str] = ()  # names of the numbers that lie in 0..1
    # For each number that is a mean: returns the values that it averages, as Metric.per_unit does.
    per_unit: Mapping[str, Callable[[Mapping[str, Sequence[I]]], Units]] = field(
        default_factory=dict
    )


@dataclass(frozen=True)
class Task(Generic[D, K, I]):
    """One task of lmms-eval: its prompt, its scoring and its metrics."""

    name: str
    prompt: Callable[[D], Sequence[Part]]  # returns the parts that the model gets for a doc
    # Returns the doc's fields for the log: all that `score` reads, as plain JSON types.
    log_fields: Callable[[D], K]
    # Returns the item's further fields, given the log's fields and the reply. In a task with a
    # judge, `score` is a generator: with `yield from` and a function of judges/asking.py, it
    # requests a verdict. A run, `rescore` or an estimate supplies the verdict.
    score: Callable[[K, str], ScoringSteps[Fields] | Fields]
    metrics: Sequence[Metric[I]]
    # Names of the item's fields that identify the question: its text or options, media, setting and
    # reference. Two runs are compared item by item, and two items match if these fields are equal.
    # The id does not suffice, since it may depend on the order of the data.
    identity: Collection[str] = ()
    # Returns metrics whose names depend on the items, such as one metric for each candidate.
    extra_metrics: Callable[[Sequence[I]], Sequence[Metric[I]]] = lambda items: ()  # noqa: ARG005
    # Returns the number of frames that the model should see, if the protocol fixes it; else None.
    frames: Callable[[D], int | None] = lambda doc: None  # noqa: ARG005
    # Returns the system text that chat models get before the parts; "" without one.
    system: Callable[[D], str] = lambda doc: ""  # noqa: ARG005
    # Returns fields for the log that describe the media that the model got.
    media_log: Callable[[D], Fields] = lambda doc: {}  # noqa: ARG005
    # Scores several items together, after all replies: yields an item's id and a scoring that
    # returns further fields of this item. Such fields are not in lmms-eval's own table.
    score_jointly: Callable[[Sequence[I]], Iterable[tuple[str, ScoringSteps[Fields]]]] | None = None
    judgements: Collection[str] = ()  # names of the requests to the judge; empty without a judge
    extra: str = ""  # the extra whose packages the metrics need (utils/extras.py)
    # A saved item that lacks one of these fields cannot be scored again.
    required_fields: Collection[str] = ()
    failed_item: Fields = field(default_factory=dict)  # the item's fields if `score` raised
    # Returns further facts about the task's items, for the results file.
    details: Callable[[Sequence[I]], Fields] = lambda items: {}  # noqa: ARG005
    # Returns lines for the user about a saved run's numbers.
    notes: Callable[[Sequence[I]], Sequence[str]] = lambda items: ()  # noqa: ARG005
    # Returns a reply that a model could give, for estimates of costs; the arguments are a doc and
    # the doc's place among the task's docs.
    example_reply: Callable[[D, int], str] = lambda doc, number: ""  # noqa: ARG005
    cluster_field: str = "video"  # items with the same value are one cluster of the intervals
    # Fields by which a report splits the first metric, and the kind of chart for each.
    splits: Mapping[str, Literal["dots", "star", "heat"]] = field(default_factory=dict)
    # Returns the id of the item's pool: a group of items that is right only if all are; "" without.
    pool: Callable[[I], str] = lambda item: ""  # noqa: ARG005

    def log_entry(self, doc: D) -> dict[str, object]:
        """Return the doc's fields for the log, with the hash of the question (`hash_of`)."""
        kept = self.log_fields(doc)
        return {**kept, ASKED: self.hash_of(kept, doc.get("question"))}

    def hash_of(self, item: Fields, question: object = None) -> str:
        """Return the hash of the question that an item answers.

        The hash is "" if the item has no field of `identity`.

        Args:
            item: an item of this task, or the log's fields of a doc.
            question: the question's text, which some tasks do not keep in the item.

        Returns:
            REBUILT hex digits of the `identity` fields, then 8 hex digits of `question` if it is
            given. For old logs without a hash, only the first part can be computed.
        """
        found = {name: item[name] for name in self.identity if name in item}
        if not found:
            return ""
        return digest([self.name, found], REBUILT) + (
            "" if question is None else digest(question, 8)
        )


@dataclass(frozen=True)
class LoadedData:
    """A run's data, read before the model is loaded.

    A benchmark whose docs need more than the release and its videos has a subclass with it.
    """

    release: Any  # the benchmark's own subclass of Release
    # The files beside the data file, such as videos, after their check.
    sources: Sequence[CheckedSource] = ()

    @property
    def digest(self) -> str:
        """The release's hash, in hex digits."""
        return str(self.release.digest)

    def source(self, task: str) -> CheckedSource | None:
        """Return the first source that a task needs; None if it needs none or none was checked."""
        return next((one for one in self.sources if task in one.source.tasks), None)

    def left_out(self, task: str) -> dict[str, str]:
        """Return the reason for each record that a task leaves out, by the record's id."""
        lost = dict(self.release.problems)
        for one in self.sources:
            if task in one.source.tasks:
                lost |= one.left_out
        return lost


class Ran(NamedTuple):
    """The tasks of one benchmark in a finished run, with their items."""

    loaded: LoadedData | None  # the data; None if the files can no longer be read
    names: Sequence[str]  # names of the tasks
    left_out: Mapping[str, Mapping[str, str]]  # by task and id of the record: why it was left out
    items: Mapping[str, Items]  # by task


class KnownAnswer(NamedTuple):
    """An answer whose right verdict is known, to test a judge with."""

    task: str  # name of the task whose judge gets the answer
    doc: Item  # the question's fields in the log (`Task.log_fields`)
    text: str  # the answer
    # The right verdicts by name (`Task.judgements`), the main one first; empty if none is known.
    right_verdicts: Mapping[str, float]


@dataclass(frozen=True)
class KnownAnswers:
    """Answers whose right verdicts are known, for `lmms-eval-tasks agreement`."""

    answers: Sequence[KnownAnswer]
    source: Sequence[str]  # lines that say where answers and verdicts come from
    scale: Sequence[int]  # all possible verdicts, ascending; (0, 1) is wrong, right
    clusters: str = "videos"  # plural noun for the clusters of `Task.cluster_field`
    # Returns further tables of all answers' items, and the content of these tables for JSON. The
    # second argument is True if too many verdicts failed.
    tables: Callable[[Items, bool], tuple[Sequence[RenderableType], dict[str, object]]] | None = (
        None
    )


class Benchmark:
    """One benchmark. A package subclasses this once and names an instance as its entry point.

    A subclass has to define the attributes without a default, `read_release` and `docs`.
    """

    # The benchmark's name, its folder below the data root, and the first part of its tasks' names.
    name: ClassVar[str]
    title: ClassVar[str]  # the name in messages and tables
    how_to_get: ClassVar[str]  # a sentence that says where to get the data
    # The released files that `data get` downloads; the first source has the data file.
    downloads: ClassVar[Sequence[HubFiles | GitFiles]] = ()
    by_hand: ClassVar[str] = ""  # a sentence on the files that the user has to get otherwise
    # Plural noun for the benchmark's records, in messages: items, segments, questions, videos.
    records: ClassVar[str]
    # Counts of the full set, with the keys of Release.counts.
    paper_counts: ClassVar[Mapping[str, int]] = {}
    paper_judge: ClassVar[str]  # the judge's model in the paper
    # The reason why a panel of judges cannot judge here; "" if it can.
    one_judge: ClassVar[str] = ""
    headline: ClassVar[int] = 1  # number of `tables` that `--tables headline` prints
    tasks: Mapping[str, Task]  # the tasks by their names
    joint_metrics: Sequence[JointMetric] = ()
    # Two message fragments: for the progress bar, and for the error when no item can be prepared.
    media_messages: ClassVar[tuple[str, str]] = ("segments cut", "segments of {} can be cut")
    # True if MediaJob.name is a video; then --allow-missing-videos leaves out failed jobs.
    whole_videos: ClassVar[bool] = False

    # --- data ---------------------------------------------------------------------------------

    def read_release(self, place: Path, /) -> Release:
        """Read and validate the data in a folder, or a data file.

        Raises:
            TasksError: the data are missing or cannot be used; the message names the place of the
                first error.
        """
        raise NotImplementedError

    def _read(self, place: Path) -> Release:
        """Call `read_release`; a folder or file that the user may not read is a DataError, too."""
        try:
            return self.read_release(place)
        except OSError as error:
            raise DataError(f"{error.filename or place}: {error.strerror or error}") from None

    def sources(self, release: Any, names: Sequence[str]) -> Sequence[Source]:  # noqa: ARG002
        """Return the files that tasks need beside the data file, the main videos first."""
        return ()

    def complaints(self, release: Any, names: Sequence[str]) -> list[str]:  # noqa: ARG002
        """Return a message for each further reason why these tasks cannot run on the data."""
        return []

    def load(
        self, names: Sequence[str], *, videos: bool = True, only: Collection[str] | None = None
    ) -> LoadedData:
        """Read the user's data, and check the files that these tasks need.

        Args:
            names: names of the tasks.
            videos: True to check the video files too; an estimate needs no videos.
            only: values of the docs' `video_path` that are checked (`--limit`); other videos count
                as good without a check. None checks all videos.

        Raises:
            DataError: the data are missing, or hold errors that the user did not allow; the message
                lists all of them.
        """
        release = self._read(settings.required_folder(self.name, self.title, self.how_to_get))
        wanted = [one for one in self.sources(release, names) if videos or not one.is_video]
        checked = [sources.check_source(one, only) for one in wanted if one.tasks]
        records = f"{self.title} {self.records}"
        total = release.n_records + len(release.problems)
        complaints = sources.bad_items(release.problems, f"of {total:,} {records} cannot be used")
        complaints += self.complaints(release, names)
        complaints += [line for one in checked for line in one.complaints(records)]
        sources.stop(release.place, complaints)
        return LoadedData(release, checked)

    def docs(self, loaded: LoadedData, task: str) -> Sequence[Doc]:
        """Return a task's docs without the records that are left out (`LoadedData.left_out`).

        The order and the ids of the docs depend on the data alone, so that `--limit`, the processes
        of a run and later runs agree. A doc has `id`, `video`, all fields that `prompt` reads, and
        `video_path` if it shows a video.
        """
        raise NotImplementedError

    def media_job(self, doc: Doc) -> MediaJob | None:  # noqa: ARG002
        """Return the job that prepares a doc's media before the model is loaded.

        Default: None, for docs that need no preparation.
        """
        return None

    def data_notes(self, release: Any) -> list[str]:  # noqa: ARG002
        """Return this benchmark's own lines for `data status`."""
        return []

    def _status(self, place: Path) -> DataStatus:
        release = self._read(place)
        media = [
            sources.check_source(source)
            for source in self.sources(release, [*self.tasks])
            if source.is_video
        ]
        of_paper = [released_files.compared(release.counts, self.paper_counts)]
        notes = [*(of_paper if self.paper_counts else []), *self.data_notes(release)]
        if len(media) > 1:
            notes += [source.summary(self.records) for source in media]
        bad = {name: why for source in reversed(media) for name, why in source.bad.items()}
        notes += [f"{name}: {why}" for name, why in {**release.problems, **bad}.items()]
        missing = {name: why for source in media for name, why in source.missing.items()}
        videos = {window.video for kind in media for window in kind.source.windows.values()}
        usable = len(videos - missing.keys())
        return DataStatus(release.place, release.digest, release.counts, usable, missing, notes)

    def status(self, root: Path) -> DataStatus:
        """Return the state of the data below a data root; errors become `DataStatus.problem`."""
        place = settings.data_folder(self.name, root)
        try:
            if not place.exists():
                return DataStatus(place, problem=self.how_to_get)
            return self._status(place)
        except TasksError as error:
            return DataStatus(place, problem=str(error))

    def files(self, source: Path) -> Mapping[str, Path]:
        """Return the files of a release with its videos, by their paths in the benchmark's folder.

        Args:
            source: a folder or the data file, as released or as `prepare` wrote it.

        Raises:
            TasksError: the files are missing, or do not match the schema.
        """
        release = self._read(source)
        there = dict(release.files)
        for one in self.sources(release, [*self.tasks]):
            for window in one.windows.values():
                if window.path.is_file():
                    there[f"{window.folder}/{window.path.name}"] = window.path
        return there

    def prepare(self, source: Path, root: Path, link: bool | None) -> str:
        """Validate the files of `source` and put them under `root`, as copies or links.

        Args:
            source: a folder or the data file.
            root: the data root.
            link: as in `released_files.put`.

        Returns:
            Lines for the user: the number of files, then the lines of `data status`.

        Raises:
            TasksError: the files are missing or do not match the schema, or the target folder has
                other data.
        """
        given = self.files(source.expanduser().absolute())
        target = settings.data_folder(self.name, root)
        released_files.place(target, given, link)
        if hidden := given.keys() - self.files(target).keys():
            raise DataError(
                f"{target}: another file there takes precedence over {min(hidden)}; remove it first"
            )
        status = self._status(target)
        done = "copied" if link is False else "linked"
        lines = [f"{done} {len(given)} files to {target}", *status.notes]
        return "\n".join([*lines, *filter(None, [released_files.listed(status.bad)])])

    def get(self, root: Path, say: Callable[[str], object]) -> None:
        """Download the released files, and put them under a data root as `prepare` does.

        Args:
            root: the data root. The downloads stay in its folder `.downloads`.
            say: prints lines for the user.

        Raises:
            TasksError: some files cannot be had. If the data file is not among them, the other
                files are put in place.
        """
        command = f"lmms-eval-tasks data prepare {self.name} --from FOLDER"
        if not self.downloads:
            raise DataError(
                f"{self.title} cannot be downloaded: {self.how_to_get}. Then: {command}"
            )
        folder = settings.data_folder(self.name, root).parent / ".downloads" / self.name
        problems: list[str] = []
        for source in self.downloads:
            try:
                with interrupts.at_interrupt(lambda: f"whole files are in {folder}"):
                    downloads.download(source, folder, say)
            except DataError as error:
                problems.append(str(error))
                if source is self.downloads[0]:
                    break
        else:
            say(self.prepare(folder, root, None))
        if self.by_hand:
            say(f"by hand: {self.by_hand}; then: {command}")
        if problems:
            raise DataError("\n".join(problems))

    def tasks_of(self, row: str) -> tuple[str, ...]:
        """Return the tasks behind a row of a table: the task of that name, or a group's tasks."""
        joined = next((one.tasks for one in self.joint_metrics if one.group == row), ())
        return (row,) if row in self.tasks else joined

    # --- prompts and the judge ------------------------------------------------------------------

    def prompts(self, names: Sequence[str]) -> Mapping[str, Prompt]:  # noqa: ARG002
        """Return the prompt files that these tasks use, by a name for each use.

        Raises:
            PromptError: a part or a placeholder of the user's file is wrong or missing.
        """
        return {}

    def criteria(self) -> Sequence[Criterion]:
        """Return the judge's criteria under the current settings, for the check before a run."""
        return ()

    def judge_prompt(self) -> Prompt | None:
        """Return the judge's prompt file, the packaged one or the user's; None without a judge."""
        return None

    def configure_judge(self, judge: JudgeConfig) -> JudgeConfig:
        """Return the judge with the settings that this benchmark needs, such as longer replies.

        Raises:
            JudgeError: this benchmark cannot use this judge.
        """
        if self.one_judge and judge.provider in (PANEL, DEBATE):
            raise JudgeError(
                f"the judge {judge.label} consists of several judges, "
                f"{self.one_judge}: name one model for {self.title}; "
                "lmms-eval-tasks judge --judge SPEC adds another judge later"
            )
        return judge

    def describe_judge(self, judge: JudgeConfig) -> dict[str, object]:  # noqa: ARG002
        """Return further facts about the judge for the results.

        These facts replace settings with the same name.
        """
        return {}

    def known_answers(self, place: Path) -> KnownAnswers | None:  # noqa: ARG002
        """Return answers whose right verdicts are in the data, to test a judge with.

        Args:
            place: a folder with the data, or the data file.

        Returns:
            None if the data hold no such answers.

        Raises:
            TasksError: the data cannot be read.
        """
        return None

    def check(self, names: Sequence[str], loaded: LoadedData) -> None:
        """Check further conditions of a run before the model is loaded.

        Raises:
            TasksError: a condition does not hold; the message says what is wrong and what to do.
        """

    # --- results --------------------------------------------------------------------------------

    def describe(self, ran: Ran) -> tuple[dict[str, object], list[Condition]]:
        """Return facts for the results file, and conditions of the numbers.

        This method returns the data and the records that each task left out. A subclass adds the
        benchmark's own facts.
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
        """Return the layouts of the tables and the paper's figures (leaderboards/__init__.py).

        Default: the package's leaderboard.json. Without layouts, there is one table with a column
        for each metric.
        """
        if "layouts" in (board := leaderboards.stored(self.name)):
            return board
        metrics = [metric.name for task in self.tasks.values() for metric in task.metrics]
        columns = [{"metric": one} for one in dict.fromkeys(metrics)]
        names = {"task": "{task} {given}"}
        return {**board, "layouts": [{"title": self.title, "names": names, "columns": columns}]}

    def tables(self, rows: Sequence[TableRow]) -> Sequence[RenderableType]:
        """Return the paper's tables (rich renderables); tables without any number are left out.

        The first `headline` tables are the paper's main results. The others are splits (`--tables
        all`).
        """
        from lmms_eval_tasks.tables import layouts

        return layouts.draw_tables(self.board(), self.table_rows(rows))

    def table_rows(self, rows: Sequence[TableRow]) -> Sequence[TableRow]:
        """Return the rows with further numbers that `board` shows and that need several rows."""
        return rows

    def upgrade_items(
        self,
        items: Items,
        *,
        judged: bool,  # noqa: ARG002 - True if a judge was named for the items
    ) -> Items:
        """Return a saved run's items in the form that `score` needs, before they are scored again.

        A benchmark changes items here that an earlier version wrote, or whose references came
        later.

        Raises:
            DataError: an item lacks a field that the tasks write.
        """
        return items

    def notes(self, items_by_task: Mapping[str, Items]) -> Sequence[str]:  # noqa: ARG002
        """Return lines about one model's saved runs together.

        The items have only `id` and `status` here.
        """
        return ()


def option_set(variable: settings.Setting[Any]) -> list[Condition]:
    """Return the condition that a setting is not at its default, in a list; [] if it is."""
    line = settings.setting_note(variable)
    return [Condition(Kind.OPTION, line)] if line else []


def split(metric: Metric[S], by: str, values: Iterable[str], prefix: str = "") -> list[Metric[S]]:
    """Return copies of a metric, one for the items with each value of the field `by`.

    The name of a copy is NAME_PREFIXVALUE.
    """
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
    """Return the share of right items in three forms: plain, `_valid`, `_failed` (aggregate.py)."""
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
    """Return the share of pools of `size` items in which all are right, in the same three forms."""

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
    expected: Callable[[Sequence[S]], Sized] | None = None,
) -> list[Metric[S]]:
    """Return metrics of a judge's ratings: mean of the valid ones, count of failures, coverage.

    Args:
        name: first part of the metrics' names.
        rated: returns the ratings of items.
        expected: returns everything that should have a rating, if that is more than `rated`
            returns.
    """
    wanted = expected or rated

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
    """Return a metric that counts answers like refusals, and metrics that count these as wrong.

    Args:
        count: name of the metric that counts these answers.
        headline: functions that compute metrics, by the metric's name. For each NAME, the metric
            NAME_refusals_wrong counts all these answers as wrong.
    """
    beside = {f"{name}_refusals_wrong": of for name, of in headline.items()}
    return [
        Metric(count, aggregate.count_refusals, higher_is_better=None),
        *(Metric(name, aggregate.if_refusals_wrong(of)) for name, of in beside.items()),
    ]
