"""MAVERIX's files, the authors' released lines or a schema of our own: read, looked at, placed.

    ROOT/maverix/data.jsonl       the released lines (item.from_released); or ours:
    ROOT/maverix/data.json        {"version": "...", "items": [...]}, or the list alone (item.py)
    ROOT/maverix/columns.yml      optional: another file's names and words (item.py)
    ROOT/maverix/videos/NAME.mp4  or another known ending (released_files.VIDEO_ENDINGS)
    ROOT/maverix/subtitles/NAME.srt, .vtt or .json
    ROOT/maverix/videos_full, subtitles_full    beside released lines, whose videos are cut

A file that is not of the schema at all stops with the place of its first error. What is wrong with
single items is collected, so that the others can be run where the user allows it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maverix.item import (
    COLUMNS_FILE,
    FIELDS,
    RELEASED_FIELDS,
    Item,
    from_released,
    is_released,
    read_columns,
)
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.media import segments, subtitles, video_checks
from lmms_eval_tasks.utils.released_files import DataStatus, Seen
from lmms_eval_tasks.utils.validation import good_entries, quoted

if TYPE_CHECKING:
    from lmms_eval_tasks.utils.media.video_checks import VideoInfo

HOW_TO_GET = (
    "The questions are lmms_eval/tasks/maverix/processing/test_full.jsonl of the authors' "
    "repository (github.com/gzhihongwei/lmms-eval), the media a data set of the hub "
    "(CUBE-CMU/maverix) whose authors grant access. Files of this suite's own schema, or of "
    "another one with a column map, are read too (the benchmark's README)"
)
OUR_SCHEMA = (
    "the data are not the authors' released lines: their schema is this suite's own (README)"
)
RELEASED = (
    "the authors' released lines: options in their order; videos/ and subtitles/ are the cut "
    "segments, videos_full/ and subtitles_full/ the full videos"
)

# What the full set holds (paper, Table 1 and Benchmark Design). An item is one of the unique
# questions: it is asked once with eight options, and twice openly.
PAPER_COUNTS = {"videos": 700, "questions": 852, "asked": 2556}
ASKED_EACH = 3
# Ours, and the name that the paper announces (A); another one is accepted if it is the only one.
FILE_NAMES = ("data.json", "MAVERIX_v1.0.json", "data.jsonl", "test_full.jsonl")


@dataclass(frozen=True)
class Release:
    """A data file whose good items are validated, and the folder of its videos.

    Attributes:
        file: the data file.
        digest: first 12 hex digits of the SHA-256 of content and column map, independent of
            formatting.
        version: the file's own, or "".
        items: the good ones, in the file's order.
        problems: id of a bad item -> what is wrong with it, in one line.
        ignored: names in the file that are no field of the schema, sorted.
        released: the file is the authors': videos and subtitles are cut to the segments, and the
            full ones have folders of their own.
        notes: what else to tell of the file.
    """

    file: Path
    digest: str
    version: str
    items: tuple[Item, ...]
    problems: Mapping[str, str]
    ignored: tuple[str, ...]
    released: bool = False
    notes: tuple[str, ...] = ()

    @property
    def lengths(self) -> tuple[str, ...]:
        """Of which there are files; those of the localized ones are all that ours has."""
        return ("localized", "long") if self.released else ("localized",)

    @property
    def borrowed(self) -> list[str]:
        """Ids of good items whose first open wording is that of their video's first question."""
        return [item.id for item in self.items if item.borrowed]

    @property
    def counts(self) -> dict[str, int]:
        """Videos and questions of good items, to compare with PAPER_COUNTS; bad items."""
        return {
            "videos": len({item.video for item in self.items}),
            "questions": len(self.items),
            "asked": len(self.items) * ASKED_EACH,
            "bad_items": len(self.problems),
        }

    @property
    def withheld(self) -> dict[str, int]:
        """Good items without an answer, and without a reference: they carry no score."""
        return {
            "answers": sum(item.answer is None for item in self.items),
            "references": sum(item.reference is None for item in self.items),
        }

    def path_of(self, video: str, length: str = "localized") -> Path:
        """Where the file of `video` is, or would be: videos/NAME with its own or a known ending."""
        return released_files.video_path([self.folder("videos", length)], video)

    def folder(self, name: str, length: str) -> Path:
        """Of videos or subtitles of one length."""
        full = self.released and length == "long"
        return self.file.parent / (f"{name}_full" if full else name)

    def subtitles_of(self, video: str, length: str = "localized") -> Path | None:
        """The subtitle file of `video`, srt before vtt before json; None if there is none."""
        folder = self.folder("subtitles", length)
        return subtitles.find(folder, video) or subtitles.find(folder, released_files.stem(video))


def read(path: Path) -> Release:
    """Read and validate a data file, or the one of a folder; kept while the files do not change.

    Raises:
        DataError: not a file of the schema at all, an item without a usable id or with another
            item's id, or not one item that can be used; names the file and the place.
    """
    file = released_files.find_file(path, FILE_NAMES)
    return _read(file, released_files.state(file, file.parent / COLUMNS_FILE))


