"""HAVEN's data: which videos each task can ask about, and a doc for each of them (3.4, C).

A text proxy needs no video. What a record lacks for one task only (`Record.gaps`), and what does
not fit the model's limit of images, is left out of that task without asking, and counted; a video
that is missing or bad is left out where the user allows it.

Draws are the authors' code's: they follow a digest of the seed and the video's key, the same on
every machine, in every process and under `--limit`. A task with the document and the one without it
share their draws, so that their difference is the document's.
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
from lmms_eval_tasks.media.sources import Source, Window, check
from lmms_eval_tasks.media.video_checks import VideoInfo
from lmms_eval_tasks.utils import extras, released_files

HOW_TO_GET = (
    "https://github.com/alohalab-ai/align_vsum links the JSON and HDF5 files; "
    "get the videos yourself, from the pages of SumMe, TVSum, OVP, YouTube, "
    "VideoXum and MR.HiSum"
)
# Readers count frames differently by one (decord and PyAV, at the end of some files), and who made
# `n_frames` used a third one, OpenCV. More than that is another encoding of the video.
TOLERANCE = 1
# Frames of a clip to ground in: a share of them, within bounds.
CLIP_SHARE, CLIP_LEAST, CLIP_MOST = 0.3, 4, 8


# --- which videos -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class HavenData(LoadedData):
    """The data of a run, with what each task cannot ask about.

    Attributes:
        options: how items are made.
        gaps: by task and id of a video, why its item is left out without asking the user.
    """

    options: HavenOptions
    gaps: Mapping[str, Mapping[str, str]]

    def left_out(self, task: str) -> dict[str, str]:
        """The reason for each video that a task leaves out, by its id."""
        return {**self.gaps[task], **super().left_out(task)}

    @cached_property
    def rows(self) -> list[HavenRow]:
        """One row per good video, in the release's order."""
        return [row(record, self.digest) for record in self.release.records]


def read(place: Path) -> HavenRelease:
    """The data in a folder, of the sources that the user chose (Benchmark.read)."""
    return released.read(place, options.current())


def require_sample() -> None:
    """Stop where the packaged sample is asked for that could not be made without an extra.

    Raises:
        TasksError: names the extra.
    """
    if settings.is_sample():
        extras.require("haven", "HAVEN's packaged sample")


def load() -> HavenRelease:
    """The user's data, of the chosen sources (`read`)."""
    require_sample()
    return read(settings.required_folder("haven", "HAVEN", HOW_TO_GET))


def sources(release: HavenRelease, names: Sequence[str]) -> list[Source]:
    """The videos, for tasks that show pictures (Benchmark.sources)."""
    pictured = [name for name in names if not TASKS[name].text]
    return [_videos(release.records, pictured)] if pictured else []


def _videos(records: Iterable[Record], tasks: Sequence[str]) -> Source:
    known = {record.id: record for record in records}

    def unfit(name: str, info: VideoInfo) -> str:
        """Only if the file is the record's own video do `picks` name its frames."""
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
    """Return why a record's video cannot be used, or ""."""
    return check(_videos([record], ["haven_v2t"])).left_out.get(record.id, "")


def with_gaps(loaded: LoadedData, names: Sequence[str]) -> HavenData:
    """The loaded data, with what each task cannot ask about."""
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


def docs(loaded: LoadedData, task: str) -> list[HavenDoc]:
    """A task's docs, in the release's order."""
    known = cast(HavenData, loaded)
    variant, left_out = TASKS[task], known.left_out(task)
    kept = [given for given in known.rows if given["id"] not in left_out]
    return [make_doc(given, variant, known.options) for given in kept]


_CONTENT = (
    *("id", "source", "video", "picks", "descriptions", "keyframes", "key_shots", "shots"),
    *("shot_texts", "importance", "document", "document_shots", "summary", "summary_shots"),
)


def row(record: Record, digest: str) -> HavenRow:
    """A video of the release of that digest in plain types; but for `picks` all count from 1."""
    content = {name: getattr(record, name) for name in _CONTENT}
    # Tells a record from others, wherever its files lie.
    fingerprint = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    made = {
        **content,
        "record": fingerprint[:12],
        "video_path": str(released_files.real(record.path)),
        "data": digest,
        "tagged": record.tagged,
    }
    return cast(HavenRow, made)


