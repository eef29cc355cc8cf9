"""Every metric of saved runs again, with the saved verdicts or those that a judge gives now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from lmms_eval_tasks import judges, settings
from lmms_eval_tasks.benchmark import Benchmark, Item, Items, Task
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.judges import Judge, Verdict
from lmms_eval_tasks.judges.asking import Asker, given_by
from lmms_eval_tasks.judges.run import ordered_map
from lmms_eval_tasks.judges.verdict import NONE, Ask, JudgeConfig
from lmms_eval_tasks.report import aggregation, invalid
from lmms_eval_tasks.report.invalid import Lengths
from lmms_eval_tasks.runs import finish, prepare, scoring
from lmms_eval_tasks.utils.conditions import (
    OF_JUDGE,
    Condition,
    Kind,
    Record,
    concerning,
    lines,
    merged,
    record,
)
from lmms_eval_tasks.utils.json_files import Json, JsonObject
from lmms_eval_tasks.utils.saved_runs import MEND, SavedRun, refuse_twice, saved_items

T = TypeVar("T")
FEW = 3  # ids of items in a line; all of them stand in the file of --output
# What joined runs have in common: the model, a hash of the data, what was shown of it.
Side = tuple[str | None, str, str]


SHOWN = 4  # numbers that changed, in a line


class Changes(NamedTuple):
    """The numbers of a task or group beside the saved ones."""

    equal: int  # numbers that are the same to the last digit
    changed: Mapping[str, tuple[Json, Json]]  # name -> saved and now; None saved of a new number
    new: int = 0  # verdicts that were asked for
    kept: int = 0  # verdicts that were saved

    @classmethod
    def between(
        cls, saved: Mapping[str, Json], now: Mapping[str, Json], new: int = 0, kept: int = 0
    ) -> Changes | None:
        """Compare the numbers of a results file with those of today; None if none is in both."""
        shared = [n for n in now if n in saved and (saved[n], now[n]) != (None, None)]
        changed = {n: (saved[n], now[n]) for n in shared if saved[n] != now[n]}
        return cls(len(shared) - len(changed), changed, new, kept) if shared else None

    def line(self, *, judged: bool) -> str:
        """Return the line for a reader; `judged` if a judge was named."""
        changed = {n: v for n, v in self.changed.items() if judged or v[0] is not None}
        total, kept = self.equal + len(changed), self.new + self.kept
        listed = [f"{n} {_text(a)} to {_text(b)}" for n, (a, b) in [*changed.items()][:SHOWN]]
        more = f" and {len(changed) - SHOWN} more" if len(changed) > SHOWN else ""
        what = f"{', '.join(listed)}{more}"
        if judged:
            verdicts = f"{self.new:,} verdicts new, {self.kept:,} kept; " if kept else ""
            told = f"{verdicts}{len(changed)} of {total} numbers changed"
            return f"{told}: {what}" if changed else told
        told = f"{self.equal} of {total} numbers equal the saved ones"
        return f"{told}; changed: {what}" if changed else told


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "-" if value is None else str(value)


@dataclass
class Numbers:
    """The numbers of one task or group of one model, and what they rest on."""

    name: str
    model: str | None
    values: JsonObject
    details: JsonObject
    changes: Changes | None
    tasks: Sequence[str] = ()  # of a group: those that it joins
    conditions: Record = ()  # of a task
    invalid: str = ""  # why a task is
    read_otherwise: Sequence[str] = ()  # ids of items of which something else is read than saved


@dataclass
class Rescored:
    """The numbers of a benchmark's saved runs, and what the user should know."""

    several: bool = False  # whether a task is there of several models
    found: list[Numbers] = field(default_factory=list)  # tasks, then groups
    notes: list[str] = field(default_factory=list)
    apart: dict[str, list[Side]] = field(default_factory=dict)  # group -> what could not be joined
    judged: bool = False  # whether there are any verdicts

    def label(self, name: str, model: str | None) -> str:
        """Return a task's or group's name, with the model behind it where there are several."""
        return f"{name} {model}" if self.several else name

    def by_label(self, get: Callable[[Numbers], T | None]) -> dict[str, T]:
        """Return something of each task and group by label, without those where it is None."""
        pairs = ((self.label(one.name, one.model), get(one)) for one in self.found)
        return {label: value for label, value in pairs if value is not None}

    def is_invalid(self, one: Numbers) -> bool:
        """Return True of a task that is invalid, and of a group of such tasks."""
        parts = (other for other in self.found if other.model == one.model)
        return bool(one.invalid) or any(p.invalid for p in parts if p.name in one.tasks)

    def add(self, conditions: Iterable[Condition]) -> None:
        """Add conditions to the records of the tasks that they concern."""
        given = list(conditions)
        for one in (own for own in self.found if not own.tasks):
            one.conditions = record([*one.conditions, *concerning(given, [one.name])])

    def told(self) -> list[str]:
        """The conditions of all numbers and other notes, each line once; facts last."""
        told = list(self.notes)
        for model in dict.fromkeys(one.model for one in self.found):
            own = {n.name: n.conditions for n in self.found if n.model == model and not n.tasks}
            told += [f"{model}: {one}" if self.several else one for one in lines(merged(own))]
        return list(dict.fromkeys(told))


