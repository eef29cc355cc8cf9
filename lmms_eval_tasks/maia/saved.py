"""MAIA's saved runs: every metric again from the samples, intervals, and `agg_acc` of two runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lmms_eval_tasks import judges
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.judges import JudgeConfig, concurrency
from lmms_eval_tasks.judges.candidate import usable
from lmms_eval_tasks.judges.config import NONE
from lmms_eval_tasks.maia import judge as judging
from lmms_eval_tasks.maia import scores, utils
from lmms_eval_tasks.maia.schema import POOL_SIZE
from lmms_eval_tasks.runs.rescore import (
    Pair,
    Rescored,
    Run,
    kept_verdict,
    saved_items,
    saved_verdict,
)
from lmms_eval_tasks.utils import aggregate, stats


def details(task: str, samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts by status and 95 % intervals of a task's main metrics, clustered by video."""
    first = _first_metric(task)
    items = sorted((sample[first] for sample in samples), key=lambda item: item["id"])
    videos = [item["video"] for item in items]
    found: dict[str, Any] = {"items": len(items), "status": aggregate.by_status(items)}
    found["intervals"] = {}
    if not aggregate.is_unjudged(items):
        interval = stats.clustered_mean([float(item["right"] or 0) for item in items], videos)
        found["intervals"][first] = interval.as_dict()
    if first == "pair_acc":
        pools = list(aggregate.pools(items, POOL_SIZE).values())
        found["pools"] = len(pools)
        found["intervals"]["pool_acc"] = stats.cluster_bootstrap(
            lambda some: aggregate.mean(float(pool.right) for pool in some),
            pools,
            [pool.video for pool in pools],
        ).as_dict()
    return found


def _first_metric(task: str) -> str:
    return "judge_acc" if "oevqa" in task else "pair_acc"


def rescore_saved(
    runs: Sequence[Run], judge: str | None, *, missing_only: bool = False
) -> Rescored:
    """Every metric again from saved samples, and `agg_acc` where both tasks of a model are there.

    Args:
        runs: saved runs of MAIA's tasks.
        judge: judge the answers with this judge; None keeps the saved verdicts.
        missing_only: keep the verdicts that this very judge has given already.

    Raises:
        DataError: a sample lacks what MAIA's tasks write, or two samples of a run share an id.
    """
    done = Rescored()
    sides: dict[tuple[str, ...], dict[str, tuple[Run, dict[str, list[Any]]]]] = {}
    for run in runs:
        metrics = _metrics_of(run.task)
        items, verdicts = _items(run, metrics, judge, missing_only)
        label = run.task if len({r.task for r in runs}) == len(runs) else f"{run.task} {run.model}"
        done.numbers[label] = {
            name: aggregation(items[name])
            for name, aggregation in metrics.items()
            if items.get(name) and not name.startswith("agg_acc")
        }
        if verdicts:
            done.verdicts[label] = verdicts
        done.sidecar[label] = details(run.task, _samples(run, items))
        side = {"pair_acc": "pool", "judge_acc": "answer"}[_first_metric(run.task)]
        if "agg_acc" in metrics:
            first = items[_first_metric(run.task)][0]
            key = (str(run.model), first["data"], first["setting"], _suffix(run.task))
            if side in sides.setdefault(key, {}):
                raise DataError(
                    f"{run.file}: a second {run.task} run of {run.model}; rescore one at a time"
                )
            sides[key][side] = (run, items)
    _join(sides, done)
    return done


def _metrics_of(task: str) -> Mapping[str, scores.Aggregation]:
    if "unimodal" in task:
        return scores.UNIMODAL
    return scores.OEVQA if "oevqa" in task else scores.VSV


def _suffix(task: str) -> str:
    """What follows the task's kind: setting and language, which both tasks of a group share."""
    return task.removeprefix("maia_vsv").removeprefix("maia_oevqa")


def _items(
    run: Run, metrics: Mapping[str, Any], judge: str | None, missing_only: bool
) -> tuple[dict[str, list[Any]], list[Pair]]:
    """Every metric's items again, and each answer's verdict as saved and as given now."""
    first = _first_metric(run.task)
    collected: dict[str, list[Any]] = {}
    items = saved_items(run, first)
    if first == "pair_acc":
        results = [utils.pair_metrics(metrics, item, item["reply"]) for item in items]
    else:
        # Without a judge the saved verdicts stand, and what has none stays unjudged.
        if judge:
            judging.check(judge)
        ask = usable(lambda: judging.config(judge) if judge else JudgeConfig(NONE))
        setup = judges.setup(ask.config, judging.criterion()) if judge else None

        def score(item: dict[str, Any]) -> dict[str, Any]:
            verdict = kept_verdict(item, setup, missing_only=missing_only)
            return utils.answer_metrics(metrics, item, item["reply"], judge=ask, verdict=verdict)

        results = concurrency.ordered_map(score, items, task=run.task)
    for scored in results:
        for name, value in scored.items():
            collected.setdefault(name, []).append(value)
    pairs = [
        Pair(item["id"], saved_verdict(item), saved_verdict(scored[first]))
        for item, scored in zip(items, results, strict=True)
        if first == "judge_acc"
    ]
    return collected, pairs


def _samples(run: Run, items: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    first = _first_metric(run.task)
    return [{first: item} for item in items[first]]


def _join(
    sides: Mapping[tuple[str, ...], Mapping[str, tuple[Run, dict[str, list[Any]]]]], done: Rescored
) -> None:
    names = [key for key, found in sides.items() if found.keys() == {"pool", "answer"}]
    for key in names:
        (pool_run, pool_items), (answer_run, answer_items) = (
            sides[key]["pool"],
            sides[key]["answer"],
        )
        several = sum(other[-1] == key[-1] for other in names) > 1
        group = f"maia{key[-1]}" + (f" {key[0]}" if several else "")
        done.numbers[group] = {
            name: scores.join(
                [
                    scores.VSV[name](pool_items[name]),
                    scores.OEVQA[name](answer_items[name]),
                ]
            )
            for name in scores.VSV
            if name.startswith("agg_acc") and pool_items.get(name) and answer_items.get(name)
        }
        joined = done.numbers[group].get("agg_acc_n_joined")
        done.notes.append(
            f"{group}: {joined} questions joined from {pool_run.file.name} and "
            f"{answer_run.file.name}"
        )
        if pool_run.model is None:
            done.notes.append(f"{group}: no results files, so the models could not be compared")
    done.notes += _why_not_joined([key for key in sides if key not in names])


def _why_not_joined(keys: Iterable[tuple[str, ...]]) -> list[str]:
    alone = list(keys)
    if len(alone) < 2:
        return []
    titles = ("model", "data hash", "setting", "task variant")
    differing = [
        f"{title} ({' / '.join(sorted({key[i] for key in alone}))})"
        for i, title in enumerate(titles)
        if len({key[i] for key in alone}) > 1
    ]
    return [f"agg_acc not computed: the runs differ in {', '.join(differing)}"] if differing else []
