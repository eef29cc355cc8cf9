"""MAIA's numbers, from items: the same functions serve the host's tables and `rescore`.

Names in the paper: `pair_acc` Table 5, `pool_acc` Table 1, `judge_acc` Table 2, `agg_acc` Table 3.
Each comes plain, `_valid`, `_failed` (utils/aggregate.py), by category (`_<slug>`), and as `_avg`,
the mean over the categories, which is the `Avg.` of the paper's tables.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmms_eval_tasks.maia.categories import SLUGS
from lmms_eval_tasks.maia.schema import POOL_SIZE
from lmms_eval_tasks.utils import aggregate
from lmms_eval_tasks.utils.aggregate import Carrier, Item, metric_list, never_raises

Aggregation = Callable[[Sequence[Item]], Any]

# What the joined metric is asked for, beside the categories. B.3 of the paper looks at the 2x2 of
# pool right or not and answer right or not.
_CELL = {
    (True, True): "both",
    (True, False): "pool_only",
    (False, True): "answer_only",
    (False, False): "neither",
}
CELLS = tuple(_CELL.values())
JOINED = ("", "_valid", "_failed", "_avg", "_n_joined", *(f"_n_{cell}" for cell in CELLS))


# --- one number each --------------------------------------------------------------------------


def pool_acc(items: Sequence[Item]) -> float | None:
    """Share of questions whose 8 pairs are all right (paper, 5.1)."""
    return aggregate.pool_accuracy(items, POOL_SIZE)


def pool_acc_valid(items: Sequence[Item]) -> float | None:
    """The same among complete and readable pools."""
    return aggregate.pool_accuracy_valid(items, POOL_SIZE)


def pool_acc_failed(items: Sequence[Item]) -> int:
    """Number of incomplete or unreadable pools."""
    return aggregate.count_failed_pools(items, POOL_SIZE)


def _average(statistic: Aggregation) -> Aggregation:
    return functools.partial(aggregate.mean_of_categories, statistic)


def _mean_value(items: Sequence[Item]) -> float | None:
    return aggregate.mean(item["value"] for item in items)


def _texts(items: Sequence[Item]) -> tuple[list[str], list[list[str]]]:
    """Candidates and references in the order of the ids, whatever order the host hands over."""
    ordered = sorted(items, key=lambda item: item["id"])
    return [item["candidate"] for item in ordered], [list(item["references"]) for item in ordered]


def bleu(items: Sequence[Item]) -> float:
    """Corpus BLEU-4 in 0..1 against the eight references."""
    from lmms_eval_tasks.utils import text_metrics

    return text_metrics.corpus_bleu(*_texts(items))


def cider(items: Sequence[Item]) -> float:
    """CIDEr over all items at once: its document frequencies need the whole corpus."""
    from lmms_eval_tasks.utils import text_metrics

    return text_metrics.corpus_cider(*_texts(items))


def bertscore(items: Sequence[Item]) -> float | None:
    """Mean best BERTScore F1, or None where no encoder is at hand (never 0)."""
    from lmms_eval_tasks import settings
    from lmms_eval_tasks.utils import bertscore as implementation
    from lmms_eval_tasks.utils import provenance

    candidates, references = _texts(items)
    score = implementation.bert_score(
        candidates, references, model=settings.bertscore_model(), lang="it"
    )
    provenance.note("bertscore", score.describe())
    return score.value


# --- the aggregate accuracy, joined over the two tasks ----------------------------------------


def pool_carrier(reduce: str, items: Sequence[Item]) -> Carrier:
    """The VSV side of agg_acc: which pools are right."""
    return Carrier(
        "pool",
        {
            name: {"right": pool.right, "valid": pool.valid, "category": pool.category}
            for name, pool in aggregate.pools(items, POOL_SIZE).items()
        },
        reduce,
    )


def answer_carrier(reduce: str, items: Sequence[Item]) -> Carrier:
    """The OEVQA side of agg_acc: which answers are right."""
    return Carrier(
        "answer",
        {
            item["id"]: {
                "right": item["right"],
                "valid": aggregate.is_valid(item),
                "category": item["category"],
            }
            for item in ([] if aggregate.is_unjudged(items) else items)
        },
        reduce,
    )


@never_raises
def join(
    carriers: Sequence[Any], _sizes: Any = None, _weight_by_size: Any = None
) -> float | int | None:
    """Aggregate Accuracy and its companions, for the host's group (paper, 6).

    A question counts 1 if its pool is 8/8 and its open answer is judged correct, else 0, over the
    questions that both tasks cover.

    Args:
        carriers: the two tasks' values under one metric name, in any order.

    Returns:
        The number asked for by the carriers' `reduce`; None if a task is absent or not judged.
    """
    sides = {c.side: c for c in carriers if isinstance(c, Carrier)}
    if sides.keys() != {"pool", "answer"}:
        return None
    return joined(sides["pool"].scores, sides["answer"].scores, sides["pool"].reduce)


def joined(
    pool: Mapping[str, Mapping[str, Any]], answer: Mapping[str, Mapping[str, Any]], reduce: str
) -> float | int | None:
    """One joined number over the questions that `pool` and `answer` share.

    Args:
        pool, answer: question -> {"right", "valid", "category"}.
        reduce: a member of JOINED.
    """
    items = [
        {
            "id": name,
            "category": pool[name]["category"],
            "right": int(bool(pool[name]["right"]) and bool(answer[name]["right"])),
            "status": "ok" if pool[name]["valid"] and answer[name]["valid"] else "failed",
            "cell": _CELL[bool(pool[name]["right"]), bool(answer[name]["right"])],
        }
        for name in pool.keys() & answer.keys()
    ]
    if reduce.startswith("_n_"):
        cell = reduce.removeprefix("_n_")
        return sum(cell in ("joined", item["cell"]) for item in items)
    reductions: dict[str, Aggregation] = {
        "": aggregate.accuracy,
        "_valid": aggregate.accuracy_valid,
        "_failed": aggregate.count_failed,
        "_avg": _average(aggregate.accuracy),
    }
    return reductions[reduce](items) if items else None


# --- every metric of a task, by name ----------------------------------------------------------


def _family(
    name: str, plain: Aggregation, valid: Aggregation, failed: Aggregation
) -> dict[str, Any]:
    return {
        name: plain,
        f"{name}_valid": valid,
        f"{name}_failed": failed,
        f"{name}_avg": _average(plain),
        **{f"{name}_{slug}": plain for slug in SLUGS},
    }


def _carried(carrier: Callable[[str, Sequence[Item]], Carrier]) -> dict[str, Any]:
    return {
        **{f"agg_acc{part}": functools.partial(carrier, part) for part in JOINED},
        **{f"agg_acc_{slug}": functools.partial(carrier, "") for slug in SLUGS},
    }


_PAIRS = {
    **_family("pair_acc", aggregate.accuracy, aggregate.accuracy_valid, aggregate.count_failed),
    **_family("pool_acc", pool_acc, pool_acc_valid, pool_acc_failed),
}
# Their items hold texts or values, where those of all others hold a verdict.
SIMILARITY: dict[str, Aggregation] = {
    "rouge_l": _mean_value,
    "meteor": _mean_value,
    "bleu": bleu,
    "cider": cider,
    "bertscore": bertscore,
}
_ANSWERS = {
    **_family("judge_acc", aggregate.accuracy, aggregate.accuracy_valid, aggregate.count_failed),
    **SIMILARITY,
}

UNIMODAL: dict[str, Aggregation] = _PAIRS
VSV: dict[str, Aggregation] = {**_PAIRS, **_carried(pool_carrier)}
OEVQA: dict[str, Aggregation] = {**_ANSWERS, **_carried(answer_carrier)}


def of_category(name: str, category: str) -> bool:
    """Whether metric `name` takes the items of `category`: all do but those of another category."""
    return not any(name.endswith(f"_{slug}") for slug in SLUGS) or name.endswith(f"_{category}")


def _higher_is_better(name: str) -> bool | None:
    return None if "_n_" in name else not name.endswith("_failed")


# Named by the YAMLs (`!function` takes constants too).
VSV_METRICS = metric_list(VSV, _higher_is_better)
OEVQA_METRICS = metric_list(OEVQA, _higher_is_better)
UNIMODAL_METRICS = metric_list(UNIMODAL, _higher_is_better)
