"""Escaping of texts from outside in tables that other programs read: CSV, Markdown, LaTeX."""

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
    """Return rows as a data frame for CSV, in which no text is a formula; numbers stay numbers."""
    import pandas

    made = [{key: _no_formula(cell) for key, cell in row.items()} for row in rows]
    return pandas.DataFrame(made, columns=None if columns is None else list(columns))


def _no_formula(cell: object) -> object:
    """Return a text with an apostrophe in front if a spreadsheet would compute it.

    "-" stays, since it is the dash of a missing number.
    """
    if not isinstance(cell, str):
        return cell
    text = visible(cell)
    return f"'{text}" if cell != "-" and cell.lstrip(" \n")[:1] in tuple("=+-@\t\r") else text


def markdown(cell: str) -> str:
    """Return a text as a cell of a Markdown table: one line, without markup and HTML."""
    return " ".join(_MARKDOWN.sub(r"\\\g<0>", visible(cell)).split())


def latex(cell: str) -> str:
    """Return a text as a cell of a LaTeX table, on one line."""
    return " ".join("".join(_LATEX.get(one, one) for one in visible(cell)).split())
