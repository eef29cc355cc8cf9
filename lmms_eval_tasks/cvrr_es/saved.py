"""CVRR-ES's saved runs: every metric again, other verdicts, ratings with a reference added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval_tasks import judges
from lmms_eval_tasks.cvrr_es import judge as judging
from lmms_eval_tasks.cvrr_es import rating_scores, scores, scoring, usability
from lmms_eval_tasks.cvrr_es.labels import ANSWERS, DIMENSIONS, JUDGE_TASKS
from lmms_eval_tasks.cvrr_es.rating_rows import Item as Rated
from lmms_eval_tasks.cvrr_es.rating_scores import by_candidate, slug
from lmms_eval_tasks.cvrr_es.uncertainty import details
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.judges import concurrency
from lmms_eval_tasks.judges.candidate import usable
from lmms_eval_tasks.judges.config import NONE, JudgeConfig
from lmms_eval_tasks.runs.rescore import (
    Pair,
    Rescored,
    Run,
    kept_verdict,
    refuse_twice,
    saved_items,
    saved_verdict,
)
from lmms_eval_tasks.utils.aggregate import Carrier

_ANSWER = ("dimension", "video", "question", "reference", "reply")
_RATING = ("dimension", "video", "question", "candidate", "answer", "judge", "round", "reply")
_ALSO = ("empty", "fell_back", "reference_rating")  # of a rating; no texts

Values = dict[str, list[Any]]


def rescore_saved(
    runs: Sequence[Run], judge: str | None, *, missing_only: bool = False
) -> Rescored:
    """Every metric again from saved samples, and the means over dimensions of each model.

    Ratings are read again from the replies. The reference is the one that the user names now
    (settings.CVRR_REFERENCE), or the one of the run.

    Args:
        runs: saved runs of CVRR-ES's tasks.
        judge: judge the answers with this judge; None keeps the saved verdicts.
        missing_only: keep the verdicts that this very judge has given already.

    Raises:
        DataError: a sample lacks what these tasks write, two samples of a run share an id, or two
            runs are of one task and model; the reference cannot be used.
        JudgeError, PromptError: the judge cannot be used.
    """
    done = Rescored()
    refuse_twice(runs)
    several = len({run.task for run in runs}) < len(runs)
    reference = {row.item: row.rating for row in usability.reference()}
    dimensions: dict[str | None, dict[str, list[Carrier]]] = {}
    for run in runs:
        label = f"{run.task} {run.model}" if several else run.task
        if run.task in JUDGE_TASKS:
            values = _ratings(run, reference)
            slugs = {slug(item["candidate"]) for item in values[rating_scores.FIRST]}
            metrics = {**rating_scores.SCORES, **by_candidate(sorted(slugs))}
            first = rating_scores.FIRST
            if reference and all(item["reference_rating"] is None for item in values[first]):
                done.notes.append(
                    f"{label}: the reference has no rating of these answers: compare the ids of "
                    "the questions and the names of the candidates"
                )
        else:
            values, done.verdicts[label] = _answers(run, judge, missing_only=missing_only)
            metrics, first = scores.SCORES, scores.FIRST
        numbers = {name: metrics[name](items) for name, items in values.items() if name in metrics}
        done.numbers[label] = {
            name: value for name, value in numbers.items() if not isinstance(value, Carrier)
        }
        done.sidecar[label] = details(run.task, values[first])
        for name, value in numbers.items():
            if isinstance(value, Carrier):
                dimensions.setdefault(run.model, {}).setdefault(name, []).append(value)
    for model, carriers in dimensions.items():
        label = f"cvrr_es {model}" if several or len(dimensions) > 1 else "cvrr_es"
        done.numbers[label] = {name: scores.join(own) for name, own in carriers.items()}
        counted = {len(own) for own in carriers.values()}
        if counted != {len(DIMENSIONS)}:
            done.notes.append(
                f"{label}: means over {max(counted)} of {len(DIMENSIONS)} dimensions: those that "
                "were given"
            )
    return done


def _items(run: Run, first: str, texts: Sequence[str]) -> list[dict[str, Any]]:
    """A run's items in the order of their ids.

    Raises:
        DataError: the task is none of ours, or an item lacks what it writes.
    """
    if run.task not in JUDGE_TASKS and run.task.removeprefix(ANSWERS) not in DIMENSIONS:
        raise DataError(f"{run.file}: {run.task} is no task of CVRR-ES")
    items = saved_items(run, first)
    for item in items:
        if lacking := [name for name in texts if not isinstance(item.get(name), str)]:
            raise _lacking(run, item, lacking[0])
    return items


def _lacking(run: Run, item: Mapping[str, Any], name: str) -> DataError:
    return DataError(
        f"{run.file}: {item['id']} has no `{name}`; take its line out or run the task again"
    )


def _ratings(run: Run, reference: Mapping[Rated, float | None]) -> Values:
    collected: Values = {}
    for item in _items(run, rating_scores.FIRST, _RATING):
        if lacking := [name for name in _ALSO if name not in item]:
            raise _lacking(run, item, lacking[0])
        known = item
        if reference:
            rated = Rated(item["question"], item["candidate"])
            known = {**item, "reference_rating": reference.get(rated)}
        for name, value in rating_scores.reply_metrics(known, item["reply"]).items():
            collected.setdefault(name, []).append(value)
    return collected


def _answers(run: Run, judge: str | None, *, missing_only: bool) -> tuple[Values, list[Pair]]:
    """The answers' items by metric, and each verdict as saved and as given now."""
    items = _items(run, scores.FIRST, _ANSWER)
    if judge:
        judging.check(judge)
    # Without a judge the saved verdicts stand, and what has none stays unjudged.
    ask = usable(lambda: judging.config(judge) if judge else JudgeConfig(NONE))
    setup = judges.setup(ask.config, judging.criterion()) if judge else None

    def score(item: dict[str, Any]) -> dict[str, Any]:
        verdict = kept_verdict(item, setup, missing_only=missing_only)
        return scoring.reply_metrics(item, item["reply"], judge=ask, verdict=verdict)

    values = concurrency.ordered_map(score, items, task=run.task)
    collected: Values = {}
    for value in values:
        for name, one in value.items():
            collected.setdefault(name, []).append(one)
    pairs = [
        Pair(item["id"], saved_verdict(item), saved_verdict(value[scores.FIRST]))
        for item, value in zip(items, values, strict=True)
    ]
    return collected, pairs
