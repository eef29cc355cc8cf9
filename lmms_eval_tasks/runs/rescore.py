"""Every metric of saved runs again, with the saved verdicts, another judge, or what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lmms_eval_tasks.benchmark import NOT_RUN, Benchmark, Item, Items, Task
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.judges import Judge, Verdict
from lmms_eval_tasks.judges.asking import Asker, given_by, usable
from lmms_eval_tasks.judges.run import ordered_map
from lmms_eval_tasks.judges.verdict import NONE, JudgeConfig
from lmms_eval_tasks.runs import before, invalid, scoring
from lmms_eval_tasks.utils.saved_runs import Run, refuse_twice, saved_items


class Pair(NamedTuple):
    """One judged item: the verdict that was saved and the one that holds now."""

    id: str
    before: Verdict | None
    after: Verdict | None


@dataclass
class Rescored:
    """What came out: numbers by task or group and metric, and what the user should know."""

    verdicts: dict[str, list[Pair]] = field(default_factory=dict)  # by task; judged tasks only
    numbers: dict[str, dict[str, Any]] = field(default_factory=dict)
    sidecar: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)  # tasks that are invalid, and why
    items: list[Items] = field(default_factory=list)  # of each run, in their order
    labels: list[str] = field(default_factory=list)  # of the runs, in `numbers`


# What joined runs have in common: the model, a hash of the data, what was shown of it.
Side = tuple[str | None, str, str]
_TITLES = ("model", "data hash", "setting")


def rescore_saved(
    benchmark: Benchmark, runs: Sequence[Run], judge: str | None, *, missing_only: bool = False
) -> Rescored:
    """Every metric again from saved samples; joined numbers of each model and data.

    Args:
        benchmark: whose tasks were run.
        runs: saved runs.
        judge: judge the answers with this judge; None keeps the saved verdicts.
        missing_only: keep the verdicts that this very judge has given already.

    Raises:
        DataError: a sample lacks what these tasks write, two samples of a run share an id, or two
            runs are of one task and model.
        JudgeError, PromptError: the judge cannot be used.
    """
    done = Rescored()
    refuse_twice(runs)
    several = len({run.task for run in runs}) < len(runs)
    if judge:
        before.check_judge(benchmark, judge)
    # Without a judge the saved verdicts stand, and what has none stays unjudged.
    ask = usable(
        lambda: before.judge_config(benchmark, judge) if judge else JudgeConfig(NONE),
    )
    sides: dict[Side, dict[str, Items]] = {}
    files: dict[Side, dict[str, str]] = {}
    for run in runs:
        task = benchmark.tasks.get(run.task)
        if task is None:
            raise DataError(f"{run.file}: {run.task} is no task of {benchmark.title}")
        saved: Sequence[dict[str, Any]] = saved_items(run)
        try:
            saved = benchmark.reread(saved, judged=ask.config.provider != NONE)
            given = [verdicts(item) for item in saved]
        except DataError as error:
            raise DataError(f"{run.file}: {error}") from None
        done.notes += run.conditions(benchmark.name, judged_anew=bool(judge))
        label = f"{run.task} {run.model}" if several else run.task
        items, pairs = _again(task, saved, given, ask, missing_only=missing_only)
        done.items.append(items)
        done.labels.append(label)
        done.numbers[label] = scoring.numbers(task, items)
        done.sidecar[label] = scoring.details(task, items)
        if items[0]["status"] == NOT_RUN:
            done.notes.append(f"{label}: not run: {items[0]['not_run']}")
            continue
        done.notes += [f"{label}: {note}" for note in task.notes(items)]
        done.problems |= invalid.of_items(label, items)
        done.notes += [line] if (line := invalid.requests_failed(label, items)) else []
        for name, own in pairs.items():
            done.verdicts[f"{label} {name}".strip()] = own
        side = (run.model, str(items[0].get("data")), str(items[0].get("setting", "")))
        sides.setdefault(side, {})[run.task] = items
        files.setdefault(side, {})[run.task] = run.file.name
    _join(benchmark, sides, files, done)
    asked: dict[str | None, dict[str, Items]] = {}
    for (model, *_), ran in sides.items():
        asked.setdefault(model, {}).update(ran)
    for model, ran in asked.items():
        done.notes += [f"{model}: {one}" if several else one for one in benchmark.notes(ran)]
    done.notes = list(dict.fromkeys(done.notes))
    return done


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
    saved: Sequence[dict[str, Any]],
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
    sides: Mapping[Side, Mapping[str, Items]],
    files: Mapping[Side, Mapping[str, str]],
    done: Rescored,
) -> None:
    for join in benchmark.joins:
        found = {side: scoring.joined(join, items) for side, items in sides.items()}
        made = {side: numbers for side, numbers in found.items() if numbers}
        for side, numbers in made.items():
            label = f"{join.group} {side[0]}" if len(made) > 1 else join.group
            done.numbers[label] = numbers
            own = {name: sides[side][name] for name in join.tasks if name in sides[side]}
            done.notes += [f"{label}: {note}" for note in join.notes(own)]
            if join.counted:
                names = " and ".join(files[side][name] for name in own)
                done.notes.append(f"{label}: {numbers[join.counted]} questions joined from {names}")
                if side[0] is None:
                    why = "no results files, so the models could not be compared"
                    done.notes.append(f"{label}: {why}")
        apart = [side for side, items in sides.items() if set(items) & set(join.tasks)]
        if join.shown and not made and len(apart) > 1:
            unlike = [
                f"{title} ({' / '.join(sorted({str(side[place]) for side in apart}))})"
                for place, title in enumerate(_TITLES)
                if len({side[place] for side in apart}) > 1
            ]
            done.notes.append(f"{join.group} not computed: the runs differ in {', '.join(unlike)}")
