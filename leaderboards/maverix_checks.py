"""Where MAVERIX's printed tables contradict themselves or each other, cell by cell.

Pure functions over tables; each result is data. Rounding is allowed for as in checking.py. (The
exceptions are a maximum, which is one of its row's printed figures, and repeated figures, which are
suspicious, not impossible.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from lmms_eval_tasks.leaderboards import Row, Table
from lmms_eval_tasks.leaderboards.checking import apart, half
from lmms_eval_tasks.leaderboards.findings import Finding

# Table 10's columns by the models' names in Table 3, and the splits that Table 5 has as columns.
TABLE_10 = {
    "gpt_4o": "GPT-4o",
    "gemini_2_5_fl": "Gemini 2.5-FL",
    "qwen_2_5_omni": "Qwen 2.5 Omni",
    "nova_lite": "NOVA-Lite",
    "nova_pro": "NOVA-Pro",
    "ola_7b": "Ola-7B",
}
SPLITS = {
    "social": ("agentic", "Social"),
    "egocentric": ("agentic", "Egocentric Agent"),
    "sports": ("agentic", "Sports"),
    "gaming": ("agentic", "Gaming"),
    "natural": ("audio", "Natural Sound"),
    "speech": ("audio", "Speech"),
    "music": ("audio", "Music"),
    "artificial": ("audio", "Artificial Sound"),
    "mixed": ("audio", "Mixed Sounds"),
}
LEVELS = ("easy", "medium", "hard")
HUMAN = "Human"


def best_columns(table: Table) -> list[Finding]:
    """Table 3: Best-Uni, Best-Multi and their difference against the caption's formulas."""
    found = []
    for row in table.rows:
        f = row.figures
        uni = max(v for v in (f["a"], f["s"], f["v"]) if v is not None)
        multi = max(v for v in (f["vs"], f["av"]) if v is not None)
        difference = row.printed("best_multi") - row.printed("best_uni")
        for column, follows, allowed in (
            ("best_uni", uni, Decimal(0)),
            ("best_multi", multi, Decimal(0)),
            ("delta_multi", difference, 3 * half(difference)),
        ):
            printed = row.printed(column)
            if abs(printed - follows) > allowed:
                text = f"{printed} is printed, {follows} follows from the row"
                figures = {"printed": printed, "follows": follows}
                found.append(_finding("formula", (table,), row, column, figures=figures, text=text))
    return found


@dataclass(frozen=True)
class Gain:
    """One Δ of Table 4, with the two differences that it could be."""

    model: str
    level: str
    printed: Decimal
    over_a: Decimal
    over_v: Decimal


def difficulty_gains(table: Table) -> list[Gain]:
    """Table 4: every Δ with AV less A (the caption) and AV less V (what the text quotes)."""
    return [
        Gain(
            row.name,
            level,
            row.printed(f"{level}_delta"),
            over_a=row.printed(f"{level}_av") - row.printed(f"{level}_a"),
            over_v=row.printed(f"{level}_av") - row.printed(f"{level}_v"),
        )
        for row in table.rows
        for level in LEVELS
    ]


def gains_not_over_a(table: Table) -> list[Finding]:
    """Table 4: the Δ that are not AV less A, whatever the rounding."""
    return [
        _finding(
            "gain",
            (table,),
            table.row("", gain.model),
            f"{gain.level}_delta",
            figures={"printed": gain.printed, "over_a": gain.over_a},
            text=f"{gain.printed} is printed, AV less A is {gain.over_a}",
        )
        for gain in difficulty_gains(table)
        if abs(gain.printed - gain.over_a) > 3 * half(gain.printed)
    ]


def difficulty_against_10(table4: Table, table10: Table) -> list[Finding]:
    """Accuracy with video and sound by difficulty, for the models in both tables."""
    cells = {f"{level}_av": ("difficulty", level.capitalize()) for level in LEVELS}
    return _against_10("difficulty", table4, table10, cells)


def taxonomy_against_10(table5: Table, table10: Table) -> list[Finding]:
    """Accuracy by agentic category and audio type, for the models in both tables.

    A finding's text also says which splits of that dimension do have Table 5's figure: they show
    how a row is shifted.
    """
    return _against_10("taxonomy", table5, table10, SPLITS)


def overall_against_10(table3: Table, table10: Table) -> list[Finding]:
    """Table 10's last row against V+A, or V+S for a model without sound."""
    found = []
    last = table10.row("all", "Overall")
    for column, model in TABLE_10.items():
        row = _of(table3, model)
        name = "vs" if row.figures["av"] is None else "av"
        printed, other = row.printed(name), last.printed(column)
        if apart(printed, other):
            text = f"{printed} in Table 3, {other} in Table 10"
            figures = {"table3": printed, "table10": other}
            found.append(
                _finding("overall", (table3, table10), row, name, figures=figures, text=text)
            )
    return found


