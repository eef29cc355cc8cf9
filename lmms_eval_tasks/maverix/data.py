"""MAVERIX's data: which items can be asked, the docs that tasks make of them, a user's files.

    choice     one doc per item, id "ID"
    open       two, "ID/original" and "ID/paraphrase"
    circular   eight, "ID/r0" to "ID/r7"

A task with `long` in its name asks about the whole video, the others about an item's segment.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from unicodedata import normalize

from lmms_eval_tasks import settings
from lmms_eval_tasks.benchmark import Doc, Found
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maverix import release as files
from lmms_eval_tasks.maverix.labels import LETTERS, N_OPTIONS, SPLITS, TASKS, duration_class
from lmms_eval_tasks.maverix.release import Item, Release
from lmms_eval_tasks.media import video_checks
from lmms_eval_tasks.media.video_checks import VideoInfo, bad_items, missing_videos
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.media import subtitles
from lmms_eval_tasks.utils.released_files import Seen

HOW_TO_GET = (
    "The questions are lmms_eval/tasks/maverix/processing/test_full.jsonl of the authors' "
    "repository (github.com/gzhihongwei/lmms-eval), the media a data set of the hub "
    "(CUBE-CMU/maverix) whose authors grant access. Files of this suite's own schema are read too "
    "(the benchmark's README)"
)
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
# --- which items can be asked -------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Checked(Found):
    """The data of a run as they were before its model was built; `bad` are items by id."""

    release: Release
    infos: Mapping[str, VideoInfo]  # of videos, by name
    silent: Sequence[str]  # what to tell of items without subtitles

    @property
    def items(self) -> list[Item]:
        """Those that can be asked, in the file's order."""
        return [item for item in self.release.items if item.id not in self.bad]


def look(
    names: Sequence[str],
    *,
    videos: bool = True,  # noqa: ARG001 - windows need them
    only: Collection[str] | None = None,
) -> Checked:
    """The data as the tasks need them (Benchmark.look).

    An item whose video has no sound is left out of all tasks of a run that has A or V+A among them.

    Raises:
        DataError: they are not there; items are bad and `--allow-bad-items` was not given; videos
            cannot be used and `--allow-missing-videos` was not given; or nothing is left.
    """
    release = files.read(settings.required_folder("maverix", "MAVERIX", HOW_TO_GET))
    tasks = [TASKS[name] for name in names]
    # Our own form has one file for both lengths.
    asked = {task.length for task in tasks}
    lengths = [length for length in release.lengths if length in asked] or ["localized"]
    with_sound = any(task.mode.sound for task in tasks)
    infos, lost, bad = look_at_items(release, lengths, only, with_sound=with_sound)
    of_items = f"of {len(release.items) + len(release.problems)} MAVERIX items cannot be used"
    of_videos = f"of {len(release.videos)} MAVERIX videos cannot be used"
    video_checks.stop(release.file, [*bad_items(bad, of_items), *missing_videos(lost, of_videos)])
    without = {i.id: f"its video is {lost[i.video]}" for i in release.items if i.video in lost}
    bad = {**without, **bad}
    items = [item for item in release.items if item.id not in bad]
    if not items:
        raise DataError(f"{release.file}: none of {len(bad)} MAVERIX items can be used")
    silent = []
    for length in sorted({task.length for task in tasks if task.mode.subtitles}):
        # Without cues, S is the bare question, and V+S is V.
        if number := sum(not cues(_window(release, item, length)) for item in items):
            silent.append(
                f"{number} of {len(items)} items ({length}) have no subtitles to show in S and V+S "
                "(docs/maverix.md says how to make some)"
            )
    return Checked(release=release, digest=release.digest, bad=bad, infos=infos, silent=silent)


def look_at_items(
    release: Release,
    lengths: Sequence[str],
    only: Collection[str] | None = None,
    *,
    with_sound: bool,
) -> tuple[dict[str, VideoInfo], dict[str, str], dict[str, str]]:
    """Facts about videos that can be read, the first length's before the others'; why others cannot
    ("missing" or "unreadable"); and what is wrong with items, by id, also with their entries.
    """
    infos: dict[str, VideoInfo] = {}
    lost: dict[str, str] = {}
    bad = dict(release.problems)
    for length in lengths:
        paths = {video: release.path_of(video, length) for video in release.videos}
        found, gone = video_checks.look(paths, only)
        infos, lost = {**found, **infos}, {**lost, **gone}
        for item in release.items:
            path = release.subtitles_of(item.video, length)
            info = found.get(item.video)
            if info is None:
                continue
            why = video_checks.outside(item.start, item.end, info.end)
            if with_sound and not info.has_audio:
                why = why or "its video has no audio stream, and A and V+A need sound"
            try:
                _ = path and subtitles.read(path)
            except DataError as error:
                why = why or f"subtitles: {error}"
            if why:
                bad.setdefault(item.id, why)
    return infos, lost, bad


# --- docs ---------------------------------------------------------------------------------------


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


