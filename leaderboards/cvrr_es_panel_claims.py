"""What the judge study says of the collective and the mixture (5.3, 6), against Tables 5 to 7."""

from __future__ import annotations

from decimal import Decimal

from lmms_eval_tasks.leaderboards.cvrr_es_agreement_claims import band
from lmms_eval_tasks.leaderboards.cvrr_es_paper import (
    COLLECTIVE,
    GPT4O,
    MIXTURE,
    Paper,
    Statement,
    descending,
    printed,
    ranked,
    span,
)
from lmms_eval_tasks.leaderboards.cvrr_es_selection_checks import repeated

COMPARABLE = Decimal(5)  # points of kappa times 100: our "comparable"


def _range(p: Paper, panel: str, key: str) -> tuple[bool, str]:
    low, high = span(p.averages(panel).values())
    holds = (low, high) == (p.stated(f"{key}_low"), p.stated(f"{key}_high"))
    own, most = span(f for row in p.rows(panel) for f in printed(row).values())
    return holds, f"averages {low} to {high}, single figures {own} to {most}"


def _highest(p: Paper) -> tuple[bool, str]:
    figures = {p.title(name): figure for name, figure in p.averages(COLLECTIVE).items()}
    named = p.names("highest_dimensions")
    best = descending(figures)[: len(named)]
    return sorted(best) == sorted(named), f"Table 6: {ranked(figures)}"


def _moderate(p: Paper) -> tuple[bool, str]:
    words = {p.title(name): band(p, figure) for name, figure in p.averages(COLLECTIVE).items()}
    count = ", ".join(
        f"{word} {list(words.values()).count(word)}" for word in dict.fromkeys(words.values())
    )
    high = [word for word in words.values() if word in ("substantial", "almost perfect")]
    return not high, f"Table 6, dimensions: {count}"


def above_single(p: Paper, panel: str) -> tuple[list[str], list[str]]:
    """Where a panel agrees more than GPT-4o alone: dimensions by their averages, and cells.

    Candidates are compared by the order of Table 6 and 7's rows, as Table 7 names them.
    """
    alone = {row.name: printed(row) for row in p.rows(GPT4O)}
    single, whole = p.averages(GPT4O), p.averages(panel)
    dimensions = [
        f"{p.title(name)} {whole[name]} and {single[name]}"
        for name in p.dimensions
        if whole[name] > single[name]
    ]
    cells = [
        f"{named.name} {p.title(name)} {figure} and {alone[named.name][name]}"
        for row, named in zip(p.rows(panel), p.rows(MIXTURE), strict=True)
        for name, figure in printed(row).items()
        if figure > alone[named.name][name]
    ]
    return dimensions, cells


def _below(p: Paper) -> tuple[bool, str]:
    dimensions, cells = above_single(p, COLLECTIVE)
    return not dimensions and not cells, (
        f"Tables 5 and 6: above GPT-4o alone in {'; '.join(dimensions) or 'no'} dimension and for "
        f"{'; '.join(cells) or 'no candidate in any'}. Means over dimensions: "
        f"{ranked(_overall(p, COLLECTIVE))}"
    )


def _comparable(p: Paper) -> tuple[bool, str]:
    first, second = p.averages(COLLECTIVE), p.averages(MIXTURE)
    changes = {name: second[name] - first[name] for name in p.dimensions}
    again = repeated(p)
    apart = {p.title(name): change for name, change in changes.items() if abs(change) > COMPARABLE}
    shown = ", ".join(f"{title} {change:+f}" for title, change in apart.items())
    return not apart, (
        f"Tables 6 and 7: {shown or 'none'}; the same figures, of most candidates, in the other "
        f"{len(again)}: {', '.join(p.title(name) for name in again)}. Means over dimensions: "
        f"{ranked(_overall(p, COLLECTIVE, MIXTURE))}"
    )


def _overall(p: Paper, *panels: str) -> dict[str, Decimal]:
    return {judge: p.overall(judge) for judge in (*panels, GPT4O)}


def _lower_overall(p: Paper) -> tuple[bool, str]:
    means = _overall(p, MIXTURE)
    return means[MIXTURE] < means[GPT4O], f"Tables 5 and 7, over dimensions: {ranked(means)}"


def _sole(p: Paper) -> tuple[bool, str]:
    found = {panel: above_single(p, panel) for panel in (COLLECTIVE, MIXTURE)}
    dimensions = [text for panel in found for text in found[panel][0]]
    cells = [text for panel in found for text in found[panel][1]]
    return not dimensions and not cells, (
        f"Tables 5 to 7: with others it is higher in {'; '.join(dimensions) or 'no dimension'}, "
        f"and for {len(cells)} single figures, {'; '.join(cells) or 'none'}"
    )


STATEMENTS = (
    Statement(
        "collective_range",
        "5.3",
        "the collective's averages are 2.72 to 42.53",
        lambda p: _range(p, COLLECTIVE, "collective"),
    ),
    Statement(
        "collective_highest",
        "5.3",
        "the collective's highest averages are those of the social and the visual context",
        _highest,
    ),
    Statement(
        "collective_moderate",
        "5.3",
        "the collective's agreement is moderate to low (read as: moderate or less in every "
        "dimension)",
        _moderate,
    ),
    Statement(
        "collective_below",
        "5.3",
        "the collective agrees less than GPT-4o alone (read as: in every dimension, about every "
        "candidate)",
        _below,
    ),
    Statement(
        "mixture_range",
        "5.3",
        "the mixture's averages are 2.72 to 56.23",
        lambda p: _range(p, MIXTURE, "mixture"),
    ),
    Statement(
        "comparable",
        "5.3",
        "the mixture's averages are comparable to the collective's, and not much higher (read as: "
        "within 5 in every dimension)",
        _comparable,
        "We follow the tables: where judges seem to have been selected it is better. Selection is "
        "cross-fitted by video here, with the paper's way beside it.",
    ),
    Statement(
        "mixture_overall",
        "5.3",
        "the mixture agrees less than GPT-4o alone (read as: over dimensions)",
        _lower_overall,
    ),
    Statement(
        "sole",
        "6",
        "GPT-4o agrees more alone than with other judges' ratings (read as: in every dimension, "
        "about every candidate)",
        _sole,
        "We follow Tables 5 and 7: the exceptions are few and small. Our report gives intervals "
        "of the difference.",
    ),
)
