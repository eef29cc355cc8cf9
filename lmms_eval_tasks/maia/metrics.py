"""MAIA's numbers, from items.

Names in the paper: `pair_acc` Table 5, `pool_acc` Table 1, `judge_acc` Table 2, `agg_acc` Table 3.
Each comes plain, `_valid`, `_failed` (aggregate.py), by category (`_<slug>`), and as `_avg`, the
mean over the categories, which is the `Avg.` of the paper's tables.
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

# The 2x2 that B.3 of the paper looks at: is the pool right, is the answer right.
CELLS = {
    (True, True): "both",
    (True, False): "pool_only",
    (False, True): "answer_only",
    (False, False): "neither",
}


def _category(item: Categorised) -> str:
    return item["category"]


def _family(forms: Sequence[Metric[Categorised]]) -> list[Metric[Categorised]]:
    """A share in its three forms, as the mean of the categories, and by category."""
    plain = forms[0]
    average = functools.partial(aggregate.mean_of_groups, plain.compute, _category)
    mean = Metric(f"{plain.name}_avg", average, is_share=True, always_interval=True)
    return [*forms, mean, *split(plain, "category", SLUGS)]


PAIRS: list[Metric[PairItem]] = [
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


def _similarity(name: Similarity, *, in_host_table: bool = True) -> Metric[OevqaItem]:
    """The mean of a text metric; in lmms-eval's table if it is shown."""

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
    """Candidates and references in the order of the ids, whatever order the host hands over."""
    ordered = sorted(items, key=lambda item: str(item["id"]))
    return [item["candidate"] for item in ordered], [list(item["references"]) for item in ordered]


def _of_all(name: str, score: Callable[[list[str], list[list[str]]], float]) -> Metric[OevqaItem]:
    """A metric of all texts at once: their counts are summed, or weigh words by all references."""
    return Metric(name, lambda items: score(*_texts(items)), _scored)


def meteor_wordnet(items: Sequence[OevqaItem]) -> float | None:
    """METEOR with English resources, or None where they are not at hand (never 0)."""
    value, how = text_metrics.meteor_wordnet(*_texts(items))
    provenance.note("maia", "meteor_wordnet", how)
    return value


def bertscore(items: Sequence[OevqaItem]) -> float | None:
    """Mean best BERTScore F1, or None where no encoder is at hand (never 0)."""
    model = settings.value(settings.BERTSCORE)
    score = model_scores.bert_score(*_texts(items), model=model, lang="it")
    provenance.note("maia", "bertscore", score.note)
    return score.value


def _scored(item: OevqaItem) -> bool:
    """Return whether its scoring went through: else it has no text that could be compared."""
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

    cell: ReadOnly[str]  # one of CELLS


def agg_acc(
    pairs: Sequence[Categorised], answers: Sequence[Categorised]
) -> dict[str, float | None]:
    """Aggregate Accuracy and its companions, over the questions that both tasks cover.

    A question counts 1 if its pool is 8/8 and its open answer is judged correct, else 0.

    Args:
        pairs: items of statement verification.
        answers: items of open-ended QA; none of them counts before a judge came.
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
    """The values that `agg_acc` is the mean of: each question, with its video."""
    return aggregate.rights(_both(pairs, answers))


def _both(pairs: Sequence[Categorised], answers: Sequence[Categorised]) -> list[_JoinedQuestion]:
    pools = {pool["id"]: pool for pool in aggregate.pools(pairs, POOL_SIZE)}
    judged = [] if aggregate.is_unjudged(answers) else answers
    return [_joined(pools[one["id"]], one) for one in judged if one["id"] in pools]


def _joined(pool: GradedItem, answer: Categorised) -> _JoinedQuestion:
    is_right = answer["right"] == 1  # to all members of a panel that gives means
    return {
        "id": answer["id"],
        # lmms-eval's table has neither (JOIN_NEEDS).
        "video": answer.get("video", ""),
        "category": answer.get("category", ""),
        "right": int(pool["right"] == 1 and is_right),
        "status": "ok" if pool["status"] == "ok" and aggregate.is_valid(answer) else "failed",
        "cell": CELLS[pool["right"] == 1, is_right],
    }
