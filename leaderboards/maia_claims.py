"""What MAIA's paper says in words about its Tables 1 to 5, checked against the tables.

Only statements that the tables can decide are here; where our copy of the text lost a number, the
part that remains is checked. A claim fails only beyond rounding: "higher" fails if the printed
figure is lower, and a comparison of two differences may be off by 0.01.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from lmms_eval_tasks.leaderboards import Table
from lmms_eval_tasks.leaderboards.findings import Claim
from lmms_eval_tasks.leaderboards.maia_checks import hundredths
from lmms_eval_tasks.maia.categories import CATEGORIES, SLUGS

POOL, JUDGED, BOTH, SIMILARITY, PAIR = 1, 2, 3, 4, 5  # table numbers
INTERN2, INTERN3 = "InternVL2 8B", "InternVL3 78B"
LLAVA_NEXT = "Llava-Next-Video 7B"
QWEN, BEST = "Qwen-2.5-VL 7B", "Qwen-2.5-VL 72B"
VLMS = (INTERN2, INTERN3, LLAVA_NEXT, "Llava-oneVision 7B", QWEN, BEST)
FAMILIES = ((INTERN2, INTERN3), (QWEN, BEST))  # (smaller, larger); InternVL in two generations
VIDEO = ("black", "1frame", "32frames")
FULL = "32frames"
UNSURE = ("out_of_scope", "uncertainty")

_TITLES = {category.slug: category.title for category in CATEGORIES}


class Figures:
    """Printed figures of all tables, in whole hundredths. KeyError for one that is not printed."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self._tables = {table.number: table for table in tables}

    def __call__(self, number: int, setting: str, model: str, column: str = "average") -> int:
        """One figure of a table."""
        return hundredths(self._tables[number].row(setting, model).value(column))

    def title(self, setting: str) -> str:
        """A setting in words."""
        return self._tables[POOL].groups[setting]

    def by_category(self, number: int, setting: str, model: str) -> dict[str, int]:
        """One row by category slug."""
        return {slug: self(number, setting, model, slug) for slug in SLUGS}

    def profit(self, number: int, model: str) -> dict[str, int]:
        """What 32 frames add to the black video, by category slug."""
        black = self.by_category(number, "black", model)
        return {c: v - black[c] for c, v in self.by_category(number, FULL, model).items()}

    def spread(self, setting: str, model: str) -> int:
        """Average pair accuracy less average pool accuracy."""
        return self(PAIR, setting, model) - self(POOL, setting, model)

    def over_unimodal(self) -> dict[str, int]:
        """Average pool accuracy with 32 frames less the baseline's, without the weakest model."""
        base = self(POOL, "unimodal", "Unimodal")
        return {m: self(POOL, FULL, m) - base for m in VLMS if m != LLAVA_NEXT}


Check = Callable[[Figures], tuple[bool, str]]


def claims(tables: Sequence[Table]) -> list[Claim]:
    """Every statement we check, in the order of the paper. `tables` are all five."""
    figures = Figures(tables)
    return [Claim(key, section, says, *check(figures)) for key, section, says, check in _CLAIMS]


def _best_in_pools(f: Figures) -> tuple[bool, str]:
    ordered = sorted(f(POOL, s, m) for s in VIDEO for m in VLMS)
    best = f(POOL, FULL, BEST)
    return best == ordered[-1], f"Table 1: {_share(best)}, the next {_share(ordered[-2])}"


def _fourteen_points(f: Figures) -> tuple[bool, str]:
    new, old = f(POOL, FULL, BEST), f(POOL, "1frame", BEST)
    return abs(new - old - 14) <= 1, f"Table 1: {_share(new)} and {_share(old)}"


def _llava_next_weakest(f: Figures) -> tuple[bool, str]:
    scores = [f(POOL, s, LLAVA_NEXT) for s in VIDEO]
    weakest = [min(f(POOL, s, m) for m in VLMS) for s in VIDEO]
    return scores == weakest, f"Table 1: {_shares(scores)}"


def _above_unimodal(f: Figures) -> tuple[bool, str]:
    least = min(f.over_unimodal().values())
    return least >= 0, f"Table 1, 32 frames: the least gain is {_share(least)}"


def _range_of_gains(f: Figures) -> tuple[bool, str]:
    gains = f.over_unimodal()
    holds = gains[INTERN2] <= min(gains.values()) + 1 and gains[BEST] >= max(gains.values()) - 1
    listed = ", ".join(f"{model} {_share(gains[model])}" for model in (INTERN3, INTERN2, BEST))
    return holds, f"Table 1, 32 frames less the baseline: {listed}"


def _intern3_falls(f: Figures) -> tuple[bool, str]:
    scores = [f(POOL, s, INTERN3) for s in VIDEO]
    return scores[2] <= min(scores), f"Table 1: {_shares(scores)}"


