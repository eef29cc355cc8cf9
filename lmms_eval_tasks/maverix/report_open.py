"""MAVERIX's tables of open answers: ratings (Tables 6, 8, 9, C.4), lengths, robustness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lmms_eval_tasks.maverix.labels import DIMENSIONS, SPLITS
from lmms_eval_tasks.maverix.report_runs import Entry
from lmms_eval_tasks.maverix.report_tables import (
    Cell,
    by_label,
    by_model,
    column_title,
    count,
    hidden,
    minus,
    percent,
    rating,
)
from lmms_eval_tasks.report.paper_tables import signed

if TYPE_CHECKING:
    from rich.table import Table

_TITLES = {
    "correctness": "Correctness",
    "detail": "Detail orientation",
    "context": "Context",
    "temporal": "Temporal consistency",
}
_SHORT = {**_TITLES, "correctness": "Correct-\nness", "detail": "Detail", "temporal": "Temporal"}
_KINDS = {"choice": "choice", "open": "open-ended"}


def tables(found: Sequence[Entry]) -> list[Table]:
    """Every table of open answers that has a number."""
    return [
        *_correctness(found),
        *_words(found),
        *_dimensions(found),
        *_categories(found),
        *_robustness(found),
    ]


def _correctness(found: Sequence[Entry]) -> list[Table]:
    """Table 6. Its delta fits AV less the better single mode in all rows, and says so nowhere."""
    rows = []
    for entry in found:
        sound, picture, both = (
            entry.shown("open", mode, "correctness_valid") for mode in ("a", "v", "av")
        )
        single = None if sound[0] is None or picture[0] is None else max(sound[0], picture[0])
        marks = "".join(sorted({*sound[1], *picture[1]}))
        gain = minus(both, (single, marks))
        cells = [rating(cell, 1) for cell in (sound, picture, both)]
        cells.append("-" if gain[0] is None else signed(gain[0]) + gain[1])
        rows.append(((entry.title, entry.length), cells))
    columns = ("A/S", "V", "V+A/S", "less the better\nsingle mode")
    return by_model("correctness of open answers, 0 to 5 (the paper's Table 6)", columns, rows)


def _words(found: Sequence[Entry]) -> list[Table]:
    rows = [
        (
            (entry.title, entry.length, entry.mode_title(mode), _KINDS[kind]),
            [
                rating((entry.value(kind, mode, "words_mean"), ""), 1),
                count((entry.value(kind, mode, "words_max"), "")),
                rating((entry.value(kind, mode, "words_sd"), ""), 1),
            ],
        )
        for entry in found
        for kind in ("open", "choice")
        for mode in entry.modes(kind)
    ]
    return by_model(
        "length of the replies in words (the paper's Table 6 counts tokens and names no tokenizer)",
        ("mean", "max", "sd"),
        rows,
        names=("model", "video", "mode", "answers"),
        notes=hidden(found, "open") or hidden(found, "choice"),
    )


def _dimensions(found: Sequence[Entry]) -> list[Table]:
    rows = [
        (
            (entry.title, entry.length),
            [
                rating(entry.shown("open", mode, f"{name}_valid"))
                for name in DIMENSIONS
                for mode in ("v", "a", "av")
            ],
        )
        for entry in found
    ]
    columns = [f"{_SHORT[name]}\n{mode}" for name in DIMENSIONS for mode in ("V", "A/S", "V+A/S")]
    return by_model("ratings of open answers, 0 to 5 (the paper's Tables 8 and 9)", columns, rows)


def _categories(found: Sequence[Entry]) -> list[Table]:
    shown = [(entry, mode) for entry in found for mode in entry.modes("open")]

    def line(metric: str) -> list[Cell]:
        return [(entry.value("open", mode, metric), "") for entry, mode in shown]

    blocks = []
    for name in DIMENSIONS:
        rows = [("all", [rating(cell) for cell in line(f"{name}_valid")])]
        rows += [
            (title, [rating(cell) for cell in line(f"{name}_valid_{slug}")])
            for slug, title in SPLITS["agentic"].items()
        ]
        rows.append(("rated (%)", [percent(cell) for cell in line(f"{name}_coverage")]))
        rows.append(("without a rating", [count(cell) for cell in line(f"{name}_failed")]))
        blocks.append((_TITLES[name], rows))
    blocks.append(("Overall", [("answer withheld", [count(cell) for cell in line("n_withheld")])]))
    return by_label(
        "ratings of open answers by agentic category, 0 to 5 (the paper's C.4)",
        [column_title(entry, mode) for entry, mode in shown],
        blocks,
        notes=hidden(found, "open"),
    )


def _robustness(found: Sequence[Entry]) -> list[Table]:
    rows = [
        (
            (entry.title, entry.length, entry.mode_title(mode)),
            [
                percent((entry.value("open", mode, "robust_both"), "")),
                rating((entry.value("open", mode, "robust_diff"), "")),
                count((entry.value("open", mode, "robust_n"), "")),
                count((entry.value("open", mode, "robust_failed"), "")),
            ],
        )
        for entry in found
        for mode in entry.modes("open")
    ]
    return by_model(
        "a question and its paraphrase (correctness; ours)",
        ("both 4 or\nmore (%)", "mean\ndifference", "pairs", "pairs not\nrated"),
        rows,
        names=("model", "video", "mode"),
        notes=hidden(found, "open"),
    )
