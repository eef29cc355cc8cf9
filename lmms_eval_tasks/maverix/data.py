"""MAVERIX's data: the items that a run asks, and the docs of each task.

    choice      one doc for an item, with the id "ID"
    open        two docs, "ID/original" and "ID/paraphrase"
    circular    eight docs, "ID/r0" to "ID/r7"

A task with `long` in its name shows the whole video. All other tasks show the item's segment.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from lmms_eval_tasks.benchmark import LoadedData
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maverix.items import AskedItem, ChoiceDoc, OpenDoc, ShownWindow
from lmms_eval_tasks.maverix.labels import LETTERS, N_OPTIONS, TASKS, MaverixTask, duration_class
from lmms_eval_tasks.maverix.release import Item, MaverixRelease
from lmms_eval_tasks.media.downloads import GitFiles, HubFiles
from lmms_eval_tasks.media.sources import Source, Window
from lmms_eval_tasks.media.video_checks import VideoInfo
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.media import subtitles

HOW_TO_GET = (
    "lmms-eval-tasks data get maverix downloads the questions from the authors' repository "
    "(test_full.jsonl of https://github.com/gzhihongwei/lmms-eval) and the media from the Hugging "
    "Face hub (CUBE-CMU/maverix), where the authors grant access. Files in the schema of "
    "lmms-eval-tasks are read too (lmms_eval_tasks/maverix/README.md)"
)
_FOLDER = "lmms_eval/tasks/maverix/processing/"
DOWNLOADS = (
    GitFiles(
        "https://github.com/gzhihongwei/lmms-eval",
        "97b7c78d6715fb56dc630c7ab949249353c8e73e",
        (f"{_FOLDER}test_full.jsonl",),
        _FOLDER,
    ),
    # Muted videos and sound alone are made here from the videos with sound.
    HubFiles("CUBE-CMU/maverix", ("*.zip",), ignored=("*vid_only*", "*audio_only*")),
)
OUR_SCHEMA = (
    "the data are not the authors' released lines but in the schema of "
    "lmms-eval-tasks (lmms_eval_tasks/maverix/README.md)"
)
RELEASED = (
    "the authors' released lines: options in their order; videos/ and subtitles/ are the cut "
    "segments, videos_full/ and subtitles_full/ the full videos"
)
NAMED = 20  # at most so many videos are named in one line


def media_sources(release: MaverixRelease, names: Sequence[str]) -> list[Source]:
    """Return the video files of each length that the tasks show (Benchmark.sources).

    All tasks of a run ask the same items. If A or V+A is among them, an item whose video has no
    sound is left out of all tasks.
    """
    tasks = [TASKS[name] for name in names]
    # Data in our own schema have one file for both lengths.
    asked = {task.length for task in tasks}
    lengths = [length for length in release.lengths if length in asked] or ["localized"]
    with_sound = any(task.mode.sound for task in tasks)
    return [_source(release, names, length, with_sound) for length in lengths]


def _source(release: MaverixRelease, names: Sequence[str], length: str, with_sound: bool) -> Source:
    items = {item.id: item for item in release.items}

    def unfit(record: str, info: VideoInfo) -> str:
        if with_sound and not info.has_audio:
            return "its video has no audio stream, and A and V+A require sound"
        path = release.subtitles_of(items[record].video, length)
        try:
            _ = path and subtitles.read_cues(path)
        except DataError as error:
            return f"subtitles: {error}"
        return ""

    folder = release.folder("videos", length).name
    end = " (full)" if folder.endswith("_full") else ""
    windows = {
        item.id: Window(
            *(f"{item.video}{end}", release.path_of(item.video, length), folder),
            *(item.start, item.end),
        )
        for item in release.items
    }
    return Source(
        tasks=names, noun=f"{end.strip(' ()')} videos".strip(), windows=windows, unfit=unfit
    )


@dataclass(frozen=True)
class MaverixData(LoadedData):
    """A run's data, with lines about missing subtitles.

    The lines are made before the model runs, since files may disappear during the run.
    """

    silent: Sequence[str] = ()  # lines about items without subtitles (`silent`)


def silent(loaded: LoadedData, names: Sequence[str]) -> list[str]:
    """Return lines about items without subtitles in S and V+S.

    For such an item, S is the question alone, and V+S equals V.
    """
    lines = []
    tasks = [TASKS[name] for name in names]
    for length in sorted({task.length for task in tasks if task.mode.subtitles}):
        asked = items(loaded)
        windows = [_window(loaded.release, item, length) for item in asked]
        if number := sum(not cues(window) for window in windows):
            lines.append(
                f"{number} of {len(asked)} items ({length}) have no subtitles to show in S and V+S "
                "(lmms_eval_tasks/maverix/README.md says how to make some)"
            )
    return lines


def items(loaded: LoadedData) -> list[Item]:
    """Return the items that all tasks of the run ask, in the file's order."""
    tasks = {task for one in loaded.sources for task in one.source.tasks}
    left_out = loaded.left_out(min(tasks, default=""))
    return [item for item in loaded.release.items if item.id not in left_out]


