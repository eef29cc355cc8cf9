"""All metrics of saved runs, computed again with the saved verdicts or with new ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from lmms_eval_tasks import judges, settings
from lmms_eval_tasks.benchmark import Benchmark, Item, Items, Task
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.judges import Judge, Verdict
from lmms_eval_tasks.judges import run as judge_run
from lmms_eval_tasks.judges.asking import VerdictSource, given_by
from lmms_eval_tasks.judges.config import environment
from lmms_eval_tasks.judges.providers.replay import NoJudge
from lmms_eval_tasks.judges.run import ordered_map
from lmms_eval_tasks.judges.verdict import (
    DEFAULT_BASE_URL,
    HUGGINGFACE,
    NONE,
    OPENAI,
    REPLAY,
    JudgeConfig,
    JudgeRequest,
)
from lmms_eval_tasks.report import aggregation, invalid
from lmms_eval_tasks.report.invalid import Lengths
from lmms_eval_tasks.runs import finish, prepare, scoring
from lmms_eval_tasks.utils.conditions import (
    OF_JUDGE,
    Condition,
    Kind,
    Record,
    concerning,
    condition_lines,
    merged,
    record,
)
from lmms_eval_tasks.utils.json_files import Json, JsonObject
from lmms_eval_tasks.utils.saved_runs import MEND, SavedRun, refuse_twice, saved_items

T = TypeVar("T")
FEW = 3  # at most this many ids in a line; the file of --output has all


class RunKey(NamedTuple):
    """The facts that the runs of a joint metric share."""

    model: str | None
    data: str  # hash
    setting: str  # the setting in which videos were shown


SHOWN = 4  # at most this many changed numbers in a line


class Changes(NamedTuple):
    """The comparison of a task's or group's numbers with the saved ones."""

    equal: int  # numbers that are the same to the last digit
    changed: Mapping[str, tuple[Json, Json]]  # name -> (saved, now); saved is None for a new number
    new: int = 0  # number of new verdicts
    n_kept: int = 0  # number of saved verdicts that are kept

    @classmethod
    def between(
        cls, saved: Mapping[str, Json], now: Mapping[str, Json], new: int = 0, n_kept: int = 0
    ) -> Changes | None:
        """Return the comparison of saved numbers with today's; None if they share no number."""
        shared = [n for n in now if n in saved and (saved[n], now[n]) != (None, None)]
        changed = {n: (saved[n], now[n]) for n in shared if saved[n] != now[n]}
        return cls(len(shared) - len(changed), changed, new, n_kept) if shared else None

    def line(self, *, judged: bool) -> str:
        """Return the comparison as a line for the user; `judged` is True if a judge was named."""
        changed = {n: v for n, v in self.changed.items() if judged or v[0] is not None}
        total, kept = self.equal + len(changed), self.new + self.n_kept
        listed = [f"{n} {_text(a)} to {_text(b)}" for n, (a, b) in [*changed.items()][:SHOWN]]
        more = f" and {len(changed) - SHOWN} more" if len(changed) > SHOWN else ""
        what = f"{', '.join(listed)}{more}"
        if judged:
            verdicts = f"{self.new:,} verdicts new, {self.n_kept:,} kept; " if kept else ""
            told = f"{verdicts}{len(changed)} of {total} numbers changed"
            return f"{told}: {what}" if changed else told
        told = f"{self.equal} of {total} numbers equal the saved ones"
        return f"{told}; changed: {what}" if changed else told


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "-" if value is None else str(value)


@dataclass
class Numbers:
    """The numbers of one task or group of one model, with the conditions of these numbers."""

    name: str
    model: str | None
    values: JsonObject
    details: JsonObject
    changes: Changes | None
    tasks: Sequence[str] = ()  # for a group: the tasks that it joins
    conditions: Record = ()  # for a task: its conditions
    invalid: str = ""  # for a task: the reason why it is invalid; "" if it is valid
    # Ids of items whose replies are read differently from the saved reading.
    read_otherwise: Sequence[str] = ()


