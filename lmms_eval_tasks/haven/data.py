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
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from lmms_eval_tasks import settings
from lmms_eval_tasks.benchmark import Found
from lmms_eval_tasks.haven import options
from lmms_eval_tasks.haven.options import (
    AUTHORS,
    MOST,
    OF_SENTENCES,
    SUMMARIES,
    TASKS,
    Options,
    Variant,
)
from lmms_eval_tasks.haven.records import release as released
from lmms_eval_tasks.haven.records.record import Record
from lmms_eval_tasks.haven.records.release import Release
from lmms_eval_tasks.media import video_checks
from lmms_eval_tasks.media.clip_specs import uniform_indices
from lmms_eval_tasks.media.video_checks import bad_items, missing_videos, stop
from lmms_eval_tasks.utils import extras, released_files
from lmms_eval_tasks.utils.conditions import Condition, Kind
from lmms_eval_tasks.utils.released_files import Seen

Row = dict[str, Any]

HOW_TO_GET = (
    "https://github.com/alohalab-ai/align_vsum links the JSON and HDF5 files; the videos are the "
    "user's own copies, from the pages of SumMe, TVSum, OVP, YouTube, VideoXum and MR.HiSum"
)
NAMED = 20  # videos of one warning
# Readers count frames differently by one (decord and PyAV, at the end of some files), and who made
# `n_frames` used a third one, OpenCV. More than that is another encoding of the video.
TOLERANCE = 1
# Frames of a clip to ground in: a share of them, within bounds.
CLIP_SHARE, CLIP_LEAST, CLIP_MOST = 0.3, 4, 8


# --- which videos -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Checked(Found):
    """The data of a run as they were before its model was built.

    Attributes:
        release: the user's data, of the chosen sources.
        options: how items are made.
        reasons: task -> id of a video -> why its item is left out.
    """

    release: Release
    options: Options
    reasons: Mapping[str, Mapping[str, str]]

    def left_out(self, task: str) -> Mapping[str, str]:
        """Videos that a task leaves out, with the reason."""
        return self.reasons[task]

    @cached_property
    def rows(self) -> list[Row]:
        """One row per good video, in the release's order."""
        return [row(record, self.digest) for record in self.release.records]


def load() -> Release:
    """The data the user pointed to, of the sources the user chose.

    Raises:
        DataError: they are not there (the message says how to get them) or do not fit the schema.
        TasksError: an option has no value of its range.
    """
    if settings.is_sample():
        extras.require("haven", "HAVEN's packaged sample")
    place = settings.required_folder("haven", "HAVEN", HOW_TO_GET)
    return released.read(place, options.current())


def look(
    names: Sequence[str], *, videos: bool = True, only: Collection[str] | None = None
) -> Checked:
    """What each of the tasks can ask (Benchmark.look).

    Raises:
        DataError: videos are bad and `--allow-bad-items` was not given, or are missing and
            `--allow-missing-videos` was not given; says all of it.
    """
    release, chosen = load(), options.current()
    pictured = [name for name in names if videos and not TASKS[name].text]
    found = troubles(release.records, only) if pictured else {}
    missing = {name: why for name, why in found.items() if why.startswith("missing")}
    unfit = {name: why for name, why in found.items() if name not in missing}
    needed = f"(tasks that end in _text need none; {', '.join(pictured)} do)"
    good = len(release.records)
    every, of_good = good + len(release.problems), f"of {good} HAVEN videos"
    stop(
        release.folder,
        [
            *bad_items(release.problems, f"of {every} HAVEN videos cannot be used"),
            *missing_videos(missing, f"{of_good} are not there {needed}"),
            *bad_items(unfit, f"{of_good} do not fit their record {needed}"),
        ],
    )
    reasons: dict[str, dict[str, str]] = {}
    checked = Checked(release=release, digest=release.digest, options=chosen, reasons=reasons)
    for name in names:
        own = reasons[name] = {**release.problems, **(found if name in pictured else {})}
        by_sentence = options.layout(TASKS[name], chosen) == OF_SENTENCES
        for record, given in zip(release.records, checked.rows, strict=True):
            why = record.gaps.get(name.removeprefix("haven_"), "")
            if not why and by_sentence and len(record.document) < 2:
                why = "aligned_full_document: fewer than two sentences"
            if not why and (most := chosen.max_images):
                needed = make_doc(given, TASKS[name], chosen)["n_images"]
                if needed > most:
                    limit = f"the model's limit is {most} (max_images)"
                    why = f"not run: needs {needed} images, {limit}"
            if why:
                own.setdefault(record.id, why)
    return checked


