"""MAVERIX's data: where they are, which items can be asked, and the docs that tasks make of them.

    choice     one doc per item, id "ID"
    open       two, "ID/original" and "ID/paraphrase"
    circular   eight, "ID/r0" to "ID/r7"

A task with `long` in its name asks about the whole video, the others about an item's segment.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lmms_eval_tasks.benchmark import Doc, Found
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maverix import files
from lmms_eval_tasks.maverix.files import Release, late_problems, look_at_videos
from lmms_eval_tasks.maverix.item import Item
from lmms_eval_tasks.maverix.labels import (
    LETTERS,
    N_OPTIONS,
    SPLITS,
    duration_class,
    kind_of,
    length_of,
    mode_of,
)
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.media import segments, subtitles, transcription
from lmms_eval_tasks.utils.media.video_checks import bad_items, missing_videos, stop

if TYPE_CHECKING:
    from lmms_eval_tasks.utils.media.transcription import Whisper
    from lmms_eval_tasks.utils.media.video_checks import VideoInfo

NAMED = 20  # items of one warning
NO_FILE = "none"  # kind of the subtitles of a video that has none

Row = dict[str, Any]  # an item that can be asked, with its files; the common base of all docs


def load() -> Release:
    """The data the user pointed to.

    Raises:
        DataError: it is not there (the message says what is read) or does not fit the files.
    """
    place = released_files.required_folder(
        "maverix",
        "MAVERIX",
        files.HOW_TO_GET,
        "ROOT/maverix/data.json and ROOT/maverix/videos/NAME.mp4",
    )
    return files.read(place)


# --- which items can be asked -------------------------------------------------------------------


@dataclass(frozen=True)
class Checked(Found):
    """The data of a run as they were before its model was built.

    Attributes:
        rows: one per item that can be asked, in the file's order.
        bad: the others by id, with the reason.
        silent: items without sound, with the reason; left out where the mode has sound.
        subtitles: where subtitles came from (`subtitle_notes`); None if no mode shows any.
    """

    release: Release
    rows: Sequence[Row]
    bad: Mapping[str, str]
    silent: Mapping[str, str]
    subtitles: Mapping[str, Any] | None

    def left_out(self, task: str) -> dict[str, str]:
        """Bad items, and those without sound where the task needs it."""
        return {**self.bad, **(self.silent if mode_of(task).sound else {})}


def look(
    names: Sequence[str],
    *,
    videos: bool = True,  # noqa: ARG001 - windows need them
    only: Collection[str] | None = None,
) -> Checked:
    """The data as the tasks need them (Benchmark.look).

    Raises:
        DataError: they are not there; items are bad, or have no sound in a task that needs it, and
            `--allow-bad-items` was not given; videos cannot be used and `--allow-missing-videos`
            was not given; or nothing is left.
    """
    release = load()
    lengths = _lengths(release, names)
    infos, lost, silent_videos = _look_at(release, lengths, only)
    bad = {**release.problems, **late_problems(release, infos, lengths)}
    items = f"of {len(release.items) + len(release.problems)} MAVERIX items cannot be used"
    known = f"of {len({item.video for item in release.items})} MAVERIX videos cannot be used"
    stop(release.file, [*bad_items(bad, items), *missing_videos(lost, known)])
    without = {i.id: f"its video is {lost[i.video]}" for i in release.items if i.video in lost}
    left_out = {**without, **bad}
    rows = [_row(release, item, infos) for item in release.items if item.id not in left_out]
    if not rows:
        raise DataError(f"{release.file}: none of {len(left_out)} MAVERIX items can be used")
    modes = {name: mode_of(name) for name in names}
    hear = any(mode.sound for mode in modes.values())
    silent = _silent(release.file, rows, silent_videos) if hear else {}
    shown = {length_of(name) for name, mode in modes.items() if mode.subtitles}
    notes = subtitle_notes(release, rows, sorted(shown)) if shown else None
    return Checked(release, release.digest, rows, left_out, silent, notes)


def _lengths(release: Release, names: Iterable[str]) -> list[str]:
    """Of the videos that the tasks hand over; our own form has one file for both."""
    asked = {length_of(name) for name in names}
    return [length for length in release.lengths if length in asked] or ["localized"]


def _look_at(
    release: Release, lengths: Sequence[str], only: Collection[str] | None = None
) -> tuple[dict[str, VideoInfo], dict[str, str], set[str]]:
    """As look_at_videos, of all lengths that are needed; and the videos without sound."""
    infos: dict[str, VideoInfo] = {}
    lost: dict[str, str] = {}
    silent: set[str] = set()
    for length in lengths:
        found, gone = look_at_videos(release, only, length)
        infos, lost = {**found, **infos}, {**lost, **gone}
        silent |= {video for video, info in found.items() if not info.has_audio}
    return infos, lost, silent


def _silent(file: Path, rows: Sequence[Row], silent: Collection[str]) -> dict[str, str]:
    """Items that A and V+A leave out because their video has no sound, with the reason."""
    without = {row["id"]: "its video has no audio stream" for row in rows if row["video"] in silent}
    what = f"of {len(rows)} MAVERIX items cannot be asked with sound (A, V+A)"
    stop(file, bad_items(without, what))
    if len(without) == len(rows):
        raise DataError(f"none of {len(without)} MAVERIX items has a video with sound (A, V+A)")
    return without


# --- rows and docs ------------------------------------------------------------------------------


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


def _row(release: Release, item: Item, infos: Mapping[str, VideoInfo]) -> Row:
    """A usable item in plain types; "" stands for what is withheld or unlabelled.

    `file_letters[i]` is the file's letter of the option that is shown as the i-th. A segment that
    ends a rounded second after its video (video_checks.py) ends with it.
    """
    order = shown_order(item)
    seconds = infos[item.video].end if item.video in infos else math.inf
    labels = {split: getattr(item, split) or "" for split in SPLITS}
    measured = "" if release.released else duration_class(seconds)  # a cut file's is another one
    return {
        "id": item.id,
        "video": item.video,
        **_files(release, item.video, "localized"),
        "full": _files(release, item.video, "long"),
        "start": item.start,
        "end": None if item.end is None else min(item.end, seconds),
        "question": item.question,
        "opened": item.opened or item.question,
        "borrowed": item.borrowed,
        "paraphrase": item.paraphrase,
        "options": [item.options[place] for place in order],
        "answer": "" if item.answer is None else LETTERS[order.index(item.answer)],
        "file_letters": "".join(LETTERS[place] for place in order),
        "reference": item.reference or "",
        "data": release.digest,
        **{**labels, "duration": labels["duration"] or measured},
        "more_agentic": list(item.more_agentic),
    }


def _files(release: Release, video: str, length: str) -> dict[str, str]:
    path = release.subtitles_of(video, length)
    return {
        "video_path": str(released_files.real(release.path_of(video, length))),
        "subtitle_path": "" if path is None else str(released_files.real(path)),
    }


def docs(found: Found, task: str) -> list[Row]:
    """A task's docs: of the items that have what its mode shows (Benchmark.docs)."""
    known, mode = cast(Checked, found), mode_of(task)
    make = {"choice": _choice, "open": _open_ended, "circular": _circular}[kind_of(task)]
    shared = {"mode": mode.slug, "length": length_of(task)}
    return [
        doc
        for row in known.rows
        if not (mode.sound and row["id"] in known.silent)
        for doc in make({**_windowed(row, length_of(task)), "question_id": row["id"], **shared})
    ]


