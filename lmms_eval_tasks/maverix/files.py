"""MAVERIX's files before a run: what is there, and putting a release in place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maverix.data import HOW_TO_GET, look_at_items
from lmms_eval_tasks.maverix.release import Release, read
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.released_files import DataStatus, Seen

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
NAMED = 20  # videos of one line
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
    infos, problems, bad = look_at_items(release, ["localized"], with_sound=True)

    def notes() -> Iterator[str]:
        yield RELEASED if release.released else OUR_SCHEMA
        yield released_files.compared(counts, PAPER_COUNTS)
        yield from release.notes
        if borrowed := release.borrowed:
            yield (
                f"{len(borrowed)} questions whose first open wording is that of their video's "
                f"first question: {', '.join(borrowed)}"
            )
        yield from _lacking(release)
        for name, why in bad.items():
            yield f"{name}: {why}"

    return Seen(release.file, release.digest, counts, len(infos), problems, notes())


def _lacking(release: Release) -> Iterator[str]:
    """Which videos have no file, and which no subtitles."""
    for length in release.lengths:
        found = {
            "videos": {v for v in release.videos if release.path_of(v, length).is_file()},
            "subtitles": {v for v in release.videos if release.subtitles_of(v, length)},
        }
        for what, there in found.items():
            if lost := sorted({*release.videos} - there):
                yield (
                    f"{len(lost)} of {len(release.videos)} videos have no file in "
                    f"{release.folder(what, length)}: {', '.join(lost[:NAMED])}"
                )


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
    told = (
        f"{done}: {len(release.items)} items, {len(release.problems)} with problems; "
        f"{RELEASED if release.released else OUR_SCHEMA}"
    )
    return "\n".join([told, *_lacking(placed)])
