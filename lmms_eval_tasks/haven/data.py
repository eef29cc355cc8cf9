"""HAVEN's data: the videos that each task can use, and a doc for each of them (3.4, C).

A text proxy needs no video file. A video is left out of one task, and counted, if its record lacks
a field that only this task needs (`Record.gaps`), or if it needs more images than the model takes.
The user is not asked about these. A missing or damaged video file is left out only if the user
allows it.

Random draws are those of the authors' code. They follow from a hash of the seed and the video's
key, so they are the same on every machine, in every process and under `--limit`. A task with the
document and the same task without it share their draws, so that the document alone causes a
difference.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import cast

from lmms_eval_tasks import settings
from lmms_eval_tasks.benchmark import LoadedData
from lmms_eval_tasks.haven import options
from lmms_eval_tasks.haven.items import HavenDoc, HavenRow
from lmms_eval_tasks.haven.options import (
    AUTHORS,
    MOST,
    OF_SENTENCES,
    SUMMARIES,
    TASKS,
    HavenOptions,
    Variant,
)
from lmms_eval_tasks.haven.records import release as released
from lmms_eval_tasks.haven.records.record import Record
from lmms_eval_tasks.haven.records.release import HavenRelease
from lmms_eval_tasks.media.clip_specs import uniform_indices
from lmms_eval_tasks.media.downloads import HubFiles
from lmms_eval_tasks.media.sources import Source, Window, check_source
from lmms_eval_tasks.media.video_checks import VideoInfo
from lmms_eval_tasks.utils import extras, released_files

BY_HAND = (
    "the JSON and HDF5 files of all six sources from the Google Drive folders that "
    "https://github.com/alohalab-ai/align_vsum links, and the videos from the pages of SumMe, "
    "TVSum, OVP, YouTube, VideoXum and MR.HiSum"
)
HOW_TO_GET = (
    "lmms-eval-tasks data get haven downloads the records of SumMe and TVSum from the Hugging "
    f"Face hub (MokiSee7/HAVEN). Get by hand: {BY_HAND}"
)
DOWNLOADS = (HubFiles("MokiSee7/HAVEN", ("*.jsonl", "*.json", "*.h5")),)
# Readers of video files count frames differently by one: decord and PyAV do at the end of some
# files, and the authors counted `n_frames` with OpenCV. A greater difference means another encoding
# of the video.
TOLERANCE = 1
# The frames of a clip that the grounding task shows: a share of them, within bounds.
CLIP_SHARE, CLIP_LEAST, CLIP_MOST = 0.3, 4, 8


# --- which videos -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class HavenData(LoadedData):
    """A run's data, with the videos that each task cannot use.

    Attributes:
        options: the user's options for items.
        gaps: by task and id of a video, the reason why the task leaves it out without asking the
            user.
    """

    options: HavenOptions
    gaps: Mapping[str, Mapping[str, str]]

    def left_out(self, task: str) -> dict[str, str]:
        """Return the reason for each video that a task leaves out, by the video's id."""
        return {**self.gaps[task], **super().left_out(task)}

    @cached_property
    def rows(self) -> list[HavenRow]:
        """One row for each valid video, in the release's order."""
        return [row(record, self.digest) for record in self.release.records]


def read_chosen_sources(place: Path) -> HavenRelease:
    """Read the data in a folder, of the sources that the user chose (Benchmark.read)."""
    return released.read_haven(place, options.current())


def require_sample() -> None:
    """Stop if the user chose the packaged sample and the packages that write it are missing.

    Raises:
        TasksError: the message names the extra to install.
    """
    if settings.is_sample():
        extras.require("haven", "HAVEN's packaged sample")


def load_haven() -> HavenRelease:
    """Read the user's data, of the sources that the user chose."""
    require_sample()
    return read_chosen_sources(settings.required_folder("haven", "HAVEN", HOW_TO_GET))