@lru_cache(maxsize=8)
def _read(file: Path, _state: object) -> Release:
    lines = file.suffix.lower() == ".jsonl"
    content = (
        [line for _, line in released_files.read_lines(file)]
        if lines
        else released_files.read_json(file)
    )
    version = content.get("version", "") if isinstance(content, dict) else ""
    entries = content.get("items") if isinstance(content, dict) else content
    if not isinstance(entries, list):
        raise DataError(f'{file}: expected {{"version": "...", "items": [...]}} or a list of items')
    if not isinstance(version, str):
        raise DataError(f"{file}, version: expected a text, found {quoted(version)}")
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict):
            raise DataError(f"{file}, entry {number}: expected an object, found {quoted(entry)}")
    mapping = read_columns(file.parent)
    if unused := mapping.unused(entries):
        raise DataError(
            f"{file.parent / COLUMNS_FILE}, columns, {unused}: no entry of {file.name} has "
            f"{mapping.columns[unused]!r}"
        )
    notes: list[str] = []
    if released := not mapping.columns and is_released(entries):
        ours, notes = from_released(file, entries, mapping.values)
    else:
        ours = [mapping.apply(entry) for entry in entries]
    items, problems = good_entries(file, ours, Item)
    canonical = json.dumps([content, mapping.columns, mapping.values], sort_keys=True, default=str)
    known = {*RELEASED_FIELDS} if released else {*FIELDS, *mapping.names()}
    return Release(
        file=file,
        digest=hashlib.sha256(canonical.encode()).hexdigest()[:12],
        version=version,
        items=items,
        problems=problems,
        ignored=tuple(sorted({name for entry in entries for name in entry} - known)),
        released=released,
        notes=tuple(notes),
    )


# --- a look at them -----------------------------------------------------------------------------


def look_at_videos(
    release: Release, only: Collection[str] | None = None, length: str = "localized"
) -> tuple[dict[str, VideoInfo], dict[str, str]]:
    """Facts about the videos of good items that can be read, and what is wrong with the others.

    Both by the video's name; a reason starts with "missing" or "unreadable". `only` is as of
    data.look.
    """
    videos = dict.fromkeys(item.video for item in release.items)
    return video_checks.look({video: release.path_of(video, length) for video in videos}, only)


def late_problems(
    release: Release, infos: Mapping[str, VideoInfo], lengths: Sequence[str] = ("localized",)
) -> dict[str, str]:
    """Items whose segment is not inside their video, or whose subtitles cannot be read, by id.

    A video ends with its picture or with its sound, whichever is later. Items of videos of which
    nothing is known are passed over.
    """
    problems: dict[str, str] = {}
    for item in release.items:
        if item.video not in infos:
            continue
        if why := video_checks.outside(item.start, item.end, infos[item.video].end):
            problems[item.id] = why
        for length in lengths:
            if why := _subtitle_problem(release.subtitles_of(item.video, length)):
                problems.setdefault(item.id, f"subtitles: {why}")
    return problems


def _subtitle_problem(path: Path | None) -> str:
    """Why a subtitle file cannot be read, or ""."""
    try:
        if path is not None:
            subtitles.read(path)
    except DataError as error:
        return str(error)
    return ""


def status(root: Path) -> DataStatus:
    """Look at MAVERIX's data under a data root, without raising."""
    return released_files.status("maverix", root, HOW_TO_GET, _seen)


def _seen(place: Path) -> Seen:
    release = read(place)
    found, problems = look_at_videos(release)
    return Seen(release.file, release.digest, release.counts, len(found), problems, _notes(release))


def _notes(release: Release) -> Iterator[str]:
    yield RELEASED if release.released else OUR_SCHEMA
    yield released_files.compared(release.counts, PAPER_COUNTS)
    if any(release.withheld.values()):
        held = ", ".join(f"{number:,} {what}" for what, number in release.withheld.items())
        yield f"withheld, so without a score: {held}"
    if release.ignored:
        yield (
            f"fields that are not read: {', '.join(release.ignored)} "
            f"({COLUMNS_FILE} gives them our names)"
        )
    yield from release.notes
    if borrowed := release.borrowed:
        yield (
            f"{len(borrowed)} questions whose first open wording is that of their video's first "
            f"question: {', '.join(borrowed)}"
        )
    found, _ = look_at_videos(release)
    if release.released:
        full, lost = look_at_videos(release, None, "long")
        yield f"full videos, of the long tasks: {len(full)} of {len(full) + len(lost)}"
    late = late_problems(release, found, release.lengths)
    for name, why in {**release.problems, **late}.items():
        yield f"{name}: {why}"
    if silent := [video for video, info in found.items() if not info.has_audio]:
        yield f"videos without sound, which A and V+A need: {', '.join(silent)}"


