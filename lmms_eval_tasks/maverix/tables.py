"""MAVERIX's tables as in the paper: percent with one decimal, ratings out of 5."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from lmms_eval_tasks.benchmark import Numbers
from lmms_eval_tasks.maverix import metrics
from lmms_eval_tasks.maverix.labels import (
    DIMENSIONS,
    LETTERS,
    MODES,
    MULTIMODAL,
    SPLITS,
    UNIMODAL,
)
from lmms_eval_tasks.maverix.table_rows import FULL, MARKS, SHORT, Cell, Entry, entries
from lmms_eval_tasks.report.paper_tables import by_row, empty, has_numbers, signed

if TYPE_CHECKING:
    from rich.table import Table

Humans = Mapping[tuple[str, str], Mapping[str, float]]  # (mode, which) -> agentic slug -> share
Row = tuple[Sequence[str], Sequence[str]]  # a row's names and its numbers as text
Columns = Sequence[tuple[str, str, Callable[[Cell], str]]]  # metric, heading, form of the number

WHICH = ("worst", "best", "average")  # over the people who were asked (Table 7)
AT_ONCE = 9  # columns of models beside the labels, in 150 characters
_ASKED = ("v", "a", "av")  # modalities in which people were asked (Table 7)
_SPLIT_TITLES = {
    "difficulty": "Difficulty",
    "agentic": "Agentic tasks",
    "audio": "Audio type",
    "topic": "Topics",
    "ability": "Multimodal abilities",
    "duration": "Duration",
}
_RATED = {
    "correctness": "Correctness",
    "detail": "Detail orientation",
    "context": "Context",
    "temporal": "Temporal consistency",
}
# The paper's titles in columns: broken, so that seven or eight stand beside each other.
_RATED_SHORT = {
    **_RATED,
    "correctness": "Correct-\nness",
    "detail": "Detail",
    "temporal": "Temporal",
}
_AGENTIC = [
    {"egocentric": "Egocentric\nAgent", "information": "Information\nQuerying"}.get(slug, title)
    for slug, title in SPLITS["agentic"].items()
]


def tables(rows: Sequence[tuple[str, Numbers]]) -> list[Table]:
    """The paper's tables for one or more models; those without a number are left out.

    Args:
        rows: label of a model (empty for a single run) and its numbers by task or group.
    """
    found = entries(rows)
    people = humans()
    return [
        *_modes(found),
        *_difficulty(found),
        *_labels(found),
        *_people(found, people),
        *_lengths(found),
        *_gaps(found, people),
        *_correctness(found),
        *_in_modes(
            found,
            "length of the replies in words (the paper's Table 6 counts tokens and names no "
            "tokenizer)",
            {"open": [("open-ended", _WORDS)], "choice": [("choice", _WORDS)]},
            "answers",
        ),
        *_dimensions(found),
        *_categories(found),
        *_in_modes(
            found,
            "a question and its paraphrase (one rating of both, and of correctness, ours)",
            {"open": [("", _ROBUST)]},
        ),
        *_in_modes(
            found,
            "eight rotations of each question (%; bias from 0 to 7/8; ours)",
            {"circular": [("", _CIRCULAR)]},
        ),
        *_in_modes(found, "letters over the rotations (%; ours)", {"circular": _LETTERS}, "letter"),
    ]


# --- cells --------------------------------------------------------------------------------------


def _percent(cell: Cell) -> str:
    """A share in percent with one decimal as in the paper; a dash where there is no number."""
    return "-" if cell[0] is None else f"{100 * cell[0]:.1f}{cell[1]}"


def _points(cell: Cell) -> str:
    """A difference of shares in percentage points, with its sign."""
    return "-" if cell[0] is None else signed(100 * cell[0]) + cell[1]


def _rating(cell: Cell, decimals: int = 4) -> str:
    """A mean rating: four decimals as in Tables 8 and 9, one as in Table 6."""
    return "-" if cell[0] is None else f"{cell[0]:.{decimals}f}{cell[1]}"


def _one_decimal(cell: Cell) -> str:
    return _rating(cell, 1)


def _count(cell: Cell) -> str:
    return _rating(cell, 0)


def _minus(left: Cell, right: Cell) -> Cell:
    """The difference of two cells, with the marks of both; no number where one is missing."""
    value = None if left[0] is None or right[0] is None else left[0] - right[0]
    return value, "".join(sorted({*left[1], *right[1]}))


# --- two forms of tables ------------------------------------------------------------------------


def _by_model(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Row],
    names: Sequence[str] = ("model", "video"),
    notes: str = "",
) -> list[Table]:
    """A table with a row per model; `notes` are marks to explain although no cell has them."""
    texts = [cell for head, cells in rows if has_numbers(cells) for cell in (*head, *cells)]
    return by_row(f"MAVERIX: {title}", names, columns, rows, _marks(texts, notes))


def _by_label(
    title: str,
    found: Sequence[Entry],
    kind: str,
    blocks: Iterable[tuple[str, Columns]],
) -> list[Table]:
    """Tables with labels as rows and models' modes as columns (Table 10), nine at a time.

    A block is a heading and its rows: label, metric, and how its numbers are shown.
    """
    from rich.markup import escape

    shown = [(entry, mode) for entry in found for mode in entry.modes(kind)]
    columns = [f"{one.title}\n{one.length}\n{one.mode_title(kind, mode)}" for one, mode in shown]
    texts = [
        (
            heading,
            [
                (label, [form((entry.value(kind, mode, metric), "")) for entry, mode in shown])
                for label, metric, form in rows
            ],
        )
        for heading, rows in blocks
    ]
    made = []
    for start in range(0, len(columns), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        kept = [
            (heading, [(label, cells[some]) for label, cells in rows if has_numbers(cells[some])])
            for heading, rows in texts
        ]
        if not any(rows for _, rows in kept):
            continue
        table = empty(f"MAVERIX: {title}", _marks(columns[some], _hidden(found, kind)))
        table.add_column("", overflow="fold", min_width=34)
        for heading in columns[some]:
            # The longest number is `5.0000`; a model's name is folded above it.
            name = escape(heading)
            table.add_column(name, justify="right", overflow="fold", min_width=6, max_width=10)
        for heading, rows in kept:
            if rows:
                table.add_row(heading)
            for label, cells in rows:
                table.add_row(f"  {label}", *cells)
        made.append(table)
    return made


def _hidden(found: Sequence[Entry], kind: str) -> str:
    """The mark for the note on modes that `Entry.modes` leaves out, if there are any."""
    return "~" if any(entry.hides(kind) for entry in found) else ""


def _marks(texts: Sequence[str], more: str) -> str:
    """The notes for the marks at the end of texts, and for those in `more`."""
    used = set(more)
    for text in texts:
        used |= set(text[len(text.rstrip("*?!")) :])
    return "\n".join(note for mark, note in MARKS.items() if mark in used)


def _head(entry: Entry) -> tuple[str, str]:
    return entry.title, entry.length


def _in_modes(
    found: Sequence[Entry],
    title: str,
    kinds: Mapping[str, Sequence[tuple[str, Columns]]],
    name: str = "",
) -> list[Table]:
    """Rows per model and mode of metrics of the mode's own task.

    Args:
        found: the models.
        title: what it shows, and which table of the paper.
        kinds: of tasks; the rows of each, a name and the columns.
        name: heading of the rows' names, if they have any.
    """
    rows = [
        (
            (*_head(entry), entry.mode_title(kind, mode), *([what] if name else [])),
            [form((entry.value(kind, mode, metric), "")) for metric, _, form in columns],
        )
        for entry in found
        for kind, lines in kinds.items()
        for mode in entry.modes(kind)
        for what, columns in lines
    ]
    first = next(iter(kinds.values()))[0][1]
    names = ["model", "video", "mode", *([name] if name else [])]
    notes = "".join({mark: None for kind in kinds for mark in _hidden(found, kind)})
    return _by_model(title, [one[1] for one in first], rows, names, notes)


# --- choices: Tables 3, 4, 5 and 10 -------------------------------------------------------------


def _modes(found: Sequence[Entry]) -> list[Table]:
    rows: list[Row] = []
    for entry in found:
        uni, multi, delta = (_best(entry, name) for name in metrics.JOINED)
        one = [_percent(entry.shown("choice", mode, "acc")) for mode in ("a", "s", "v")]
        two = [_percent(entry.shown("choice", mode, "acc")) for mode in ("vs", "av")]
        cells = [*one, _percent(uni), *two, _percent(multi), _points(delta)]
        rows.append((_head(entry), cells))
    columns = ("A", "S", "V", "Best-Uni", "V+S", "V+A", "Best-Multi", "Delta")
    return _by_model("accuracy (%) by input mode (the paper's Table 3)", columns, rows)


def _best(entry: Entry, name: str) -> Cell:
    """A joined number from the modes' own tasks.

    Marked where it is another one if a mode whose sound nobody knows of turns out to have none, and
    where one of its modes is invalid.
    """
    accuracies = {mode: entry.value("choice", mode, "acc") for mode in MODES}
    value = metrics.joined(accuracies, entry.sound)[name]
    rests = {"best_uni": UNIMODAL, "best_multi": MULTIMODAL}.get(name, tuple(MODES))
    unknown = [mode for mode in rests if entry.sound.get(mode) == "unknown"]
    if value is None:
        return None, ""
    silent = {**entry.sound, **dict.fromkeys(unknown, "not delivered")}
    unsure = "" if metrics.joined(accuracies, silent)[name] == value else "?"
    return value, unsure + entry.doubt("choice", *(one for one in rests if one not in entry.silent))


def _difficulty(found: Sequence[Entry]) -> list[Table]:
    rows: list[Row] = []
    for entry in found:
        cells: list[str] = []
        for slug in SPLITS["difficulty"]:
            sound, picture, both = (
                entry.shown("choice", mode, f"acc_difficulty_{slug}") for mode in ("a", "v", "av")
            )
            cells += [*map(_percent, (sound, picture, both)), _points(_minus(both, sound))]
        rows.append((_head(entry), cells))
    columns = [
        f"{title}\n{name}"
        for title in SPLITS["difficulty"].values()
        for name in ("A", "V", "V+A", "V+A - A")
    ]
    return _by_model("accuracy (%) by difficulty (the paper's Table 4)", columns, rows)


def _labels(found: Sequence[Entry]) -> list[Table]:
    blocks = [
        (
            _SPLIT_TITLES[split],
            [(title, f"acc_{split}_{slug}", _percent) for slug, title in slugs.items()],
        )
        for split, slugs in SPLITS.items()
    ]
    overall = [
        ("accuracy", "acc", _percent),
        ("accuracy, valid", "acc_valid", _percent),
        ("accuracy, the authors' letters", "acc_authors", _percent),
        ("failed", "acc_failed", _count),
        ("answer withheld", "n_withheld", _count),
    ]
    title = "accuracy (%) by label (the paper's Tables 5 and 10)"
    return _by_label(title, found, "choice", [*blocks, ("Overall", overall)])


# --- people and models: Table 7, Figure 4 -------------------------------------------------------


def humans() -> Humans:
    """The paper's human accuracy by modality and agentic category (Table 7), in 0..1."""
    from lmms_eval_tasks import leaderboards

    slugs = {title: slug for slug, title in SPLITS["agentic"].items()} | {"Overall": "overall"}
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in leaderboards.leaderboard("maverix").tables[7].rows:
        for which in WHICH:
            values = found.setdefault((MODES[row.group].slug, which), {})
            values[slugs[row.name]] = row.value(which) / 100
    return found


