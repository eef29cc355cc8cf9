"""What MAIA's paper says in words about its Tables 1 to 5, checked against the tables.

Only statements that the tables can decide are here; where our copy of the text lost a number, the
part that remains is checked. A printed figure stands for a range of half a hundredth to each side, and
a claim fails only if no values in the ranges fit it: a difference of two printed figures is exact to
one hundredth, a comparison of two differences to two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lmms_eval_tasks.leaderboards import Table
from lmms_eval_tasks.leaderboards.checks import hundredths

BEST = "Qwen-2.5-VL 72B"
INTERN3 = "InternVL3 78B"
LLAVA_NEXT = "Llava-Next-Video 7B"
VLMS = (
    "InternVL2 8B",
    INTERN3,
    LLAVA_NEXT,
    "Llava-oneVision 7B",
    "Qwen-2.5-VL 7B",
    BEST,
)
FAMILIES = (("InternVL2 8B", INTERN3), ("Qwen-2.5-VL 7B", BEST))  # (smaller, larger)
VIDEO = ("black", "1frame", "32frames")
POOL, JUDGED, BOTH, SIMILARITY, PAIR = 1, 2, 3, 4, 5  # table numbers
UNSURE = ("out_of_scope", "uncertainty")


@dataclass(frozen=True)
class Claim:
    """A statement of the paper's text and what the tables say about it."""

    key: str
    section: str
    says: str  # our words
    holds: bool
    evidence: str  # printed figures, percent points as differences of them


class Figures:
    """Printed figures of all tables, in whole hundredths."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self._tables = {table.number: table for table in tables}
        self.categories = tuple(self._tables[POOL].columns)

    def __call__(self, number: int, setting: str, model: str, column: str = "average") -> int:
        """One figure; KeyError if the tables have none there."""
        return hundredths(self._tables[number].row(setting, model).value(column))

    def gain(self, number: int, model: str, old: str, new: str, column: str = "average") -> int:
        """A model's figure in setting `new` less the one in `old`."""
        return self(number, new, model, column) - self(number, old, model, column)

    def spread(self, setting: str, model: str) -> int:
        """Average pair accuracy less average pool accuracy."""
        return self(PAIR, setting, model) - self(POOL, setting, model)

    def similarity(self, column: str) -> dict[str, int]:
        """A column of Table 4 by the model's printed name."""
        return {r.model: hundredths(r.value(column)) for r in self._tables[SIMILARITY].rows}


def claims(tables: Sequence[Table]) -> list[Claim]:
    """Every statement we check, in the order of the paper."""
    figures = Figures(tables)
    return [check(figures) for check in _CHECKS]


def _best_in_pools(f: Figures) -> Claim:
    scores = {(s, m): f(POOL, s, m) for s in VIDEO for m in VLMS}
    return Claim(
        "best_in_pools",
        "5.1",
        "Qwen2.5-VL 72B with 32 frames has the highest pool accuracy",
        scores["32frames", BEST] == max(scores.values()),
        f"Table 1: {_share(scores['32frames', BEST])}, the next is "
        f"{_share(sorted(scores.values())[-2])}",
    )


def _fourteen_points(f: Figures) -> Claim:
    gain = f.gain(POOL, BEST, "1frame", "32frames")
    return Claim(
        "fourteen_points",
        "5.1",
        "that is 14 points more than with 1 frame",
        abs(gain - 14) <= 1,
        f"Table 1: {_share(f(POOL, '32frames', BEST))} - {_share(f(POOL, '1frame', BEST))} = "
        f"{_share(gain)}",
    )


def _llava_next_weakest(f: Figures) -> Claim:
    weakest = {s: min(f(POOL, s, m) for m in VLMS) for s in VIDEO}
    return Claim(
        "llava_next_weakest",
        "5.1",
        "Llava-Next-Video is the weakest in all three settings",
        all(f(POOL, s, LLAVA_NEXT) == weakest[s] for s in VIDEO),
        "Table 1: " + _shares(f(POOL, s, LLAVA_NEXT) for s in VIDEO),
    )


