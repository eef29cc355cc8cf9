"""Every metric of saved runs again, with the saved verdicts, another judge, or what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from lmms_eval_tasks.benchmark import NOT_RUN, Benchmark, Item, Items, Join, Task
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.judges import Judge, Verdict
from lmms_eval_tasks.judges.asking import Asker, given_by, usable
from lmms_eval_tasks.judges.run import ordered_map
from lmms_eval_tasks.judges.verdict import NONE, JudgeConfig
from lmms_eval_tasks.runs import arrivals, before, invalid, scoring
from lmms_eval_tasks.utils.saved_runs import Run, refuse_twice, saved_items


class Pair(NamedTuple):
    """One judged item: the verdict that was saved and the one that holds now."""

    id: str
    before: Verdict | None
    after: Verdict | None


@dataclass
class Rescored:
    """What came out: numbers by label, and what the user should know.

    A label is a task's or group's name, with the model behind it where several were rescored.
    """

    numbers: dict[str, dict[str, Any]] = field(default_factory=dict)
    sidecar: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)  # tasks that are invalid, and why
    labels: dict[Path, str] = field(default_factory=dict)  # of each run's file
    judged: set[str] = field(default_factory=set)  # labels of tasks that have verdicts
    groups: dict[str, list[str]] = field(default_factory=dict)  # label -> those of its tasks

    @property
    def invalid(self) -> set[str]:
        """Labels of what is invalid, groups of such tasks too."""
        bad = self.problems.keys()
        return {*bad, *(name for name, own in self.groups.items() if bad & set(own))}


class Again(NamedTuple):
    """One run, scored again.

    Attributes:
        run: as it was saved.
        label: its numbers are under.
        items: whole ones, in the order of their ids.
        pairs: of verdicts, by what they are compared on.
    """

    run: Run
    label: str
    items: Items
    pairs: Mapping[str, Sequence[Pair]]


# What joined runs have in common: the model, a hash of the data, what was shown of it.
Side = tuple[str | None, str, str]
_TITLES = ("model", "data hash", "setting")


class _Joined(NamedTuple):
    """The numbers of a join of one side, what is to be told of them, and of which labels."""

    numbers: dict[str, Any]
    notes: list[str]
    labels: list[str]


def rescore_saved(
    benchmark: Benchmark,
    runs: Sequence[Run],
    judge: str | None,
    *,
    missing_only: bool = False,
    take: Callable[[Again], object] = lambda again: None,  # noqa: ARG005
) -> Rescored:
    """Every metric again from saved samples; joined numbers of each model and data.

    Whole items are held of one run at a time: those of all models would not fit.

    Args:
        benchmark: whose tasks were run.
        runs: saved runs.
        judge: judge the answers with this judge; None keeps the saved verdicts.
        missing_only: keep the verdicts that this very judge has given already.
        take: gets each run, a model's one after another.

    Raises:
        DataError: a sample lacks what these tasks write, two samples of a run share an id, or two
            runs are of one task and model.
        JudgeError, PromptError: the judge cannot be used.
    """
    refuse_twice(runs)
    if judge:
        before.check_judge(benchmark, judge)
    # Without a judge the saved verdicts stand, and what has none stays unjudged.
    ask = usable(
        lambda: before.judge_config(benchmark, judge) if judge else JudgeConfig(NONE),
    )
    several = len({run.task for run in runs}) < len(runs)
    joined: dict[str, dict[Side, _Joined]] = {}
    done = Rescored()

    def small(run: Run) -> tuple[Side, Again]:
        again = _of_run(benchmark, run, ask, several=several, missing_only=missing_only)
        _tell(benchmark, again, done, judged_anew=bool(judge))
        take(again)
        first = again.items[0]
        side = (run.model, str(first.get("data")), str(first.get("setting", "")))
        return side, _small(again, benchmark)

    def of_model(model: str | None) -> list[str]:
        sides: dict[Side, dict[str, Again]] = {}
        for side, again in map(small, [run for run in runs if run.model == model]):
            if again.items[0]["status"] != NOT_RUN:
                sides.setdefault(side, {})[again.run.task] = again
        for side, own in sides.items():
            _join(benchmark, side, own, joined)
        asked = {name: one.items for own in sides.values() for name, one in own.items()}
        return [f"{model}: {one}" if several else one for one in benchmark.notes(asked)]

    last = [note for model in dict.fromkeys(run.model for run in runs) for note in of_model(model)]
    for join in benchmark.joins:
        _tell_joined(join, joined.get(join.group, {}), done)
    done.notes = list(dict.fromkeys([*done.notes, *last]))
    return done


def _of_run(
    benchmark: Benchmark, run: Run, judge: Judge, *, several: bool, missing_only: bool
) -> Again:
    task = benchmark.tasks.get(run.task)
    if task is None:
        raise DataError(f"{run.file}: {run.task} is no task of {benchmark.title}")
    try:
        saved = benchmark.reread(saved_items(run), judged=judge.config.provider != NONE)
        given = [verdicts(item) for item in saved]
    except DataError as error:
        raise DataError(f"{run.file}: {error}") from None
    label = f"{run.task} {run.model}" if several else run.task
    items, pairs = _again(task, list(saved), given, judge, missing_only=missing_only)
    return Again(run, label, items, pairs)


def _tell(benchmark: Benchmark, again: Again, done: Rescored, *, judged_anew: bool) -> None:
    """The numbers of one run, and all that the user should know of them."""
    run, label, items, pairs = again
    done.labels[run.file] = label
    done.judged |= {label} if pairs else set()
    task = benchmark.tasks[run.task]
    of = "" if label == run.task else f"{run.model}: "  # of several models
    known = run.conditions(benchmark.name, judged_anew=judged_anew)
    done.notes += [f"{of}{line}" for line in known]
    done.numbers[label] = scoring.numbers(task, items)
    done.sidecar[label] = scoring.details(task, items)
    if items[0]["status"] == NOT_RUN:
        done.notes.append(f"{label}: not run: {items[0]['not_run']}")
        return
    done.notes += [f"{label}: {note}" for note in task.notes(items)]
    told = (arrivals.short(label, items), invalid.requests_failed(label, items))
    done.notes += [line for line in told if line]
    given = statuses(label, items)
    asked = {row["judge"] for row in given}
    done.problems |= invalid.together(
        invalid.of_judge(given, asked), invalid.of_items(label, items)
    )


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


def _small(again: Again, benchmark: Benchmark) -> Again:
    """What joins of several tasks read, which is no verdict; of others what their notes read."""
    if any(again.run.task in join.tasks for join in benchmark.joins):
        items = [{k: v for k, v in item.items() if k != "verdicts"} for item in again.items]
    else:
        items = [{k: item[k] for k in ("id", "status")} for item in again.items]
    return again._replace(items=items, pairs={})


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
                f"{item['id']}/{name}: the saved verdict is none ({error}); take its line out or "
                "run the task again"
            ) from None
    return found


def _again(
    task: Task,
    saved: list[dict[str, Any]],
    given: Sequence[Mapping[str, Verdict]],
    judge: Judge,
    *,
    missing_only: bool,
) -> tuple[Items, dict[str, list[Pair]]]:
    """The items again, and each verdict as saved and as given now, by what it is compared on."""
    keeps = given_by(judge, missing_only=missing_only)

    def score(place: int) -> dict[str, Any]:
        item = saved[place]
        if item["status"] == NOT_RUN:
            return item
        return scoring.scored(task, item, item["reply"], Asker(judge, given[place], keeps))

    if not task.asks:
        return [score(place) for place in range(len(saved))], {}
    items: Items = ordered_map(score, range(len(saved)), task.name)
    had = {item["id"]: old for item, old in zip(items, given, strict=True)}
    items = scoring.scored_together(task, items, lambda one: Asker(judge, had[one["id"]], keeps))
    pairs: dict[str, list[Pair]] = {}
    for item, old in zip(items, given, strict=True):
        new = verdicts(item)
        for name, compared in task.asks.items():
            if compared is not None and (name in old or name in new):
                own = item["id"] if len(task.asks) == 1 else f"{item['id']}/{name}"
                pairs.setdefault(compared, []).append(Pair(own, old.get(name), new.get(name)))
    return items, pairs


def _join(
    benchmark: Benchmark,
    side: Side,
    own: Mapping[str, Again],
    joined: dict[str, dict[Side, _Joined]],
) -> None:
    for join in benchmark.joins:
        items = {name: own[name].items for name in join.tasks if name in own}
        if not items:
            continue
        numbers = scoring.joined(join, items)
        notes = list(join.notes(items)) if numbers else []
        if numbers and join.counted:
            names = " and ".join(own[name].run.file.name for name in items)
            notes.append(f"{numbers[join.counted]} questions joined from {names}")
            if side[0] is None:
                notes.append("no results files, so the models could not be compared")
        labels = [own[name].label for name in items]
        joined.setdefault(join.group, {})[side] = _Joined(numbers, notes, labels)


def _tell_joined(join: Join, found: Mapping[Side, _Joined], done: Rescored) -> None:
    made = {side: one for side, one in found.items() if one.numbers}
    for side, one in made.items():
        label = f"{join.group} {side[0]}" if len(made) > 1 else join.group
        done.numbers[label] = one.numbers
        done.notes += [f"{label}: {note}" for note in one.notes]
        done.groups[label] = one.labels
    if join.shown and not made and len(found) > 1:
        unlike = [
            f"{title} ({' / '.join(sorted({str(side[place]) for side in found}))})"
            for place, title in enumerate(_TITLES)
            if len({side[place] for side in found}) > 1
        ]
        done.notes.append(f"{join.group} not computed: the runs differ in {', '.join(unlike)}")