def _agentic(entry: Entry, mode: str) -> list[Cell]:
    names = [*(f"acc_agentic_{slug}" for slug in SPLITS["agentic"]), "acc"]
    return [entry.shown("choice", mode, name) for name in names]


def _person(people: Humans, mode: str, which: str) -> list[Cell]:
    values = people.get((mode, which), {})
    return [(values.get(slug), "") for slug in (*SPLITS["agentic"], "overall")]


def _people(found: Sequence[Entry], people: Humans) -> list[Table]:
    rows: list[Row] = []
    for mode in _ASKED:
        title = MODES[mode].title
        ours = [
            ((*_head(entry), title), [_percent(cell) for cell in _agentic(entry, mode)])
            for entry in found
        ]
        if any(has_numbers(cells) for _, cells in ours):
            rows += [
                ((f"people, {which}", "", title), list(map(_percent, _person(people, mode, which))))
                for which in WHICH
            ]
            rows += ours
    title = "accuracy (%) by agentic category, people and models (the paper's Table 7)"
    return _by_model(title, [*_AGENTIC, "Overall"], rows, ("", "video", "mode"))


def _lengths(found: Sequence[Entry]) -> list[Table]:
    rows: list[Row] = []
    full = {entry.label: entry for entry in found if entry.length == FULL}
    for short in found:
        if short.length != SHORT or short.label not in full:
            continue
        for mode in short.modes("choice"):
            both = zip(_agentic(full[short.label], mode), _agentic(short, mode), strict=True)
            changes = [_points(_minus(long, brief)) for long, brief in both]
            rows.append(((short.title, short.mode_title("choice", mode)), changes))
    title = "change of accuracy (points) from localized to full length (the paper's Figure 4a)"
    columns = [*_AGENTIC, "Overall"]
    return _by_model(title, columns, rows, ("model", "mode"), _hidden(found, "choice"))


