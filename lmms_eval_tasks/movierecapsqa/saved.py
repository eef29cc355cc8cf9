"""MovieRecapsQA's saved runs: every metric again from the samples, judged again if asked."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lmms_eval_tasks import judges, settings
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.judges import Judge, Verdict, concurrency
from lmms_eval_tasks.judges.candidate import usable
from lmms_eval_tasks.judges.config import NONE, JudgeConfig
from lmms_eval_tasks.movierecapsqa import baselines, geval_ratings, scores, scoring
from lmms_eval_tasks.movierecapsqa import judge as judging
from lmms_eval_tasks.movierecapsqa.labels import DIMENSIONS
from lmms_eval_tasks.movierecapsqa.uncertainty import details
from lmms_eval_tasks.rescore import Pair, Rescored, Run, refuse_twice, saved_items

Verdicts = dict[str, Verdict]  # under `claims`, the dimensions' and the baselines' names


def rescore_saved(
    runs: Sequence[Run], judge: str | None, *, missing_only: bool = False
) -> Rescored:
    """Every metric again from saved samples.

    The judged baselines that a run has are kept; with a judge those that the user asks for now
    (settings.judged_baselines) are judged too.

    Args:
        runs: saved runs of MovieRecapsQA's tasks.
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
    # Without a judge the saved verdicts stand, and what has none stays unjudged.
    ask = usable(lambda: judging.config(judge) if judge else JudgeConfig(NONE))
    if judge:
        judging.check(baselines.criteria(settings.judged_baselines()).values(), judge)
    for run in runs:
        items = saved_items(run, scores.FIRST)
        label = f"{run.task} {run.model}" if several else run.task
        values, pairs = _again(run, items, ask, missing_only=missing_only)
        collected: dict[str, list[Any]] = {}
        for value in values:
            for name, item in value.items():
                collected.setdefault(name, []).append(item)
        done.numbers[label] = {
            name: aggregation(collected[name])
            for name, aggregation in scores.SCORES.items()
            if collected.get(name)
        }
        done.sidecar[label] = details([value[scores.FIRST] for value in values])
        done.verdicts[label] = pairs
    return done


def _again(
    run: Run, items: Sequence[dict[str, Any]], judge: Judge, *, missing_only: bool
) -> tuple[list[dict[str, Any]], list[Pair]]:
    """The answers' metrics again, and each verdict as saved and as given now."""
    setups = None if judge.config.provider == NONE else _setups(judge.config)
    before = [saved_verdicts(item) for item in items]

    def score(place: int) -> dict[str, Any]:
        item, given = items[place], before[place]
        kept = given if setups is None else _kept(given, setups) if missing_only else {}
        which = _which(item, asked=settings.judged_baselines() if setups is not None else ())
        return scoring.reply_metrics(item, item["reply"], judge=judge, which=which, saved=kept)

    values = concurrency.ordered_map(score, range(len(items)), task=run.task)
    after = [saved_verdicts(value[scores.FIRST]) for value in values]
    pairs = [
        Pair(f"{item['id']}/{name}", old.get(name), new.get(name))
        for item, old, new in zip(items, before, after, strict=True)
        for name in sorted(old.keys() | new.keys())
        # The number of claims is no rating that two judges could agree on.
        if name != "claims"
    ]
    return values, pairs


def _which(item: Mapping[str, Any], asked: Collection[str]) -> list[str]:
    """The judged baselines that an item has, and those asked for now."""
    had = {name.partition("_")[0] for name in item["baselines"]}
    return [name for name in settings.JUDGED_BASELINES if name in had | set(asked)]


def _setups(config: JudgeConfig) -> dict[str, set[str]]:
    """Hashes that verdicts of this judge and these prompts have, by the verdict's name."""
    sampler = geval_ratings.sampling(config)
    made = {
        "claims": {judges.setup(config, judging.claims_criterion())},
        **{
            name: {judges.setup(config, judging.dimension_criterion(name, 1))}
            for name in DIMENSIONS
        },
    }
    for name, criterion in baselines.criteria().items():
        made[name] = {judges.setup(one, criterion) for one in (config, sampler)}
    return made


def _kept(given: Verdicts, setups: Mapping[str, set[str]]) -> Verdicts:
    """What this very judge has decided already. Labels are of claims: without them they fall."""
    kept = {
        name: verdict
        for name, verdict in given.items()
        if verdict.score is not None and verdict.setup in setups[name]
    }
    return kept if "claims" in kept else {k: v for k, v in kept.items() if k not in DIMENSIONS}


def saved_verdicts(item: Mapping[str, Any]) -> Verdicts:
    """The verdicts in an item, as scoring.reply_metrics takes them.

    Raises:
        DataError: one of them is none.
    """
    found = {name: one.get("verdict") for name, one in item["dimensions"].items()}
    found["claims"] = item["claims_verdict"]
    try:
        own = {name: Verdict.from_dict(one) for name, one in found.items() if one is not None}
        return {**own, **baselines.verdicts(item["baselines"])}
    except (TypeError, ValueError) as error:
        raise DataError(f"{item.get('id')}: a saved verdict is none ({error})") from None