def _above_unimodal(f: Figures) -> Claim:
    base = f(POOL, "unimodal", "Unimodal")
    others = [f(POOL, "32frames", m) for m in VLMS if m != LLAVA_NEXT]
    return Claim(
        "above_unimodal",
        "5.1",
        "every other model is above the unimodal baseline",
        min(others) >= base,
        f"Table 1: baseline {_share(base)}, the lowest of them with 32 frames {_share(min(others))}",
    )


def _gains_over_unimodal(f: Figures) -> Claim:
    base = f(POOL, "unimodal", "Unimodal")
    gains = {m: f(POOL, "32frames", m) - base for m in VLMS if m != LLAVA_NEXT}
    ends = (gains["InternVL2 8B"], gains[BEST])
    return Claim(
        "gains_over_unimodal",
        "5.1",
        "with 32 frames the other models' gains over the unimodal baseline run from InternVL2's, the "
        "smallest, to Qwen2.5-VL 72B's",
        ends[0] <= min(gains.values()) + 1 and ends[1] >= max(gains.values()) - 1,
        f"Table 1: InternVL2 8B gains {_share(ends[0])}, Qwen-2.5-VL 72B {_share(ends[1])}, but "
        f"InternVL3 78B only {_share(gains[INTERN3])}",
    )


def _intern3_drops(f: Figures) -> Claim:
    gains = [f.gain(POOL, INTERN3, old, "32frames") for old in ("black", "1frame")]
    return Claim(
        "intern3_drops",
        "5.1",
        "InternVL3 78B falls with 32 frames, below its black and its 1-frame result",
        max(gains) <= 0,
        "Table 1: black, 1 frame, 32 frames " + _shares(f(POOL, s, INTERN3) for s in VIDEO),
    )


def _others_improve(f: Figures) -> Claim:
    falls = [
        f"{model} falls from {_share(f(POOL, old, model))} ({old}) to "
        f"{_share(f(POOL, '32frames', model))}"
        for model in VLMS
        for old in ("black", "1frame")
        if model != INTERN3 and f.gain(POOL, model, old, "32frames") < 0
    ]
    return Claim(
        "others_improve",
        "5.1",
        "every model but InternVL3 improves with 32 frames over black and 1 frame",
        not falls,
        "Table 1: " + ("; ".join(falls) or "no other model falls"),
    )


def _hardest_in_pools(f: Figures) -> Claim:
    named = {
        "counterfactual",
        "planning",
        "implicit_partial",
        "spatial_partial",
        "temporal_duration",
    }
    score = {c: f(POOL, "32frames", BEST, c) for c in f.categories}
    left_out = min((c for c in score if c not in named), key=lambda c: score[c])
    easiest = max(named, key=lambda c: score[c])
    return Claim(
        "hardest_in_pools",
        "5.1",
        "the hardest categories (said of the figure of Qwen2.5-VL 72B) are Counterfactual, Planning, "
        "Implicit Partial, Spatial Partial and Temporal Duration",
        score[easiest] <= score[left_out],
        f"Table 1, 32 frames: {easiest} {_share(score[easiest])} is named, {left_out} "
        f"{_share(score[left_out])} is not",
    )


def _profit_from_video(f: Figures) -> Claim:
    named = {
        "causal",
        "sentiment",
        "implicit_partial",
        "implicit_total",
        "spatial_partial",
        "spatial_total",
    }
    gain = {c: f.gain(POOL, BEST, "black", "32frames", c) for c in f.categories}
    inside, outside = (
        min(gain[c] for c in named),
        max(gain[c] for c in f.categories if c not in named),
    )
    return Claim(
        "profit_from_video",
        "5.1",
        "Qwen2.5-VL 72B profits most from the video in Causal, Sentiment, Implicit Partial and Total, "
        "Spatial Partial and Total",
        inside >= outside - 1,
        f"Table 1, black to 32 frames: the least of the six gains {_share(inside)}, the most of the "
        f"other six {_share(outside)}",
    )