def _gaps(found: Sequence[Entry], people: Humans) -> list[Table]:
    rows: list[Row] = []
    for entry in found:
        for mode in _ASKED:
            both = zip(_person(people, mode, "average"), _agentic(entry, mode), strict=True)
            gaps = [_points(_minus(theirs, ours)) for theirs, ours in both]
            rows.append(((*_head(entry), MODES[mode].title), gaps))
    title = "points by which a model is behind people's average (Figure 4b; people: Table 7)"
    return _by_model(title, [*_AGENTIC, "Overall"], rows, ("model", "video", "mode"))


# --- open answers: Tables 6, 8, 9 and C.4 -------------------------------------------------------


def _correctness(found: Sequence[Entry]) -> list[Table]:
    """Table 6. Its delta fits AV less the better single mode in all rows, and says so nowhere."""
    rows: list[Row] = []
    for entry in found:
        sound, picture, both = (
            entry.shown("open", mode, "correctness_valid") for mode in ("a", "v", "av")
        )
        single = None if sound[0] is None or picture[0] is None else max(sound[0], picture[0])
        gain, marks = _minus(both, (single, sound[1] + picture[1]))
        cells = [_one_decimal(cell) for cell in (sound, picture, both)]
        rows.append((_head(entry), [*cells, "-" if gain is None else signed(gain) + marks]))
    columns = ("A/S", "V", "V+A/S", "less the better\nsingle mode")
    return _by_model("correctness of open answers, 0 to 5 (the paper's Table 6)", columns, rows)


