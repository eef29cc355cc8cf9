"""HAVEN's printed figures as its claims and contradictions ask for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from itertools import pairwise

from lmms_eval_tasks.leaderboards import Row, checking

PROXY, WHOLE = "text-proxy LLM", "HAVEN"
GPT, GLM = "GPT-5.2", "GLM-4.6V"
INTERNVIDEO, QWEN3, QWEN25, VIDEOLLAMA3 = "InternVideo2.5", "Qwen3-VL", "Qwen2.5-VL", "VideoLLaMA3"
# A metric of separate summaries -> the same metric of joint ones (Tables 3 and 4).
TEXT = {"v2t_bs": "v2vt_bs", "v2t_rouge": "v2vt_rouge", "v2t_geval": "v2vt_geval"}
FRAMES = {"v2v_f1": "v2vt_f1", "v2v_p": "v2vt_p", "v2v_r": "v2vt_r"}
JOINT = TEXT | FRAMES
# (F1 in Table 3, precision and recall in Table 4).
SELECTIONS = (("v2v_f1", "v2v_p", "v2v_r"), ("v2vt_f1", "v2vt_p", "v2vt_r"))
_SHORT = {"bs": "BERTScore", "rouge": "ROUGE", "geval": "G-Eval", "f1": "F1", "p": "P", "r": "R"}


class Paper(checking.BasePaper):
    """Tables 3 and 4 as one: a model's figure by its printed name and the column's."""

    def __call__(self, model: str, column: str) -> Decimal:
        """One figure. KeyError for an unknown model or column, or a dash."""
        rows = [row for row in self._rows(column) if row.name == model]
        if len(rows) != 1:
            raise KeyError(f"{column} has {len(rows)} rows {model!r}")
        return rows[0].printed(column)

    def column(self, name: str, group: str = "") -> dict[str, Decimal]:
        """The models' figures in a column, of a group or all; no proxy, no dashes."""
        return {
            row.name: figure
            for row in self._rows(name)
            if row.group != "proxy" and group in ("", row.group)
            for figure in [row.figures[name]]
            if figure is not None
        }

    def with_proxy(self, name: str) -> dict[str, Decimal]:
        """The figures in a column, the text proxy's first."""
        return {PROXY: self(PROXY, name), **self.column(name)}

    def change(self, model: str, separate: str) -> Decimal:
        """The joint figure less the separate one; `separate` is a key of JOINT."""
        return self(model, JOINT[separate]) - self(model, separate)

    def title(self, column: str) -> str:
        """A column's printed title."""
        return next(c.title for n in (3, 4) for c in self.table(n).columns if c.name == column)

    def sources(self) -> dict[str, Row]:
        """The rows of Table 1 without that of the whole."""
        return {row.name: row for row in self.table(1).rows if row.name != WHOLE}

    def _rows(self, column: str) -> list[Row]:
        for number in (3, 4):
            if column in {each.name for each in self.table(number).columns}:
                return self.table(number).rows
        raise KeyError(f"neither Table 3 nor 4 has a column {column!r}")


# What the files of claims are lists of.
Statement = checking.Statement[Paper]


def short(column: str) -> str:
    """A column's metric without its task: ROUGE for `v2t_rouge`."""
    return _SHORT[column.split("_")[1]]


def descending(figures: Mapping[str, Decimal]) -> list[str]:
    """Names, that of the highest figure first; equal ones in the order of the table."""
    return sorted(figures, key=lambda name: -figures[name])


def ranked(figures: Mapping[str, Decimal]) -> str:
    """`name figure, name figure`, the highest first."""
    return checking.listed((name, figures[name]) for name in descending(figures))


def only_best(figures: Mapping[str, Decimal], name: str) -> bool:
    """Whether a name's figure is above all others."""
    return all(figures[name] > figure for other, figure in figures.items() if other != name)


def far_last(figures: Mapping[str, Decimal], name: str) -> bool:
    """Whether a name is last, and farther from the next than any other two neighbours are.

    Our reading of "far behind" and "a large gap".
    """
    order = descending(figures)
    gaps = [figures[one] - figures[other] for one, other in pairwise(order)]
    return order[-1] == name and all(gaps[-1] > gap for gap in gaps[:-1])


def spread(values: Iterable[Decimal]) -> Decimal:
    """Highest less lowest, as a share of the highest."""
    given = list(values)
    return (max(given) - min(given)) / max(given)