def make_doc(given: HavenRow, task: Variant, chosen: HavenOptions) -> HavenDoc:
    """A task's doc of a video's row."""
    n_shown = len(given["document" if options.layout(task, chosen) == OF_SENTENCES else "shots"])
    units: list[int] = []
    if task.kind == "grounding":
        units = [*range(1, 1 + n_shown)]  # its clips stay in order, and all of them are needed
    elif task.kind in MOST:
        units = drawn(task.kind, n_shown, given, chosen.seed)
    shots, limit = given["shots"], chosen.frames_per_shot
    pictured = units and not task.text
    pictures = [shown(shots[n - 1], limit, task.kind) for n in units] if pictured else []
    every = [*range(1, len(given["picks"]) + 1)]
    by_shot = [number for own in shots for number in own] == every
    n_sentences = len(given["summary"])  # shotless ones may be asked about too
    tagged = chosen.reference == "tagged" and (task.kind == "v2vt" or task.text)
    of_grounding = task.kind == "grounding"
    made = {
        **given,
        "tagged": given["tagged"] if tagged else "",
        "kind": task.kind,
        "text": task.text,
        "with_document": task.document,
        "budget": options.budget(len(every)),
        "n_sentences": n_sentences if task.kind in SUMMARIES else 0,
        "units": units,
        "unit_frames": pictures,
        "n_images": 0 if task.text else sum(map(len, pictures)) or len(every),
        "sentences": drawn("grounding", n_sentences, given, chosen.seed) if of_grounding else [],
        "layout": options.layout(task, chosen, by_shot=by_shot),
    }
    return cast(HavenDoc, made)


AUTHORS_SEED = 42


def drawn(kind: str, n: int, given: HavenRow, seed: int = 0) -> list[int]:
    """Some of 1 to n, as the authors' code draws and shows them: with `seed` 0 the very same.

    Python's generator is seeded for each video: for orders with 42 and the first 32 bits of the MD5
    of the video's key, which several sources share, so that these have the same draw; else with the
    last 32 bits of that of 42:SOURCE:VIDEO.

    Args:
        kind: of task, which says how many; for saliency they stay in order, else they are shuffled.
        given: the video's row.
        seed: is added to 42.
    """

    def digest(text: str) -> str:
        return hashlib.md5(text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()

    first, video = AUTHORS_SEED + seed, given["video"]
    if kind == "temporal":
        draw = random.Random((first + int(digest(video)[:8], 16)) % 2**32)
    else:
        draw = random.Random(int(digest(f"{first}:{given['source']}:{video}")[-8:], 16))
    some = sorted(draw.sample(range(1, n + 1), min(MOST[kind], n)))
    if kind != "saliency":
        draw.shuffle(some)
    return some


def shown(frames: Sequence[int], limit: int | str, kind: str = "") -> list[int]:
    """The frames of a shot whose pictures are shown.

    Args:
        frames: numbers of the shot's sampled frames, at least one.
        limit: how many at most, uniform, the first and last among them; a single one is the shot's
            first; 0 is all. `authors` is all, or the first ones of a clip to ground in.
        kind: of task.
    """
    if limit == AUTHORS and kind == "grounding":
        return list(frames[: max(CLIP_LEAST, min(CLIP_MOST, round(CLIP_SHARE * len(frames))))])
    if limit in (0, AUTHORS):
        return list(frames)
    return [frames[place] for place in uniform_indices(len(frames), int(limit))]


# --- for people and results ---------------------------------------------------------------------


def notes(release: HavenRelease) -> list[str]:
    """Lines for `data status`: which videos a task leaves out, since their records lack a field."""
    gaps: dict[tuple[str, str], list[str]] = {}
    for record in release.records:
        for gap in record.gaps.items():
            gaps.setdefault(gap, []).append(record.id)
    return [
        f"haven_{task}: skips {len(names):,} videos, such as {names[0]}: {why}"
        for (task, why), names in sorted(gaps.items())
    ]