def media_sources(release: HavenRelease, names: Sequence[str]) -> list[Source]:
    """Return the video files, for the tasks that show pictures (Benchmark.sources)."""
    pictured = [name for name in names if not TASKS[name].text]
    return [_videos(release.records, pictured)] if pictured else []


def _videos(records: Iterable[Record], tasks: Sequence[str]) -> Source:
    known = {record.id: record for record in records}

    def unfit(name: str, info: VideoInfo) -> str:
        """Return the reason why a file is not the record's video, whose frames `picks` names.

        The reason is "" if the file fits.
        """
        original, last, there = known[name].n_frames, known[name].picks[-1], info.n_frames
        if original is not None and abs(there - original) > TOLERANCE:
            return (
                f"{known[name].path}: re-encoded with another frame count: it has {there} frames, "
                f"the original {original} (n_frames)"
            )
        if last >= there:
            return (
                f"{known[name].path}: its last pick is frame {last}, but it has {there} frames, "
                "counted from 0"
            )
        return ""

    windows = {name: Window(name, one.path, f"videos/{one.source}") for name, one in known.items()}
    hint = f" (required by {', '.join(tasks)}, not by tasks that end in _text)"
    return Source(tasks=tasks, windows=windows, unfit=unfit, hint=hint)


def trouble(record: Record) -> str:
    """Return the reason why a record's video cannot be used, or ""."""
    return check_source(_videos([record], ["haven_v2t"])).left_out.get(record.id, "")


def with_gaps(loaded: LoadedData, names: Sequence[str]) -> HavenData:
    """Return the loaded data, with the videos that each task cannot use."""
    release, chosen = loaded.release, options.current()
    gaps: dict[str, dict[str, str]] = {}
    data = HavenData(release=release, sources=loaded.sources, options=chosen, gaps=gaps)
    for name in names:
        own = gaps[name] = {}
        by_sentence = options.layout(TASKS[name], chosen) == OF_SENTENCES
        for record, given in zip(release.records, data.rows, strict=True):
            why = record.gaps.get(name.removeprefix("haven_"), "")
            if not why and by_sentence and len(record.document) < 2:
                why = "aligned_full_document: fewer than two sentences"
            if not why and (most := chosen.max_images):
                needed = make_doc(given, TASKS[name], chosen)["n_images"]
                if needed > most:
                    limit = f"the model's limit is {most} (max_images)"
                    why = f"not run: requires {needed} images, {limit}"
            if why:
                own[record.id] = why
    return data


# --- docs ---------------------------------------------------------------------------------------


def make_haven_docs(loaded: LoadedData, task: str) -> list[HavenDoc]:
    """Return a task's docs, in the release's order."""
    known = cast(HavenData, loaded)
    variant, left_out = TASKS[task], known.left_out(task)
    kept = [given for given in known.rows if given["id"] not in left_out]
    return [make_doc(given, variant, known.options) for given in kept]


_CONTENT = (
    *("id", "source", "video", "picks", "descriptions", "keyframes", "key_shots", "shots"),
    *("shot_texts", "importance", "document", "document_shots", "summary", "summary_shots"),
)


def row(record: Record, digest: str) -> HavenRow:
    """Return a video's row in plain types; `digest` is the release's hash.

    All numbers count from 1, except `picks`.
    """
    content = {name: getattr(record, name) for name in _CONTENT}
    # A hash of the content alone: the same record has the same hash in another folder.
    fingerprint = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    made = {
        **content,
        "record": fingerprint[:12],
        "video_path": str(released_files.real(record.path)),
        "data": digest,
        "tagged": record.tagged,
    }
    return cast(HavenRow, made)


