"""MovieRecapsQA's numbers, from items.

Every task has the same:
- factuality, relevance and coherence, 0 to 5 (4.2): mean, variance and failures, by modality and
  category (Table 5), and how the judge's scores keep to the bounds of their own labels;
- the baselines of Table 4: text metrics against the dataset's answer, and the judged ones where the
  user asked for them (baselines.py). G-Eval's two ways of rating are different measurements, so
  each has a metric of its own, over the answers that were rated in that way.

Empty answers are in no mean, as in the published scores; `NAME_empty_wrong` has them at 0.

The paper's "+-" is a variance (Table 4's caption), so `_var` is one: the population's.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.benchmark import Item, Items, Metric, refusals, value_is
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges import geval
from lmms_eval_tasks.movierecapsqa.baselines import GEVAL, HELMET_NAMES, NO_REFERENCE
from lmms_eval_tasks.movierecapsqa.data import task_name
from lmms_eval_tasks.movierecapsqa.judge import DIMENSIONS
from lmms_eval_tasks.movierecapsqa.schema import SPLITS
from lmms_eval_tasks.utils import provenance
from lmms_eval_tasks.utils.metrics import aggregate, rating_means, text_metrics
from lmms_eval_tasks.utils.metrics.bertscore import bert_score
from lmms_eval_tasks.utils.metrics.local_models import Scores

Pair = tuple[str, str]  # candidate, reference
Statistic = Callable[[Sequence[float]], float | None]


def answered(items: Items) -> list[Item]:
    """Items whose answer is not empty."""
    return [item for item in items if item["status"] != "empty"]


def count_empty(items: Items) -> int:
    """Number of empty answers."""
    return len(items) - len(answered(items))


# --- the judge without a reference --------------------------------------------------------------


def mean_answered(dimension: str, items: Items) -> float | None:
    """Mean of the ratings that count, without empty answers."""
    return rating_means.mean_valid(dimension, answered(items))


def _inconsistent(dimension: str, items: Items) -> int:
    """Number of scores outside the bounds that their own labels set."""
    return sum(rating_means.rating(dimension, item).get("consistent") is False for item in items)


def _bound(side: str, dimension: str, items: Items) -> float | None:
    """Mean of the lowest (`low`) or highest (`high`) score that each answer's labels allow.

    Over the same answers as the mean; those cut off or without claims at 0.
    """
    if rating_means.is_unjudged(dimension, items):
        return None
    counted = [item for item in items if rating_means.value(dimension, item) is not None]
    found = (rating_means.rating(dimension, item).get(side) for item in counted)
    return aggregate.mean(float(value or 0) for value in found)


def _of_dimension(name: str) -> list[Metric]:
    def of(statistic: Callable[[str, Items], Any]) -> Callable[[Items], Any]:
        return lambda items: statistic(name, answered(items))

    def failed(items: Items) -> int:
        return count_empty(items) + rating_means.count_failed(name, answered(items))

    def coverage(items: Items) -> float | None:
        return (len(items) - failed(items)) / len(items) if items else None

    mean = of(rating_means.mean_valid)
    shown = ("status", "refused", f"dimensions.{name}.score", f"dimensions.{name}.status")
    return [
        Metric(f"{name}_valid", mean, shown=shown, interval=of(rating_means.interval)),
        Metric(f"{name}_valid_empty_wrong", functools.partial(rating_means.mean_valid, name)),
        Metric(f"{name}_var", of(rating_means.variance_valid), better=None),
        Metric(f"{name}_failed", failed, better=False),
        Metric(f"{name}_coverage", coverage),
        Metric(f"{name}_inconsistent", of(_inconsistent), better=False),
        Metric(f"{name}_low", of(functools.partial(_bound, "low")), better=None),
        Metric(f"{name}_high", of(functools.partial(_bound, "high")), better=None),
        *(
            Metric(f"{name}_valid_{split}_{slug}", mean, value_is(split, slug))
            for split, slugs in SPLITS.items()
            for slug in slugs
        ),
    ]


def count_ratings(items: Items) -> dict[str, Any]:
    """Ratings by status, of each dimension."""
    found = {name: [rating_means.rating(name, item) for item in items] for name in DIMENSIONS}
    return {"ratings": {name: aggregate.by_status(own) for name, own in found.items()}}


# --- text metrics against the dataset's answer (4.1 and Table 4, "Semantic Metrics") --------------
#
# Each gives a value per item, so that mean and variance follow, all in 0..1: ROUGE-L F1, BERTScore
# F1 (not rescaled), and BARTScore exponentiated, exp(mean token log-likelihood) of the answer given
# the reference. The paper names no implementation, stemmer, encoder, model or direction: ours are
# named with each result, and are unverified. An answer without a word is worth 0 in all three; an
# item without a reference has no value.

ROUGE_L = text_metrics.IMPLEMENTATIONS["rouge_l"]  # for results: no stemmer, Unicode words
LANGUAGE = "en"  # of the release; decides bert-score's default encoder (roberta-large)
NOT_ASKED = f"no model was named with --bartscore ({settings.BARTSCORE})"


def bertscore(pairs: Sequence[Pair]) -> Scores:
    """BERTScore F1 by the user's encoder (settings.BERTSCORE) or the default one."""
    references = [[other] for _, other in pairs]
    model = settings.value(settings.BERTSCORE)
    return bert_score([one for one, _ in pairs], references, model=model, lang=LANGUAGE)