@dataclass
class Rescored:
    """The numbers of a benchmark's saved runs, and notes for the user."""

    several: bool = False  # True if a task exists for several models
    numbers: list[Numbers] = field(default_factory=list)  # tasks, then groups
    notes: list[str] = field(default_factory=list)
    # Group -> the runs that could not be joined.
    apart: dict[str, list[RunKey]] = field(default_factory=dict)
    judged: bool = False  # True if there are any verdicts

    def label(self, name: str, model: str | None) -> str:
        """Return the name of a task or group, followed by the model if there are several."""
        return f"{name} {model}" if self.several else name

    def by_label(self, get: Callable[[Numbers], T | None]) -> dict[str, T]:
        """Return what `get` returns for each task and group, by label, without None."""
        pairs = ((self.label(one.name, one.model), get(one)) for one in self.numbers)
        return {label: value for label, value in pairs if value is not None}

    def is_invalid(self, numbers: Numbers) -> bool:
        """Return True for an invalid task, and for a group with an invalid task."""
        parts = (other for other in self.numbers if other.model == numbers.model)
        return bool(numbers.invalid) or any(p.invalid for p in parts if p.name in numbers.tasks)

    def add(self, conditions: Iterable[Condition]) -> None:
        """Add conditions to the records of the tasks that they concern."""
        given = list(conditions)
        for one in (own for own in self.numbers if not own.tasks):
            one.conditions = record([*one.conditions, *concerning(given, [one.name])])

    def lines(self) -> list[str]:
        """Return the notes, then the conditions of all numbers, each line once; facts come last."""
        told = list(self.notes)
        for model in dict.fromkeys(one.model for one in self.numbers):
            own = {n.name: n.conditions for n in self.numbers if n.model == model and not n.tasks}
            told += [
                f"{model}: {one}" if self.several else one for one in condition_lines(merged(own))
            ]
        return list(dict.fromkeys(told))


def rescore_saved(
    benchmark: Benchmark,
    runs: Sequence[SavedRun],
    judge: str | None = None,
    *,
    take: Callable[[SavedRun, Items], object] | None = None,
) -> Rescored:
    """Compute all metrics from saved samples, and the joint metrics for each model and data.

    Only one run's complete items are in memory at a time, since those of all runs would not fit.

    Args:
        benchmark: the runs' benchmark.
        runs: the saved runs.
        judge: the judge that gives missing verdicts and replaces those of other judges, "" for the
            paper's; None keeps the saved verdicts.
        take: a function that is called with each run and its complete items.

    Raises:
        DataError: a sample lacks a field, two samples of a run share an id, or two runs have one
            task and model.
        JudgeError: the judge cannot be used.
        PromptError: a prompt file of the judge is wrong.
    """
    refuse_twice(runs)
    prepare.check_extras([(benchmark, [one.task for one in runs if one.task in benchmark.tasks])])
    if judge is not None:
        prepare.check_judge(benchmark, judge)
    # Without a judge, saved verdicts stay, and items without a verdict stay unjudged.
    asker = judges.make_judge(
        JudgeConfig(NONE) if judge is None else prepare.judge_config(benchmark, judge)
    )
    done = Rescored(several=len({run.task for run in runs}) < len(runs))
    joined: list[Numbers] = []

    def small(run: SavedRun) -> tuple[RunKey, Items]:
        """Rescore a run; return its side, and its items with only the fields that are needed later.

        A task of a joint metric needs all fields except the verdicts; other tasks need only id and
        status. The other fields are dropped to save memory.
        """
        items, read_otherwise, counts = _scored(benchmark, run, asker)
        if not items:
            return RunKey(run.model, "", ""), ()
        numbers = _numbers(benchmark, run, items, done, counts, judged_anew=judge is not None)
        if read_otherwise and judge is None:  # a judge also changes the fields of items
            numbers.read_otherwise = read_otherwise
            few, total = ", ".join(read_otherwise[:FEW]), f"{len(read_otherwise)} of {len(items)}"
            done.notes.append(
                f"{done.label(run.task, run.model)}: {total} items are read "
                f"differently than when they were saved (the first: {few})"
            )
        done.numbers.append(numbers)
        if take is not None:
            take(run, items)
        first, whole = items[0], any(run.task in joint.tasks for joint in benchmark.joint_metrics)
        key = RunKey(run.model, str(first.get("data")), str(first.get("setting", "")))
        return key, [
            {k: v for k, v in item.items() if (k != "verdicts" if whole else k in ("id", "status"))}
            for item in items
        ]

    def of_model(model: str | None) -> list[str]:
        by_key: dict[RunKey, dict[str, tuple[SavedRun, Items]]] = {}
        for run in (one for one in runs if one.model == model):
            key, items = small(run)
            if items:
                by_key.setdefault(key, {})[run.task] = (run, items)
        for key, group in by_key.items():
            joined.extend(_joined(benchmark, key, group, done))
        notes = benchmark.notes({n: i for g in by_key.values() for n, (_, i) in g.items()})
        return [f"{model}: {line}" if done.several else line for line in notes]

    last = [line for model in dict.fromkeys(run.model for run in runs) for line in of_model(model)]
    done.numbers += joined
    for group, keys in done.apart.items():
        if len(keys) > 1 and not any(numbers.name == group for numbers in joined):
            texts = "; ".join(", ".join(map(str, key)) for key in keys)
            done.notes.append(f"{group} not computed: model, data or setting differ: {texts}")
    done.notes = list(dict.fromkeys([*done.notes, *last]))
    return done


