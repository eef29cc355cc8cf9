"""The rating sheet as one HTML page: pictures, texts, the rubric, and a button for the CSV.

Nothing is loaded from elsewhere and nothing is sent anywhere. The browser keeps ratings while the
page is open, also when it is loaded again, and forgets them with it: the second rater at the same
computer must not see the first one's.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmms_eval_tasks.haven.records.picture import Evidence, filled
from lmms_eval_tasks.haven.records.rating_sheet import (
    COLUMNS,
    DIMENSIONS,
    RUBRIC,
    RULES,
    SCALE,
    Drawn,
    Sheet,
    csv_text,
    shown,
)


def html(sheet: Sheet, evidence: Mapping[str, Evidence]) -> str:
    """The page.

    Args:
        sheet: what is to be rated.
        evidence: pictures by the video's id.
    """
    rows = sheet.rows
    # Ratings of another sheet must not turn up in this one.
    name = hashlib.sha256(csv_text(rows).encode("utf-8", "replace")).hexdigest()[:12]
    data = {
        "name": f"haven-ratings-{name}",
        "columns": COLUMNS,
        "rows": [[row.id, row.level, shown(row.text), row.dimension] for row in rows],
    }
    numbers = itertools.count()
    return filled(
        "form.html",
        videos=[_video(video, evidence[video.id], numbers) for video in sheet.videos],
        n_ratings=len(rows),
        scale=SCALE,
        rubric=RUBRIC,
        rules=RULES,
        # "</script>" inside a text must not end the block.
        data=json.dumps(data, ensure_ascii=False).replace("<", "\\u003c"),
    )


def _video(video: Drawn, seen: Evidence, numbers: Iterator[int]) -> dict[str, Any]:
    """What the template shows of a video; its questions take the next numbers."""
    texts = []
    for identity, level, text in video.texts:
        what = identity.removeprefix(f"{video.id} ")
        texts.append(
            {
                "title": what.capitalize(),
                "pictures": _shown_of(level, what, seen),
                "text": text,
                "questions": [
                    (next(numbers), dimension.capitalize(), question)
                    for dimension, question in DIMENSIONS[level].items()
                ],
            }
        )
    return {"id": video.id, "name": video.record.name, "why": seen.why, "texts": texts}


def _shown_of(level: str, what: str, seen: Evidence) -> Sequence[str]:
    if level == "frame":
        found = seen.frames.get(int(what.removeprefix("frame ")))
        return [found] if found else []
    return seen.shot if level == "shot" else seen.video
