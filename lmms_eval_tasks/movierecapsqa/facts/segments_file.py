"""The file of segments that `lmms-eval-tasks facts` writes or adds to.

A segment that is there already, made from the same narration by the same model with the same
instructions, is kept as it is (hand corrections too) and costs nothing. Anything else under its id
is refused: neither of the two would be what the user expects.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.movierecapsqa.facts.recap_file import Narrated
from lmms_eval_tasks.movierecapsqa.schema import Segment
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.validation import told

GENERATED = "generated"  # our field in a segment: how it was made


def made_from(segment: Narrated, model: str, settings: str, prompt: str) -> dict[str, str]:
    """How a segment comes about, for the file.

    Args:
        segment: what is given.
        model: the model's label.
        settings: hash of the model with its settings.
        prompt: hash of the instructions.
    """
    given = json.dumps([dict(segment.released), segment.narration], sort_keys=True)
    digest = hashlib.sha256(given.encode("utf-8", "replace")).hexdigest()[:12]
    return {"model": model, "settings": settings, "prompt": prompt, "input": digest}


def read(file: Path) -> list[dict[str, Any]]:
    """The segments of a file, none if it is not there.

    Raises:
        DataError: no list of segments, or two with one id.
    """
    if not file.exists():
        return []
    content = released_files.read_json(file)
    if not isinstance(content, list) or not all(
        isinstance(entry, dict) and isinstance(entry.get("id"), str) for entry in content
    ):
        raise DataError(f"{file}: expected a list of segments with ids; name another file")
    ids = [entry["id"].strip() for entry in content]
    if twice := sorted({name for name in ids if ids.count(name) > 1}):
        raise DataError(f"{file}: the id {twice[0]} occurs twice")
    return content


def kept(
    file: Path,
    entries: Sequence[Mapping[str, Any]],
    wanted: Mapping[str, Mapping[str, str]],
    *,
    append: bool,
) -> set[str]:
    """The ids of the segments that the file has already.

    Args:
        file: for messages.
        entries: its segments.
        wanted: `made_from` of the segments that are to be in it, by id.
        append: whether it may hold others.

    Raises:
        DataError: it holds others and may not, or one that was made otherwise or is damaged.
    """
    there = {entry["id"].strip(): entry for entry in entries}
    others = [name for name in there if name not in wanted]
    if others and not append:
        raise DataError(
            f"{file}: holds other segments ({others[0]}): add to them with --append, or name "
            "another file"
        )
    found = [name for name in wanted if name in there]
    for name in found:
        if why := _difference(there[name].get(GENERATED), wanted[name]):
            raise DataError(
                f"{file}: has a segment {name} already, {why}: remove it there or name another file"
            )
        try:
            Segment.model_validate(there[name])
        except ValidationError as error:
            raise DataError(f"{file}, segment {name}: {told(error)}") from None
    return set(found)


def _difference(before: object, now: Mapping[str, str]) -> str:
    """In which way a segment was made differently; "" if it was not."""
    if not isinstance(before, dict):
        return "which this command did not make"
    if before.get("input") != now["input"]:
        return "made from another narration, dialogue or time"
    if before.get("model") != now["model"]:
        return f"made by {before.get('model')}"
    # Other settings are no other writer: more room for a reply may be what a segment needs.
    return "" if before.get("prompt") == now["prompt"] else "made with other instructions"


def merged(
    entries: Sequence[dict[str, Any]],
    made: Mapping[str, dict[str, Any]],
    order: Sequence[str],
) -> list[dict[str, Any]]:
    """The file's segments with those made now, the recap's own in its order and in one place.

    Args:
        entries: what the file holds.
        made: segments by id.
        order: the recap's ids.
    """
    own = {entry["id"].strip(): entry for entry in entries if entry["id"].strip() in order}
    others = [entry["id"].strip() not in order for entry in entries]
    place = others.index(False) if own else len(entries)
    own |= made
    after = [entry for entry, other in zip(entries, others, strict=True) if other][place:]
    return [*entries[:place], *(own[name] for name in order if name in own), *after]