def rescore_saved(
    benchmark: Benchmark,
    runs: Sequence[SavedRun],
    judge: str | None = None,
    *,
    take: Callable[[SavedRun, Items], object] | None = None,
) -> Rescored:
    """Every metric again from saved samples; joined numbers of each model and data.

    Whole items are held of one run at a time: those of all models would not fit.

    Args:
        judge: gives the verdicts that are missing, and those that are not this very judge's; None
            keeps what was saved.
        take: gets the whole items of each run.

    Raises:
        DataError: a sample lacks what these tasks write, two samples of a run share an id, or two
            runs are of one task and model.
        JudgeError, PromptError: the judge cannot be used.
    """
    refuse_twice(runs)
    prepare.check_extras([(benchmark, [one.task for one in runs if one.task in benchmark.tasks])])
    if judge:
        prepare.check_judge(benchmark, judge)
    # Without a judge the saved verdicts stand, and what has none stays unjudged.
    asked = judges.make(prepare.judge_config(benchmark, judge) if judge else JudgeConfig(NONE))
    done = Rescored(several=len({run.task for run in runs}) < len(runs))
    joined: list[Numbers] = []

    def small(run: SavedRun) -> tuple[Side, Items]:
        """Keep of a run what is needed later, to save memory: for joins all but verdicts."""
        items, read_otherwise, counts = _scored(benchmark, run, asked)
        if not items:
            return (run.model, "", ""), ()
        made = _numbers(benchmark, run, items, done, counts, judged_anew=bool(judge))
        if read_otherwise and not judge:  # a judge changes what items hold, too
            made.read_otherwise = read_otherwise
            few, total = ", ".join(read_otherwise[:FEW]), f"{len(read_otherwise)} of {len(items)}"
            done.notes.append(
                f"{done.label(run.task, run.model)}: {total} items are read "
                f"differently than when they were saved (the first: {few})"
            )
        done.found.append(made)
        if take is not None:
            take(run, items)
        first, joins = items[0], any(run.task in join.tasks for join in benchmark.joint_metrics)
        side = (run.model, str(first.get("data")), str(first.get("setting", "")))
        return side, [
            {k: v for k, v in item.items() if (k != "verdicts" if joins else k in ("id", "status"))}
            for item in items
        ]

    def of_model(model: str | None) -> list[str]:
        sides: dict[Side, dict[str, tuple[SavedRun, Items]]] = {}
        for run in (one for one in runs if one.model == model):
            side, items = small(run)
            if items:
                sides.setdefault(side, {})[run.task] = (run, items)
        for side, own in sides.items():
            joined.extend(_joined(benchmark, side, own, done))
        told = benchmark.notes({n: one for own in sides.values() for n, (_, one) in own.items()})
        return [f"{model}: {line}" if done.several else line for line in told]

    last = [line for model in dict.fromkeys(run.model for run in runs) for line in of_model(model)]
    done.found += joined
    for group, found in done.apart.items():
        if len(found) > 1 and not any(one.name == group for one in joined):
            sides = "; ".join(", ".join(map(str, side)) for side in found)
            done.notes.append(f"{group} not computed: model, data or setting differ: {sides}")
    done.notes = list(dict.fromkeys([*done.notes, *last]))
    return done


def _scored(
    benchmark: Benchmark, run: SavedRun, judge: Judge
) -> tuple[Items, list[str], tuple[int, int]]:
    """A run's items again, in the order of their ids; the ids of those read otherwise; and how many
    verdicts are new and how many were kept.
    """
    task = benchmark.tasks.get(run.task)
    if task is None:
        raise DataError(f"{run.file}: {run.task} is not a task of {benchmark.title}")
    try:
        if not (stored := saved_items(run)):
            return (), [], (0, 0)
        needed = (*task.required_fields, task.cluster_field)
        for item in stored:
            if lacking := [name for name in needed if item.get(name) is None]:
                raise DataError(f"{item['id']} has no `{lacking[0]}`; {MEND}")
        saved = benchmark.upgrade_items(stored, judged=judge.config.provider != NONE)
        given = {item["id"]: (verdicts(item), _judged_text(task, item)) for item in saved}
    except DataError as error:
        raise DataError(f"{run.file}: {error}") from None
    keeps, made = given_by(judge), list[Asker]()

    def asker(item: Item) -> Asker:
        found, judged_text = given[item["id"]]

        def is_kept(ask: Ask, verdict: Verdict) -> bool:
            """A judge is asked anew about a text that is read otherwise today."""
            text = ask.fields.get("candidate", judged_text)
            same = judge.config.provider == NONE or not judged_text or text == judged_text
            return same and keeps(ask, verdict)

        made.append(Asker(judge, found, is_kept))
        return made[-1]

    def score(item: Item) -> Item:
        read = {name: value for name, value in item.items() if name != "refused"}  # read anew
        return scoring.scored(task, read, item["reply"], asker(item))

    if not task.judgements:
        items: Items = list(map(score, saved))
    else:
        items = scoring.scored_together(task, ordered_map(score, saved, task.name), asker)
    pairs = zip(saved, items, strict=True)
    otherwise = [str(now["id"]) for stored, now in pairs if _is_read_otherwise(stored, now)]
    new = sum(one.count_new for one in made)
    total = sum(len(item.get("verdicts") or {}) for item in items)
    return items, otherwise, (new, total - new)


