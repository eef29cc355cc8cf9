"""What MovieRecapsQA's text says about categories (6.4), compared with Table 5."""

from __future__ import annotations

from decimal import Decimal

from lmms_eval_tasks.leaderboards.checking import listed, mean
from lmms_eval_tasks.leaderboards.movierecapsqa_paper import (
    CATEGORIES,
    GROUPS,
    ROWS,
    Paper,
    Statement,
    described,
    figures,
)


def _easiest(p: Paper) -> tuple[bool, str]:
    holds = True
    for group in GROUPS:
        row = p.split("factuality", group)
        top = sorted(CATEGORIES, key=row.printed)[-2:]
        holds = holds and set(top) == {"crd", "npa"}
    row = p.split("factuality", "proprietary")
    quoted = {c: p.stated(f"proprietary_{c}") for c in ("crd", "npa")}
    holds = holds and all(row.printed(c) == value for c, value in quoted.items())
    return holds, "Table 5: " + "; ".join(described(p, "factuality", g, CATEGORIES) for g in GROUPS)


def _hardest(p: Paper) -> tuple[bool, str]:
    margins = []
    holds = True
    for group in GROUPS:
        row = p.split("factuality", group)
        ordered = sorted(CATEGORIES, key=row.printed)
        margins.append((ROWS[group], row.printed(ordered[1]) - row.printed(ordered[0])))
        holds = holds and ordered[0] == "sta"
        holds = holds and row.printed("sta") == p.stated(f"{group}_sta")
    return holds and all(m >= Decimal("0.1") for _, m in margins), (
        f"Table 5, margins to the next: {listed(margins)}"
    )


def _people_sta(p: Paper) -> tuple[bool, str]:
    row = p.split("factuality", "human")
    have = [c for c in CATEGORIES if row.figures[c] is not None]
    holds = row.printed("sta") == max(map(row.printed, have)) == p.stated("human_sta")
    return holds, f"Table 5: {listed(figures(row, have))}"


def _gap(p: Paper, group: str, column: str) -> Decimal:
    human = p.split("factuality", "human").printed(column)
    return human - p.split("factuality", group).printed(column)


def _sta_gap(p: Paper) -> tuple[bool, str]:
    gaps = sorted(_gap(p, group, "sta") for group in GROUPS)
    have = [c for c in CATEGORIES if p.split("factuality", "human").figures[c] is not None]
    largest = all(max((_gap(p, group, c), c) for c in have)[1] == "sta" for group in GROUPS)
    said = [p.stated("sta_gap_low"), p.stated("sta_gap_high")]
    return largest and gaps == said, f"Table 5: {gaps[0]} and {gaps[1]}"


def _double(p: Paper) -> tuple[bool, str]:
    gaps = {c: mean(_gap(p, group, c) for group in GROUPS) for c in ("sta", "crd", "npa")}
    times = [gaps["sta"] / gaps[c] for c in ("crd", "npa")]
    return all(round(value) == p.stated("sta_times") for value in times), (
        f"Table 5: {times[0]:.2f} and {times[1]:.2f} times"
    )


def _sta_inputs(p: Paper) -> tuple[bool, str]:
    here = [p.split("factuality", "proprietary", c).printed("sta") for c in ("dialogue", "frames")]
    holds = here == [p.stated("sta_dialogue_only"), p.stated("sta_frames_only")]
    return holds, f"Table 5: {here[0]:+f} and {here[1]:+f}"


STATEMENTS = (
    Statement(
        "easiest",
        "6.4",
        "CRD and NPA are the easiest categories for models",
        _easiest,
        "We follow Table 5: for open-source models TEMP is above NPA.",
    ),
    Statement("hardest", "6.4", "STA is hardest by far (read as: by a tenth or more)", _hardest),
    Statement("people_sta", "6.4", "people do not drop on STA", _people_sta),
    Statement("sta_gap", "6.4", "people's lead is largest on STA (also 1): 1.17 to 1.32", _sta_gap),
    Statement(
        "double",
        "6.4",
        "that is roughly double the lead on CRD or NPA (read as: means over both groups, rounded)",
        _double,
    ),
    Statement("sta_inputs", "6.4", "STA changes by +0.63 and -0.19 with one input", _sta_inputs),
)
