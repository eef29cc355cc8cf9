"""MovieRecapsQA's numbers, from items.

Every task has the same:
- factuality, relevance and coherence, 0 to 5 (4.2): mean, variance and failures, by modality and
  category (Table 5);
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
from dataclasses import replace
from itertools import chain
from typing import cast

from lmms_eval_tasks import settings
from lmms_eval_tasks.benchmark import Metric, rating_metrics, refusals, split
from lmms_eval_tasks.judges import geval
from lmms_eval_tasks.movierecapsqa.baselines import GEVAL, HELMET_NAMES, NO_REFERENCE
from lmms_eval_tasks.movierecapsqa.items import RecapItem
from lmms_eval_tasks.movierecapsqa.judge import DIMENSIONS
from lmms_eval_tasks.movierecapsqa.schema import SPLITS
from lmms_eval_tasks.movierecapsqa.settings import BARTSCORE
from lmms_eval_tasks.report import provenance
from lmms_eval_tasks.utils.metrics import aggregate, model_scores, rating_means
from lmms_eval_tasks.utils.metrics import text_metrics as texts
from lmms_eval_tasks.utils.metrics.local_models import ModelScores
from lmms_eval_tasks.utils.metrics.rating_means import DimensionRating

Items = Sequence[RecapItem]


def answered(items: Items) -> list[RecapItem]:
    """Items whose answer is not empty."""
    return [item for item in items if item["status"] != "empty"]


# --- ratings: by dimension, and of the judged baselines -------------------------------------------


def _variance(name: str, rated: Callable[[Items], Sequence[DimensionRating]]) -> Metric[RecapItem]:
    def of(items: Items) -> float | None:
        return rating_means.variance(rating_means.values(rated(items)))

    return Metric(f"{name}_var", of, higher_is_better=None)


def _of_dimension(name: str) -> list[Metric[RecapItem]]:
    def rated(items: Items) -> list[DimensionRating]:
        return rating_means.ratings(name, answered(items))

    mean, *others = rating_metrics(name, rated, asked=list)
    mean = replace(
        mean,
        host_fields=("status", "refused", f"dimensions.{name}.score", f"dimensions.{name}.status"),
        per_unit=lambda items: rating_means.units(name, answered(items)),
    )
    with_empty = Metric(
        f"{mean.name}_empty_wrong",
        lambda items: rating_means.mean_valid(rating_means.ratings(name, items)),
        per_unit=functools.partial(rating_means.units, name),
    )
    parts = (split(mean, field, slugs, f"{field}_") for field, slugs in SPLITS.items())
    return [mean, with_empty, _variance(name, rated), *others, *chain(*parts)]


def baseline(metric: str, items: Items) -> list[DimensionRating]:
    """The ratings of the items that have this baseline and a reference.

    Empty where it was not asked for: then there is no number, and nothing failed. Where it was, an
    item whose scoring broke lacks it, and counts as failed. Empty answers are not among them.
    """
    key = GEVAL if metric in geval.MODES else metric
    given = [(item["status"], (item.get("baselines") or {}).get(key)) for item in answered(items)]
    if all(one is None for _, one in given):
        return []
    broken: geval.TextRating = {"score": None, "status": "error", "mode": None}
    made = [one or broken for status, one in given if one is not None or status == "error"]
    found = [one for one in made if one["status"] != NO_REFERENCE]
    return geval.column(metric, cast(list[geval.TextRating], found)) if key == GEVAL else found


def _of_baseline(name: str) -> list[Metric[RecapItem]]:
    own = functools.partial(baseline, name)
    mean, *others = rating_metrics(name, own)
    return [replace(mean, name=name), _variance(name, own), *others]


# --- text metrics against the dataset's answer (4.1 and Table 4, "Semantic Metrics") --------------
#
# Each gives a value per item, so that mean and variance follow, all in 0..1: ROUGE-L F1, BERTScore
# F1 (not rescaled), and BARTScore exponentiated, exp(mean token log-likelihood) of the answer given
# the reference. The paper names no implementation, stemmer, encoder, model or direction: ours are
# named with each result, and are unverified. An answer without a word is worth 0 in all three; an
# item without a reference has no value, and neither has a request that failed.

Statistic = Callable[[Sequence[float]], float | None]
LANGUAGE = "en"  # of the release; decides bert-score's default encoder (roberta-large)


def _bart_scores(candidates: Sequence[str], references: Sequence[str]) -> ModelScores:
    """BARTScore by the user's model, exponentiated: the geometric mean of token probabilities."""
    if (model := settings.value(BARTSCORE)) is None:
        unnamed = "no model was named with --bartscore"
        return ModelScores((), f"BARTScore not computed: {unnamed}", computed=False)
    made = model_scores.bart_score(candidates, references, model=model)
    if not made.computed:
        return made
    # Of an answer without a word there is no likelihood; in 0..1 its place is at the end.
    values = tuple(0.0 if value is None else math.exp(value) for value in made.values)
    return ModelScores(values, f"{made.note}, and are 0 in the exponentiated column")


def _values(name: str, items: Items) -> list[float]:
    """A text metric of the items that have a reply and a reference; none without its model."""
    replied = [item for item in items if item["status"] not in ("model_error", "error")]
    if name == "rouge_l":
        return [value for item in replied if (value := item["rouge_l"]) is not None]
    told = [item for item in replied if texts.tokenize(item["reference"])]
    candidates = [item["candidate"] for item in told]
    references = [item["reference"] for item in told]
    if name == "bartscore":
        scores = _bart_scores(candidates, references)
    else:
        model, against = settings.value(settings.BERTSCORE), [[one] for one in references]
        scores = model_scores.bert_score(candidates, against, model=model, lang=LANGUAGE)
    provenance.note("movierecapsqa", name, scores.note)
    return [value for value in scores.values if value is not None]


def _text(name: str, shown: tuple[str, ...] | None = None) -> list[Metric[RecapItem]]:
    def of(statistic: Statistic, items: Items) -> float | None:
        return statistic(_values(name, items))

    return [
        Metric(name, lambda items: of(aggregate.mean, answered(items)), host_fields=shown),
        Metric(f"{name}_empty_wrong", lambda items: of(aggregate.mean, items)),
        Metric(
            f"{name}_var", lambda i: of(rating_means.variance, answered(i)), higher_is_better=None
        ),
    ]


def _count(status: str) -> Callable[[Items], int]:
    return lambda items: sum(item["status"] == status for item in items)


_RATED = {name: _of_dimension(name) for name in DIMENSIONS}
METRICS: list[Metric[RecapItem]] = [
    *chain(*_RATED.values()),
    Metric("no_claims", _count(aggregate.NO_CLAIMS), higher_is_better=False),
    Metric("empty", _count("empty"), higher_is_better=False),
    *refusals("refusals", {mean.name: mean.compute for mean, *_ in _RATED.values()}),
    *_text("rouge_l", ("status", "rouge_l")),
    *_text("bertscore"),
    *_text("bartscore"),
    *(metric for name in (*geval.MODES, *HELMET_NAMES) for metric in _of_baseline(name)),
]
