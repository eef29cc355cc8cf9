"""MAIA's numbers, computed from items.

In the paper, `pair_acc` is in Table 5, `pool_acc` in Table 1, `judge_acc` in Table 2 and `agg_acc`
in Table 3. Each number has a plain form, the forms `_valid` and `_failed` (aggregate.py), a form
for each category (`_<slug>`), and `_avg`, the mean of the categories (`Avg.` in the paper's
tables).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from typing_extensions import ReadOnly

from lmms_eval_tasks import settings
from lmms_eval_tasks.benchmark import (
    GroupUnits,
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

# The cells of the 2x2 table in the paper's B.3: (pool is right, answer is right) -> name.
CELLS = {
    (True, True): "both",
    (True, False): "pool_only",
    (False, True): "answer_only",
    (False, False): "neither",
}


def _category(item: Categorised) -> str:
    return item["category"]


def _id(item: Categorised) -> str:
    return item["id"]


def _family(
    forms: Sequence[Metric[Categorised]], unit: Callable[[Categorised], str]
) -> list[Metric[Categorised]]:
    """Return the metrics `forms` (a share in three forms), `_avg`, and one for each category.

    `unit` returns the id of the item's value that the share averages.
    """
    plain = forms[0]

    def units(items: Sequence[Categorised]) -> GroupUnits:
        category = {unit(item): _category(item) for item in items}
        found = plain.per_unit(items) if plain.per_unit else {}
        return {name: (category[name], *own) for name, own in found.items()}

    average = functools.partial(aggregate.mean_of_groups, plain.compute, _category)
    mean = Metric(f"{plain.name}_avg", average, is_share=True, per_group_unit=units)
    return [*forms, mean, *split(plain, "category", SLUGS)]


PAIRS: list[Metric[PairItem]] = [
    *_family(accuracies("pair_acc"), _id),
    # The share of right letters, read by the authors' rule; a reply without a letter is wrong.
    # Items with a language model's scores do not count, since they have no reply.
    Metric(
        "pair_acc_authors",
        lambda items: aggregate.mean(item["right_authors"] for item in items),
        lambda item: "right_authors" in item,
    ),
    *_family(pool_accuracies("pool_acc", POOL_SIZE), aggregate.pool_of),
]


# --- similarity to the references (Table 4) -----------------------------------------------------


def _similarity(name: Similarity, *, in_host_table: bool = True) -> Metric[OevqaItem]:
    """Return the metric that is the mean of a text similarity.

    With `in_host_table`, the metric is a column of lmms-eval's table.
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
    """Return candidates and references, ordered by id, since the order of items may vary."""
    ordered = sorted(items, key=lambda item: str(item["id"]))
    return [item["candidate"] for item in ordered], [list(item["references"]) for item in ordered]


def _of_all(name: str, score: Callable[[list[str], list[list[str]]], float]) -> Metric[OevqaItem]:
    """Return a metric that is computed from all texts together, and not a mean over texts."""
    return Metric(name, lambda items: score(*_texts(items)), _scored)


def meteor_wordnet(items: Sequence[OevqaItem]) -> float | None:
    """Return METEOR with English resources (WordNet); None, not 0, if they are missing."""
    value, how = text_metrics.meteor_wordnet(*_texts(items))
    provenance.note("maia", "meteor_wordnet", how)
    return value


def bertscore(items: Sequence[OevqaItem]) -> float | None:
    """Return the mean of each answer's best BERTScore F1; None, not 0, if there is no encoder."""
    model = settings.value(settings.BERTSCORE)
    score = model_scores.bert_score(*_texts(items), model=model, lang="it")
    provenance.note("maia", "bertscore", score.note)
    return score.value


def _scored(item: OevqaItem) -> bool:
    """Return True if scoring succeeded; otherwise the item has no text to compare."""
    return "rouge_l" in item


ANSWERS: list[Metric[OevqaItem]] = [
    *_family(accuracies("judge_acc"), _id),
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

JOINT_FIELDS = ("id", "status", "right")


class _JoinedQuestion(Categorised):
    """A question that both tasks cover."""

    cell: ReadOnly[str]  # a value of CELLS


def agg_acc(
    pairs: Sequence[Categorised], answers: Sequence[Categorised]
) -> dict[str, float | None]:
    """Return Aggregate Accuracy and related numbers, for the questions that both tasks cover.

    A question counts 1 if all 8 pairs of its pool are right and its open answer is right, else 0.

    Args:
        pairs: items of statement verification.
        answers: items of open-ended QA; none of them counts if the run is not judged yet.
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
    is_right = answer["right"] == 1  # for a panel's mean: all members say that it is right
    return {
        "id": answer["id"],
        # Items for lmms-eval's table lack both fields (JOINT_FIELDS).
        "video": answer.get("video", ""),
        "category": answer.get("category", ""),
        "right": int(pool["right"] == 1 and is_right),
        "status": "ok" if pool["status"] == "ok" and aggregate.is_valid(answer) else "failed",
        "cell": CELLS[pool["right"] == 1, is_right],
    }