def _judged_text(task: Task, item: Item) -> str:
    """The text that a saved item's verdicts are on; "" if it was put to no judge."""
    # Of the two names that tasks give it; a field that is not in `failed_item` is the doc's.
    names = (name for name in ("candidate", "answer") if name in task.failed_item)
    return str(item.get(next(names, "")) or "")


def _is_read_otherwise(saved: Item, now: Item) -> bool:
    """Return True if another text, letter, list or status was read, by whichever rule."""
    return any(
        saved[name] != now[name]
        for name in (saved.keys() & now.keys()) - {"read_by"}
        if isinstance(saved[name], str | list) or isinstance(now[name], str | list)
    )


def _numbers(
    benchmark: Benchmark,
    run: SavedRun,
    items: Items,
    done: Rescored,
    counts: tuple[int, int],
    *,
    judged_anew: bool,
) -> Numbers:
    """The numbers of one run, and all that the user should know of them."""
    task, label = benchmark.tasks[run.task], done.label(run.task, run.model)
    values, details = aggregation.numbers(task, items), aggregation.details(task, items)
    changes = Changes.between(run.saved or {}, values, *counts)
    given, may_fail = statuses(label, items), settings.may_fail()
    done.judged = done.judged or bool(given)
    failed = invalid.of_judge(given, {row["judge"] for row in given})
    broken = {label: lost} if (lost := run.broken(may_fail)) else {}
    why = invalid.together(failed, invalid.of_items(label, items), broken).get(label, "")
    conditions = run.conditions(benchmark.name, may_fail)
    if not why and not judged_anew and changes is not None and not changes.changed:
        # Numbers that come out as they were are as INVALID as they were.
        why = "; ".join(one.text for one in conditions if one.kind == Kind.INVALID)
    lengths = (run.section(benchmark.name).get("details") or {}).get(run.task, {})
    anew = {*finish.OF_ITEMS, Kind.INVALID, *(OF_JUDGE if judged_anew else ())}
    known = record(
        [
            *(one for one in conditions if one.kind not in anew),
            *finish.of_items(task, items, Lengths.of(lengths)),
            *finish.reading({run.task: details}),
            *(Condition(Kind.NOTE, f"{label}: {note}", (run.task,)) for note in task.notes(items)),
            *([Condition(Kind.INVALID, why, (run.task,))] if why else []),
        ]
    )
    return Numbers(run.task, run.model, values, details, changes, conditions=known, invalid=why)


def _joined(
    benchmark: Benchmark, side: Side, own: Mapping[str, tuple[SavedRun, Items]], done: Rescored
) -> Iterator[Numbers]:
    """The joined numbers of runs of one side."""
    for join in benchmark.joint_metrics:
        runs = [own[name][0] for name in join.tasks if name in own]
        sides = {run.task: own[run.task][1] for run in runs}
        if not (values := aggregation.joined(join, sides)):
            if sides and join.host_fields:
                done.apart.setdefault(join.group, []).append(side)
            continue
        model, label = runs[0].model, done.label(join.group, runs[0].model)
        done.notes += [f"{label}: {note}" for note in join.notes(sides)]
        if join.count_name:
            names = " and ".join(run.file.name for run in runs)
            done.notes.append(f"{label}: {values[join.count_name]} questions joined from {names}")
            if model is None:
                done.notes.append("no results files, so the models could not be compared")
        details = aggregation.joined_details(join, benchmark.tasks, sides)
        changes = Changes.between(runs[0].saved_groups.get(join.group) or {}, values)
        yield Numbers(join.group, model, values, details, changes, [run.task for run in runs])


def statuses(label: str, items: Items) -> list[JsonObject]:
    """Count the verdicts of each status, kept ones included: a row for each judge."""
    found: dict[str, Counter[str]] = {}
    for item in items:
        for one in (item.get("verdicts") or {}).values():
            found.setdefault(one["judge"], Counter())[one["status"]] += 1
    return [
        {"task": label, "judge": judge, "verdicts": counts.total(), "by_status": dict(counts)}
        for judge, counts in found.items()
    ]


def verdicts(item: Item) -> dict[str, Verdict]:
    """The verdicts in a saved item, by the name of their ask.

    Raises:
        DataError: one of them is none.
    """
    found = {}
    for name, saved in (item.get("verdicts") or {}).items():
        try:
            found[name] = Verdict.from_dict(saved)
        except (AttributeError, TypeError, ValueError) as error:
            raise DataError(
                f"{item['id']}/{name}: the saved verdict is invalid ({error}); {MEND}"
            ) from None
    return found
