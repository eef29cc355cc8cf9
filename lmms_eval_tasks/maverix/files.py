"""MAVERIX's files in a schema of our own (the paper's are not public): read, looked at, placed.

    ROOT/maverix/data.json        {"version": "...", "items": [...]}, or the list alone (item.py)
    ROOT/maverix/columns.yml      optional: another file's names and words (item.py)
    ROOT/maverix/videos/NAME.mp4  or another known ending (released_files.VIDEO_ENDINGS)
    ROOT/maverix/subtitles/NAME.srt, .vtt or .json

A file that is not of the schema at all stops with the place of its first error. What is wrong with
single items is collected, so that the others can be run where the user allows it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maverix.item import COLUMNS_FILE, FIELDS, Item, read_columns
from lmms_eval_tasks.utils import released_files, subtitles, video_checks
from lmms_eval_tasks.utils.released_files import DataStatus, Seen
from lmms_eval_tasks.utils.validation import good_entries, quoted

if TYPE_CHECKING:
    from lmms_eval_tasks.utils.probes import VideoInfo

HOW_TO_GET = (
    "MAVERIX has published no data so far; its authors are asked through the paper. Files of this "
    "suite's own schema, or of another one with a column map, are read (the benchmark's README)"
)
OUR_SCHEMA = "MAVERIX has published no data: the file's schema is this suite's own (README)"

# What the full set holds (paper, Table 1 and Benchmark Design). An item is one of the unique
# questions: it is asked once with eight options, and twice openly.
PAPER_COUNTS = {"videos": 700, "questions": 852, "asked": 2556}
ASKED_EACH = 3
# Ours, and the name that the paper announces (A); another one is accepted if it is the only one.
FILE_NAMES = ("data.json", "MAVERIX_v1.0.json")


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
    """

    file: Path
    digest: str
    version: str
    items: tuple[Item, ...]
    problems: Mapping[str, str]
    ignored: tuple[str, ...]

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

    def path_of(self, video: str) -> Path:
        """Where the file of `video` is, or would be: videos/NAME with its own or a known ending."""
        return released_files.video_path([self.file.parent / "videos"], video)

    def subtitles_of(self, video: str) -> Path | None:
        """The subtitle file of `video`, srt before vtt before json; None if there is none."""
        folder = self.file.parent / "subtitles"
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
    content = released_files.read_json(file)
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
    items, problems = good_entries(file, [mapping.apply(entry) for entry in entries], Item)
    canonical = json.dumps([content, mapping.columns, mapping.values], sort_keys=True, default=str)
    known = {*FIELDS, *mapping.names()}
    return Release(
        file=file,
        digest=hashlib.sha256(canonical.encode()).hexdigest()[:12],
        version=version,
        items=items,
        problems=problems,
        ignored=tuple(sorted({name for entry in entries for name in entry} - known)),
    )


# --- a look at them -----------------------------------------------------------------------------


def look_at_videos(
    release: Release, only: Collection[str] | None = None
) -> tuple[dict[str, VideoInfo], dict[str, str]]:
    """Facts about the videos of good items that can be read, and what is wrong with the others.

    Both by the video's name; a reason starts with "missing" or "unreadable". `only` is as of
    data.look.
    """
    videos = dict.fromkeys(item.video for item in release.items)
    return video_checks.look({video: release.path_of(video) for video in videos}, only)


def late_problems(release: Release, infos: Mapping[str, VideoInfo]) -> dict[str, str]:
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
        elif why := _subtitle_problem(release.subtitles_of(item.video)):
            problems[item.id] = f"subtitles: {why}"
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
    yield OUR_SCHEMA
    yield released_files.compared(release.counts, PAPER_COUNTS)
    if any(release.withheld.values()):
        held = ", ".join(f"{number:,} {what}" for what, number in release.withheld.items())
        yield f"withheld, so without a score: {held}"
    if release.ignored:
        yield (
            f"fields that are not read: {', '.join(release.ignored)} "
            f"({COLUMNS_FILE} gives them our names)"
        )
    found, _ = look_at_videos(release)
    for name, why in {**release.problems, **late_problems(release, found)}.items():
        yield f"{name}: {why}"
    if silent := [video for video, info in found.items() if not info.has_audio]:
        yield f"videos without sound, which A and V+A need: {', '.join(silent)}"


# --- putting a release in place -----------------------------------------------------------------

# A folder beside the data file -> where it goes; the paper announces `vid` (A).
_MEDIA = {"videos": "videos", "vid": "videos", "subtitles": "subtitles"}


def prepare(source: Path, root: Path, link: bool) -> str:
    """Validate a data file of our schema and put it, its videos and subtitles under the data root.

    Raises:
        DataError: the source is not there, does not fit the schema, or other data is in the way.
    """
    file, folder = _laid_out(source.expanduser().resolve())
    release = read(file)
    target = root / "maverix"
    mapped = file.parent / COLUMNS_FILE
    places = {"data.json": release.file, COLUMNS_FILE: mapped, **_media(folder)}
    places = {name: path for name, path in places.items() if path.is_file()}
    done = released_files.place(target, places, link, fixed=["data.json"])
    if not mapped.is_file():
        # Of another release, or of an older state of this one: it would change what is read.
        (target / COLUMNS_FILE).unlink(missing_ok=True)
    placed = _check_placed(release, target)
    told = [
        f"{done}: {len(release.items)} items, {len(release.problems)} with problems. {OUR_SCHEMA}"
    ]
    videos = sorted({item.video for item in placed.items})
    if absent := [video for video in videos if not placed.path_of(video).is_file()]:
        told.append(
            f"{len(absent)} of {len(videos)} videos are not there: {', '.join(absent)}; put them "
            f"into {target / 'videos'}"
        )
    if silent := [video for video in videos if placed.subtitles_of(video) is None]:
        told.append(
            f"{len(silent)} of {len(videos)} videos have no subtitles: put them into "
            f"{target / 'subtitles'}, or make them with lmms-eval-tasks data subtitles maverix"
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
    announced = file.parent.name == "data" and any((above / name).is_dir() for name in _MEDIA)
    return file, above if announced else file.parent


def _media(folder: Path) -> dict[str, Path]:
    """Place under the data root -> file, of the videos and subtitles beside a data file."""
    return {
        f"{place}/{path.name}": path
        for name, place in _MEDIA.items()
        for path in sorted(folder.glob(f"{name}/*"))
    }


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
