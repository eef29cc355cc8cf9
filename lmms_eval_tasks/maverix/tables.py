"""MAVERIX's tables as in the paper: percent with one decimal, ratings out of 5."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from lmms_eval_tasks.benchmark import Numbers
from lmms_eval_tasks.maverix import metrics
from lmms_eval_tasks.maverix.labels import (
    DIMENSIONS,
    LETTERS,
    MODES,
    MULTIMODAL,
    SPLITS,
    TASKS,
    UNIMODAL,
)
from lmms_eval_tasks.report.paper_tables import (
    DOUBT,
    INVALID,
    by_row,
    empty,
    has_numbers,
    number,
    signed,
)

if TYPE_CHECKING:
    from rich.table import Table

MARKS = {
    "*": "* the sound does not reach this model: S stands for A, and V+S for V+A",
    "?": "? whether the sound reached this model is not known",
    "~": "~ left out: modes whose sound does not reach the model (what they measure is no sound)",
    "^": "^ another input than the column's: S for A or V+S for V+A, which were not run, or a mode "
    "without its sound, which does not reach the model",
    "!": DOUBT,
}
WHICH = ("worst", "best", "average")  # over the people who were asked (Table 7)
_STANDS_IN = {"a": "s", "av": "vs"}
_LENGTHS = {"localized": "localized", "long": "full length"}
_ASKED = ("v", "a", "av")  # modalities in which people were asked (Table 7)
_SPLIT_TITLES = {
    "difficulty": "Difficulty",
    "agentic": "Agentic tasks",
    "audio": "Audio type",
    "topic": "Topics",
    "ability": "Multimodal abilities",
    "duration": "Duration",
}
# The paper's titles; and in columns, broken, so that seven or eight stand beside each other.
_RATED = {
    "correctness": ("Correctness", "Correct-\nness"),
    "detail": ("Detail orientation", "Detail"),
    "context": ("Context", "Context"),
    "temporal": ("Temporal consistency", "Temporal"),
}
_AGENTIC = [
    *(
        title.replace(" Agent", "\nAgent").replace(" Q", "\nQ")
        for title in SPLITS["agentic"].values()
    ),
    "Overall",
]


class Cell(NamedTuple):
    """A number and its marks."""

    value: float | None
    marks: str = ""

    def __sub__(self, other: Cell) -> Cell:
        """The difference, with the marks of both; no number where one is missing."""
        missing = self.value is None or other.value is None
        value = None if missing else self.value - other.value  # type: ignore[operator]
        return Cell(value, "".join(sorted({*self.marks, *other.marks})))

    def __format__(self, form: str) -> str:
        """`%` a share in percent, `+%` a difference of two, `+` one of ratings, or decimals."""
        if self.value is None:
            return "-"
        value = 100 * self.value if form.endswith("%") else self.value
        decimals = "1" if form.endswith("%") else form
        return (signed(value) if form[0] == "+" else f"{value:.{decimals}f}") + self.marks


Row = tuple[Sequence[str], Sequence[str]]  # a row's names and its numbers as text
Columns = Sequence[tuple[str, str, str]]  # metric, heading, form of the number
Formula = Callable[["Entry"], Cell]


# --- one model's numbers ------------------------------------------------------------------------


@dataclass
class Entry:
    """One model's numbers with one length of video."""

    label: str  # as given, with the model behind its tasks' names; "" for a single run
    length: str
    tasks: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)  # (kind, mode)
    invalid: set[tuple[str, str]] = field(default_factory=set)  # of `tasks`
    sound: dict[str, str] = field(default_factory=dict)  # mode -> metrics.SOUND; of all lengths
    silent: set[str] = field(default_factory=set)  # modes whose sound does not arrive

    @property
    def head(self) -> tuple[str, str]:
        """What stands in the first columns."""
        return self.label or "this run", _LENGTHS[self.length]

    def value(self, kind: str, mode: str, metric: str) -> float | None:
        """A metric of the mode's own task, or None."""
        return number(self.tasks.get((kind, mode), {}).get(metric))

    def stands(self, kind: str, mode: str) -> tuple[str, str]:
        """The mode whose numbers stand in a mode's column, and their marks ("" for its own).

        What was run has a place in any case, so that a single mode has its row: in the column A/S
        of open answers that is S too.
        """
        mark = "?" if self.sound.get(mode) == "unknown" else ""
        other = _STANDS_IN.get(mode, "")
        own_ran, other_ran = (kind, mode) in self.tasks, (kind, other) in self.tasks
        if mode in self.silent and (other_ran or not own_ran):
            mode, mark = other, "*"
        elif mode in self.silent:
            mark = "^"
        elif kind == "open" and other_ran and not own_ran:
            mode, mark = other, "^"
        return mode, mark + ("!" if (kind, mode) in self.invalid else "")

    def shown(self, kind: str, mode: str, metric: str) -> Cell:
        """What stands in a mode's column."""
        mode, marks = self.stands(kind, mode)
        return Cell(self.value(kind, mode, metric), marks)

    def modes(self, kind: str) -> list[str]:
        """Modes with a task of that kind; those without their sound if there are no others."""
        ran = [mode for mode in MODES if (kind, mode) in self.tasks]
        return [mode for mode in ran if mode not in self.silent] or ran

    def hidden(self, kind: str) -> str:
        """The mark for the note on modes that `modes` leaves out, if there are any."""
        return "~" if any(k == kind and m not in self.modes(k) for k, m in self.tasks) else ""

    def mode_title(self, kind: str, mode: str) -> str:
        """The paper's title of a mode, with its marks."""
        return MODES[mode].title + self.stands(kind, mode)[1]