def troubles(records: Iterable[Record], only: Collection[str] | None = None) -> dict[str, str]:
    """Why videos cannot be used, by the record's id: only if one fits do `picks` name its frames.

    Reasons begin with "missing", "unreadable" or, of a file that is not the video that the record
    is of, "unfit"; `only` as of `look`.
    """
    known = {record.id: record for record in records}
    paths = {name: released_files.real(record.path) for name, record in known.items()}
    infos, found = video_checks.look(paths, only)
    for name, info in infos.items():
        why, there = "", info.n_frames
        original, last = known[name].n_frames, known[name].picks[-1]
        if original is not None and abs(there - original) > TOLERANCE:
            why = (
                f"re-encoded with another frame count: it has {there} frames, the original "
                f"{original} (n_frames)"
            )
        elif last >= there:
            why = f"its last pick is frame {last}, but it has {there} frames, counted from 0"
        if why:
            found[name] = f"unfit: {known[name].path}: {why}"
    return {name: found[name] for name in known if name in found}


# --- docs ---------------------------------------------------------------------------------------


def docs(found: Found, task: str) -> list[Row]:
    """A task's docs, in the release's order."""
    known = cast(Checked, found)
    variant, left_out = TASKS[task], known.left_out(task)
    kept = [given for given in known.rows if given["id"] not in left_out]
    return [make_doc(given, variant, known.options) for given in kept]


_CONTENT = (
    *("id", "source", "video", "picks", "descriptions", "keyframes", "key_shots", "shots"),
    *("shot_texts", "importance", "document", "document_shots", "summary", "summary_shots"),
)


def row(record: Record, digest: str) -> Row:
    """A video of the release of that digest in plain types; but for `picks` all count from 1."""
    content = {name: getattr(record, name) for name in _CONTENT}
    # Tells a record from others, wherever its files lie.
    fingerprint = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return {
        **content,
        "record": fingerprint[:12],
        "video_path": str(released_files.real(record.path)),
        "data": digest,
        "tagged": record.tagged,
    }


def make_doc(given: Mapping[str, Any], task: Variant, chosen: Options) -> Row:
    """A task's doc of a video's row: the row and what the task shows and asks (3.4, C).

    Adds `kind`, `text` (text proxy), `with_document`; `budget` (K); `n_sentences` asked for;
    `units`: the shots or document sentences shown, by number, in the order shown; `unit_frames`:
    the frames whose pictures are shown of each unit; `n_images`: how many pictures are shown;
    `sentences`: the summary sentences shown; `tagged`: the reference if it is the text with tags of
    shots, else ""; `layout` of the request (inputs.py).
    """
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
    return {
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


AUTHORS_SEED = 42


def drawn(kind: str, n: int, given: Mapping[str, Any], seed: int = 0) -> list[int]:
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


def describe(
    found: Checked, left_out: Mapping[str, Mapping[str, str]]
) -> tuple[dict[str, Any], list[Condition]]:
    """Data, options and what was left out, for the results, and conditions of the numbers."""
    release = found.release
    by_source = {name: [one.video for one in own] for name, own in release.by_source.items()}
    conditions = []
    for task, videos in left_out.items():
        if videos:
            first, names = min(videos), ", ".join(sorted(videos)[:NAMED])
            told = f"{len(videos)} videos left out ({names}), such as {first}: {videos[first]}"
            conditions.append(Condition(Kind.LEFT_OUT, f"{task}: {told}", (task,)))
    section = {
        "data": {"folder": str(release.folder), "hash": release.digest, **release.counts},
        "options": {**found.options.asdict(), "sources": list(by_source)},
        "subsets": {name: own for name, own in by_source.items() if name in options.LARGE_SOURCES},
        "left_out": {task: dict(videos) for task, videos in left_out.items()},
    }
    return section, conditions


def seen(place: Path) -> Seen:
    """What lies in a folder (Benchmark.seen); only chosen videos are validated."""
    release = released.read(place, options.current())
    found = troubles(release.records)
    notes = [released_files.compared(release.counts, options.PAPER_COUNTS)]
    unfit = {name: why for name, why in found.items() if why.startswith("unfit")}
    notes += [f"{name}: {why}" for name, why in [*release.problems.items(), *unfit.items()]]
    gaps: dict[tuple[str, str], list[str]] = {}
    for record in release.records:
        for gap in record.gaps.items():
            gaps.setdefault(gap, []).append(record.id)
    for (task, why), names in sorted(gaps.items()):
        notes.append(f"haven_{task}: leaves out {len(names):,} videos, such as {names[0]}: {why}")
    usable = len(release.records) - len(found)
    lost = {name: why for name, why in found.items() if name not in unfit}
    return Seen(release.folder, release.digest, release.counts, usable, lost, notes)
