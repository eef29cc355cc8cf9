"""MovieRecapsQA's numbers, computed from items.

All tasks have the same metrics:

- factuality, relevance and coherence, 0 to 5 (4.2): mean, variance and failures, also by modality
  and category (Table 5);
- the baselines of Table 4: text metrics against the dataset's answer, and the judged baselines if
  the user chose them (baselines.py). G-Eval's two ways of rating are different measurements, so
  each has its own metric, over the answers that were rated in this way.

Empty answers count in no mean, as in the published scores; `NAME_empty_wrong` counts them as 0. The
paper's "+-" is a variance (Table 4's caption), so `_var` is the population variance.
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
from lmms_eval_tasks.movierecapsqa.release import SPLITS
from lmms_eval_tasks.movierecapsqa.settings import BARTSCORE
from lmms_eval_tasks.report import provenance
from lmms_eval_tasks.utils.metrics import aggregate, model_scores, rating_means
from lmms_eval_tasks.utils.metrics import text_metrics as texts
from lmms_eval_tasks.utils.metrics.local_models import ModelScores
from lmms_eval_tasks.utils.metrics.rating_means import DimensionRating

Items = Sequence[RecapItem]


def answered(items: Items) -> list[RecapItem]:
    """Return the items whose answer is not empty."""
    return [item for item in items if item["status"] != "empty"]


# --- ratings: by dimension, and of the judged baselines -------------------------------------------


def _variance(name: str, rated: Callable[[Items], Sequence[DimensionRating]]) -> Metric[RecapItem]:
    def of(items: Items) -> float | None:
        return rating_means.variance(rating_means.values(rated(items)))

    return Metric(f"{name}_var", of, higher_is_better=None)


def _of_dimension(name: str) -> list[Metric[RecapItem]]:
    def rated(items: Items) -> list[DimensionRating]:
        return rating_means.ratings(name, answered(items))

    mean, *others = rating_metrics(name, rated, expected=list)
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
    """Return a judged baseline's ratings of the items with a reference; empty answers are left out.

    The list is empty if the user did not choose the baseline: then there is no number, and nothing
    failed. If the user chose it, an item whose scoring failed has no rating and counts as failed.
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
# Each text metric has a value for each item, so that mean and variance follow. All values lie in
# 0..1: ROUGE-L F1, BERTScore F1 (not rescaled), and exponentiated BARTScore, exp(mean token
# log-likelihood) of the answer given the reference. The paper names no implementation, stemmer,
# encoder, model or direction. Ours are named with each result, and are unverified. An answer
# without a word has 0 in all three. An item without a reference has no value, and neither has a
# failed request.

Statistic = Callable[[Sequence[float]], float | None]
LANGUAGE = "en"  # language of the release; sets bert-score's default encoder (roberta-large)


def _bart_scores(candidates: Sequence[str], references: Sequence[str]) -> ModelScores:
    """Return exponentiated BARTScore by the user's model: the geometric mean of probabilities."""
    if (model := settings.value(BARTSCORE)) is None:
        unnamed = "no model was named with --bartscore"
        return ModelScores((), f"BARTScore not computed: {unnamed}", computed=False)
    made = model_scores.bart_score(candidates, references, model=model)
    if not made.computed:
        return made
    # An answer without a word has no likelihood; on the scale 0..1 its value is 0.
    values = tuple(0.0 if value is None else math.exp(value) for value in made.values)
    return ModelScores(values, f"{made.note}, and are 0 in the exponentiated column")


def _values(name: str, items: Items) -> list[float]:
    """Return a text metric's values for items with a reply and a reference.

    The list is empty if the metric's model is missing.
    """
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


def _text(name: str, host_fields: tuple[str, ...] | None = None) -> list[Metric[RecapItem]]:
    def of(statistic: Statistic, items: Items) -> float | None:
        return statistic(_values(name, items))

    return [
        Metric(name, lambda items: of(aggregate.mean, answered(items)), host_fields=host_fields),
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