def saved_judge(benchmark: Benchmark, runs: Sequence[SavedRun]) -> str | None:
    """Return the judge of saved runs, in a form of docs/judges.md; "" if they were not judged.

    None stands for a judge that only its file names: a panel, a debate, or one with settings.
    """
    sections = (run.section(benchmark.name).get("judge") for run in runs)
    saved = next((one for one in sections if one and one.get("provider") != NONE), None)
    if saved is None:
        return ""
    address = saved.get("base_url")
    forms = {
        OPENAI: f"{saved.get('model')}{'' if address == DEFAULT_BASE_URL else f'@{address}'}",
        HUGGINGFACE: f"hf:{saved.get('model')}",
        REPLAY: f"replay:{saved.get('model')}",
    }
    if (spec := forms.get(str(saved.get("provider")))) is None:
        return None
    described = prepare.judge_config(benchmark, spec, environment(dry_run=True)).describe()
    alike = described.keys() - {"comparable", "retries", "timeout"}
    same = all(described[key] == saved.get(key) for key in alike if not key.endswith("version"))
    return spec if same else None


def has_unjudged(benchmark: Benchmark, runs: Sequence[SavedRun], spec: str | None) -> bool:
    """Return True if a judge would be asked about answers of saved runs; sends no request.

    Args:
        benchmark: the runs' benchmark.
        runs: the saved runs.
        spec: the judge, "" for the paper's; None for any: then each verdict with a score counts.

    Raises:
        TasksError: the judge cannot be used, or a sample lacks a field.
    """

    def keeps(request: JudgeRequest, verdict: Verdict) -> bool:  # noqa: ARG001
        return verdict.score is not None

    stand_in = NoJudge()
    stand_in.config = prepare.judge_config(benchmark, spec, environment(dry_run=True))
    keeps_verdict = None if spec is not None else keeps
    judged = [run for run in runs if run.task in benchmark.tasks]
    with judge_run.use(judge_run.from_settings(progress=False)):
        return any(
            _Scoring(benchmark, run, stand_in, keeps_verdict).has_new()
            for run in judged
            if benchmark.tasks[run.task].judgements
        )


