"""Texts from outside as cells of tables that other programs read: CSV, Markdown, LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lmms_eval_tasks.notify import visible
from lmms_eval_tasks.utils.json_files import JsonObject

if TYPE_CHECKING:
    from pandas import DataFrame

_MARKDOWN = re.compile(r"[\\`*_{}\[\]<>|&~]")
_LATEX = {
    **{one: f"\\{one}" for one in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}


def frame(rows: Iterable[JsonObject], columns: Iterable[str] | None = None) -> DataFrame:
    """Rows for a CSV file: no text in them is a formula to a spreadsheet; numbers stay numbers."""
    import pandas

    made = [{key: _no_formula(cell) for key, cell in row.items()} for row in rows]
    return pandas.DataFrame(made, columns=None if columns is None else list(columns))


def _no_formula(cell: object) -> object:
    """Put an apostrophe before what a spreadsheet would work out; "-" alone is our dash."""
    if not isinstance(cell, str):
        return cell
    text = visible(cell)
    return f"'{text}" if cell != "-" and cell.lstrip(" \n")[:1] in tuple("=+-@\t\r") else text


def markdown(cell: str) -> str:
    """A text as a cell of a Markdown table, on one line; it is neither markup nor HTML there."""
    return " ".join(_MARKDOWN.sub(r"\\\g<0>", visible(cell)).split())


def latex(cell: str) -> str:
    """A text as a cell of a LaTeX table, on one line."""
    return " ".join("".join(_LATEX.get(one, one) for one in visible(cell)).split())
