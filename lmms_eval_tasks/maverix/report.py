"""MAVERIX's tables as in the paper: percent with one decimal, ratings out of 5."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from lmms_eval_tasks.maverix import report_open, table3
from lmms_eval_tasks.maverix.humans import WHICH, Humans
from lmms_eval_tasks.maverix.humans import load as human_rows
from lmms_eval_tasks.maverix.labels import LETTERS, MODES, SPLITS
from lmms_eval_tasks.maverix.report_runs import FULL, SHORT, Entry, Numbers, entries
from lmms_eval_tasks.maverix.report_tables import (
    AGENTIC,
    Cell,
    by_label,
    by_model,
    column_title,
    count,
    hidden,
    minus,
    percent,
    points,
    rating,
)
from lmms_eval_tasks.report.paper_tables import number

if TYPE_CHECKING:
    from rich.table import Table

_SPLIT_TITLES = {
    "difficulty": "Difficulty",
    "agentic": "Agentic tasks",
    "audio": "Audio type",
    "topic": "Topics",
    "ability": "Multimodal abilities",
    "duration": "Duration",
}
_ASKED = ("v", "a", "av")  # modalities in which people were asked (Table 7)


def tables(
    rows: Sequence[tuple[str, Numbers]],
    sound: Mapping[str, str] | None = None,
    people: Humans | None = None,
) -> list[Table]:
    """The paper's tables for one or more models; those without a number are left out.

    Args:
        rows: label of a model (empty for a single run) and its numbers by task or group.
        sound: what became of the sound, by task, label, or both (report_runs.entries).
        people: Table 7's rows to stand beside ours; by default those of the leaderboards.
    """
    found = entries(rows, sound or {})
    people = human_rows() if people is None else people
    return [
        *_modes(found),
        *_difficulty(found),
        *_labels(found),
        *_people(found, people),
        *_lengths(found),
        *_gaps(found, people),
        *report_open.tables(found),
        *_circular(found),
        *_letters(found),
    ]


def _head(entry: Entry) -> tuple[str, str]:
    return entry.title, entry.length


# --- Tables 3, 4, 5 and 10 --------------------------------------------------------------------


def _modes(found: Sequence[Entry]) -> list[Table]:
    rows = []
    for entry in found:
        uni, multi, delta = (_best(entry, name) for name in table3.JOINED)
        one = [percent(entry.shown("choice", mode, "acc")) for mode in ("a", "s", "v")]
        two = [percent(entry.shown("choice", mode, "acc")) for mode in ("vs", "av")]
        rows.append((_head(entry), [*one, percent(uni), *two, percent(multi), points(delta)]))
    columns = ("A", "S", "V", "Best-Uni", "V+S", "V+A", "Best-Multi", "Delta")
    return by_model("accuracy (%) by input mode (the paper's Table 3)", columns, rows)


def _best(entry: Entry, name: str) -> Cell:
    """A joined number from the modes' own tasks, or else from the group's row.

    Marked where it is another one if a mode whose sound nobody knows of turns out to have none.
    """
    accuracies = {mode: entry.value("choice", mode, "acc") for mode in MODES}
    value = table3.joined(accuracies, entry.sound, name)
    rests = {"best_uni": ("a",), "best_multi": ("av",)}.get(name, table3.WITH_SOUND)
    unknown = [mode for mode in rests if entry.sound.get(mode) == "unknown"]
    if value is None:
        value = number(entry.group.get(name))
        return value, "?" if unknown else ""
    silent = {**entry.sound, **dict.fromkeys(unknown, "not delivered")}
    return value, "" if table3.joined(accuracies, silent, name) == value else "?"


def _difficulty(found: Sequence[Entry]) -> list[Table]:
    rows = []
    for entry in found:
        cells = []
        for slug in SPLITS["difficulty"]:
            sound, picture, both = (
                entry.shown("choice", mode, f"acc_difficulty_{slug}") for mode in ("a", "v", "av")
            )
            cells += [*map(percent, (sound, picture, both)), points(minus(both, sound))]
        rows.append((_head(entry), cells))
    columns = [
        f"{title}\n{name}"
        for title in SPLITS["difficulty"].values()
        for name in ("A", "V", "V+A", "V+A - A")
    ]
    return by_model("accuracy (%) by difficulty (the paper's Table 4)", columns, rows)


def _labels(found: Sequence[Entry]) -> list[Table]:
    shown = [(entry, mode) for entry in found for mode in entry.modes("choice")]

    def line(metric: str) -> list[Cell]:
        return [(entry.value("choice", mode, metric), "") for entry, mode in shown]

    blocks = [
        (
            _SPLIT_TITLES[split],
            [
                (title, [percent(cell) for cell in line(f"acc_{split}_{slug}")])
                for slug, title in slugs.items()
            ],
        )
        for split, slugs in SPLITS.items()
    ]
    overall = [
        ("accuracy", [percent(cell) for cell in line("acc")]),
        ("accuracy, valid", [percent(cell) for cell in line("acc_valid")]),
        ("failed", [count(cell) for cell in line("acc_failed")]),
        ("answer withheld", [count(cell) for cell in line("n_withheld")]),
    ]
    return by_label(
        "accuracy (%) by label (the paper's Tables 5 and 10)",
        [column_title(entry, mode) for entry, mode in shown],
        [*blocks, ("Overall", overall)],
        notes=hidden(found, "choice"),
    )


# --- people and models: Table 7, Figure 4 -----------------------------------------------------


def _agentic(entry: Entry, mode: str) -> list[Cell]:
    names = [*(f"acc_agentic_{slug}" for slug in SPLITS["agentic"]), "acc"]
    return [entry.shown("choice", mode, name) for name in names]


def _person(humans: Humans, mode: str, which: str) -> list[Cell]:
    values = humans.get((mode, which), {})
    return [(values.get(slug), "") for slug in (*SPLITS["agentic"], "overall")]


def _people(found: Sequence[Entry], humans: Humans) -> list[Table]:
    rows = []
    for mode in _ASKED:
        ours = [
            ((*_head(entry), MODES[mode].title), [percent(cell) for cell in _agentic(entry, mode)])
            for entry in found
        ]
        if any(cell != "-" for _, cells in ours for cell in cells):
            rows += [
                (
                    (f"people, {which}", "", MODES[mode].title),
                    [percent(cell) for cell in _person(humans, mode, which)],
                )
                for which in WHICH
            ]
            rows += ours
    title = "accuracy (%) by agentic category, people and models (the paper's Table 7)"
    return by_model(title, [*AGENTIC.values(), "Overall"], rows, names=("", "video", "mode"))


def _lengths(found: Sequence[Entry]) -> list[Table]:
    rows = []
    for short, full in _both_lengths(found):
        for mode in short.modes("choice"):
            cells = zip(_agentic(full, mode), _agentic(short, mode), strict=True)
            changes = [points(minus(long, brief)) for long, brief in cells]
            rows.append(((short.title, short.mode_title(mode)), changes))
    return by_model(
        "change of accuracy (points) from localized to full length (the paper's Figure 4a)",
        [*AGENTIC.values(), "Overall"],
        rows,
        names=("model", "mode"),
        notes=hidden(found, "choice"),
    )


def _both_lengths(found: Sequence[Entry]) -> Iterator[tuple[Entry, Entry]]:
    full = {entry.label: entry for entry in found if entry.length == FULL}
    for entry in found:
        if entry.length == SHORT and entry.label in full:
            yield entry, full[entry.label]


def _gaps(found: Sequence[Entry], humans: Humans) -> list[Table]:
    rows = []
    for entry in found:
        for mode in _ASKED:
            person = _person(humans, mode, "average")
            cells = zip(person, _agentic(entry, mode), strict=True)
            gaps = [points(minus(theirs, ours)) for theirs, ours in cells]
            rows.append(((*_head(entry), MODES[mode].title), gaps))
    return by_model(
        "points by which a model is behind people's average (Figure 4b; people: Table 7)",
        [*AGENTIC.values(), "Overall"],
        rows,
        names=("model", "video", "mode"),
    )


# --- rotations --------------------------------------------------------------------------------

_CIRCULAR = (
    ("circ_acc", "all eight\nright", percent),
    ("circ_acc_valid", "valid", percent),
    ("circ_acc_failed", "failed", count),
    ("acc", "single\nrotations", percent),
    ("acc_valid", "valid", percent),
    ("acc_failed", "failed", count),
    ("position_bias", "position\nbias", rating),
)


def _circular(found: Sequence[Entry]) -> list[Table]:
    rows = [
        (
            (*_head(entry), entry.mode_title(mode)),
            [show((entry.value("circular", mode, name), "")) for name, _, show in _CIRCULAR],
        )
        for entry in found
        for mode in entry.modes("circular")
    ]
    return by_model(
        "eight rotations of each question (%; bias from 0 to 7/8; ours)",
        [title for _, title, _ in _CIRCULAR],
        rows,
        names=("model", "video", "mode"),
        notes=hidden(found, "circular"),
    )


def _letters(found: Sequence[Entry]) -> list[Table]:
    rows = [
        (
            (*_head(entry), entry.mode_title(mode), what),
            [
                percent((entry.value("circular", mode, f"{name}_{letter.lower()}"), ""))
                for letter in LETTERS
            ],
        )
        for entry in found
        for mode in entry.modes("circular")
        for name, what in (("acc_at", "right where it is true"), ("chose", "chosen"))
    ]
    return by_model(
        "letters over the rotations (%; ours)",
        list(LETTERS),
        rows,
        names=("model", "video", "mode", "letter"),
        notes=hidden(found, "circular"),
    )
