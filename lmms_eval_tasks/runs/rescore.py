"""Every metric of saved runs again, with the saved verdicts or those that a judge gives now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lmms_eval_tasks import settings
from lmms_eval_tasks.benchmark import Benchmark, Item, Items, Task
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.judges import Judge, Verdict
from lmms_eval_tasks.judges.asking import Asker, given_by, usable
from lmms_eval_tasks.judges.run import ordered_map
from lmms_eval_tasks.judges.verdict import NONE, Ask, JudgeConfig
from lmms_eval_tasks.report import invalid, measures
from lmms_eval_tasks.report.invalid import Lengths
from lmms_eval_tasks.runs import after, before, scoring
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
from lmms_eval_tasks.utils.saved_runs import MEND, SavedRun, refuse_twice, saved_items

FEW = 3  # ids of items in a line; all of them stand in the file of --output
# What joined runs have in common: the model, a hash of the data, what was shown of it.
Side = tuple[str | None, str, str]


SHOWN = 4  # numbers that changed, in a line


class Changes(NamedTuple):
    """How the numbers of a task or group compare with the saved ones."""

    equal: int  # numbers that are the same to the last digit
    changed: Mapping[str, tuple[Any, Any]]  # name -> saved and now; None saved of a new number
    new: int = 0  # verdicts that were asked for
    kept: int = 0  # verdicts that were saved

    def line(self, *, judged: bool) -> str:
        """What came out, for a reader; `judged` if a judge was named."""
        changed = (
            self.changed if judged else {n: v for n, v in self.changed.items() if v[0] is not None}
        )
        total = self.equal + len(changed)
        listed = ", ".join(
            f"{n} {_text(a)} to {_text(b)}" for n, (a, b) in [*changed.items()][:SHOWN]
        )
        more = f" and {len(changed) - SHOWN} more" if len(changed) > SHOWN else ""
        if judged:
            verdicts = (
                f"{self.new:,} verdicts new, {self.kept:,} kept; " if self.new + self.kept else ""
            )
            told = f"{verdicts}{len(changed)} of {total} numbers changed"
            return f"{told}: {listed}{more}" if changed else told
        told = f"{self.equal} of {total} numbers equal the saved ones"
        return f"{told}; changed: {listed}{more}" if changed else told


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "-" if value is None else str(value)


@dataclass
class Rescored:
    """What came out: numbers by label, and what the user should know.

    A label is a task's or group's name, with the model behind it where there are several.
    """

    several: bool = False
    numbers: dict[str, dict[str, Any]] = field(default_factory=dict)
    sidecar: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    changes: dict[str, Changes] = field(default_factory=dict)  # by label
    # Label of a task -> ids of items in whose replies something else is read than when saved.
    read_otherwise: dict[str, list[str]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)  # tasks that are invalid, and why
    groups: dict[str, list[str]] = field(default_factory=dict)  # label -> those of its tasks
    conditions: dict[str, Record] = field(default_factory=dict)  # by label of a task
    apart: dict[str, list[Side]] = field(default_factory=dict)  # group -> what could not be joined
    judged: bool = False  # whether there are any verdicts

    @property
    def invalid(self) -> set[str]:
        """Labels of what is invalid, groups of such tasks too."""
        bad = self.problems.keys()
        return {*bad, *(name for name, own in self.groups.items() if bad & set(own))}

    def label(self, name: str, run: SavedRun) -> str:
        """Of a task's or group's numbers."""
        return f"{name} {run.model}" if self.several else name

    def add(self, found: Iterable[Condition]) -> None:
        """Add conditions to the records of the tasks that they concern."""
        given = list(found)
        for label, own in self.conditions.items():
            task = label.partition(" ")[0]
            self.conditions[label] = record([*own, *concerning(given, [task])])

    def told(self) -> list[str]:
        """The conditions of all numbers and other notes, each line once; facts last."""
        by_model: dict[str, dict[str, Record]] = {}
        for label, own in self.conditions.items():
            task, _, model = label.partition(" ")
            by_model.setdefault(model, {})[task] = own
        found = [
            f"{model}: {line}" if model else line
            for model, records in by_model.items()
            for line in lines(merged(records))
        ]
        return list(dict.fromkeys([*self.notes, *found]))

    def compare(
        self,
        label: str,
        saved: Mapping[str, Any] | None,
        now: Mapping[str, Any],
        verdicts: tuple[int, int] = (0, 0),
    ) -> None:
        """Note whether numbers came out again to the last digit.

        Args:
            label: of the task or group.
            saved: the numbers of the results file; None or empty without one.
            now: the numbers of today.
            verdicts: how many are new, and how many were kept.
        """
        before = saved or {}
        shared = [
            name for name in now if name in before and (before[name], now[name]) != (None, None)
        ]
        changed = {n: (before[n], now[n]) for n in shared if before[n] != now[n]}
        if shared:
            self.changes[label] = Changes(len(shared) - len(changed), changed, *verdicts)


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
    before.check_extras([(benchmark, [one.task for one in runs if one.task in benchmark.tasks])])
    if judge:
        before.check_judge(benchmark, judge)
    # Without a judge the saved verdicts stand, and what has none stays unjudged.
    asked = usable(lambda: before.judge_config(benchmark, judge) if judge else JudgeConfig(NONE))
    done = Rescored(several=len({run.task for run in runs}) < len(runs))
    joined: dict[str, dict[str, Any]] = {}

    def small(run: SavedRun) -> tuple[Side, Items]:
        """What joins read of a run, which is no verdict; of others what their notes read."""
        items, read_otherwise, verdicts_of = _scored(benchmark, run, asked)
        if not items:
            return (run.model, "", ""), ()
        _tell(benchmark, run, items, done, verdicts_of, judged_anew=bool(judge))
        if read_otherwise and not judge:  # a judge changes what items hold, too
            label = done.label(run.task, run)
            done.read_otherwise[label] = read_otherwise
            few, total = ", ".join(read_otherwise[:FEW]), f"{len(read_otherwise)} of {len(items)}"
            done.notes.append(
                f"{label}: {total} items are read otherwise than when saved (the first: {few})"
            )
        if take is not None:
            take(run, items)
        first, joins = items[0], any(run.task in join.tasks for join in benchmark.joins)
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
            joined.update(_joined(benchmark, side, own, done))
        told = benchmark.notes({n: one for own in sides.values() for n, (_, one) in own.items()})
        return [f"{model}: {line}" if done.several else line for line in told]

    last = [line for model in dict.fromkeys(run.model for run in runs) for line in of_model(model)]
    done.numbers |= joined
    for group, found in done.apart.items():
        if len(found) > 1 and not any(label.split()[0] == group for label in joined):
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
        raise DataError(f"{run.file}: {run.task} is no task of {benchmark.title}")
    try:
        if not (saved := saved_items(run)):
            return (), [], (0, 0)
        needed = (*task.kept, task.cluster)
        for item in saved:
            if lacking := [name for name in needed if item.get(name) is None]:
                raise DataError(f"{item['id']} has no `{lacking[0]}`; {MEND}")
        saved = list(benchmark.reread(saved, judged=judge.config.provider != NONE))
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

    if not task.asks:
        items: Items = list(map(score, saved))
    else:
        items = scoring.scored_together(task, ordered_map(score, saved, task.name), asker)
    pairs = zip(saved, items, strict=True)
    otherwise = [str(now["id"]) for before, now in pairs if _is_read_otherwise(before, now)]
    new = sum(one.count_new for one in made)
    total = sum(len(item.get("verdicts") or {}) for item in items)
    return items, otherwise, (new, total - new)


def _judged_text(task: Task, item: Item) -> str:
    """The text that a saved item's verdicts are on; "" if it was put to no judge."""
    # Of the two names that tasks give it; a field that is not in `blank` is the doc's.
    names = (name for name in ("candidate", "answer") if name in task.blank)
    return str(item.get(next(names, "")) or "")