# --- putting a release in place -----------------------------------------------------------------

# A folder beside the data file -> where it goes; the paper announces `vid` (A), and so is released.
# What it lacks is joined of `vid_only` and `audio_only`, its picture and its sound.
_MEDIA = {
    f"{theirs}{full}": f"{ours}{full}"
    for full in ("", "_full")
    for theirs, ours in {
        "videos": "videos",
        "vid": "videos",
        "subtitles": "subtitles",
        "subtitle": "subtitles",
    }.items()
}


def prepare(source: Path, root: Path, link: bool) -> str:
    """Validate a data file and put it, its videos and subtitles under the data root.

    Raises:
        DataError: the source is not there, does not fit the schema, or other data is in the way.
        MediaError: a picture and its sound cannot be joined.
    """
    file, folder = _laid_out(source.expanduser().resolve())
    release = read(file)
    target = root / "maverix"
    mapped = file.parent / COLUMNS_FILE
    forms = ("data.json", "data.jsonl")
    name, other = reversed(forms) if file.suffix.lower() == ".jsonl" else forms
    if (target / other).exists():
        raise DataError(f"{target / other}: is in the way of {file}; remove it first")
    apart = _apart(folder)
    alone = {place: picture for place, (picture, sound) in apart.items() if sound is None}
    places = {name: release.file, COLUMNS_FILE: mapped, **_media(folder), **alone}
    places = {place: path for place, path in places.items() if path.is_file()}
    done = released_files.place(target, places, link, fixed=[name])
    for place, (picture, sound) in apart.items():
        if sound is not None:
            segments.join(picture, sound, target / place)
    if not mapped.is_file():
        # Of another release, or of an older state of this one: it would change what is read.
        (target / COLUMNS_FILE).unlink(missing_ok=True)
    placed = _check_placed(release, target)
    told = [
        f"{done}: {len(release.items)} items, {len(release.problems)} with problems; "
        f"{RELEASED if release.released else OUR_SCHEMA}"
    ]
    if joined := len(apart) - len(alone):
        told.append(f"{joined} videos were joined of vid_only and audio_only")
    if alone:
        told.append(f"{len(alone)} videos are vid_only alone: without sound, which A and V+A need")
    videos = sorted({item.video for item in placed.items})
    for length in placed.lengths:
        full = "full " if length == "long" else ""
        if absent := [one for one in videos if not placed.path_of(one, length).is_file()]:
            told.append(
                f"{len(absent)} of {len(videos)} {full}videos are not there: {', '.join(absent)}; "
                f"put them into {placed.folder('videos', length)}"
            )
        if silent := [one for one in videos if placed.subtitles_of(one, length) is None]:
            told.append(
                f"{len(silent)} of {len(videos)} {full}videos have no subtitles: put them into "
                f"{placed.folder('subtitles', length)}, or make them with lmms-eval-tasks data "
                "subtitles maverix"
            )
    return "\n".join(told)


def _laid_out(source: Path) -> tuple[Path, Path]:
    """The data file, and the folder of its media: its own, or as the paper announces (A).

    There the file is in data/, with vid/ and subtitles/ beside that folder.
    """
    file = source
    if source.is_dir():
        named = [f / n for f in (source, source / "data") for n in FILE_NAMES]
        known = next((path for path in named if path.is_file()), source)
        file = released_files.find_file(known, FILE_NAMES)
    above = file.parent.parent
    media = (*_MEDIA, "vid_only", "vid_only_full")
    announced = file.parent.name == "data" and any((above / name).is_dir() for name in media)
    return file, above if announced else file.parent


def _media(folder: Path) -> dict[str, Path]:
    """Place under the data root -> file, of the videos and subtitles beside a data file."""
    return {
        f"{place}/{path.name}": path
        for name, place in _MEDIA.items()
        for path in sorted(folder.glob(f"{name}/*"))
    }


def _apart(folder: Path) -> dict[str, tuple[Path, Path | None]]:
    """Place -> picture and sound, of the videos of which `vid` has no file; no sound is None."""
    found: dict[str, tuple[Path, Path | None]] = {}
    for full in ("", "_full"):
        whole = {path.stem for name in ("vid", "videos") for path in folder.glob(f"{name}{full}/*")}
        sounds = {path.stem: path for path in folder.glob(f"audio_only{full}/*")}
        for path in sorted(folder.glob(f"vid_only{full}/*")):
            if path.stem not in whole:
                found[f"videos{full}/{path.name}"] = path, sounds.get(path.stem)
    return found


def _check_placed(release: Release, target: Path) -> Release:
    """The data read again from their place: nothing that lies there may change what they say.

    Raises:
        DataError: something does.
    """
    placed = read(target)
    videos = {item.video for item in release.items}
    released_files.check_placed((placed.path_of(one), release.path_of(one)) for one in videos)
    released_files.check_placed(
        (placed.subtitles_of(one), release.subtitles_of(one)) for one in videos
    )
    return placed