def docs(found: Found, task: str) -> list[Doc]:
    """A task's docs (Benchmark.docs)."""
    known, asked = cast(Checked, found), TASKS[task]
    made: list[Doc] = []
    for item in known.items:
        shared = {**_shared(known, item, asked.length), "mode": asked.mode.slug}
        if asked.kind == "open":
            made += _open_ended(item, shared)
        elif asked.kind == "choice":
            made.append(_choice(item, shared))
        else:  # each option stands once at each letter
            made += [
                {**_choice(item, shared, turn), "id": f"{item.id}/r{turn}", "rotation": turn}
                for turn in range(N_OPTIONS)
            ]
    return made


def _shared(known: Checked, item: Item, length: str) -> dict[str, Any]:
    """What all docs of an item have, in plain types; "" stands for what is unlabelled.

    A segment that ends a rounded second after its video (video_checks.py) ends with it.
    """
    info = known.infos.get(item.video)
    seconds = info.end if info else math.inf
    # A cut file's is another one.
    measured = "" if known.release.released else duration_class(seconds)
    labels = {split: getattr(item, split) or "" for split in SPLITS}
    return {
        "id": item.id,
        "question_id": item.id,
        "video": item.video,
        **_window(known.release, item, length, seconds),
        "question": item.question,
        "data": known.digest,
        **{**labels, "duration": labels["duration"] or measured},
        "length": length,
    }


def _window(release: Release, item: Item, length: str, seconds: float = math.inf) -> dict[str, Any]:
    """Its files, and the segment in them; None and None is the whole video."""
    path = release.subtitles_of(item.video, length)
    whole = length == "long" or item.start is None or item.end is None
    return {
        "video_path": str(released_files.real(release.path_of(item.video, length))),
        "subtitle_path": "" if path is None else str(released_files.real(path)),
        "start": None if whole else item.start,
        "end": None if whole else min(cast(float, item.end), seconds),
    }


def _choice(item: Item, shared: Doc, turn: int = 0) -> Doc:
    """The item with its eight options, moved up by `turn` places."""
    order = shown_order(item)
    order = [*order[turn:], *order[:turn]]
    answer = LETTERS[order.index(LETTERS.index(item.answer))]
    return {**shared, "options": [item.options[place] for place in order], "answer": answer}


def _open_ended(item: Item, shared: Doc) -> list[Doc]:
    """The question and its paraphrase, with the reference that both share.

    `references` and `lure`, a wrong option, are for scripted models.
    """
    wrong = [place for place in shown_order(item) if LETTERS[place] != item.answer]
    wordings = {"original": item.opened or item.question, "paraphrase": item.paraphrase}
    return [
        {
            **shared,
            "id": f"{item.id}/{version}",
            "version": version,
            "question": question,
            "borrowed": item.borrowed,
            "reference": item.reference,
            "references": [item.reference],
            "lure": item.options[wrong[0]],
        }
        for version, question in wordings.items()
    ]


# --- subtitles ----------------------------------------------------------------------------------


_read_cues = functools.lru_cache(maxsize=1024)(subtitles.read)


def cues(doc: Doc) -> Sequence[subtitles.Cue]:
    """Those of the doc's segment, rebased to its beginning."""
    path, start, end = doc["subtitle_path"], doc["start"], doc["end"]
    found = _read_cues(Path(path)) if path else []
    return found if start is None or end is None else subtitles.cut(found, start, end)


# --- the user's files ---------------------------------------------------------------------------


def seen(place: Path) -> Seen:
    """What lies in a folder (Benchmark.seen)."""
    release = files.read(place)
    counts = {
        "videos": len(release.videos),
        "questions": len(release.items),
        "asked": len(release.items) * ASKED_EACH,
        "bad_items": len(release.problems),
    }
    infos, problems, bad = look_at_items(release, ["localized"], with_sound=True)
    form = RELEASED if release.released else OUR_SCHEMA
    notes = [form, released_files.compared(counts, PAPER_COUNTS), *release.notes]
    if borrowed := release.borrowed:
        notes.append(
            f"{len(borrowed)} questions whose first open wording is that of their video's first "
            f"question: {', '.join(borrowed)}"
        )
    there = placed(place)
    for folder in (release.folder(what, one) for one in release.lengths for what in files.FOLDERS):
        names = {Path(name).stem for name in there if name.startswith(f"{folder.name}/")}
        names = {normalize("NFC", name) for name in names}  # macOS stores them otherwise
        stems = {video: released_files.stem(video) for video in sorted(release.videos)}
        if lost := [video for video, one in stems.items() if normalize("NFC", one) not in names]:
            notes.append(
                f"{len(lost)} of {len(release.videos)} videos have no file in {folder}: "
                f"{', '.join(lost[:NAMED])}"
            )
    notes += [f"{name}: {why}" for name, why in bad.items()]
    return Seen(release.file, release.digest, counts, len(infos), problems, notes)


def placed(source: Path) -> dict[str, Path]:
    """The files of a release (Benchmark.files): the data, their videos and subtitles."""
    release = files.read(source)
    found = {f"data{release.file.suffix.lower()}": release.file}
    for length in release.lengths:
        for video in release.videos:
            for what, path in (
                ("videos", release.path_of(video, length)),
                ("subtitles", release.subtitles_of(video, length)),
            ):
                if path is not None and path.is_file():
                    found[f"{release.folder(what, length).name}/{path.name}"] = path
    return found
