"""MAVERIX's saved runs: every metric again from the samples, judged again if asked, and Table 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval_tasks import judges
from lmms_eval_tasks.judges import concurrency
from lmms_eval_tasks.judges.candidate import usable
from lmms_eval_tasks.judges.config import NONE, JudgeConfig
from lmms_eval_tasks.judges.verdict import Verdict
from lmms_eval_tasks.maverix import judge as judging
from lmms_eval_tasks.maverix import scores, table3, utils
from lmms_eval_tasks.maverix.labels import DIMENSIONS, MODES, kind_of
from lmms_eval_tasks.runs.rescore import (
    Pair,
    Rescored,
    Run,
    kept_verdict,
    refuse_twice,
    saved_items,
    saved_verdict,
)

Items = dict[str, list[Any]]  # metric -> items


def rescore_saved(
    runs: Sequence[Run], judge: str | None, *, missing_only: bool = False
) -> Rescored:
    """Every metric again from saved samples, and the joined row of Table 3 where its modes are.

    Args:
        runs: saved runs of MAVERIX's tasks.
        judge: judge the open answers with this judge; None keeps the saved verdicts.
        missing_only: keep the verdicts that this very judge has given already.

    Raises:
        DataError: a sample lacks what these tasks write, two samples of a run share an id, or two
            runs are of one task and model.
        JudgeError, PromptError: the judge cannot be used.
    """
    done = Rescored()
    refuse_twice(runs)
    several = len({run.task for run in runs}) < len(runs)
    joined: dict[tuple[str, str], dict[str, Items]] = {}
    for run in runs:
        kind = kind_of(run.task)
        metrics = scores.METRICS[kind]
        items = saved_items(run, scores.FIRST[kind])
        if kind == "open":
            values, pairs = _open(run, items, judge, missing_only)
        else:
            score = utils.choice_metrics
            values, pairs = [score(metrics, item, item["reply"]) for item in items], []
        collected: Items = {}
        for value in values:
            for name, scored in value.items():
                collected.setdefault(name, []).append(scored)
        label = f"{run.task} {run.model}" if several else run.task
        done.numbers[label] = {
            name: aggregation(collected[name])
            for name, aggregation in metrics.items()
            if collected.get(name) and name not in scores.JOINED
        }
        done.sidecar[label] = scores.details(kind, [value[scores.FIRST[kind]] for value in values])
        if pairs:
            done.verdicts[label] = pairs
        if kind == "choice" and items[0]["length"] == "localized":
            joined.setdefault((str(run.model), items[0]["data"]), {})[items[0]["mode"]] = collected
    _join(joined, done)
    return done


def _open(
    run: Run, items: Sequence[dict[str, Any]], judge: str | None, missing_only: bool
) -> tuple[list[dict[str, Any]], list[Pair]]:
    """Open answers' metrics again, and each rating as saved and as given now."""
    # Without a judge the saved verdicts stand, and what has none stays unjudged.
    ask = usable(lambda: judging.config(judge) if judge else JudgeConfig(NONE))
    if judge:
        judging.check(judge)
    setups = {
        name: judges.setup(ask.config, criterion) if judge else None
        for name, criterion in judging.criteria().items()
    }

    def score(item: dict[str, Any]) -> dict[str, Any]:
        saved: dict[str, Verdict | None] = {
            name: kept_verdict(_named(item, name), setups[name], missing_only=missing_only)
            for name in item["dimensions"]
        }
        return utils.open_metrics(scores.OPEN, item, item["reply"], judge=ask, saved=saved)

    values = concurrency.ordered_map(score, items, task=run.task)
    first = scores.FIRST["open"]
    pairs = [
        Pair(
            f"{item['id']}/{name}",
            saved_verdict(_named(item, name)),
            saved_verdict(value[first]["dimensions"].get(name, {})),
        )
        for item, value in zip(items, values, strict=True)
        if not item["withheld"]
        for name in DIMENSIONS
    ]
    return values, pairs


def _named(item: Mapping[str, Any], dimension: str) -> dict[str, Any]:
    """One rating with an id for messages; without a verdict where there is no rating."""
    return {**item["dimensions"].get(dimension, {}), "id": f"{item['id']}/{dimension}"}


def _join(joined: Mapping[tuple[str, str], Mapping[str, Items]], done: Rescored) -> None:
    for (model, _), modes in joined.items():
        if len(modes) < 2:
            continue
        name = "maverix_table3" + (f" {model}" if len(joined) > 1 else "")
        done.numbers[name] = {
            metric: scores.join([scores.CHOICE[metric](items[metric]) for items in modes.values()])
            for metric in scores.JOINED
        }
        if missing := [mode.title for slug, mode in MODES.items() if slug not in modes]:
            done.notes.append(f"{name}: without {', '.join(missing)}")
        asked = {mode: {item["id"] for item in items["acc"]} for mode, items in modes.items()}
        if unlike := table3.unlike(asked):
            done.notes.append(f"{name}: {unlike}")
