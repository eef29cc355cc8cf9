"""MAVERIX's files as docs of the host: one per question, two per open one, eight per rotated one.

The YAMLs name `DATASET_PATH` and one of these `process_docs` functions, both computed when a
selected task asks for them (PEP 562), so that nothing is read at import:

    choice_MODE    choice_long_MODE      one doc per item, id "ID"
    open_MODE      open_long_MODE        two, "ID/original" and "ID/paraphrase"
    circular_MODE  circular_long_MODE    eight, "ID/r0" to "ID/r7"

MODE is one of labels.MODES. `long` asks about the whole video, the others about its segment.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.host import rows_store
from lmms_eval_tasks.maverix import checked, schema, usability
from lmms_eval_tasks.maverix.item import Item
from lmms_eval_tasks.maverix.labels import LETTERS, MODES, N_OPTIONS, SPLITS
from lmms_eval_tasks.maverix.schema import Release
from lmms_eval_tasks.utils import released_files

if TYPE_CHECKING:
    from datasets import Dataset

HOW_TO_GET = (
    "MAVERIX has published no data so far; its authors are asked through the paper. Files of this "
    "suite's own schema, or of another one with a column map, are read (the benchmark's README)"
)
# Upper ends in seconds of the paper's classes of length (Video Collection); the last has none.
DURATIONS = (("short", 60.0), ("middle", 600.0))

Row = dict[str, Any]


def __getattr__(name: str) -> Any:
    if name == "DATASET_PATH":
        return str(rows_store.folder("maverix", rows(load())))
    if match := _PROCESS_DOCS.fullmatch(name):
        return process_docs(match[1], match[3], "long" if match[2] else "localized")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_PROCESS_DOCS = re.compile(rf"(choice|open|circular)_(long_)?({'|'.join(MODES)})")


def load() -> Release:
    """The data the user pointed to.

    Raises:
        DataError: it is not there (the message says what is read) or does not fit the schema.
    """
    place = released_files.required_folder(
        "maverix",
        "MAVERIX",
        HOW_TO_GET,
        "ROOT/maverix/data.json and ROOT/maverix/videos/NAME.mp4",
    )
    return schema.read(schema.find_file(place))


# --- which items can be asked -----------------------------------------------------------------


def video_problems(release: Release) -> dict[str, str]:
    """Videos of good items that cannot be used, by name, with the reason; empty if all can."""
    return usability.look(release)[1]


def usable(release: Release) -> tuple[list[Item], dict[str, str]]:
    """The items to evaluate, and those left out because the user allowed it, with the reason.

    Items without sound are among them: `check_sound` and the docs of A and V+A look at that.

    Raises:
        DataError: items are bad and `--allow-bad-items` was not given, or videos cannot be used
            and `--allow-missing-videos` was not given, or nothing is left.
    """
    found, videos = usability.look(release)
    bad = {**release.problems, **usability.late_problems(release, found)}
    usability.complain(release, bad, videos)
    without = {i.id: f"its video is {videos[i.video]}" for i in release.items if i.video in videos}
    left_out = {**without, **bad}
    items = [item for item in release.items if item.id not in left_out]
    if not items:
        raise DataError(f"{release.file}: none of {len(left_out)} MAVERIX items can be used")
    return items, left_out


def check_sound(items: Sequence[Item]) -> dict[str, str]:
    """Items that A and V+A leave out because their video has no sound, with the reason.

    Args:
        items: usable items of the data that is loaded.

    Raises:
        DataError: there are some and `--allow-bad-items` was not given, or no other ones.
    """
    found, _ = usability.look(load())
    return usability.silent((item.id, found[item.video].has_audio) for item in items)


# --- rows: one per item, the common base of all tasks -----------------------------------------


def shown_order(item: Item) -> list[int]:
    """Places in the file of the options in the order in which they are shown.

    Depends on the id only: the same on every machine and rank, under --limit, and for every mode.
    Over many ids each option, so the right one too, falls on each letter equally often. Exactly as
    often within one file would need the other items, and an item's letters would change with them.
    A file that says `shuffled` keeps its order.
    """

    def rank(place: int) -> str:
        return hashlib.sha256(f"{item.id}\x1f{place}".encode()).hexdigest()

    places = range(N_OPTIONS)
    return list(places) if item.shuffled else sorted(places, key=rank)


def rows(release: Release) -> list[Row]:
    """One row per usable item, in the file's order; "" stands for what is withheld or unlabelled.

    `file_letters[i]` is the file's letter of the option that is shown as the i-th. A segment that
    ends a rounded second after its video (usability.py) ends with it.
    """
    return rows_of(release, usable(release)[0])


def rows_of(release: Release, items: Sequence[Item]) -> list[Row]:
    """`rows` of some items; those whose video cannot be read any more are passed over."""
    found, _ = usability.look(release)
    made = []
    for item in items:
        if item.video not in found:
            continue
        order = shown_order(item)
        info, subtitles = found[item.video], release.subtitles_of(item.video)
        row = {
            "id": item.id,
            "video": item.video,
            "video_path": str(release.path_of(item.video).resolve()),
            "video_seconds": info.end,
            "has_audio": info.has_audio,
            "subtitle_path": "" if subtitles is None else str(subtitles.resolve()),
            "start": item.start,
            "end": None if item.end is None else min(item.end, info.end),
            "question": item.question,
            "paraphrase": item.paraphrase,
            "options": [item.options[place] for place in order],
            "answer": "" if item.answer is None else LETTERS[order.index(item.answer)],
            "file_letters": "".join(LETTERS[place] for place in order),
            "reference": item.reference or "",
            "data": release.digest,
        }
        labels = {split: getattr(item, split) or "" for split in SPLITS}
        labels["duration"] = labels["duration"] or duration_class(info.end)
        made.append({**row, **labels})
    return made


def duration_class(seconds: float) -> str:
    """The paper's class of a whole video's length: under 1 minute, 1 to 10, 10 and more."""
    return next((name for name, end in DURATIONS if seconds < end), "long")


# --- docs: what `process_docs` of the YAMLs makes of the rows ---------------------------------

_OF_CHOICE = ("options", "answer", "file_letters")
_OF_OPEN = ("paraphrase", "reference")


@functools.cache
def process_docs(kind: str, mode: str, length: str) -> Callable[[Dataset], Dataset]:
    """The function that makes a task's docs of the rows.

    Args:
        kind: choice, open or circular.
        mode: a slug of labels.MODES.
        length: localized or long.
    """
    make = {"choice": choice, "open": open_ended, "circular": circular}[kind]

    def docs(dataset: Dataset) -> Dataset:
        from datasets import Dataset

        silent: Mapping[str, str] = {}
        if MODES[mode].sound:
            silent = usability.silent((row["id"], row["has_audio"]) for row in dataset)
        before = checked.last()
        uncut = before.uncut if before and (MODES[mode].picture or MODES[mode].sound) else {}
        whole = {"start": None, "end": None} if length == "long" else {}
        shared = {"mode": mode, "length": length, **whole}
        kept = (
            {**row, **shared}
            for row in dataset
            if row["id"] not in silent and checked.window_of(row, length) not in uncut
        )
        return Dataset.from_list([doc for row in kept for doc in make(row)])

    return docs


def choice(row: Row) -> list[Row]:
    """The item with its eight options."""
    return [{**_without(row, _OF_OPEN), "question_id": row["id"]}]


def circular(row: Row) -> list[Row]:
    """The item eight times; the options move up by one place from each doc to the next.

    Over the eight docs each option stands once at each letter; "ID/r0" is the doc of `choice`.
    """
    shared = _without(row, _OF_OPEN)
    docs = []
    for turn in range(N_OPTIONS):
        answer = row["answer"] and LETTERS[(LETTERS.index(row["answer"]) - turn) % N_OPTIONS]
        docs.append(
            {
                **shared,
                "id": f"{row['id']}/r{turn}",
                "question_id": row["id"],
                "rotation": turn,
                "options": [*row["options"][turn:], *row["options"][:turn]],
                "answer": answer,
                "file_letters": row["file_letters"][turn:] + row["file_letters"][:turn],
            }
        )
    return docs


def open_ended(row: Row) -> list[Row]:
    """The question and its paraphrase, with the reference that both share.

    `references` (none if withheld) and `lure`, a wrong option, are for scripted models.
    """
    wrong = [
        option
        for letter, option in zip(LETTERS, row["options"], strict=True)
        if letter != row["answer"]
    ]
    shared = {
        **_without(row, (*_OF_CHOICE, "paraphrase")),
        "question_id": row["id"],
        "references": [row["reference"]] if row["reference"] else [],
        "lure": wrong[0] if row["answer"] else "",
    }
    return [
        {**shared, "id": f"{row['id']}/{version}", "version": version, "question": row[field]}
        for version, field in (("original", "question"), ("paraphrase", "paraphrase"))
    ]


def _without(row: Row, names: Iterable[str]) -> Row:
    return {name: value for name, value in row.items() if name not in names}