def _is_read_otherwise(saved: Item, now: Item) -> bool:
    """Whether another text, letter, list or status was read; which rule read it does not matter."""
    return any(
        saved[name] != now[name]
        for name in (saved.keys() & now.keys()) - {"read_by"}
        if isinstance(saved[name], str | list) or isinstance(now[name], str | list)
    )


def _tell(
    benchmark: Benchmark,
    run: SavedRun,
    items: Items,
    done: Rescored,
    verdicts_of: tuple[int, int],
    *,
    judged_anew: bool,
) -> None:
    """The numbers of one run, and all that the user should know of them."""
    task, label = benchmark.tasks[run.task], done.label(run.task, run)
    numbers = done.numbers[label] = measures.numbers(task, items)
    done.sidecar[label] = measures.details(task, items)
    done.compare(label, run.saved, numbers, verdicts_of)
    given = statuses(label, items)
    done.judged = done.judged or bool(given)
    failed = invalid.of_judge(given, {row["judge"] for row in given})
    may_fail = settings.may_fail()
    lost = run.broken(may_fail)
    broken = {label: lost} if lost else {}
    problems = invalid.together(failed, invalid.of_items(label, items), broken)
    conditions = run.conditions(benchmark.name, may_fail)
    changes = done.changes.get(label)
    if not problems and not judged_anew and changes is not None and not changes.changed:
        # Numbers that come out as they were are as INVALID as they were.
        stored = "; ".join(one.text for one in conditions if one.kind == Kind.INVALID)
        problems = {label: stored} if stored else {}
    done.problems |= problems
    lengths = (run.section(benchmark.name).get("details") or {}).get(run.task, {})
    anew = {*after.OF_ITEMS, Kind.INVALID, *(OF_JUDGE if judged_anew else ())}
    done.conditions[label] = record(
        [
            *(one for one in conditions if one.kind not in anew),
            *after.of_items(task, items, Lengths.of(lengths)),
            *after.reading({run.task: done.sidecar[label]}),
            *(Condition(Kind.NOTE, f"{label}: {note}", (run.task,)) for note in task.notes(items)),
            *(Condition(Kind.INVALID, why, (run.task,)) for why in problems.values()),
        ]
    )


