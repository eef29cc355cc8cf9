"""Where the subtitles of a run came from, for its results."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval_tasks.maverix import inputs
from lmms_eval_tasks.maverix.data import Row
from lmms_eval_tasks.maverix.schema import Release
from lmms_eval_tasks.utils import subtitles

NO_FILE = "none"


def describe(release: Release, rows: Sequence[Row], lengths: Iterable[str]) -> dict[str, Any]:
    """Kinds of files, who made them, what they lack, and a hash of what they say.

    Args:
        release: the user's data.
        rows: those of its items that are asked (data.py). Their subtitles can be read.
        lengths: localized, long, or both, as the modes with subtitles are run.

    Returns:
        `without`: number of items by length whose prompt has no cue, of `items`.
        `videos`: number of videos by kind (srt, vtt, json, none). `made_by`: for each transcriber
        that files of `data subtitles` name, what they say of it and the number of videos; released
        files name none. `hash`: first 12 hex digits of the SHA-256 of all videos' cues, independent
        of the files' form.
    """
    kinds, makers = Counter[str](), Counter[str]()
    digest = hashlib.sha256()
    for video in sorted({row["video"] for row in rows}):
        path = release.subtitles_of(video)
        kinds[NO_FILE if path is None else path.suffix.lower().removeprefix(".")] += 1
        cues = [] if path is None else subtitles.read(path)
        said = [[cue.start, cue.end, cue.text] for cue in cues]
        digest.update(json.dumps([video, said], ensure_ascii=True).encode() + b"\n")
        if path is not None and (maker := _made_by(path)):
            makers[json.dumps(maker, sort_keys=True)] += 1
    return {
        "items": len(rows),
        "without": {length: sum(not _shown(row, length) for row in rows) for length in lengths},
        "videos": dict(sorted(kinds.items())),
        "made_by": [{**json.loads(maker), "videos": n} for maker, n in sorted(makers.items())],
        "hash": digest.hexdigest()[:12],
    }


def warnings(notes: Mapping[str, Any]) -> list[str]:
    """What a result must say: without cues, S is the bare question, and V+S is V."""
    return [
        f"{number} of {notes['items']} items ({length}) have no subtitles to show in S and V+S: "
        f"{notes['videos'].get(NO_FILE, 0)} of {sum(notes['videos'].values())} videos have no "
        "file (lmms-eval-tasks data subtitles maverix makes them)"
        for length, number in notes["without"].items()
        if number
    ]


def _shown(row: Row, length: str) -> str:
    whole = {"start": None, "end": None} if length == "long" else {}
    return inputs.subtitle_text({**row, **whole})


def _made_by(path: Path) -> dict[str, Any]:
    """The transcriber that a file names (utils/transcription.py), without its date; else empty."""
    if path.suffix.lower() != ".json":
        return {}
    content = json.loads(path.read_text(encoding="utf-8-sig"))
    maker = content.get("transcriber") if isinstance(content, dict) else None
    if not isinstance(maker, dict):
        return {}
    return {name: value for name, value in maker.items() if name != "date"}