def _windowed(row: Row, length: str) -> Row:
    """A row with its segment, or with the whole video."""
    whole = {"start": None, "end": None, **row["full"]} if length == "long" else {}
    return {**_without(row, "full"), **whole}


def _choice(row: Row) -> list[Row]:
    """The item with its eight options."""
    return [_without(row, "opened", "borrowed", "paraphrase", "reference")]


def _circular(row: Row) -> list[Row]:
    """The item eight times; the options move up by one place from each doc to the next.

    Over the eight docs each option stands once at each letter; "ID/r0" is the doc of `_choice`.
    """
    docs = []
    for turn in range(N_OPTIONS):
        answer = row["answer"] and LETTERS[(LETTERS.index(row["answer"]) - turn) % N_OPTIONS]
        docs.append(
            {
                **_choice(row)[0],
                "id": f"{row['id']}/r{turn}",
                "rotation": turn,
                "options": [*row["options"][turn:], *row["options"][:turn]],
                "answer": answer,
                "file_letters": row["file_letters"][turn:] + row["file_letters"][:turn],
            }
        )
    return docs


def _open_ended(row: Row) -> list[Row]:
    """The question and its paraphrase, with the reference that both share.

    `references` (none if withheld) and `lure`, a wrong option, are for scripted models.
    """
    wrong = [
        option
        for letter, option in zip(LETTERS, row["options"], strict=True)
        if letter != row["answer"]
    ]
    shared = {
        **_without(row, "options", "answer", "file_letters", "opened", "paraphrase"),
        "references": [row["reference"]] if row["reference"] else [],
        "lure": wrong[0] if row["answer"] else "",
    }
    return [
        {**shared, "id": f"{row['id']}/{version}", "version": version, "question": row[field]}
        for version, field in (("original", "opened"), ("paraphrase", "paraphrase"))
    ]


