"""MovieRecapsQA's saved runs: every metric again from the samples, judged again if asked."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lmms_eval_tasks import judges, settings
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.judges import Judge, Verdict, concurrency, geval_ratings
from lmms_eval_tasks.judges.candidate import usable
from lmms_eval_tasks.judges.config import NONE, JudgeConfig
from lmms_eval_tasks.movierecapsqa import baselines, scores, scoring
from lmms_eval_tasks.movierecapsqa import judge as judging
from lmms_eval_tasks.movierecapsqa.baselines import GEVAL, HELMET_METRICS
from lmms_eval_tasks.movierecapsqa.labels import DIMENSIONS
from lmms_eval_tasks.movierecapsqa.report import unlike
from lmms_eval_tasks.movierecapsqa.uncertainty import details
from lmms_eval_tasks.runs.rescore import Pair, Rescored, Run, refuse_twice, saved_items

Verdicts = dict[str, Verdict]  # under `claims`, the dimensions' and the baselines' names


def rescore_saved(
    runs: Sequence[Run], judge: str | None, *, missing_only: bool = False
) -> Rescored:
    """Every metric again from saved samples.

    The judged baselines that a run has are kept; with a judge those that the user asks for now
    (settings.judged_baselines) are judged too. Two judges are compared on one scale at a time:
    `verdicts` has a judged baseline's under a name of its own (`_by_scale`).

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
    if judge:
        judging.check(judge, baselines.criteria(settings.judged_baselines()).values())
    # Without a judge the saved verdicts stand, and what has none stays unjudged.
    ask = usable(lambda: judging.config(judge) if judge else JudgeConfig(NONE))
    asked: dict[str | None, dict[str, set[str]]] = {}
    for run in runs:
        items = _items(run)
        asked.setdefault(run.model, {})[run.task] = {item["id"] for item in items}
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
        done.verdicts |= _by_scale(label, pairs)
    for model, ids in asked.items():
        done.notes += [f"{model}: {note}" if several else note for note in unlike(ids)]
    return done


# What scoring.reply_metrics needs of an item, beside what it makes.
_TEXTS = (
    *("segment", "video", "question", "reference", "dialogue"),
    *("modality", "category", "source", "condition", "reply"),
)


def _items(run: Run) -> list[dict[str, Any]]:
    """A run's items in the order of their ids.

    Raises:
        DataError: one of them lacks what these tasks write; names the file and the item.
    """
    items = saved_items(run, scores.FIRST)
    for item in items:
        if problem := _problem(item):
            raise DataError(
                f"{run.file}: {item['id']} {problem}; take its line out or run the task again"
            )
    return items


def _problem(item: Mapping[str, Any]) -> str:
    """What is wrong with a saved item; "" if nothing is."""
    if lacking := [name for name in _TEXTS if not isinstance(item.get(name), str)]:
        return f"has no `{lacking[0]}`"
    facts, verdict = item.get("facts"), item.get("claims_verdict", "")
    if not isinstance(facts, list) or not all(isinstance(fact, str) for fact in facts):
        return "has no list of `facts`"
    if verdict is not None and not isinstance(verdict, Mapping):
        return "has no `claims_verdict`"
    for name in ("dimensions", "baselines"):
        rated = item.get(name)
        if not isinstance(rated, Mapping) or not all(
            isinstance(r, Mapping) for r in rated.values()
        ):
            return f"has no `{name}`"
    if unknown := sorted(item["dimensions"].keys() - set(DIMENSIONS)):
        return f"is rated in {unknown[0]}, which is no dimension"
    return ""


def _by_scale(label: str, pairs: Sequence[Pair]) -> dict[str, list[Pair]]:
    """Ratings of 0 to 5 under the task's label, each judged baseline's under its name as well."""
    found: dict[str, list[Pair]] = {label: []}
    for pair in pairs:
        name = pair.id.rpartition("/")[2]
        own = "" if name in DIMENSIONS else name if name in HELMET_METRICS else GEVAL
        found.setdefault(f"{label} {own}".strip(), []).append(pair)
    return found


def _again(
    run: Run, items: Sequence[dict[str, Any]], judge: Judge, *, missing_only: bool
) -> tuple[list[dict[str, Any]], list[Pair]]:
    """The answers' metrics again, and each verdict as saved and as given now."""
    setups = None if judge.config.provider == NONE else _setups(judge.config)
    before = [_saved_verdicts(item, f"{run.file}: ") for item in items]
    which = _which(items, asked=settings.judged_baselines() if setups is not None else ())

    def score(place: int) -> dict[str, Any]:
        item, given = items[place], before[place]
        kept = given if setups is None else _kept(given, setups) if missing_only else {}
        return scoring.reply_metrics(item, item["reply"], judge=judge, which=which, saved=kept)

    values = concurrency.ordered_map(score, range(len(items)), task=run.task)
    after = [_saved_verdicts(value[scores.FIRST]) for value in values]
    pairs = [
        Pair(f"{item['id']}/{name}", old.get(name), new.get(name))
        for item, old, new in zip(items, before, after, strict=True)
        for name in sorted(old.keys() | new.keys())
        # The number of claims is no rating that two judges could agree on.
        if name != "claims"
    ]
    return values, pairs


def _which(items: Sequence[Mapping[str, Any]], asked: Collection[str]) -> list[str]:
    """The judged baselines that a run has, and those asked for now."""
    had = {name.partition("_")[0] for item in items for name in item["baselines"]}
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
    """What this very judge has decided already; labels fall with their claims (judge_reply)."""
    return {
        name: verdict
        for name, verdict in given.items()
        if verdict.score is not None and verdict.setup in setups[name]
    }


def _saved_verdicts(item: Mapping[str, Any], file: str = "") -> Verdicts:
    """The verdicts in an item, as scoring.reply_metrics takes them.

    Raises:
        DataError: one of them is none; begins with `file`.
    """
    given = {name: one.get("verdict") for name, one in item["dimensions"].items()}
    given["claims"] = item["claims_verdict"]
    made: Verdicts = {}
    name = "baselines"
    try:
        made |= baselines.verdicts(item["baselines"])
        for name, one in given.items():
            if one is not None:
                made[name] = Verdict.from_dict(one)
    except (AttributeError, TypeError, ValueError) as error:
        raise DataError(f"{file}{item['id']}/{name}: the saved verdict is none ({error})") from None
    return made