def correctness_against_8(table6: Table, table8: Table) -> list[Finding]:
    """Table 6 (one decimal) against the correctness of Table 8 (four), cells that disagree."""
    found = []
    for row in table6.rows:
        other = table8.of(row.identity) if row.identity else table8.row("", HUMAN)
        if other is None:
            continue
        for mode in ("a", "v", "av"):
            rounded, exact = row.printed(f"score_{mode}"), other.printed(f"correctness_{mode}")
            if apart(rounded, exact):
                text = f"{_mode(mode)} {rounded} in Table 6, {exact} in Table 8"
                figures = {"table6": rounded, "table8": exact}
                place = f"score_{mode}"
                found.append(
                    _finding(
                        "correctness", (table6, table8), row, place, figures=figures, text=text
                    )
                )
    return found


def identical_rows(table: Table) -> list[Finding]:
    """Pairs of models whose rows are equal in every figure."""
    columns = list(table.rows[0].figures)
    return [
        _finding(
            "identical",
            (table,),
            row,
            f"{columns[0]}..{columns[-1]}",
            figures={name: row.printed(name) for name in columns},
            text=f"all {len(columns)} figures are those of {other.name}",
        )
        for index, row in enumerate(table.rows)
        for other in table.rows[:index]
        if row.figures == other.figures
    ]


def sound_adds_nothing(table3: Table, table4: Table) -> list[Finding]:
    """Models whose V and V+A are equal overall and at each level of difficulty."""
    found = []
    for row in table4.rows:
        whole = _of(table3, row.identity) if row.identity else table3.row("", HUMAN)
        pairs = [(whole.figures["v"], whole.figures["av"])]
        pairs += [(row.figures[f"{level}_v"], row.figures[f"{level}_av"]) for level in LEVELS]
        if all(one == other for one, other in pairs):
            figures = {f"{level}_v": row.printed(f"{level}_v") for level in LEVELS}
            values = ", ".join(str(one) for one, _ in pairs)
            text = f"{values} with sound and without: suspicious, not impossible"
            found.append(
                _finding(
                    "no_gain", (table3, table4), row, "easy_v..hard_av", figures=figures, text=text
                )
            )
    return found


def averages_outside(table: Table) -> list[Finding]:
    """Table 7: averages of people below the worst or above the best of them."""
    found = []
    for row in table.rows:
        worst, best, average = (row.printed(name) for name in ("worst", "best", "average"))
        if not worst - half(worst) <= average <= best + half(best):
            figures = {"worst": worst, "best": best, "average": average}
            text = f"average {average}, worst {worst}, best {best}"
            found.append(_finding("average", (table,), row, "average", figures=figures, text=text))
    return found


def people_against_7(table3: Table, table5: Table, table7: Table) -> list[Finding]:
    """Human accuracy in Tables 3 and 5 against the averages of Table 7."""
    overall = [(table3, mode, table7.row(mode, "Overall")) for mode in ("v", "a", "av")]
    both = [
        (table5, name, table7.row("av", SPLITS[name][1])) for name in ("social", "sports", "gaming")
    ]
    found = []
    for table, column, other in [*overall, *both]:
        printed, average = table.row("", HUMAN).printed(column), other.printed("average")
        if apart(printed, average):
            text = f"{average} in Table 7, {printed} in Table {table.number}"
            figures = {"printed": printed, "table7": average}
            found.append(
                _finding("people", (table7, table), other, "average", figures=figures, text=text)
            )
    return found


def missing_models(tables: Sequence[Table]) -> dict[int, list[str]]:
    """Models of the first table that have no row in each of the others, by table number."""
    first, *others = tables
    models = [row.identity for row in first.rows if row.identity]
    return {table.number: [m for m in models if table.of(m) is None] for table in others}


def _against_10(
    kind: str, table: Table, table10: Table, cells: Mapping[str, tuple[str, str]]
) -> list[Finding]:
    found = []
    for column, model in TABLE_10.items():
        row = table.of(model)
        if row is None:
            continue
        for name, (dimension, split) in cells.items():
            printed, other = row.printed(name), table10.row(dimension, split).printed(column)
            if not apart(printed, other):
                continue
            same = [
                each.name
                for each in table10.rows
                if each.group == dimension and each.figures[column] == printed
            ]
            hint = f" (which has {printed} for {' and '.join(same)})" if same else ""
            text = f"{split} {printed} in Table {table.number}, {other} in Table 10{hint}"
            figures = {f"table{table.number}": printed, "table10": other}
            found.append(_finding(kind, (table, table10), row, name, figures=figures, text=text))
    return found


def _of(table: Table, model: str) -> Row:
    row = table.of(model)
    if row is None:
        raise KeyError(f"Table {table.number} has no row of {model}")
    return row


def _mode(mode: str) -> str:
    return {"a": "A/S", "v": "V", "av": "AV/SV"}[mode]


def _finding(
    kind: str,
    tables: Sequence[Table],
    row: Row,
    column: str,
    *,
    figures: Mapping[str, Decimal],
    text: str,
) -> Finding:
    numbers = tuple(table.number for table in tables)
    plain = {name: float(value) for name, value in figures.items()}
    return Finding(kind, numbers, row.group, row.name, column, plain, text)