class _Scoring:
    """The scoring of a saved run's items.

    Args:
        benchmark: the run's benchmark.
        run: the saved run.
        judge: the judge of missing verdicts.
        keeps: decides which saved verdicts stay, by default `given_by`.

    Attributes:
        task: the run's task.
        saved: the saved items in the order of their ids.

    Raises:
        DataError: the task is not one of the benchmark's, or an item lacks a field.
    """

    def __init__(
        self,
        benchmark: Benchmark,
        run: SavedRun,
        judge: Judge,
        keeps: Callable[[JudgeRequest, Verdict], bool] | None = None,
    ) -> None:
        task = benchmark.tasks.get(run.task)
        if task is None:
            raise DataError(f"{run.file}: {run.task} is not a task of {benchmark.title}")
        self.task, self._judge, self._keeps = task, judge, keeps or given_by(judge)
        self._sources = list[VerdictSource]()
        try:
            stored = saved_items(run)
            needed = (*task.required_fields, task.cluster_field)
            for item in stored:
                if lacking := [name for name in needed if item.get(name) is None]:
                    raise DataError(f"{item['id']} has no `{lacking[0]}`; {MEND}")
            is_judged = judge.config.provider != NONE
            self.saved: Items = benchmark.upgrade_items(stored, judged=is_judged) if stored else ()
            self._given = {
                item["id"]: (verdicts(item), _judged_text(task, item)) for item in self.saved
            }
        except DataError as error:
            raise DataError(f"{run.file}: {error}") from None

    @property
    def count_new(self) -> int:
        """The number of verdicts that the judge was asked for."""
        return sum(source.count_new for source in self._sources)

    def items(self) -> Items:
        """Return all items, scored again."""
        if not self.task.judgements:
            return list(map(self._score, self.saved))
        return self._together(ordered_map(self._score, self.saved, self.task.name))

    def has_new(self) -> bool:
        """Return True if the judge is asked for a verdict; no further item is scored then."""
        items: list[Item] = []
        for item in self.saved:
            items.append(self._score(item))
            if self.count_new:
                return True
        self._together(items)
        return bool(self.count_new)

    def _together(self, items: Items) -> Items:
        return scoring.scored_together(self.task, items, self._verdicts_of)

    def _score(self, item: Item) -> Item:
        # `refused` is determined again.
        read = {name: value for name, value in item.items() if name != "refused"}
        return scoring.scored(self.task, read, item["reply"], self._verdicts_of(item))

    def _verdicts_of(self, item: Item) -> VerdictSource:
        saved_verdicts, judged_text = self._given[item["id"]]

        def is_kept(request: JudgeRequest, verdict: Verdict) -> bool:
            """Return True if a saved verdict is kept.

            With a judge, the answer in the reply must still be the text that was judged.
            """
            text = request.fields.get("candidate", judged_text)
            is_same = not judged_text or text == judged_text
            return (is_same or self._judge.config.provider == NONE) and self._keeps(
                request, verdict
            )

        self._sources.append(VerdictSource(self._judge, saved_verdicts, is_kept))
        return self._sources[-1]


def _scored(
    benchmark: Benchmark, run: SavedRun, judge: Judge
) -> tuple[Items, list[str], tuple[int, int]]:
    """Score a run's items again.

    Returns:
        The items in the order of their ids, the ids of items that are read differently, and the
        numbers of new and of kept verdicts.
    """
    again = _Scoring(benchmark, run, judge)
    items = again.items()
    pairs = zip(again.saved, items, strict=True)
    otherwise = [str(now["id"]) for stored, now in pairs if _is_read_otherwise(stored, now)]
    total = sum(len(item.get("verdicts") or {}) for item in items)
    return items, otherwise, (again.count_new, total - again.count_new)


def _judged_text(task: Task, item: Item) -> str:
    """Return the answer that a saved item's verdicts are about; "" if it was not judged."""
    # Tasks call the text `candidate` or `answer`; a field that `failed_item` lacks belongs to the
    # doc.
    names = (name for name in ("candidate", "answer") if name in task.failed_item)
    return str(item.get(next(names, "")) or "")


def _is_read_otherwise(saved: Item, now: Item) -> bool:
    """Return True if a text, letter, list or status of an item changed; the rule may change."""
    return any(
        saved[name] != now[name]
        for name in (saved.keys() & now.keys()) - {"read_by"}
        if isinstance(saved[name], str | list) or isinstance(now[name], str | list)
    )