def make_doc(row: HavenRow, task: Variant, haven_options: HavenOptions) -> HavenDoc:
    """Return a task's doc for a video's row."""
    n_shown = len(
        row["document" if options.layout(task, haven_options) == OF_SENTENCES else "shots"]
    )
    units: list[int] = []
    if task.kind == "grounding":
        units = [*range(1, 1 + n_shown)]  # all clips are shown, in their order
    elif task.kind in MOST:
        units = draw_numbers(task.kind, n_shown, row, haven_options.seed)
    shots, limit = row["shots"], haven_options.frames_per_shot
    pictured = units and not task.text
    pictures = [shown_frames(shots[n - 1], limit, task.kind) for n in units] if pictured else []
    every = [*range(1, len(row["picks"]) + 1)]
    by_shot = [number for own in shots for number in own] == every
    n_sentences = len(row["summary"])  # sentences without a shot may be asked about too
    tagged = haven_options.reference == "tagged" and (task.kind == "v2vt" or task.text)
    of_grounding = task.kind == "grounding"
    made = {
        **row,
        "tagged": row["tagged"] if tagged else "",
        "kind": task.kind,
        "text": task.text,
        "with_document": task.document,
        "budget": options.budget(len(every)),
        "n_sentences": n_sentences if task.kind in SUMMARIES else 0,
        "units": units,
        "unit_frames": pictures,
        "n_images": 0 if task.text else sum(map(len, pictures)) or len(every),
        "sentences": draw_numbers("grounding", n_sentences, row, haven_options.seed)
        if of_grounding
        else [],
        "layout": options.layout(task, haven_options, by_shot=by_shot),
    }
    return cast(HavenDoc, made)


AUTHORS_SEED = 42


def draw_numbers(kind: str, n: int, row: HavenRow, seed: int = 0) -> list[int]:
    """Return some of the numbers 1 to n, in the draw of the authors' code if `seed` is 0.

    Each video has its own random generator. For orders, its seed is 42 plus the first 32 bits of
    the MD5 of the video's key; sources that share a key so share the draw. For other kinds, the
    seed is the last 32 bits of the MD5 of 42:SOURCE:VIDEO.

    Args:
        kind: kind of task, which sets the number of draws. For saliency they stay in ascending
            order; for other kinds they are shuffled.
        n: the number of shots or sentences to draw from.
        row: the video's row.
        seed: number that is added to 42.
    """

    def digest(text: str) -> str:
        return hashlib.md5(text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()

    first, video = AUTHORS_SEED + seed, row["video"]
    if kind == "temporal":
        draw = random.Random((first + int(digest(video)[:8], 16)) % 2**32)
    else:
        draw = random.Random(int(digest(f"{first}:{row['source']}:{video}")[-8:], 16))
    some = sorted(draw.sample(range(1, n + 1), min(MOST[kind], n)))
    if kind != "saliency":
        draw.shuffle(some)
    return some


def shown_frames(frames: Sequence[int], limit: int | str, kind: str = "") -> list[int]:
    """Return the frames of a shot whose pictures are shown.

    Args:
        frames: numbers of the shot's sampled frames, at least one.
        limit: the maximum number of frames, spread uniformly from the first to the last one; 1 is
            the shot's first frame, and 0 means all. `authors` means all, except for grounding,
            where it means the clip's first frames.
        kind: kind of task.
    """
    if limit == AUTHORS and kind == "grounding":
        return list(frames[: max(CLIP_LEAST, min(CLIP_MOST, round(CLIP_SHARE * len(frames))))])
    if limit in (0, AUTHORS):
        return list(frames)
    return [frames[place] for place in uniform_indices(len(frames), int(limit))]


# --- for people and results ---------------------------------------------------------------------


def list_gaps(release: HavenRelease) -> list[str]:
    """Return lines for `data status` about videos that a task leaves out for a missing field."""
    gaps: dict[tuple[str, str], list[str]] = {}
    for record in release.records:
        for gap in record.gaps.items():
            gaps.setdefault(gap, []).append(record.id)
    return [
        f"haven_{task}: skips {len(names):,} videos, such as {names[0]}: {why}"
        for (task, why), names in sorted(gaps.items())
    ]