# --- docs ---------------------------------------------------------------------------------------


def shown_order(item: Item) -> list[int]:
    """Return the indices of an item's options in the file, in the order in which they are shown.

    The order follows from the id alone, so that it is the same on every machine and rank, under
    `--limit`, and in every mode. Over many ids, each option, and so the right one, has each letter
    equally often. Exactly equal numbers within one file would need the other items, and an item's
    letters would change with them. Items marked `shuffled` keep the file's order.
    """

    def rank(place: int) -> str:
        return hashlib.sha256(f"{item.id}\x1f{place}".encode()).hexdigest()

    places = range(N_OPTIONS)
    return list(places) if item.shuffled else sorted(places, key=rank)


def make_maverix_docs(loaded: LoadedData, task: str) -> Sequence[ChoiceDoc | OpenDoc]:
    """Return a task's docs (Benchmark.docs)."""
    task_spec = TASKS[task]
    docs: list[ChoiceDoc | OpenDoc] = []
    for item in items(loaded):
        shared = _shared(loaded, item, task_spec)
        if task_spec.kind == "open":
            docs += _open_ended(item, shared)
        elif task_spec.kind == "choice":
            docs.append(_choice(item, shared))
        else:  # in turn, each option has each letter once
            docs += [
                {**_choice(item, shared, turn), "id": f"{item.id}/r{turn}", "rotation": turn}
                for turn in range(N_OPTIONS)
            ]
    return docs


def _shared(loaded: LoadedData, item: Item, task: MaverixTask) -> AskedItem:
    """Return the fields that all docs of an item share, in plain types; "" for a missing label.

    A segment that ends after its video by a rounded second (video_checks.py) ends with the video.
    """
    release: MaverixRelease = loaded.release
    infos = [one.infos.get(one.source.windows[item.id].video) for one in loaded.sources[:1]]
    seconds = next((info.end for info in infos if info is not None), math.inf)
    # A cut file has another length than its whole video.
    measured = "" if release.released else duration_class(seconds)
    return {
        "id": item.id,
        "question_id": item.id,
        "video": item.video,
        **_window(release, item, task.length, seconds),
        "question": item.question,
        "data": loaded.digest,
        "difficulty": item.difficulty or "",
        "agentic": item.agentic or "",
        "audio": item.audio or "",
        "topic": item.topic or "",
        "ability": item.ability or "",
        "duration": item.duration or measured,
        "length": task.length,
        "mode": task.mode.slug,
    }


def _window(
    release: MaverixRelease, item: Item, length: str, seconds: float = math.inf
) -> ShownWindow:
    """Return an item's files, with start and end of its segment in seconds.

    Both times are None for the whole video.
    """
    path = release.subtitles_of(item.video, length)
    whole = length == "long" or item.start is None or item.end is None
    return {
        "video_path": str(released_files.real(release.path_of(item.video, length))),
        "subtitle_path": "" if path is None else str(released_files.real(path)),
        "start": None if whole else item.start,
        "end": None if whole else min(cast(float, item.end), seconds),
    }


def _choice(item: Item, shared: AskedItem, turn: int = 0) -> ChoiceDoc:
    """Return the doc of an item's eight options, moved up by `turn` places."""
    order = shown_order(item)
    order = [*order[turn:], *order[:turn]]
    answer = LETTERS[order.index(LETTERS.index(item.answer))]
    options = [item.options[place] for place in order]
    return cast(ChoiceDoc, {**shared, "options": options, "answer": answer})


def _open_ended(item: Item, shared: AskedItem) -> list[OpenDoc]:
    """Return the docs of the question and its paraphrase, which share the reference.

    Scripted models use `references` and `lure`, a wrong option.
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


_read_cues = functools.lru_cache(maxsize=1024)(subtitles.read_cues)


def cues(doc: ShownWindow) -> Sequence[subtitles.Cue]:
    """Return the subtitles of a doc's segment, with times from the segment's start."""
    path, start, end = doc["subtitle_path"], doc["start"], doc["end"]
    found = _read_cues(Path(path)) if path else []
    return found if start is None or end is None else subtitles.cut(found, start, end)


# --- the user's files ---------------------------------------------------------------------------


def status_notes(release: MaverixRelease) -> list[str]:
    """Return lines for `data status`: the file's form, borrowed wordings, missing subtitles."""
    lines = [RELEASED if release.released else OUR_SCHEMA, *release.notes]
    if borrowed := release.borrowed:
        lines.append(
            f"{len(borrowed)} questions whose first open wording is the same as "
            f"that of their video's first question: {', '.join(borrowed)}"
        )
    for length in release.lengths:
        lost = [video for video in release.videos if release.subtitles_of(video, length) is None]
        if lost:
            folder = release.folder("subtitles", length)
            count = f"{len(lost)} of {len(release.videos)} videos"
            lines.append(f"{count} have no file in {folder}: {', '.join(sorted(lost)[:NAMED])}")
    return lines