def entries(rows: Sequence[tuple[str, Numbers]]) -> list[Entry]:
    """Rows of `tables` by model and length of video, a model's two lengths in turn.

    Names that are no task of MAVERIX are left out.
    """
    found: dict[str, dict[str, Entry]] = {}  # label -> length -> entry
    for label, numbers in rows:
        for name, values in numbers.items():
            # Behind it: the model where several were rescored, and ` INVALID`.
            task, _, added = name.partition(" ")
            if asked := TASKS.get(task):
                full = f"{label} {added.removesuffix(INVALID)}".strip()
                own = found.setdefault(full, {})
                entry = own.setdefault(asked.length, Entry(full, asked.length))
                at = asked.kind, asked.mode.slug
                entry.tasks[at] = values
                entry.invalid |= {at} if added.endswith(INVALID) else set()
    for lengths in found.values():
        tasks = [(mode, own) for one in lengths.values() for (_, mode), own in one.tasks.items()]
        known = {mode: _state(mode, tasks) for mode in metrics.WITH_SOUND}
        for entry in lengths.values():
            entry.sound, entry.silent = known, metrics.left_out(known)
    return [own[length] for own in found.values() for length in _LENGTHS if length in own]


def _state(mode: str, tasks: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """What became of a mode's sound (metrics.SOUND), by the counts of a model's tasks; "" unknown.

    Where the mode was not run, those of the others say whether S stands in for it.
    """

    def counts(metric: str, *, own: bool) -> list[float]:
        found = (number(values.get(metric)) for at, values in tasks if (at == mode) == own)
        return [count for count in found if count is not None]

    missing, unknown = (counts(f"n_sound_{what}", own=True) for what in ("missing", "unknown"))
    if missing:
        return "not delivered" if any(missing) else "unknown" if any(unknown) else "delivered"
    missing = counts(f"n_sound_missing_{mode}", own=False)
    # Without a missing one it may be delivered or not be known: no table tells these two apart.
    return "" if not missing else "not delivered" if any(missing) else "unknown"


def _of(kind: str, mode: str, metric: str, less: str = "") -> Formula:
    """A mode's number, or by how much it is more than that of the mode `less`."""
    if less:
        return lambda entry: entry.shown(kind, mode, metric) - entry.shown(kind, less, metric)
    return lambda entry: entry.shown(kind, mode, metric)


def _joined(name: str) -> Formula:
    """A joined number from the modes' own tasks, with what is doubtful in any of them."""
    rests = {"best_uni": UNIMODAL, "best_multi": MULTIMODAL}.get(name, tuple(MODES))

    def of(entry: Entry) -> Cell:
        accuracies = {mode: entry.value("choice", mode, "acc") for mode in MODES}
        used = [mode for mode in rests if mode not in entry.silent]
        marks = {mark for mode in used for mark in entry.stands("choice", mode)[1]}
        return Cell(metrics.joined(accuracies, entry.sound)[name], "".join(sorted(marks)))

    return of


def _open_gain(entry: Entry) -> Cell:
    """Table 6's: it fits AV less the better single mode in all rows, and the paper says so nowhere.

    None where another input stands in a column.
    """
    sound, picture, both = (entry.shown("open", m, "correctness_valid") for m in ("a", "v", "av"))
    if sound.value is None or picture.value is None or "^" in sound.marks + both.marks:
        return Cell(None)
    return both - Cell(max(sound.value, picture.value), sound.marks + picture.marks)


# --- what each table shows ----------------------------------------------------------------------

# A row per model: title, and for each column its heading, number and form.
_TABLE_3 = [
    *((MODES[mode].title, _of("choice", mode, "acc"), "%") for mode in UNIMODAL),
    ("Best-Uni", _joined("best_uni"), "%"),
    *((MODES[mode].title, _of("choice", mode, "acc"), "%") for mode in MULTIMODAL),
    ("Best-Multi", _joined("best_multi"), "%"),
    ("Delta", _joined("delta_multi"), "+%"),
]
_TABLE_4 = [
    (f"{title}\n{heading}", _of("choice", mode, f"acc_difficulty_{slug}", less), form)
    for slug, title in SPLITS["difficulty"].items()
    for heading, mode, less, form in (
        ("A", "a", "", "%"),
        ("V", "v", "", "%"),
        ("V+A", "av", "", "%"),
        ("V+A - A", "av", "a", "+%"),
    )
]
_TABLE_6 = [
    ("A/S", _of("open", "a", "correctness_valid"), "1"),
    ("V", _of("open", "v", "correctness_valid"), "1"),
    ("V+A/S", _of("open", "av", "correctness_valid"), "1"),
    ("less the better\nsingle mode", _open_gain, "+"),
]
_TABLES_8_9 = [
    (f"{_RATED[name][1]}\n{title}", _of("open", mode, f"{name}_valid"), "4")
    for name in DIMENSIONS
    for mode, title in (("v", "V"), ("a", "A/S"), ("av", "V+A/S"))
]
# A row per label, a column per model and mode: heading, and its rows of metric, label and form.
_LABELS: list[tuple[str, Columns]] = [
    *(
        (
            _SPLIT_TITLES[split],
            [(f"acc_{split}_{slug}", title, "%") for slug, title in titles.items()],
        )
        for split, titles in SPLITS.items()
    ),
    (
        "Overall",
        [
            ("acc", "accuracy", "%"),
            ("acc_valid", "accuracy, valid", "%"),
            ("acc_authors", "accuracy, the authors' letters", "%"),
            ("acc_failed", "failed", "0"),
            ("n_withheld", "answer withheld", "0"),
        ],
    ),
]
_CATEGORIES: list[tuple[str, Columns]] = [
    *(
        (
            _RATED[name][0],
            [
                (f"{name}_valid", "all", "4"),
                *((f"{name}_valid_{slug}", t, "4") for slug, t in SPLITS["agentic"].items()),
                (f"{name}_both_wordings", "both wordings", "4"),
                (f"{name}_authors", "as the authors count", "4"),
                (f"{name}_valid_refusals_wrong", "with refusals as 0", "4"),
                (f"{name}_coverage", "rated (%)", "%"),
                (f"{name}_failed", "without a rating", "0"),
            ],
        )
        for name in DIMENSIONS
    ),
    (
        "Overall",
        [
            ("n_withheld", "answer withheld", "0"),
            ("n_borrowed", "borrowed wordings", "0"),
            ("refusals", "refusals", "0"),
        ],
    ),
]
# A row per model and mode.
_WORDS: Columns = (
    ("words_mean", "mean", "1"),
    ("words_max", "max", "0"),
    ("words_sd", "sd", "1"),
)
_ROBUST: Columns = (
    ("consistency_valid", "consistency\n(0 to 5)", "4"),
    ("consistency_authors", "as the\nauthors count", "4"),
    ("consistency_coverage", "rated\n(%)", "%"),
    ("consistency_failed", "without\na rating", "0"),
    ("robust_both", "both 4 or\nmore (%)", "%"),
    ("robust_diff", "mean\ndifference", "4"),
    ("robust_n", "pairs", "0"),
    ("robust_failed", "pairs not\nrated", "0"),
)
_CIRCULAR: Columns = (
    ("circ_acc", "all eight\nright", "%"),
    ("circ_acc_valid", "valid", "%"),
    ("circ_acc_failed", "failed", "0"),
    ("acc", "single\nrotations", "%"),
    ("acc_valid", "valid", "%"),
    ("acc_failed", "failed", "0"),
    ("position_bias", "position\nbias", "4"),
)
_CHOSEN = [
    (what, [(f"{name}_{letter.lower()}", letter, "%") for letter in LETTERS])
    for name, what in (("acc_at", "right where it is true"), ("chose", "chosen"))
]


def tables(rows: Sequence[tuple[str, Numbers]]) -> list[Table]:
    """The paper's tables for one or more models; those without a number are left out.

    Args:
        rows: label of a model (empty for a single run) and its numbers by task or group.
    """
    found = entries(rows)
    by_model = functools.partial(_by_model, found)
    by_label = functools.partial(_by_label, found)
    in_modes = functools.partial(_in_modes, found)
    return [
        *by_model("accuracy (%) by input mode (the paper's Table 3)", _TABLE_3),
        *by_model("accuracy (%) by difficulty (the paper's Table 4)", _TABLE_4),
        *by_label("accuracy (%) by label (the paper's Tables 5 and 10)", "choice", _LABELS),
        *_table(
            "accuracy (%) by agentic category, people and models (the paper's Table 7)",
            ("", "video", "mode"),
            _AGENTIC,
            list(_beside_people(found)),
        ),
        *_table(
            "change of accuracy (points) from localized to full length (the paper's Figure 4a)",
            ("model", "mode"),
            _AGENTIC,
            list(_by_length(found)),
            "".join(entry.hidden("choice") for entry in found),
        ),
        *_table(
            "points by which a model is behind people's average (Figure 4b; people: Table 7)",
            ("model", "video", "mode"),
            _AGENTIC,
            list(_behind_people(found)),
        ),
        *by_model("correctness of open answers, 0 to 5 (the paper's Table 6)", _TABLE_6),
        *in_modes(
            "length of the replies in words (the paper's Table 6 counts tokens and names no "
            "tokenizer)",
            {"open": [("open-ended", _WORDS)], "choice": [("choice", _WORDS)]},
            "answers",
        ),
        *by_model("ratings of open answers, 0 to 5 (the paper's Tables 8 and 9)", _TABLES_8_9),
        *by_label(
            "ratings of open answers by agentic category, 0 to 5 (the paper's C.4)",
            "open",
            _CATEGORIES,
        ),
        *in_modes(
            "a question and its paraphrase (one rating of both, and of correctness, ours)",
            {"open": [("", _ROBUST)]},
        ),
        *in_modes(
            "eight rotations of each question (%; bias from 0 to 7/8; ours)",
            {"circular": [("", _CIRCULAR)]},
        ),
        *in_modes("letters over the rotations (%; ours)", {"circular": _CHOSEN}, "letter"),
    ]


# --- people and models: Table 7, Figure 4 -------------------------------------------------------


@functools.cache
def humans() -> Mapping[tuple[str, str], Sequence[Cell]]:
    """The paper's human accuracy in 0..1 by mode and whose (Table 7): by agentic category, all."""
    from lmms_eval_tasks import leaderboards

    rows = leaderboards.table("maverix", 7)
    figures = {(MODES[row.group].slug, row.name): row.figures for row in rows}
    return {
        (mode, which): [
            Cell(float(row[which] or 0) / 100)
            if (row := figures.get((mode, title)))
            else Cell(None)
            for title in (*SPLITS["agentic"].values(), "Overall")
        ]
        for mode in _ASKED
        for which in WHICH
    }


def _agentic(entry: Entry, mode: str) -> list[Cell]:
    names = [*(f"acc_agentic_{slug}" for slug in SPLITS["agentic"]), "acc"]
    return [entry.shown("choice", mode, name) for name in names]


def _less(left: Sequence[Cell], right: Sequence[Cell]) -> list[str]:
    """Differences in percentage points."""
    return [f"{one - other:+%}" for one, other in zip(left, right, strict=True)]


def _beside_people(found: Sequence[Entry]) -> Iterator[Row]:
    for mode in _ASKED:
        title = MODES[mode].title
        ours = [
            ((*entry.head, title), [f"{cell:%}" for cell in _agentic(entry, mode)])
            for entry in found
        ]
        if any(has_numbers(cells) for _, cells in ours):
            for which in WHICH:
                yield (f"people, {which}", "", title), [f"{c:%}" for c in humans()[mode, which]]
            yield from ours


def _by_length(found: Sequence[Entry]) -> Iterator[Row]:
    full = {entry.label: entry for entry in found if entry.length == "long"}
    for short in found:
        if short.length != "long" and short.label in full:
            for mode in short.modes("choice"):
                change = _less(_agentic(full[short.label], mode), _agentic(short, mode))
                yield (short.head[0], short.mode_title("choice", mode)), change


def _behind_people(found: Sequence[Entry]) -> Iterator[Row]:
    for entry in found:
        for mode in _ASKED:
            gaps = _less(humans()[mode, "average"], _agentic(entry, mode))
            yield (*entry.head, MODES[mode].title), gaps


# --- forms of tables ----------------------------------------------------------------------------


def _table(
    title: str, names: Sequence[str], columns: Sequence[str], rows: Sequence[Row], marks: str = ""
) -> list[Table]:
    """A table of rows; `marks` are to be explained although no cell has them."""
    texts = [cell for head, cells in rows if has_numbers(cells) for cell in (*head, *cells)]
    return by_row(f"MAVERIX: {title}", names, columns, rows, _notes(texts, marks))


def _notes(texts: Sequence[str], marks: str) -> str:
    """The notes for the marks at the end of texts, and for `marks`."""
    used = {*marks, *(mark for text in texts for mark in text[len(text.rstrip("*?!^")) :])}
    return "\n".join(note for mark, note in MARKS.items() if mark in used)


def _by_model(
    found: Sequence[Entry], title: str, columns: Sequence[tuple[str, Formula, str]]
) -> list[Table]:
    rows = [
        (entry.head, [format(formula(entry), form) for _, formula, form in columns])
        for entry in found
    ]
    return _table(title, ("model", "video"), [heading for heading, *_ in columns], rows)


def _in_modes(
    found: Sequence[Entry],
    title: str,
    kinds: Mapping[str, Sequence[tuple[str, Columns]]],
    name: str = "",
) -> list[Table]:
    """Rows per model and mode of metrics of the mode's own task, one or more of a kind of task.

    Args:
        found: the models.
        title: of the table.
        kinds: of tasks; for each row its name and its columns.
        name: heading of the rows' names, if they have any.
    """
    rows = [
        (
            (*entry.head, entry.mode_title(kind, mode), *([what] if name else [])),
            [format(Cell(entry.value(kind, mode, metric)), form) for metric, _, form in columns],
        )
        for entry in found
        for kind, lines in kinds.items()
        for mode in entry.modes(kind)
        for what, columns in lines
    ]
    columns = [heading for _, heading, _ in next(iter(kinds.values()))[0][1]]
    marks = "".join(entry.hidden(kind) for entry in found for kind in kinds)
    names = ["model", "video", "mode", *([name] if name else [])]
    return _table(title, names, columns, rows, marks)


def _by_label(
    found: Sequence[Entry], title: str, kind: str, blocks: Sequence[tuple[str, Columns]]
) -> list[Table]:
    """A table with labels as rows and models' modes as columns (Table 10)."""
    from rich.markup import escape

    shown = [(entry, mode) for entry in found for mode in entry.modes(kind)]
    headings = ["\n".join((*entry.head, entry.mode_title(kind, mode))) for entry, mode in shown]
    hidden = "".join(entry.hidden(kind) for entry in found)
    table = empty(f"MAVERIX: {title}", _notes(headings, hidden))
    table.add_column("", overflow="fold", min_width=34)
    for heading in map(escape, headings):
        # The longest number is `5.0000`; a model's name is folded above it.
        table.add_column(heading, justify="right", overflow="fold", min_width=6, max_width=10)
    for heading, rows in blocks:
        lines = [
            (f"  {label}", *(f"{Cell(e.value(kind, mode, metric)):{form}}" for e, mode in shown))
            for metric, label, form in rows
        ]
        if kept := [line for line in lines if has_numbers(line[1:])]:
            for cells in ((heading,), *kept):
                table.add_row(*cells)
    return [table] if table.row_count else []