def _others_improve(f: Figures) -> tuple[bool, str]:
    falls = [
        f"{model} {_share(f(POOL, old, model))} with {f.title(old)}, "
        f"{_share(f(POOL, FULL, model))} with 32 frames"
        for model in VLMS
        for old in ("black", "1frame")
        if model != INTERN3 and f(POOL, FULL, model) < f(POOL, old, model)
    ]
    return not falls, f"Table 1: {'; '.join(falls) or 'no other model falls'}"


def _hardest_in_pools(f: Figures) -> tuple[bool, str]:
    named = ("counterfactual", "planning", "implicit_partial", "spatial_partial")
    return _lowest(f.by_category(POOL, FULL, BEST), (*named, "temporal_duration"), "Table 1")


def _profit_most(f: Figures) -> tuple[bool, str]:
    named = ("causal", "sentiment", "implicit_partial", "implicit_total")
    return _highest(f.profit(POOL, BEST), (*named, "spatial_partial", "spatial_total"))


def _spread_by_setting(f: Figures) -> tuple[bool, str]:
    black, full = f.spread("black", BEST), f.spread(FULL, BEST)
    return black >= full - 1, f"Tables 5 and 1: {_share(black)} and {_share(full)}"


def _least_spread(f: Figures) -> tuple[bool, str]:
    spread = {m: f.spread(FULL, m) for m in VLMS}
    ordered = sorted(spread.values())
    holds = spread[BEST] <= ordered[0] + 1 and abs(spread[BEST] - 34) <= 1
    return holds, f"Tables 5 and 1: {_share(spread[BEST])}; least and next {_shares(ordered[:2])}"


def _intern3_rises(f: Figures) -> tuple[bool, str]:
    scores = [f(JUDGED, s, INTERN3) for s in VIDEO]
    return scores == sorted(scores), f"Table 2: {_shares(scores)}, as printed"


def _hardest_answers(f: Figures) -> tuple[bool, str]:
    rows = [f.by_category(JUDGED, FULL, m) for m in VLMS]
    means = {c: round(sum(row[c] for row in rows) / len(rows)) for c in SLUGS}
    named = (*UNSURE, "implicit_partial", "temporal_duration", "temporal_partial")
    return _lowest(means, (*named, "spatial_partial"), "Table 2, means over models")


def _answers_need_video(f: Figures) -> tuple[bool, str]:
    holds = all((g <= 0) == (c in UNSURE) for c, g in f.profit(JUDGED, BEST).items())
    return holds, f"Table 2, {_black_and_full(f, JUDGED, UNSURE)}"


def _intern2_similarity(f: Figures) -> tuple[bool, str]:
    names = ("InternVL2", INTERN3, "LLaVa-NeXT-Video", "LLava-oneVision", "Qwen-2.5-VL", BEST)
    columns = [[f(SIMILARITY, "unstated", n, c) for n in names] for c in ("bertscore", "cider")]
    holds = all(column[0] == max(column) for column in columns)
    return holds, f"Table 4: {_shares(column[0] for column in columns)}"


def _black_helps(f: Figures) -> tuple[bool, str]:
    profit = f.profit(POOL, BEST)
    pools, answers = (_black_and_full(f, number, UNSURE) for number in (POOL, JUDGED))
    return all(profit[c] <= 0 for c in UNSURE), f"Table 1, {pools}. Table 2, {answers}"


def _star(f: Figures) -> tuple[bool, str]:
    return _highest(f.profit(POOL, BEST), ("spatial_total", "implicit_total", "causal", *UNSURE))


def _answers_above_pools(f: Figures) -> tuple[bool, str]:
    least = min(f(JUDGED, s, m) - f(POOL, s, m) for s in VIDEO for m in VLMS)
    return least >= 0, f"Tables 2 and 1: the least difference of averages is {_share(least)}"


def _unsure_drop(f: Figures) -> tuple[bool, str]:
    pools, answers = f.by_category(POOL, FULL, BEST), f.by_category(JUDGED, FULL, BEST)
    listed = "; ".join(f"{_TITLES[c]} {_share(pools[c])}, {_share(answers[c])}" for c in UNSURE)
    return all(answers[c] <= pools[c] for c in UNSURE), f"Tables 1 and 2, 32 frames: {listed}"


def _larger_better(f: Figures) -> tuple[bool, str]:
    exceptions = [
        f"Table {number}, {f.title(setting)}: {small} {_share(f(number, setting, small))}, "
        f"{large} {_share(f(number, setting, large))}"
        for number in (POOL, JUDGED, PAIR)
        for setting in VIDEO
        for small, large in FAMILIES
        if f(number, setting, large) < f(number, setting, small)
    ]
    return not exceptions, "; ".join(exceptions) or "no exception in Tables 1, 2 and 5"


def _hardest_together(f: Figures) -> tuple[bool, str]:
    named = ("planning", "spatial_partial", "temporal_duration")
    return _lowest(f.by_category(BOTH, FULL, BEST), named, "Table 3")


