"""MAVERIX's tables as in the paper: percent with one decimal, ratings out of 5."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lmms_eval_tasks.benchmark import Row
from lmms_eval_tasks.maverix import metrics
from lmms_eval_tasks.maverix.labels import DIMENSIONS, MODES, MULTIMODAL, SPLITS, TASKS, UNIMODAL
from lmms_eval_tasks.tables.paper_tables import (
    DOUBT,
    NONE,
    by_row,
    empty,
    fixed,
    has_numbers,
    marked,
    number,
    signed,
)

if TYPE_CHECKING:
    from rich.table import Table

MARKS = {
    "*": "* the sound does not reach this model: S stands for A, and V+S for V+A",
    "?": "? whether the sound reached this model is not known",
    "^": "^ run without its sound, which does not reach this model",
    "!": DOUBT,
}
_STANDS_IN = {"a": "s", "av": "vs"}
_LENGTHS = {"localized": "localized", "long": "full length"}

# Of the tables by label: blocks, each with its heading and its rows of metric, label and form.
Rows = Sequence[tuple[str, str, str]]
Blocks = Sequence[tuple[str, Rows]]


def _rows(names: str, form: str) -> Rows:
    return [(name, name, form) for name in names.split()]


_CHOICE: Blocks = [
    *(
        (heading, [(f"acc_{split}_{slug}", title, "%") for slug, title in SPLITS[split].items()])
        for split, heading in (
            ("difficulty", "Difficulty"),
            ("agentic", "Agentic tasks"),
            ("audio", "Audio type"),
            ("topic", "Topics"),
            ("ability", "Multimodal abilities"),
            ("duration", "Duration"),
        )
    ),
    ("Overall", [*_rows("acc acc_valid acc_authors", "%"), *_rows("acc_failed", "0")]),
    ("Replies", _rows("words_mean", "1")),
]
_OPEN: Blocks = [
    *(
        (
            heading,
            [
                *_rows(f"{name}_valid", "4"),
                *((f"{name}_valid_{slug}", t, "4") for slug, t in SPLITS["agentic"].items()),
                *_rows(f"{name}_both_wordings {name}_authors {name}_valid_refusals_wrong", "4"),
                *_rows(f"{name}_coverage", "%"),
                *_rows(f"{name}_failed", "0"),
            ],
        )
        for name, heading in zip(
            DIMENSIONS,
            ("Correctness", "Detail orientation", "Context", "Temporal consistency"),
            strict=True,
        )
    ),
    (
        "A question and its paraphrase",
        [
            *_rows("consistency_valid consistency_authors", "4"),
            *_rows("consistency_coverage robust_both", "%"),
            *_rows("consistency_failed robust_n", "0"),
        ],
    ),
    ("Replies", [*_rows("n_borrowed refusals", "0"), *_rows("words_mean", "1")]),
]
_CIRCULAR: Blocks = [
    ("Questions", [*_rows("circ_acc circ_acc_valid", "%"), *_rows("circ_acc_failed", "0")]),
    ("Single rotations", [*_rows("acc acc_valid", "%"), *_rows("acc_failed", "0")]),
    ("Replies", [*_rows("position_bias", "4"), *_rows("words_mean", "1")]),
]


# --- one model's numbers ------------------------------------------------------------------------


@dataclass
class Entry:
    """One model's numbers with one length of video."""

    head: tuple[str, str]  # what stands in the first columns
    rows: dict[tuple[str, str], Row] = field(default_factory=dict)  # by kind and mode
    sound: dict[str, str] = field(default_factory=dict)  # mode -> metrics.SOUND; of all lengths

    def value(self, kind: str, mode: str, metric: str) -> float | None:
        """A metric of the mode's own task, or None."""
        row = self.rows.get((kind, mode))
        return number(row.values.get(metric)) if row else None

    def marks(self, kind: str, mode: str) -> str:
        """What is doubtful of a mode's own numbers."""
        silent = mode in metrics.left_out(self.sound)
        sound = "^" if silent else "?" if self.sound.get(mode) == "unknown" else ""
        row = self.rows.get((kind, mode))
        return sound + ("!" if row and row.invalid else "")

    def cell(self, kind: str, mode: str, metric: str, form: str) -> str:
        """What stands in a mode's column, where S may stand for A, and V+S for V+A."""
        marks, other = self.marks(kind, mode), _STANDS_IN.get(mode, "")
        there = [(kind, one) in self.rows for one in (mode, other)]
        if mode in metrics.left_out(self.sound) and there != [True, False]:
            mode, marks = other, "*" + self.marks(kind, other)
        return _text(self.value(kind, mode, metric), form, marks)


def entries(rows: Sequence[Row]) -> list[Entry]:
    """Rows of `tables` by model and length of video, a model's two lengths in turn."""
    found: list[Entry] = []
    asked = [(TASKS[row.task], row) for row in rows if row.task in TASKS]
    for model in dict.fromkeys(row.model for _, row in asked):
        own = [(task, row) for task, row in asked if row.model == model]
        numbers = [(task.mode.slug, row) for task, row in own]
        sound = {mode: _state(mode, numbers) for mode in metrics.WITH_SOUND}
        for length, title in _LENGTHS.items():
            there = {(a.kind, a.mode.slug): row for a, row in own if a.length == length}
            found += [Entry((model or "this run", title), there, sound)] if there else []
    return found