def _drop_to_pools(f: Figures) -> Claim:
    black, video = f.spread("black", BEST), f.spread("32frames", BEST)
    return Claim(
        "drop_to_pools",
        "5.1",
        "for Qwen2.5-VL 72B pairs exceed pools by more with black than with 32 frames",
        black >= video - 1,
        f"Tables 5 and 1: {_share(black)} and {_share(video)}",
    )


def _most_consistent(f: Figures) -> Claim:
    spread = {m: f.spread("32frames", m) for m in VLMS}
    return Claim(
        "most_consistent",
        "5.1",
        "Qwen2.5-VL 72B loses least from pairs to pools with 32 frames, 34 points",
        spread[BEST] <= min(spread.values()) + 1 and abs(spread[BEST] - 34) <= 1,
        f"Tables 5 and 1: {_share(spread[BEST])}, the next is {_share(sorted(spread.values())[1])}",
    )


def _intern3_rises(f: Figures) -> Claim:
    scores = [f(JUDGED, s, INTERN3) for s in VIDEO]
    return Claim(
        "intern3_rises",
        "5.2",
        "in Task 2 InternVL3 78B rises from black over 1 frame to 32 frames",
        scores == sorted(scores),
        f"Table 2, printed averages: {_shares(scores)} (the last is not the mean of its row)",
    )


def _hardest_answers(f: Figures) -> Claim:
    named = {
        *UNSURE,
        "implicit_partial",
        "temporal_duration",
        "temporal_partial",
        "spatial_partial",
    }
    total = {c: sum(f(JUDGED, "32frames", m, c) for m in VLMS) for c in f.categories}
    inside = max(total[c] for c in named)
    outside = min(total[c] for c in f.categories if c not in named)
    return Claim(
        "hardest_answers",
        "5.2",
        "across models with 32 frames the hardest six are Uncertainty, Out-of-Scope, Implicit Partial, "
        "Temporal Duration and Partial, Spatial Partial",
        inside <= outside + len(VLMS),
        f"Table 2, means over the six models: the easiest of them {inside / len(VLMS) / 100:.3f}, the "
        f"hardest of the others {outside / len(VLMS) / 100:.3f}",
    )


def _answers_need_video(f: Figures) -> Claim:
    gain = {c: f.gain(JUDGED, BEST, "black", "32frames", c) for c in f.categories}
    return Claim(
        "answers_need_video",
        "5.2",
        "Qwen2.5-VL 72B answers better with 32 frames than with black in all categories but "
        "Out-of-Scope and Uncertainty, where black is better",
        all((g <= 0) == (c in UNSURE) for c, g in gain.items()),
        "Table 2, black and 32 frames: "
        + "; ".join(_two(f, JUDGED, "black", "32frames", c) for c in UNSURE),
    )


def _intern2_similarity(f: Figures) -> Claim:
    columns = {name: f.similarity(name) for name in ("bertscore", "cider")}
    return Claim(
        "intern2_similarity",
        "5.2",
        "InternVL2 has the highest BERTScore and CIDEr",
        all(column["InternVL2"] == max(column.values()) for column in columns.values()),
        "Table 4: " + _shares(column["InternVL2"] for column in columns.values()),
    )


def _black_helps(f: Figures) -> Claim:
    return Claim(
        "black_helps",
        "5.3",
        "within Task 1 (Figure 3b) Qwen2.5-VL 72B does better in Out-of-Scope and Uncertainty with "
        "black videos than with 32 frames",
        all(f.gain(POOL, BEST, "black", "32frames", c) <= 0 for c in UNSURE),
        "Table 1, black and 32 frames: "
        + "; ".join(_two(f, POOL, "black", "32frames", c) for c in UNSURE)
        + ". It is true of Table 2",
    )