def _numbers(
    benchmark: Benchmark,
    run: SavedRun,
    items: Items,
    rescored: Rescored,
    counts: tuple[int, int],
    *,
    judged_anew: bool,
) -> Numbers:
    """Return the numbers of one run; set `judged` of `rescored` if the run has verdicts.

    `counts` are the numbers of new and of kept verdicts.
    """
    task, label = benchmark.tasks[run.task], rescored.label(run.task, run.model)
    values, details = aggregation.numbers(task, items), aggregation.details(task, items)
    changes = Changes.between(run.saved or {}, values, *counts)
    given, may_fail = invalid.judge_rows(label, items), settings.may_fail()
    rescored.judged = rescored.judged or bool(given)
    failed = invalid.of_judge(given, {row["judge"] for row in given})
    broken = {label: lost} if (lost := run.broken(may_fail)) else {}
    why = invalid.together(failed, invalid.of_items(label, items), broken).get(label, "")
    conditions = run.conditions(benchmark.name, may_fail)
    if not why and not judged_anew and changes is not None and not changes.changed:
        # Unchanged numbers keep the saved INVALID.
        why = "; ".join(one.text for one in conditions if one.kind == Kind.INVALID)
    lengths = (run.section(benchmark.name).get("details") or {}).get(run.task, {})
    anew = {*finish.OF_ITEMS, Kind.INVALID, *(OF_JUDGE if judged_anew else ())}
    merged = record(
        [
            *(one for one in conditions if one.kind not in anew),
            *finish.of_items(task, items, Lengths.of(lengths)),
            *finish.reading({run.task: details}),
            *(Condition(Kind.NOTE, f"{label}: {note}", (run.task,)) for note in task.notes(items)),
            *([Condition(Kind.INVALID, why, (run.task,))] if why else []),
        ]
    )
    return Numbers(run.task, run.model, values, details, changes, conditions=merged, invalid=why)


def _joined(
    benchmark: Benchmark,
    key: RunKey,
    side_runs: Mapping[str, tuple[SavedRun, Items]],
    rescored: Rescored,
) -> Iterator[Numbers]:
    """Yield the joint numbers of runs with the same model, data and setting (`key`).

    Notes, and groups that cannot be joined, are added to `rescored`.
    """
    for joint in benchmark.joint_metrics:
        runs = [side_runs[name][0] for name in joint.tasks if name in side_runs]
        by_task = {run.task: side_runs[run.task][1] for run in runs}
        if not (values := aggregation.joint_numbers(joint, by_task)):
            if by_task and joint.host_fields:
                rescored.apart.setdefault(joint.group, []).append(key)
            continue
        model, label = runs[0].model, rescored.label(joint.group, runs[0].model)
        rescored.notes += [f"{label}: {note}" for note in joint.notes(by_task)]
        if joint.count_name:
            names = " and ".join(run.file.name for run in runs)
            rescored.notes.append(
                f"{label}: {values[joint.count_name]} questions joined from {names}"
            )
            if model is None:
                rescored.notes.append("no results files, so the models could not be compared")
        details = aggregation.joint_details(joint, benchmark.tasks, by_task)
        changes = Changes.between(runs[0].saved_groups.get(joint.group) or {}, values)
        yield Numbers(joint.group, model, values, details, changes, [run.task for run in runs])


def verdicts(item: Item) -> dict[str, Verdict]:
    """Return the verdicts in a saved item, by the name of the request.

    Raises:
        DataError: a saved verdict is malformed.
    """
    parsed = {}
    for name, saved in (item.get("verdicts") or {}).items():
        try:
            parsed[name] = Verdict.from_dict(saved)
        except (AttributeError, TypeError, ValueError) as error:
            raise DataError(
                f"{item['id']}/{name}: the saved verdict is invalid ({error}); {MEND}"
            ) from None
    return parsed