def _state(mode: str, rows: Sequence[tuple[str, Row]]) -> str:
    """What became of a mode's sound (metrics.SOUND), by the counts of a model's tasks; "" unknown.

    Where the mode was not run, those of the others say whether S stands in for it.
    """

    def counted(metric: str, *, own: bool = True) -> float | None:
        found = [number(row.values.get(metric)) for at, row in rows if (at == mode) == own]
        known = [count for count in found if count is not None]
        return sum(known) if known else None

    if (missing := counted("n_sound_missing")) is None:
        missing = counted(f"n_sound_missing_{mode}", own=False)
        # Without a missing one it may be delivered or not be known: no table tells these two apart.
        return "" if missing is None else "not delivered" if missing else "unknown"
    return "not delivered" if missing else "unknown" if counted("n_sound_unknown") else "delivered"


def _text(value: float | None, form: str, marks: str = "") -> str:
    """A number with marks: `%` a share in percent, `+%` a difference of two, or decimals."""
    if value is None:
        return NONE
    if form == "+%":
        return signed(100 * value) + marks
    return marked(fixed(100 * value, 1) if form == "%" else fixed(value, int(form)), marks)


# --- the tables ---------------------------------------------------------------------------------


def tables(rows: Sequence[Row]) -> list[Table]:
    """The paper's tables for one or more models; those without a number are left out."""
    found = entries(rows)
    titles = [mode.title for mode in MODES.values()]
    by_mode = [*titles[:3], "Best-Uni", *titles[3:], "Best-Multi", "Delta"]
    accuracies = [(entry.head, [*_accuracies(entry)]) for entry in found]
    rated = [
        (entry.head, [entry.cell("open", mode, "correctness_valid", "1") for mode in MODES])
        for entry in found
    ]
    made = []
    for title, columns, lines in (
        ("accuracy (%) by input mode (the paper's Table 3)", by_mode, accuracies),
        ("correctness of open answers, 0 to 5 (the paper's Table 6)", titles, rated),
    ):
        notes = _notes([cell for _, cells in lines for cell in cells])
        made += by_row(f"MAVERIX: {title}", ("model", "video"), columns, lines, notes)
    for title, kind, blocks in (
        ("accuracy (%) by label (the paper's Tables 4, 5 and 10)", "choice", _CHOICE),
        ("ratings of open answers, 0 to 5 (the paper's Tables 8 and 9)", "open", _OPEN),
        ("eight rotations of each question (%; ours)", "circular", _CIRCULAR),
    ):
        made += _by_label(found, f"MAVERIX: {title}", kind, blocks)
    return made


def _accuracies(entry: Entry) -> Iterator[str]:
    """Table 3's row; a joined number has what is doubtful in any of the modes that it rests on."""
    best = metrics.joined({m: entry.value("choice", m, "acc") for m in MODES}, entry.sound)
    used = MODES.keys() - metrics.left_out(entry.sound)

    def joined(name: str, modes: Sequence[str], form: str = "%") -> str:
        marks = {mark for mode in used & {*modes} for mark in entry.marks("choice", mode)}
        return _text(best[name], form, "".join(sorted(marks)))

    for name, modes in (("best_uni", UNIMODAL), ("best_multi", MULTIMODAL)):
        yield from (entry.cell("choice", mode, "acc", "%") for mode in modes)
        yield joined(name, modes)
    yield joined("delta_multi", tuple(MODES), "+%")


def _by_label(found: Sequence[Entry], title: str, kind: str, blocks: Blocks) -> list[Table]:
    """A table with labels as rows and the modes that models ran as columns (Table 10)."""
    from rich.markup import escape

    shown = [(entry, mode) for entry in found for mode in MODES if (kind, mode) in entry.rows]
    modes = [MODES[mode].title + entry.marks(kind, mode) for entry, mode in shown]
    table = empty(title, _notes(modes))
    table.add_column("", overflow="fold", min_width=34)
    for (entry, _), mode in zip(shown, modes, strict=True):
        # The longest number is `5.0000`; a model's name is folded above it.
        heading = escape("\n".join((*entry.head, mode)))
        table.add_column(heading, justify="right", overflow="fold", min_width=6, max_width=10)
    for heading, rows in blocks:
        lines = [
            (f"  {label}", *(_text(e.value(kind, mode, metric), form) for e, mode in shown))
            for metric, label, form in rows
        ]
        if kept := [line for line in lines if has_numbers(line[1:])]:
            for cells in ((heading,), *kept):
                table.add_row(*cells)
    return [table] if table.row_count else []


def _notes(texts: Sequence[str]) -> str:
    """The notes for the marks at the end of texts."""
    used = {mark for text in texts for mark in text[len(text.rstrip("".join(MARKS))) :]}
    return "\n".join(note for mark, note in MARKS.items() if mark in used)
