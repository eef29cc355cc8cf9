"""What MovieRecapsQA's text says about modalities and inputs (6.2, 6.3), compared with Table 5."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from lmms_eval_tasks.leaderboards.checking import apart, listed
from lmms_eval_tasks.leaderboards.movierecapsqa_paper import (
    CATEGORIES,
    DIMENSIONS,
    GROUPS,
    MODALITIES,
    ROWS,
    Paper,
    Statement,
    described,
    figures,
)

ALL = {**MODALITIES, **CATEGORIES}
GAIN = "dialogue"  # the condition that takes the picture away


def _vision_lowest(p: Paper) -> tuple[bool, str]:
    groups = (*GROUPS, "human")
    rows = [p.split("factuality", group) for group in groups]
    holds = all(sorted(MODALITIES, key=row.printed)[0] == "vision" for row in rows)
    holds = holds and all(max(MODALITIES, key=row.printed) == "dialogue" for row in rows)
    return holds, "Table 5: " + "; ".join(described(p, "factuality", g, MODALITIES) for g in groups)


def _lowest_scores(p: Paper) -> tuple[bool, str]:
    lowest = {
        (d, g): min(MODALITIES, key=p.split(d, g).printed) for d in DIMENSIONS for g in GROUPS
    }
    other = [
        f"{d.capitalize()}, {described(p, d, g, MODALITIES)}"
        for (d, g), name in lowest.items()
        if name != "vision" and apart(p.split(d, g).printed(name), p.split(d, g).printed("vision"))
    ]
    return not other, f"Table 5: {'; '.join(other) or 'vision is lowest for both groups'}"


def _drops(p: Paper) -> tuple[bool, str]:
    here = {
        f"{group}_{column}": p.split("factuality", group).printed(column)
        for group in ("proprietary", "open", "human")
        for column in ("dialogue", "vision")
    }
    return all(p.stated(key) == value for key, value in here.items()), (
        f"Table 5: {', '.join(map(str, here.values()))}"
    )


def _relevance_ranges(p: Paper) -> tuple[bool, str]:
    holds, shown = True, []
    for group in GROUPS:
        values = [p.split("relevance", group).printed(column) for column in MODALITIES]
        said = [p.stated(f"{group}_relevance_{end}") for end in ("low", "high")]
        holds = holds and [min(values), max(values)] == said
        shown.append(f"{ROWS[group]} {min(values)} to {max(values)}")
    return holds, f"Table 5: {', '.join(shown)}"


def _people_relevance(p: Paper) -> tuple[bool, str]:
    values = [p.split("relevance", "human").printed(column) for column in MODALITIES]
    holds = all(round(value, 1) >= p.stated("human_relevance") for value in values)
    return holds, f"Table 5: {', '.join(map(str, values))}"


def _gains(p: Paper, group: str) -> Iterator[tuple[str, str, Decimal]]:
    for dimension in DIMENSIONS:
        row = p.split(dimension, group, GAIN)
        yield from ((dimension, column, row.printed(column)) for column in ALL)


def _dialogue_alone(p: Paper) -> tuple[bool, str]:
    gains = [gain for *_, gain in _gains(p, "proprietary")]
    return min(gains) > 0, f"Table 5: changes of {min(gains):+f} to {max(gains):+f}"


def _often_improves(p: Paper) -> tuple[bool, str]:
    gains = [g for group in GROUPS for d, _, g in _gains(p, group) if d == "factuality"]
    better = sum(gain > 0 for gain in gains)
    return 2 * better > len(gains), f"Table 5: in {better} of {len(gains)} cells"


def _quoted_gains(p: Paper) -> tuple[bool, str]:
    row = p.split("factuality", "proprietary", GAIN)
    holds = all(p.stated(f"gain_{column}") == row.printed(column) for column in MODALITIES)
    return holds, f"Table 5: {listed(figures(row, tuple(MODALITIES)))}"


def _vision_gains_most(p: Paper, dimension: str) -> tuple[bool, str]:
    row = p.split(dimension, "proprietary", GAIN)
    most = max(MODALITIES, key=row.printed)
    return most == "vision", f"Table 5: {listed(figures(row, tuple(MODALITIES)))}"


def _proprietary_lead(p: Paper) -> tuple[bool, str]:
    leads = [
        p.split(d, "proprietary").printed(c) - p.split(d, "open").printed(c)
        for d in DIMENSIONS
        for c in MODALITIES
    ]
    return min(leads) > 0, f"Table 5: by {min(leads)} to {max(leads)}"


def _frames_vision(p: Paper) -> tuple[bool, str]:
    shown, holds = [], True
    for group in GROUPS:
        said = p.stated(f"{group}_frames_vision")
        both = p.split("factuality", group).printed("vision")
        change = p.split("factuality", group, "frames").printed("vision")
        # Both figures are rounded, and so is what was said.
        holds = holds and abs(both + change - said) < Decimal("0.015")
        shown.append(f"{ROWS[group]} {both} {change:+f}, which is {both + change}, for {said}")
    return holds, f"Table 5: {'; '.join(shown)}"


def _advantage(p: Paper) -> tuple[bool, str]:
    leads = {
        (d, c): p.only(d, "proprietary", "frames", c) - p.only(d, "open", "frames", c)
        for d in DIMENSIONS
        for c in MODALITIES
    }
    by_dimension = "; ".join(
        f"{d.capitalize()} {', '.join(f'{c} {leads[d, c]:+f}' for c in MODALITIES)}"
        for d in DIMENSIONS
    )
    # Four rounded figures: a lead of two hundredths may be none.
    ahead = sum(lead > Decimal("0.02") for lead in leads.values())
    return ahead == 0, (
        f"Table 5, proprietary less open-source, frames alone: {by_dimension}; they still lead in "
        f"{ahead} of {len(leads)} cells"
    )


def _smaller_drops(p: Paper) -> tuple[bool, str]:
    pairs = [
        (p.split(d, "open", "frames").printed(c), p.split(d, "proprietary", "frames").printed(c))
        for d in DIMENSIONS
        for c in ALL
    ]
    drops = [(one, other) for one, other in pairs if other < 0]
    smaller = sum(one > other for one, other in drops)
    return smaller == len(drops), f"Table 5: in {smaller} of {len(drops)} cells"


STATEMENTS = (
    Statement(
        "lowest_scores",
        "Abstract",
        "all models have their lowest scores on vision-centric questions (read as: both groups, "
        "both scores, of the three modalities)",
        _lowest_scores,
        "We follow Table 5: it is so for Factuality.",
    ),
    Statement(
        "often_improves",
        "Abstract",
        "taking the picture away often improves Factuality (read as: in more than half of the "
        "cells of both groups)",
        _often_improves,
    ),
    Statement(
        "vision_lowest",
        "6.2",
        "Factuality is lowest on vision-centric questions, and highest on dialogue",
        _vision_lowest,
    ),
    Statement("drops", "6.2", "figures of Factuality on dialogue and vision", _drops),
    Statement(
        "relevance_ranges", "6.2", "ranges of models' Relevance by modality", _relevance_ranges
    ),
    Statement(
        "people_relevance", "6.2", "people's Relevance is about 4.0 or more", _people_relevance
    ),
    Statement(
        "dialogue_alone",
        "6.3",
        "proprietary models score higher with dialogue alone in every type, category and score",
        _dialogue_alone,
    ),
    Statement("quoted_gains", "6.3", "their gains in Factuality by modality", _quoted_gains),
    Statement(
        "factuality_trend",
        "6.3",
        "the gain in Factuality is largest on vision-centric questions",
        lambda p: _vision_gains_most(p, "factuality"),
    ),
    Statement(
        "relevance_trend",
        "6.3",
        "Relevance follows that trend (read as: it gains most on vision-centric questions too)",
        lambda p: _vision_gains_most(p, "relevance"),
        "We follow Table 5: Relevance gains everywhere, and least on vision-centric questions.",
    ),
    Statement(
        "proprietary_lead",
        "6.3",
        "proprietary models lead in every modality with both inputs",
        _proprietary_lead,
    ),
    Statement(
        "frames_vision",
        "6.3",
        "with frames alone open-source models have 3.15 and proprietary ones 3.06 in Factuality on "
        "vision-centric questions",
        _frames_vision,
        "We follow the table's sum; 3.15 is what it has for proprietary models with both inputs. "
        "The order stays.",
    ),
    Statement(
        "advantage",
        "6.3",
        "with frames alone proprietary models lose their lead (read as: in every modality)",
        _advantage,
        "We follow Table 5: in Factuality they lose it on vision-centric questions alone.",
    ),
    Statement(
        "smaller_drops",
        "6.3",
        "open-source models drop less with frames alone, wherever proprietary ones drop",
        _smaller_drops,
    ),
)
