"""From a video's row to a task's doc: what is shown, in which order, and how much is asked for.

Every draw and shuffle follows a SHA-256 of the seed, the video's id and the thing drawn: the same
on every machine, in every process and under `--limit`. A task with the document and the one without
it share their draws, so that their difference is the document's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lmms_eval_tasks.haven.labels import ORDERS, SELECTIONS, SUMMARIES, Task, budget
from lmms_eval_tasks.haven.options import REFERENCE, Options
from lmms_eval_tasks.haven.record import Record
from lmms_eval_tasks.utils.media import uniform_indices

Row = dict[str, Any]


def row(record: Record, data: str) -> Row:
    """A video as a row of the host's dataset, in plain types; all numbers count from 1 but `picks`.

    Args:
        record: the video.
        data: digest of the release.
    """
    content = {
        "id": record.id,
        "source": record.source,
        "video": record.video,
        "picks": record.picks,
        "descriptions": [frame.description for frame in record.frames],
        "keyframes": record.keyframes,
        "shots": [list(shot.frames) for shot in record.shots],
        "shot_texts": [shot.description for shot in record.shots],
        "importance": record.importance or [],
        "document": [sentence.text for sentence in record.document],
        "document_shots": [list(sentence.shots) for sentence in record.document],
        "summary": [sentence.text for sentence in record.summary],
        "summary_shots": [list(sentence.shots) for sentence in record.summary],
    }
    return {
        **content,
        "record": _fingerprint(content),
        "video_path": "" if record.path is None else str(record.path.resolve()),
        "data": data,
    }


def _fingerprint(content: Mapping[str, Any]) -> str:
    """Tells a record from others, wherever its files lie: 12 hex digits of a SHA-256."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def not_run(given: Mapping[str, Any], task: Task, options: Options, why: str) -> Row:
    """The only doc of a task that has no item, so that the host can go on with the others.

    It shows and asks nothing; `not_run` says why.
    """
    return {
        **doc(given, task, options),
        "units": [],
        "unit_frames": [],
        "sentences": [],
        "not_run": why,
    }


def doc(given: Mapping[str, Any], task: Task, options: Options) -> Row:
    """A task's doc of a video's row: the row and what the task shows and asks (3.4, C).

    Adds `kind`, `text` (text proxy), `with_document`; `budget` (K); `n_sentences` asked for;
    `units`: the shots or document sentences shown, by number, in the order shown; `unit_frames`:
    the frames whose pictures are shown of each unit; `sentences`: the summary sentences shown;
    `not_run`, which is empty here.
    """
    units = _units(given, task, options)
    shots = given["shots"]
    of_shots = task.kind not in SUMMARIES + SELECTIONS and not task.text
    return {
        **given,
        "not_run": "",
        "kind": task.kind,
        "text": task.text,
        "with_document": task.document,
        "budget": budget(len(given["picks"])),
        "n_sentences": _n_sentences(given, options) if task.kind in SUMMARIES else 0,
        "units": units,
        "unit_frames": [
            shown(shots[unit - 1], options.frames_per_shot) for unit in units if of_shots
        ],
        "sentences": _sentences(given, options) if task.kind == "grounding" else [],
    }


def _n_sentences(given: Mapping[str, Any], options: Options) -> int:
    if options.sentences == REFERENCE:
        return len(given["summary"])
    return int(options.sentences)


def _units(given: Mapping[str, Any], task: Task, options: Options) -> list[int]:
    """Numbers of what is shown, in order: shots, or the document's sentences (temporal proxy)."""
    if task.kind not in (*ORDERS, "grounding"):
        return []
    sentences = task.kind == "temporal" and task.text
    units = list(range(1, 1 + len(given["document" if sentences else "shots"])))
    if task.kind == "grounding":
        return units  # its clips stay in order, and all of them are needed
    what = "sentence" if sentences else "shot"
    drawn = sorted(by_hash(units, options.seed, given["id"], f"drawn {what}")[: options.max_shots])
    if task.kind == "saliency":
        return drawn
    return by_hash(drawn, options.seed, given["id"], f"shuffled {what}")


def _sentences(given: Mapping[str, Any], options: Options) -> list[int]:
    """Summary sentences to ground, shuffled; one that belongs to no shot cannot be asked about."""
    known = [number for number, shots in enumerate(given["summary_shots"], 1) if shots]
    return by_hash(known, options.seed, given["id"], "shuffled summary")


def by_hash(numbers: Iterable[int], seed: int, name: str, use: str) -> list[int]:
    """`numbers` in the order of the SHA-256 of `SEED:USE:NAME:NUMBER`: a shuffle without state."""

    def key(number: int) -> bytes:
        return hashlib.sha256(f"{seed}:{use}:{name}:{number}".encode()).digest()

    return sorted(numbers, key=key)


def shown(frames: Sequence[int], limit: int) -> list[int]:
    """The frames of a shot whose pictures are shown: uniform, its first and last among them.

    Args:
        frames: numbers of the shot's sampled frames, at least one.
        limit: how many at most; 0 is all. A single one is the shot's first.
    """
    if not limit:
        return list(frames)
    return [frames[place] for place in uniform_indices(len(frames), limit)]


def n_images(made: Mapping[str, Any]) -> int:
    """How many pictures a doc's request holds."""
    if made["text"] or made["not_run"]:
        return 0
    if made["unit_frames"]:
        return sum(map(len, made["unit_frames"]))
    return len(made["picks"])
