"""MAIA's numbers, from items.

Names in the paper: `pair_acc` Table 5, `pool_acc` Table 1, `judge_acc` Table 2, `agg_acc` Table 3.
Each comes plain, `_valid`, `_failed` (aggregate.py), by category (`_<slug>`), and as `_avg`, the
mean over the categories, which is the `Avg.` of the paper's tables.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmms_eval_tasks import provenance, settings
from lmms_eval_tasks.benchmark import (
    Item,
    Items,
    Metric,
    Units,
    accuracies,
    pool_accuracies,
    refusals,
    split,
)
from lmms_eval_tasks.maia.categories import SLUGS
from lmms_eval_tasks.maia.release import POOL_SIZE
from lmms_eval_tasks.utils.metrics import aggregate, model_scores, text_metrics

Statistic = Callable[[Items], Any]

# The 2x2 that B.3 of the paper looks at: is the pool right, is the answer right.
CELLS = {
    (True, True): "both",
    (True, False): "pool_only",
    (False, True): "answer_only",
    (False, False): "neither",
}


def _average(statistic: Statistic) -> Statistic:
    return functools.partial(aggregate.mean_of_categories, statistic)


def _family(forms: Sequence[Metric]) -> list[Metric]:
    """A share in its three forms, as the mean of the categories, and by category."""
    plain = forms[0]
    mean = Metric(f"{plain.name}_avg", _average(plain.of), share=True, sure=True)
    return [*forms, mean, *split(plain, "category", SLUGS)]


PAIRS = [
    *_family(accuracies("pair_acc")),
    # Letters by the authors' rule, none of which is wrong; language models alone name no letter.
    Metric(
        "pair_acc_authors",
        lambda items: aggregate.mean(item["right_authors"] for item in items),
        lambda item: "right_authors" in item,
    ),
    *_family(pool_accuracies("pool_acc", POOL_SIZE)),
]


# --- similarity to the references (Table 4) -----------------------------------------------------


def _mean_of(name: str) -> Statistic:
    return lambda items: aggregate.mean(i[name] for i in items if i.get(name) is not None)


def _units_of(name: str) -> Callable[[Items], Units]:
    return lambda items: {
        item["id"]: (item["video"], item[name]) for item in items if item.get(name) is not None
    }


def _texts(items: Items) -> tuple[list[str], list[list[str]]]:
    """Candidates and references in the order of the ids, whatever order the host hands over."""
    ordered = sorted(items, key=lambda item: str(item["id"]))
    return [item["candidate"] for item in ordered], [list(item["references"]) for item in ordered]


def _of_all(score: Callable[[list[str], list[list[str]]], float]) -> Statistic:
    """Of all items at once: their counts are summed, or weigh words by all references."""
    return lambda items: score(*_texts(items))


def meteor_wordnet(items: Items) -> float | None:
    """METEOR with English resources, or None where they are not at hand (never 0)."""
    value, how = text_metrics.meteor_wordnet(*_texts(items))
    provenance.note("maia", "meteor_wordnet", how)
    return value


def bertscore(items: Items) -> float | None:
    """Mean best BERTScore F1, or None where no encoder is at hand (never 0)."""
    model = settings.value(settings.BERTSCORE)
    score = model_scores.bert_score(*_texts(items), model=model, lang="it")
    provenance.note("maia", "bertscore", score.note)
    return score.value


def _scored(item: Item) -> bool:
    """Whether its scoring went through: else it has no text that could be compared."""
    return "rouge_l" in item


ANSWERS = [
    *_family(accuracies("judge_acc")),
    *refusals("refusals", {"judge_acc": aggregate.accuracy}),
    Metric("rouge_1", _mean_of("rouge_1")),
    Metric(
        "rouge_l",
        _mean_of("rouge_l"),
        shown=("rouge_l",),
        mean="rouge_l",
        units=_units_of("rouge_l"),
        share=True,
    ),
    Metric(
        "meteor",
        _mean_of("meteor"),
        shown=("meteor",),
        mean="meteor",
        units=_units_of("meteor"),
        share=True,
    ),
    Metric("meteor_wordnet", meteor_wordnet, _scored),
    Metric("bleu", _of_all(text_metrics.corpus_bleu), _scored),
    Metric("bleu_13a", _of_all(text_metrics.bleu_13a), _scored),
    Metric("cider", _of_all(text_metrics.corpus_cider), _scored),
    Metric("cider_ptb", _of_all(text_metrics.cider_ptb), _scored),
    Metric("bertscore", bertscore, _scored),
]


# --- the aggregate accuracy, joined over the two tasks (paper, 6) ---------------------------------

JOIN_NEEDS = ("id", "status", "right")


def agg_acc(pairs: Items, answers: Items) -> dict[str, Any]:
    """Aggregate Accuracy and its companions, over the questions that both tasks cover.

    A question counts 1 if its pool is 8/8 and its open answer is judged correct, else 0.

    Args:
        pairs: items of statement verification.
        answers: items of open-ended QA, with `category`; none of them counts before a judge came.
    """
    items = _both(pairs, answers)
    by_category = aggregate.by_category(items)
    return {
        "agg_acc": aggregate.accuracy(items),
        "agg_acc_valid": aggregate.accuracy_valid(items),
        "agg_acc_failed": aggregate.count_failed(items) if items else None,
        "agg_acc_avg": _average(aggregate.accuracy)(items),
        "agg_acc_n_joined": len(items),
        **{f"agg_acc_n_{cell}": sum(i["cell"] == cell for i in items) for cell in CELLS.values()},
        **{f"agg_acc_{slug}": aggregate.accuracy(own) for slug, own in by_category.items()},
    }


def agg_units(pairs: Items, answers: Items) -> Units:
    """What `agg_acc` is the mean of: each question, with its video."""
    videos = {item["id"]: item["video"] for item in answers}
    both = _both(pairs, answers)
    return {item["id"]: (videos[item["id"]], float(item["right"])) for item in both}


def _both(pairs: Items, answers: Items) -> list[Mapping[str, Any]]:
    pools = aggregate.pools(pairs, POOL_SIZE)
    judged = [] if aggregate.is_unjudged(answers) else answers
    return [_joined(pools[one["id"]], one) for one in judged if one["id"] in pools]


def _joined(pool: aggregate.Pool, answer: Item) -> Mapping[str, Any]:
    right = answer["right"] == 1  # to all members of a panel that gives means
    return {
        "id": answer["id"],
        "category": answer.get("category", ""),
        "right": int(pool.right and right),
        "status": "ok" if pool.valid and aggregate.is_valid(answer) else "failed",
        "cell": CELLS[pool.right, right],
    }
