"""MAIA's numbers, computed from items.

Names in the paper: `pair_acc` is Table 5, `pool_acc` Table 1, `judge_acc` Table 2, `agg_acc` Table
3. Each exists plain, as `_valid` and as `_failed` (aggregate.py), by category (`_<slug>`), and as
`_avg`. The last one is the mean over the categories, the `Avg.` of the paper's tables.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from typing_extensions import ReadOnly

from lmms_eval_tasks import settings
from lmms_eval_tasks.benchmark import (
    Metric,
    Units,
    accuracies,
    pool_accuracies,
    refusals,
    split,
)
from lmms_eval_tasks.maia.categories import SLUGS
from lmms_eval_tasks.maia.items import Categorised, OevqaItem, PairItem, Similarity
from lmms_eval_tasks.maia.release import POOL_SIZE
from lmms_eval_tasks.report import provenance
from lmms_eval_tasks.utils.metrics import aggregate, model_scores, text_metrics
from lmms_eval_tasks.utils.metrics.aggregate import GradedItem

# The 2x2 table of the paper's B.3: the pool is right, the answer is right.
CELLS = {
    (True, True): "both",
    (True, False): "pool_only",
    (False, True): "answer_only",
    (False, False): "neither",
}


def _category(item: Categorised) -> str:
    return item["category"]


def _family(forms: Sequence[Metric[Categorised]]) -> list[Metric[Categorised]]:
    """Return a share in its three forms, as the mean of the categories, and by category."""
    plain = forms[0]
    average = functools.partial(aggregate.mean_of_groups, plain.compute, _category)
    mean = Metric(f"{plain.name}_avg", average, is_share=True, always_interval=True)
    return [*forms, mean, *split(plain, "category", SLUGS)]


PAIRS: list[Metric[PairItem]] = [
    *_family(accuracies("pair_acc")),
    # Share of right letters by the authors' rule; no letter is wrong. Items of language models,
    # which name no letter, do not count.
    Metric(
        "pair_acc_authors",
        lambda items: aggregate.mean(item["right_authors"] for item in items),
        lambda item: "right_authors" in item,
    ),
    *_family(pool_accuracies("pool_acc", POOL_SIZE)),
]


# --- similarity to the references (Table 4) -----------------------------------------------------


def _similarity(name: Similarity, *, in_host_table: bool = True) -> Metric[OevqaItem]:
    """Return the metric of a text similarity's mean.

    With `shown`, the metric is a column of lmms-eval's table.
    """

    def of(items: Sequence[OevqaItem]) -> float | None:
        return aggregate.mean(item.get(name) for item in items)

    def units(items: Sequence[OevqaItem]) -> Units:
        return {i["id"]: (i["video"], i[name]) for i in items if i.get(name) is not None}

    return (
        Metric(name, of, host_fields=(name,), mean_field=name, per_unit=units, is_share=True)
        if in_host_table
        else Metric(name, of)
    )


def _texts(items: Sequence[OevqaItem]) -> tuple[list[str], list[list[str]]]:
    """Return candidates and references in the order of the ids, whatever order lmms-eval has."""
    ordered = sorted(items, key=lambda item: str(item["id"]))
    return [item["candidate"] for item in ordered], [list(item["references"]) for item in ordered]


def _of_all(name: str, score: Callable[[list[str], list[list[str]]], float]) -> Metric[OevqaItem]:
    """Return a metric of all texts together, which sums their counts or weighs their words."""
    return Metric(name, lambda items: score(*_texts(items)), _scored)


def meteor_wordnet(items: Sequence[OevqaItem]) -> float | None:
    """Return METEOR with English resources; None, never 0, if the resources are missing."""
    value, how = text_metrics.meteor_wordnet(*_texts(items))
    provenance.note("maia", "meteor_wordnet", how)
    return value


def bertscore(items: Sequence[OevqaItem]) -> float | None:
    """Return the mean of the best BERTScore F1; None, never 0, if there is no encoder."""
    model = settings.value(settings.BERTSCORE)
    score = model_scores.bert_score(*_texts(items), model=model, lang="it")
    provenance.note("maia", "bertscore", score.note)
    return score.value


def _scored(item: OevqaItem) -> bool:
    """Return True if scoring succeeded; otherwise the item has no text to compare."""
    return "rouge_l" in item


ANSWERS: list[Metric[OevqaItem]] = [
    *_family(accuracies("judge_acc")),
    *refusals("refusals", {"judge_acc": aggregate.accuracy}),
    _similarity("rouge_1", in_host_table=False),
    _similarity("rouge_l"),
    _similarity("meteor"),
    Metric("meteor_wordnet", meteor_wordnet, _scored),
    _of_all("bleu", text_metrics.corpus_bleu),
    _of_all("bleu_13a", text_metrics.bleu_13a),
    _of_all("cider", text_metrics.corpus_cider),
    _of_all(
        "cider_ptb", functools.partial(text_metrics.corpus_cider, words=text_metrics.ptb_words)
    ),
    Metric("bertscore", bertscore, _scored),
]


# --- the aggregate accuracy, joined over the two tasks (paper, 6) ---------------------------------

JOIN_NEEDS = ("id", "status", "right")


class _JoinedQuestion(Categorised):
    """A question that both tasks cover."""

    cell: ReadOnly[str]  # a value of CELLS


def agg_acc(
    pairs: Sequence[Categorised], answers: Sequence[Categorised]
) -> dict[str, float | None]:
    """Return Aggregate Accuracy and related numbers, over the questions that both tasks cover.

    A question counts 1 if its pool is 8/8 right and its open answer is judged correct, else 0.

    Args:
        pairs: items of statement verification.
        answers: items of open-ended QA; in a run that is not judged yet none of them counts.
    """
    items = _both(pairs, answers)
    by_category = aggregate.grouped(items, _category)
    return {
        "agg_acc": aggregate.accuracy(items),
        "agg_acc_valid": aggregate.accuracy_valid(items),
        "agg_acc_failed": aggregate.count_failed(items) if items else None,
        "agg_acc_avg": aggregate.mean_of_groups(aggregate.accuracy, _category, items),
        "agg_acc_n_joined": len(items),
        **{f"agg_acc_n_{cell}": sum(i["cell"] == cell for i in items) for cell in CELLS.values()},
        **{f"agg_acc_{slug}": aggregate.accuracy(own) for slug, own in by_category.items()},
    }


def agg_units(pairs: Sequence[Categorised], answers: Sequence[Categorised]) -> Units:
    """Return the values that `agg_acc` averages: each question's 1 or 0, with its video."""
    return aggregate.rights(_both(pairs, answers))


def _both(pairs: Sequence[Categorised], answers: Sequence[Categorised]) -> list[_JoinedQuestion]:
    pools = {pool["id"]: pool for pool in aggregate.pools(pairs, POOL_SIZE)}
    judged = [] if aggregate.is_unjudged(answers) else answers
    return [_joined(pools[one["id"]], one) for one in judged if one["id"] in pools]


def _joined(pool: GradedItem, answer: Categorised) -> _JoinedQuestion:
    is_right = answer["right"] == 1  # for a panel with mean verdicts: right for all members
    return {
        "id": answer["id"],
        # The rows for lmms-eval's table have neither field (JOIN_NEEDS).
        "video": answer.get("video", ""),
        "category": answer.get("category", ""),
        "right": int(pool["right"] == 1 and is_right),
        "status": "ok" if pool["status"] == "ok" and aggregate.is_valid(answer) else "failed",
        "cell": CELLS[pool["right"] == 1, is_right],
    }