def _without(row: Row, *names: str) -> Row:
    return {name: value for name, value in row.items() if name not in names}


# --- subtitles ----------------------------------------------------------------------------------


def cues(doc: Doc) -> Sequence[subtitles.Cue]:
    """Those of the doc's segment, rebased to its beginning."""
    return _cues(doc["subtitle_path"], doc["start"], doc["end"])


@functools.lru_cache(maxsize=4096)
def _cues(path: str, start: float | None, end: float | None) -> Sequence[subtitles.Cue]:
    found = subtitles.read(Path(path)) if path else []
    if start is None or end is None:
        return found
    return subtitles.cut(found, start, end)


def subtitle_notes(release: Release, rows: Sequence[Row], lengths: Iterable[str]) -> dict[str, Any]:
    """Where the subtitles of a run came from.

    `without`: number of items by length (localized, long) whose prompt has no cue, of `items`.
    `videos`: number of videos by kind (srt, vtt, json, none). `made_by`: for each transcriber that
    files of `data subtitles` name, what they say of it and the number of videos; released files
    name none. `hash`: 12 hex digits of the SHA-256 of all cues, independent of the files' form.
    """
    kinds, makers = Counter[str](), Counter[str]()
    digest = hashlib.sha256()
    lengths = list(lengths)
    own = {length for length in lengths if length in release.lengths} or {"localized"}
    videos = {row["video"] for row in rows}
    for video, length in sorted(itertools.product(videos, own)):
        path = release.subtitles_of(video, length)
        kinds[NO_FILE if path is None else path.suffix.lower().removeprefix(".")] += 1
        every = [] if path is None else subtitles.read(path)
        said = [[cue.start, cue.end, cue.text] for cue in every]
        digest.update(json.dumps([video, said], ensure_ascii=True).encode() + b"\n")
        if path is not None and (maker := _made_by(path)):
            makers[json.dumps(maker, sort_keys=True)] += 1
    return {
        "items": len(rows),
        "without": {
            length: sum(not cues(_windowed(row, length)) for row in rows) for length in lengths
        },
        "videos": dict(sorted(kinds.items())),
        "made_by": [{**json.loads(maker), "videos": n} for maker, n in sorted(makers.items())],
        "hash": digest.hexdigest()[:12],
    }


def subtitle_warnings(notes: Mapping[str, Any] | None) -> list[str]:
    """What a result must say: without cues, S is the bare question, and V+S is V."""
    return [
        f"{number} of {notes['items']} items ({length}) have no subtitles to show in S and V+S: "
        f"{notes['videos'].get(NO_FILE, 0)} of {sum(notes['videos'].values())} videos have no "
        "file (lmms-eval-tasks data subtitles maverix makes them)"
        for length, number in (notes["without"].items() if notes else ())
        if notes and number
    ]


