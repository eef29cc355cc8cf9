"""MAVERIX's files before a run: what is there, putting a release in place, making subtitles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maverix.data import HOW_TO_GET, late_problems, look_at_videos
from lmms_eval_tasks.maverix.release import Release, read
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.media import segments, transcription
from lmms_eval_tasks.utils.released_files import DataStatus, Seen

if TYPE_CHECKING:
    from lmms_eval_tasks.utils.media.transcription import Whisper

OUR_SCHEMA = (
    "the data are not the authors' released lines: their schema is this suite's own (README)"
)
RELEASED = (
    "the authors' released lines: options in their order; videos/ and subtitles/ are the cut "
    "segments, videos_full/ and subtitles_full/ the full videos"
)
# What the full set holds (paper, Table 1 and Benchmark Design); each question is asked once with
# eight options, and twice openly.
PAPER_COUNTS = {"videos": 700, "questions": 852, "asked": 2556}
ASKED_EACH = 3
# A folder beside the data file, ours or as released -> where it goes.
_MEDIA = {"videos": "videos", "vid": "videos", "subtitles": "subtitles", "subtitle": "subtitles"}
_MEDIA |= {f"{theirs}_full": f"{ours}_full" for theirs, ours in _MEDIA.items()}


def status(root: Path) -> DataStatus:
    """Look at MAVERIX's data under a data root, without raising."""
    return released_files.status("maverix", root, HOW_TO_GET, _seen)


def _seen(place: Path) -> Seen:
    release = read(place)
    counts = {
        "videos": len(release.videos),
        "questions": len(release.items),
        "asked": len(release.items) * ASKED_EACH,
        "bad_items": len(release.problems),
    }
    infos, problems, silent = look_at_videos(release, ["localized"])

    def notes() -> Iterator[str]:
        yield RELEASED if release.released else OUR_SCHEMA
        yield released_files.compared(counts, PAPER_COUNTS)
        if any(release.withheld.values()):
            held = ", ".join(f"{number:,} {what}" for what, number in release.withheld.items())
            yield f"withheld, so without a score: {held}"
        if release.ignored:
            yield f"fields that are not read: {', '.join(release.ignored)}"
        yield from release.notes
        if borrowed := release.borrowed:
            yield (
                f"{len(borrowed)} questions whose first open wording is that of their video's "
                f"first question: {', '.join(borrowed)}"
            )
        if release.released:
            full = len(look_at_videos(release, ["long"])[0])
            yield f"full videos, of the long tasks: {full} of {len(release.videos)}"
        late = late_problems(release, infos, release.lengths)
        for name, why in {**release.problems, **late}.items():
            yield f"{name}: {why}"
        if silent:
            yield f"videos without sound, which A and V+A need: {', '.join(sorted(silent))}"

    return Seen(release.file, release.digest, counts, len(infos), problems, notes())


def prepare(source: Path, root: Path, link: bool) -> str:
    """Validate a data file and put it, its videos and subtitles under the data root.

    Raises:
        DataError: the source is not there, does not fit the schema, or other data is in the way.
    """
    release = read(source.expanduser().resolve())
    file, target = release.file, root / "maverix"
    forms = ("data.json", "data.jsonl")
    name, other = reversed(forms) if file.suffix.lower() == ".jsonl" else forms
    if (target / other).exists():
        raise DataError(f"{target / other}: is in the way of {file}; remove it first")
    media = {
        f"{place}/{path.name}": path
        for theirs, place in _MEDIA.items()
        for path in sorted(file.parent.glob(f"{theirs}/*"))
        if path.is_file()
    }
    done = released_files.place(target, {name: file, **media}, link, fixed=[name])
    placed = read(target)
    for find in (Release.path_of, Release.subtitles_of):
        released_files.check_placed((find(placed, v), find(release, v)) for v in release.videos)
    told = [
        f"{done}: {len(release.items)} items, {len(release.problems)} with problems; "
        f"{RELEASED if release.released else OUR_SCHEMA}"
    ]
    for length in placed.lengths:
        found = {
            "videos": [v for v in placed.videos if placed.path_of(v, length).is_file()],
            "subtitles": [v for v in placed.videos if placed.subtitles_of(v, length)],
        }
        told += [
            f"{len(placed.videos) - len(there)} of {len(placed.videos)} videos have no file in "
            f"{placed.folder(what, length)}: {', '.join(sorted({*placed.videos} - {*there}))}"
            for what, there in found.items()
            if len(there) < len(placed.videos)
        ]
    return "\n".join(told)


def make_subtitles(root: Path, whisper: Whisper) -> int:
    """Subtitles for every video under the data root that has none; returns how many failed.

    Raises:
        DataError: no data, or nothing can be written there.
    """
    release = read(root / "maverix")
    return sum(_make_subtitles(release, length, whisper) for length in release.lengths)


def _make_subtitles(release: Release, length: str, whisper: Whisper) -> int:
    folder = release.folder("subtitles", length)
    infos, _, silent = look_at_videos(release, [length])
    paths = {video: release.path_of(video, length) for video in sorted(infos)}
    mute = {paths[video] for video in silent}

    def name_of(video: str) -> str:
        # That of what is there, or a released talk.srt of "talk.mp4" would get a talk.mp4.json.
        there = release.subtitles_of(video, length)
        return there.relative_to(folder).with_suffix("").as_posix() if there else video

    def sound_of(path: Path) -> Path | None:
        return None if path in mute else Path(segments.sound_file(path))

    videos = {name_of(video): path for video, path in paths.items()}
    return transcription.make(videos, folder, whisper, sound_of=sound_of)
