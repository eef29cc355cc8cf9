"""Two judges of the same answers side by side: how often they agree, which way they differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.report.paper_tables import empty, fixed
from lmms_eval_tasks.runs.rescore import Pair
from lmms_eval_tasks.utils.metrics import agreement

if TYPE_CHECKING:
    from rich.table import Table

    from lmms_eval_tasks.judges.prices import PriceList
    from lmms_eval_tasks.judges.verdict import Verdict


def compared(pairs: Sequence[Pair], prices: PriceList) -> dict[str, Any] | None:
    """The saved judge against the present one; None if there is no verdict to compare with.

    `n` items that both judged, `agreement` the share of equal scores, `kappa` (Cohen's, or None
    with `kappa_reason`), `up` and `down` the items whose score rose and fell, the `mean` scores of
    both on those items, and what each judge's verdicts cost (dollars; None: unknown).
    """
    before = [_score(pair.before) for pair in pairs]
    after = [_score(pair.after) for pair in pairs]
    flips = agreement.flips(before, after)
    if not flips.n:
        return None
    both = [(a, b) for a, b in zip(before, after, strict=True) if a is not None and b is not None]
    # Without weights an unused label does not change kappa, so the data's own will do.
    labels = sorted({score for pair in both for score in pair})
    kappa = agreement.kappa([a for a, _ in both], [b for _, b in both], labels)
    return {
        "before": _labels(pair.before for pair in pairs),
        "after": _labels(pair.after for pair in pairs),
        "n": flips.n,
        "agreement": flips.agreement,
        "kappa": kappa.value,
        "kappa_reason": kappa.reason,
        "up": flips.up,
        "down": flips.down,
        "only_before": flips.only_before,
        "only_after": flips.only_after,
        "mean_before": sum(a for a, _ in both) / flips.n,
        "mean_after": sum(b for _, b in both) / flips.n,
        "cost_before": cost((pair.before for pair in pairs), prices),
        "cost_after": cost((pair.after for pair in pairs), prices),
        "flipped": [
            pair.id
            for pair, a, b in zip(pairs, before, after, strict=True)
            if None not in (a, b) and a != b
        ],
    }


def table(comparisons: Mapping[str, Mapping[str, Any]]) -> Table:
    """The comparisons of several tasks."""
    made = empty("Two judges on the same answers")
    for title in ("task", "saved judge", "this judge"):
        made.add_column(title, overflow="fold")
    for title in ("both judged", "agree", "kappa", "up", "down", "mean saved", "mean this", "cost"):
        made.add_column(title, justify="right")
    for task, values in comparisons.items():
        made.add_row(
            task,
            values["before"],
            values["after"],
            str(values["n"]),
            f"{values['agreement']:.1%}",
            fixed(values["kappa"]),
            str(values["up"]),
            str(values["down"]),
            f"{values['mean_before']:.3f}",
            f"{values['mean_after']:.3f}",
            f"{_dollars(values['cost_before'])} / {_dollars(values['cost_after'])}",
        )
    return made


def cost(verdicts: Iterable[Verdict | None], prices: PriceList) -> float | None:
    """Dollars that verdicts took when they were paid for; None if a price or a count is unknown."""
    total = 0.0
    for verdict in verdicts:
        for part in () if verdict is None else verdict.parts or (verdict,):
            if part.usage is None:
                continue
            model, _, url = part.judge.rpartition(": ")[2].partition("@")
            price = prices.of(model, url or None)
            if price is None:
                return None
            used = part.usage
            paid = price.cost(
                used.prompt_tokens, used.completion_tokens, used.cached_tokens, used.batch
            )
            if paid is None:
                return None
            total += paid
    return total


def _dollars(amount: float | None) -> str:
    from lmms_eval_tasks.judges.report import dollars

    return "unknown" if amount is None else dollars(amount)


def _score(verdict: Verdict | None) -> float | None:
    return None if verdict is None else verdict.score


def _labels(verdicts: Any) -> str:
    return ", ".join(sorted({verdict.judge for verdict in verdicts if verdict is not None}))