_WORDS = (
    ("words_mean", "mean", _one_decimal),
    ("words_max", "max", _count),
    ("words_sd", "sd", _one_decimal),
)


def _dimensions(found: Sequence[Entry]) -> list[Table]:
    order = [(name, mode) for name in DIMENSIONS for mode in ("v", "a", "av")]
    rows = [
        (
            _head(entry),
            [_rating(entry.shown("open", mode, f"{name}_valid")) for name, mode in order],
        )
        for entry in found
    ]
    titles = {"v": "V", "a": "A/S", "av": "V+A/S"}
    columns = [f"{_RATED_SHORT[name]}\n{titles[mode]}" for name, mode in order]
    return _by_model("ratings of open answers, 0 to 5 (the paper's Tables 8 and 9)", columns, rows)


def _categories(found: Sequence[Entry]) -> list[Table]:
    blocks = [
        (
            _RATED[name],
            [
                ("all", f"{name}_valid", _rating),
                *(
                    (title, f"{name}_valid_{slug}", _rating)
                    for slug, title in SPLITS["agentic"].items()
                ),
                ("with borrowed wordings", f"{name}_valid_with_borrowed", _rating),
                ("both wordings", f"{name}_both_wordings", _rating),
                ("as the authors count", f"{name}_authors", _rating),
                ("with refusals as 0", f"{name}_valid_refusals_wrong", _rating),
                ("rated (%)", f"{name}_coverage", _percent),
                ("without a rating", f"{name}_failed", _count),
            ],
        )
        for name in DIMENSIONS
    ]
    overall = [
        ("answer withheld", "n_withheld", _count),
        ("borrowed wordings", "n_borrowed", _count),
        ("refusals", "refusals", _count),
    ]
    blocks.append(("Overall", overall))
    title = "ratings of open answers by agentic category, 0 to 5 (the paper's C.4)"
    return _by_label(title, found, "open", blocks)


_ROBUST = (
    ("consistency_valid", "consistency\n(0 to 5)", _rating),
    ("consistency_authors", "as the\nauthors count", _rating),
    ("consistency_coverage", "rated\n(%)", _percent),
    ("consistency_failed", "without\na rating", _count),
    ("robust_both", "both 4 or\nmore (%)", _percent),
    ("robust_diff", "mean\ndifference", _rating),
    ("robust_n", "pairs", _count),
    ("robust_failed", "pairs not\nrated", _count),
)

# --- rotations ----------------------------------------------------------------------------------

_CIRCULAR = (
    ("circ_acc", "all eight\nright", _percent),
    ("circ_acc_valid", "valid", _percent),
    ("circ_acc_failed", "failed", _count),
    ("acc", "single\nrotations", _percent),
    ("acc_valid", "valid", _percent),
    ("acc_failed", "failed", _count),
    ("position_bias", "position\nbias", _rating),
)
_LETTERS = [
    (what, [(f"{name}_{letter.lower()}", letter, _percent) for letter in LETTERS])
    for name, what in (("acc_at", "right where it is true"), ("chose", "chosen"))
]