def _made_by(path: Path) -> dict[str, Any]:
    """The transcriber that a file names (transcription.py), without its date; else empty."""
    if path.suffix.lower() != ".json":
        return {}
    content = json.loads(path.read_text(encoding="utf-8-sig"))
    maker = content.get("transcriber") if isinstance(content, dict) else None
    if not isinstance(maker, dict):
        return {}
    return {name: value for name, value in maker.items() if name != "date"}


def make_subtitles(root: Path, whisper: Whisper) -> int:
    """Subtitles for every video under the data root that has none; returns how many failed.

    Raises:
        DataError: no data, or nothing can be written there.
    """
    release = files.read(root / "maverix")
    return sum(_make_subtitles(release, length, whisper) for length in release.lengths)


def _make_subtitles(release: Release, length: str, whisper: Whisper) -> int:
    folder = release.folder("subtitles", length)
    found, _ = look_at_videos(release, None, length)
    # Named as what is there, or a released talk.srt of "talk.mp4" would get a talk.mp4.json.
    there = {name: release.subtitles_of(name, length) for name in sorted(found)}
    paths = {name: release.path_of(name, length) for name in there}
    videos = {_subtitled(name, path, folder): paths[name] for name, path in there.items()}

    silent = {paths[name] for name, info in found.items() if not info.has_audio}

    def sound_of(path: Path) -> Path | None:
        return None if path in silent else Path(segments.sound_file(path))

    return transcription.make(videos, folder, whisper, sound_of=sound_of)


def _subtitled(video: str, there: Path | None, folder: Path) -> str:
    """The video's name among subtitles: that of its file, where there is one."""
    return video if there is None else there.relative_to(folder).with_suffix("").as_posix()


# --- results ------------------------------------------------------------------------------------


def describe(
    found: Checked, names: Sequence[str], left_out: Mapping[str, Mapping[str, str]]
) -> tuple[dict[str, Any], list[str]]:
    """The data of a run for its results, and what warns of them.

    Args:
        found: what the check found.
        names: of the tasks that were run.
        left_out: by task and item, with the reason; also what could not be cut.
    """
    release = found.release
    uncut = {
        item + (" (full length)" if length_of(name) == "long" else ""): why
        for name in sorted(names, key=length_of)
        for item, why in left_out[name].items()
        if item not in found.left_out(name)
    }
    section: dict[str, Any] = {
        "data": {
            "file": str(release.file),
            "hash": release.digest,
            "version": release.version,
            "items": len(found.rows),
            "withheld": release.withheld,
            "ignored": list(release.ignored),
        },
        "left_out": dict(found.bad),
        "without_sound": dict(found.silent),  # left out where the mode has sound
        "not_cut": uncut,  # left out where it has picture or sound
    }
    if found.subtitles is not None:
        section["subtitles"] = dict(found.subtitles)
    warnings = []
    if found.bad:
        warnings.append(f"{len(found.bad)} items left out: {_named(found.bad)}")
    if found.silent:
        warnings.append(f"{len(found.silent)} items without sound left out of A and V+A")
    if uncut:
        warnings.append(
            f"{len(uncut)} items that cannot be cut left out of all modes but S: {_named(uncut)}"
        )
    warnings += subtitle_warnings(found.subtitles)
    if release.ignored:
        warnings.append(f"fields of the data that are not read: {', '.join(release.ignored)}")
    used = {row["video"] for row in found.rows}
    borrowed = release.borrowed
    if borrowed and any(kind_of(name) == "open" for name in names):
        warnings.append(
            f"{len(borrowed)} questions are asked openly in the words of another one: numbers are "
            "without those answers, and with them under _with_borrowed and _authors"
        )
    if gone := used & _look_at(release, _lengths(release, names))[1].keys():
        warnings.append(f"{len(gone)} videos went missing or broke during the run: {_named(gone)}")
    return section, warnings


def _named(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)[:NAMED])