def _star(f: Figures) -> Claim:
    named = {"spatial_total", "implicit_total", "causal", *UNSURE}
    gain = {c: f.gain(POOL, BEST, "black", "32frames", c) for c in f.categories}
    inside = min(gain[c] for c in named)
    outside = max(gain[c] for c in f.categories if c not in named)
    return Claim(
        "star",
        "5.3",
        "the categories that profit most from the video in Task 1 are Spatial Total, Implicit Total, "
        "Causal, Out-of-Scope and Uncertainty",
        inside >= outside - 1,
        "Table 1, Qwen-2.5-VL 72B, black and 32 frames: "
        + "; ".join(
            _two(f, POOL, "black", "32frames", c)
            for c in (*UNSURE, "sentiment", "implicit_partial")
        ),
    )


def _answers_above_pools(f: Figures) -> Claim:
    gains = [f(JUDGED, s, m) - f(POOL, s, m) for s in VIDEO for m in VLMS]
    return Claim(
        "answers_above_pools",
        "5.3",
        "every model does better in Task 2 than in Task 1 (pools)",
        min(gains) >= 0,
        f"Tables 2 and 1: the least difference of averages is {_share(min(gains))}",
    )


def _answers_drop(f: Figures) -> Claim:
    return Claim(
        "answers_drop",
        "5.3",
        "for Qwen2.5-VL 72B Uncertainty and Out-of-Scope are lower in Task 2 than in Task 1",
        all(f(JUDGED, "32frames", BEST, c) <= f(POOL, "32frames", BEST, c) for c in UNSURE),
        "Tables 1 and 2, 32 frames: "
        + "; ".join(
            f"{c} {_share(f(POOL, '32frames', BEST, c))}, {_share(f(JUDGED, '32frames', BEST, c))}"
            for c in UNSURE
        ),
    )


def _larger_better(f: Figures) -> Claim:
    exceptions = [
        f"Table {number}, {setting}: {small} {_share(f(number, setting, small))}, {large} "
        f"{_share(f(number, setting, large))}"
        for number in (POOL, JUDGED, PAIR)
        for setting in VIDEO
        for small, large in FAMILIES
        if f(number, setting, large) < f(number, setting, small)
    ]
    return Claim(
        "larger_better",
        "5.3",
        "larger models do better throughout, also within a family",
        not exceptions,
        "; ".join(exceptions) or "no exception in Tables 1, 2 and 5",
    )


def _aggregate_hardest(f: Figures) -> Claim:
    named = {"planning", "spatial_partial", "temporal_duration"}
    score = {c: f(BOTH, "32frames", BEST, c) for c in f.categories}
    inside = max(score[c] for c in named)
    outside = min(score[c] for c in f.categories if c not in named)
    return Claim(
        "aggregate_hardest",
        "6",
        "Planning, Spatial Partial and Temporal Duration remain the hard ones in aggregate accuracy",
        inside <= outside,
        f"Table 3, 32 frames: the easiest of the three {_share(inside)}, the hardest of the others "
        f"{_share(outside)}",
    )


_CHECKS: tuple[Callable[[Figures], Claim], ...] = (
    _best_in_pools,
    _fourteen_points,
    _llava_next_weakest,
    _above_unimodal,
    _gains_over_unimodal,
    _intern3_drops,
    _others_improve,
    _hardest_in_pools,
    _profit_from_video,
    _drop_to_pools,
    _most_consistent,
    _intern3_rises,
    _hardest_answers,
    _answers_need_video,
    _intern2_similarity,
    _black_helps,
    _star,
    _answers_above_pools,
    _answers_drop,
    _larger_better,
    _aggregate_hardest,
)


def _share(hundreds: int) -> str:
    return f"{hundreds / 100:.2f}"


def _shares(values: object) -> str:
    return ", ".join(_share(value) for value in values)


def _two(f: Figures, number: int, old: str, new: str, column: str) -> str:
    return (
        f"{column} {_share(f(number, old, BEST, column))}, {_share(f(number, new, BEST, column))}"
    )
