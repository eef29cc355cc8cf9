"""The user's files: what people are told of them, putting a release in place, missing subtitles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.benchmark import DataStatus
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maverix import data, schema
from lmms_eval_tasks.maverix.data import Checked
from lmms_eval_tasks.maverix.item import COLUMNS_FILE
from lmms_eval_tasks.maverix.labels import length_of
from lmms_eval_tasks.maverix.schema import PAPER_COUNTS, Release
from lmms_eval_tasks.utils import released_files

if TYPE_CHECKING:
    from lmms_eval_tasks.utils.transcribers import Transcriber

OUR_SCHEMA = "MAVERIX has published no data: the file's schema is this suite's own (README)"
NAMED = 20  # items of one warning
# A folder beside the data file -> where it goes; the paper announces `vid` (A).
_MEDIA = {"videos": "videos", "vid": "videos", "subtitles": "subtitles"}


def status(root: Path) -> DataStatus:
    """Look at MAVERIX's data under a data root, without raising."""
    release = released_files.release_or_status("maverix", root, data.HOW_TO_GET, schema.read)
    if isinstance(release, DataStatus):
        return release
    counts = release.counts
    problems = data.look_at_videos(release)[1]
    missing, unreadable = released_files.by_trouble(problems)
    return DataStatus(
        benchmark="maverix",
        where=release.file,
        found=True,
        version=release.digest,
        counts=counts,
        videos=counts["videos"] - len(problems),
        missing=missing,
        unreadable=unreadable,
        notes=tuple(_notes(release)),
    )


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
    found, _ = data.look_at_videos(release)
    for name, why in {**release.problems, **data.late_problems(release, found)}.items():
        yield f"{name}: {why}"
    if silent := [video for video, info in found.items() if not info.has_audio]:
        yield f"videos without sound, which A and V+A need: {', '.join(silent)}"


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
    warnings = [] if settings.is_sample() else [OUR_SCHEMA]
    if found.bad:
        warnings.append(f"{len(found.bad)} items left out: {_named(found.bad)}")
    if found.silent:
        warnings.append(f"{len(found.silent)} items without sound left out of A and V+A")
    if uncut:
        warnings.append(
            f"{len(uncut)} items that cannot be cut left out of all modes but S: {_named(uncut)}"
        )
    warnings += data.subtitle_warnings(found.subtitles)
    if release.ignored:
        warnings.append(f"fields of the data that are not read: {', '.join(release.ignored)}")
    used = {row["video"] for row in found.rows}
    if gone := used & data.look_at_videos(release)[1].keys():
        warnings.append(f"{len(gone)} videos went missing or broke during the run: {_named(gone)}")
    return section, warnings


def _named(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)[:NAMED])


def prepare(source: Path, root: Path, link: bool) -> str:
    """Validate a data file of our schema and put it, its videos and subtitles under the data root.

    Raises:
        DataError: the source is not there, does not fit the schema, or other data is in the way.
    """
    source = source.expanduser().resolve()
    if not source.exists():
        raise DataError(f"{source}: no such file or folder")
    file, folder = _laid_out(source)
    release = schema.read(file)
    target = root / "maverix"
    if (target / "data.json").exists() and not _same(target / "data.json", release.file):
        raise DataError(f"{target}: holds data.json already; remove it first")
    mapped = file.parent / COLUMNS_FILE
    if not mapped.is_file():
        # Of another release, or of an older state of this one: it would change what is read.
        (target / COLUMNS_FILE).unlink(missing_ok=True)
    places = {"data.json": release.file, COLUMNS_FILE: mapped, **_media(folder)}
    places = {name: path for name, path in places.items() if path.is_file()}
    for name, path in places.items():
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        released_files.put(path, place, link)
    placed = _check_placed(release, target)
    told = [
        f"{'linked' if link else 'copied'} {len(places)} files to {target}: {len(release.items)} "
        f"items, {len(release.problems)} with problems. {OUR_SCHEMA}"
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
        named = [f / n for f in (source, source / "data") for n in schema.FILE_NAMES]
        file = next((path for path in named if path.is_file()), None) or schema.find_file(source)
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


def _same(there: Path, source: Path) -> bool:
    """Whether data that is in the way is that of the source: `prepare` may be run again."""
    return there.resolve() == source.resolve() or there.read_bytes() == source.read_bytes()


def _check_placed(release: Release, target: Path) -> Release:
    """The data read again from their place: nothing that lies there may change what they say.

    Raises:
        DataError: something does.
    """
    placed = schema.read(target)
    if placed.digest != release.digest:
        raise DataError(
            f"{placed.file}: is read as other data than {release.file}; remove {target} first"
        )
    for video in {item.video for item in release.items}:
        for what in ("path_of", "subtitles_of"):
            given, there = getattr(release, what)(video), getattr(placed, what)(video)
            if given is not None and given.is_file() and there.name != given.name:
                raise DataError(
                    f"{there}: is in the way of {given}, as the file of {video!r}; remove it first"
                )
    return placed


def make_subtitles(root: Path, transcriber: Transcriber) -> int:
    """Subtitles for every video under the data root that has none; returns how many failed.

    Raises:
        DataError: no data, or nothing can be written there.
    """
    from lmms_eval_tasks.utils import segments, transcription

    release = schema.read(schema.find_file(root / "maverix"))
    folder = release.file.parent / "subtitles"
    found, _ = data.look_at_videos(release)
    # Named as what is there, or a released talk.srt of "talk.mp4" would get a talk.mp4.json.
    there = {name: release.subtitles_of(name) for name in sorted(found)}
    videos = {_subtitled(name, path, folder): release.path_of(name) for name, path in there.items()}

    silent = {release.path_of(name) for name, info in found.items() if not info.has_audio}

    def sound_of(path: Path) -> Path | None:
        return None if path in silent else Path(segments.sound_file(path))

    return len(transcription.make(videos, folder, transcriber, sound_of=sound_of).failed)


def _subtitled(video: str, there: Path | None, folder: Path) -> str:
    """The video's name among subtitles: that of its file, where there is one."""
    return video if there is None else there.relative_to(folder).with_suffix("").as_posix()