_CLAIMS: tuple[tuple[str, str, str, Check], ...] = (
    ("best_in_pools", "5.1", "Qwen2.5-VL 72B with 32 frames is best in Task 1", _best_in_pools),
    ("fourteen_points", "5.1", "it gains 14 points over its 1-frame result", _fourteen_points),
    ("llava_next", "5.1", "Llava-Next-Video is weakest in every setting", _llava_next_weakest),
    ("above_unimodal", "5.1", "all other models beat the unimodal baseline", _above_unimodal),
    (
        "range_of_gains",
        "5.1",
        "with 32 frames the gains over the unimodal baseline run from InternVL2's, the least, to "
        "Qwen2.5-VL 72B's",
        _range_of_gains,
    ),
    ("intern3_falls", "5.1", "InternVL3 is worse with 32 frames than with fewer", _intern3_falls),
    ("others_improve", "5.1", "all models but InternVL3 improve with 32 frames", _others_improve),
    (
        "hardest_in_pools",
        "5.1",
        "the hardest categories (said beside the figure of Qwen2.5-VL 72B) are Counterfactual, "
        "Planning, Implicit Partial, Spatial Partial and Temporal Duration",
        _hardest_in_pools,
    ),
    (
        "profit_most",
        "5.1",
        "Causal, Sentiment, both Implicit and both Spatial categories profit most from the video",
        _profit_most,
    ),
    (
        "spread_by_setting",
        "5.1",
        "for Qwen2.5-VL 72B pairs exceed pools by more with black videos than with 32 frames",
        _spread_by_setting,
    ),
    ("least_spread", "5.1", "with 32 frames its loss, 34 points, is the least", _least_spread),
    ("intern3_rises", "5.2", "in Task 2 InternVL3 improves with every setting", _intern3_rises),
    (
        "hardest_answers",
        "5.2",
        "in Task 2 with 32 frames the hardest categories across models are Uncertainty, "
        "Out-of-Scope, Implicit Partial, both Temporal ones and Spatial Partial",
        _hardest_answers,
    ),
    (
        "answers_need_video",
        "5.2",
        "in Task 2 Qwen2.5-VL 72B is better with 32 frames than with black videos except in "
        "Out-of-Scope and Uncertainty, where it is worse",
        _answers_need_video,
    ),
    ("intern2_similarity", "5.2", "InternVL2 leads BERTScore and CIDEr", _intern2_similarity),
    (
        "black_helps",
        "5.3",
        "Qwen2.5-VL 72B is better with black videos than with 32 frames in Out-of-Scope and "
        "Uncertainty (said beside Figure 3b, which shows Task 1 by pools)",
        _black_helps,
    ),
    (
        "star",
        "5.3",
        "in Figure 3b (Task 1 by pools) the categories that profit most from the video are Spatial "
        "Total, Implicit Total, Causal, Out-of-Scope and Uncertainty",
        _star,
    ),
    ("answers_above_pools", "5.3", "every model is better in Task 2", _answers_above_pools),
    ("unsure_drop", "5.3", "Uncertainty and Out-of-Scope drop in Task 2", _unsure_drop),
    ("larger_better", "5.3", "larger models do better, also in a family", _larger_better),
    (
        "hardest_together",
        "6",
        "for both tasks together Planning, Spatial Partial and Temporal Duration stay hardest",
        _hardest_together,
    ),
)


def _lowest(scores: Mapping[str, int], named: Collection[str], where: str) -> tuple[bool, str]:
    """Are the named categories the lowest ones? With the pair that decides it."""
    inside = max(named, key=lambda c: scores[c])
    outside = min((c for c in scores if c not in named), key=lambda c: scores[c])
    evidence = (
        f"{where}, 32 frames: {_TITLES[inside]}, named, {_share(scores[inside])}; "
        f"{_TITLES[outside]}, not named, {_share(scores[outside])}"
    )
    return scores[inside] <= scores[outside], evidence


def _highest(gains: Mapping[str, int], named: Collection[str]) -> tuple[bool, str]:
    """Are the named categories those with the highest gains? With the pair that decides it."""
    inside = min(named, key=lambda c: gains[c])
    outside = max((c for c in gains if c not in named), key=lambda c: gains[c])
    evidence = (
        f"Table 1, Qwen-2.5-VL 72B, 32 frames less black video: {_TITLES[inside]}, named, "
        f"{_share(gains[inside])}; {_TITLES[outside]}, not named, {_share(gains[outside])}"
    )
    return gains[inside] >= gains[outside] - 1, evidence


def _black_and_full(f: Figures, number: int, columns: Iterable[str]) -> str:
    pairs = [(c, f(number, "black", BEST, c), f(number, FULL, BEST, c)) for c in columns]
    listed = "; ".join(f"{_TITLES[c]} {_share(old)}, {_share(new)}" for c, old, new in pairs)
    return f"black video and 32 frames: {listed}"


def _share(hundreds: int) -> str:
    return f"{hundreds / 100:.2f}"


def _shares(values: Iterable[int]) -> str:
    return ", ".join(_share(value) for value in values)