def bartscore(pairs: Sequence[Pair]) -> Scores:
    """BARTScore, exponentiated: the geometric mean of the answer's token probabilities.

    By the user's model (settings.BARTSCORE), or not computed.
    """
    from lmms_eval_tasks.utils.metrics.bartscore import bart_score

    if (model := settings.value(settings.BARTSCORE)) is None:
        return Scores((), f"BARTScore not computed: {NOT_ASKED}", computed=False)
    made = bart_score([one for one, _ in pairs], [other for _, other in pairs], model=model)
    if not made.computed:
        return made
    # Of an answer without a word there is no likelihood; in 0..1 its place is at the end.
    values = tuple(0.0 if value is None else math.exp(value) for value in made.values)
    return Scores(values, f"{made.note}, and are 0 in the exponentiated column")


def check_bartscore() -> None:
    """Stop before a run whose BARTScore model, if the user named one, cannot be used.

    Raises:
        TasksError: what is wrong with it.
    """
    from lmms_eval_tasks.utils.metrics import bartscore as implementation

    model = settings.value(settings.BARTSCORE)
    if model and (problem := implementation.problem(model)):
        raise TasksError(
            f"{settings.BARTSCORE}={model}: {problem}; nothing is downloaded: name the folder of a "
            "model such as facebook/bart-large-cnn, or leave the option out"
        )


def _replied(items: Items) -> list[Item]:
    """Items with a reply of the model's: a request that failed is not its answer."""
    return [item for item in items if item["status"] not in ("model_error", "error")]


def _rouge_l(statistic: Statistic, items: Items) -> float | None:
    return statistic([item["rouge_l"] for item in _replied(items) if item["rouge_l"] is not None])


_NOTES = "movierecapsqa"  # in provenance.py: metric -> task -> what it was computed with


def _by_model(
    name: str, score: Callable[[Sequence[Pair]], Scores], statistic: Statistic, items: Items
) -> float | None:
    """A statistic over the items with a reference; None where the metric has no model."""
    texts = [(item["candidate"], item["reference"]) for item in _replied(items)]
    scores = score([pair for pair in texts if text_metrics.tokenize(pair[1])])
    notes = provenance.notes().get(_NOTES, {})
    told = {task_name(item["source"], item["condition"]): scores.note for item in items}
    provenance.note(_NOTES, {**notes, name: {**notes.get(name, {}), **told}})
    return statistic([value for value in scores.values if value is not None])


def notes_of(tasks: Sequence[str]) -> dict[str, dict[str, str]]:
    """What the text metrics of some tasks were computed with: metric -> task -> note."""
    known = provenance.notes().get(_NOTES, {}).items()
    found = {name: {task: own[task] for task in tasks if task in own} for name, own in known}
    return {name: notes for name, notes in found.items() if notes}


def _text(name: str, of: Callable[..., Any], shown: tuple[str, ...] | None = None) -> list[Metric]:
    def on_answered(statistic: Statistic) -> Callable[[Items], Any]:
        return lambda items: of(statistic, answered(items))

    return [
        Metric(name, on_answered(aggregate.mean), shown=shown),
        Metric(f"{name}_empty_wrong", functools.partial(of, aggregate.mean)),
        Metric(f"{name}_var", on_answered(rating_means.variance), better=None),
    ]


# --- the judged baselines -----------------------------------------------------------------------


def baseline(metric: str, items: Items) -> list[dict[str, Any]]:
    """Items as rating_means.py wants them, of those that have this baseline and a reference.

    Empty where it was not asked for: then there is no number, and nothing failed. Where it was, an
    item whose scoring broke lacks it, and counts as failed. Empty answers are not among them.
    """
    key = GEVAL if metric in geval.MODES else metric
    given = [(item["status"], (item.get("baselines") or {}).get(key)) for item in answered(items)]
    if all(one is None for _, one in given):
        return []
    broken = {"score": None, "status": "error", "mode": None}
    made = [one or broken for status, one in given if one is not None or status == "error"]
    found = [one for one in made if one["status"] != NO_REFERENCE]
    if key == GEVAL:
        found = geval.column(metric, found)
    return [{"status": one["status"], "dimensions": {metric: one}} for one in found]


def _of_baseline(name: str) -> list[Metric]:
    def of(statistic: Callable[[str, Items], Any]) -> Callable[[Items], Any]:
        return lambda items: statistic(name, baseline(name, items))

    return [
        Metric(name, of(rating_means.mean_valid)),
        Metric(f"{name}_var", of(rating_means.variance_valid), better=None),
        Metric(f"{name}_failed", of(rating_means.count_failed), better=False),
        Metric(f"{name}_coverage", of(rating_means.coverage)),
    ]


METRICS = [
    *(metric for name in DIMENSIONS for metric in _of_dimension(name)),
    # Of the answers that have some, also where a dimension failed.
    Metric(
        "claims_mean",
        lambda items: aggregate.mean(float(i["n_claims"]) for i in items if i["n_claims"]),
        better=None,
    ),
    Metric(
        "no_claims",
        lambda items: sum(item["status"] == aggregate.NO_CLAIMS for item in items),
        better=False,
    ),
    Metric("empty", count_empty, better=False),
    *refusals(
        "refusals",
        {f"{name}_valid": functools.partial(mean_answered, name) for name in DIMENSIONS},
    ),
    *_text("rouge_l", _rouge_l, ("status", "rouge_l")),
    *_text("bertscore", functools.partial(_by_model, "bertscore", bertscore)),
    *_text("bartscore", functools.partial(_by_model, "bartscore", bartscore)),
    *(metric for name in (*geval.MODES, *HELMET_NAMES) for metric in _of_baseline(name)),
]