def _joined(
    benchmark: Benchmark, side: Side, own: Mapping[str, tuple[SavedRun, Items]], done: Rescored
) -> dict[str, dict[str, Any]]:
    """The joined numbers of runs of one side, by label."""
    found = {}
    for join in benchmark.joins:
        there = {name: own[name] for name in join.tasks if name in own}
        sides = {name: items for name, (_, items) in there.items()}
        if not (numbers := measures.joined(join, sides)):
            if sides and join.shown:
                done.apart.setdefault(join.group, []).append(side)
            continue
        runs = [run for run, _ in there.values()]
        label = done.label(join.group, runs[0])
        found[label] = numbers
        done.sidecar[label] = measures.joined_details(join, benchmark.tasks, sides)
        done.groups[label] = [done.label(run.task, run) for run in runs]
        done.compare(label, runs[0].saved_groups.get(join.group), numbers)
        done.notes += [f"{label}: {note}" for note in join.notes(sides)]
        if join.counted:
            names = " and ".join(run.file.name for run in runs)
            done.notes.append(f"{label}: {numbers[join.counted]} questions joined from {names}")
            if runs[0].model is None:
                done.notes.append("no results files, so the models could not be compared")
    return found


def statuses(label: str, items: Items) -> list[dict[str, Any]]:
    """How many verdicts of each status items have now, kept ones included, a row for each judge."""
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
                f"{item['id']}/{name}: the saved verdict is none ({error}); {MEND}"
            ) from None
    return found
