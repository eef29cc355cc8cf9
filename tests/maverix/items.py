"""Hand-made items of MAVERIX's three kinds, as a run leaves them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmms_eval_tasks.maverix import metrics
from lmms_eval_tasks.maverix.labels import DIMENSIONS, LETTERS, MODES

LABELS = {
    "difficulty": "easy",
    "agentic": "social",
    "audio": "speech",
    "topic": "arts",
    "ability": "visual",
    "duration": "",
}
KINDS = {"choice": metrics.CHOICE, "circular": metrics.CIRCULAR, "open": metrics.OPEN}
STATUS = {"u": "unparsed", "e": "empty", "f": "refused", "t": "truncated", "m": "model_error"}


def choice(name: str, mark: str = "1", **more: Any) -> dict[str, Any]:
    """One choice: 1 right, 0 wrong, x an error of ours, or a status by its letter."""
    mode = more.get("mode", "av")
    sound = more.get("sound", "delivered" if MODES[mode].sound else "")
    # With another state of its own, that of the other mode is the same unless it is given.
    both = dict.fromkeys(metrics.WITH_SOUND, sound or "delivered")
    return {
        "id": name,
        "question_id": name,
        "video": f"video of {name}",
        "mode": "av",
        "length": "localized",
        **LABELS,
        "answer": "A",
        "letter": {"1": "A", "0": "B"}.get(mark),
        "status": "error" if mark == "x" else STATUS.get(mark, "ok"),
        "right": None if mark == "x" else int(mark == "1"),
        "words": 1,
        "letter_authors": {"1": "A", "0": "B"}.get(mark, ""),
        "sound": sound,
        "hears": both,
        **more,
    }


def choices(marks: str, **more: Any) -> list[dict[str, Any]]:
    return [choice(f"q{n}", mark, **more) for n, mark in enumerate(marks)]


def rotations(question: str, letters: str, **more: Any) -> list[dict[str, Any]]:
    """Rotation n has its truth at letter n; `letters` are those chosen, `-` none."""
    return [
        choice(
            f"{question}/{n}",
            "u" if letter == "-" else "1",
            question_id=question,
            video=question,
            rotation=n,
            answer=LETTERS[n],
            letter=None if letter == "-" else letter,
            right=int(letter == LETTERS[n]),
            **more,
        )
        for n, letter in enumerate(letters)
    ]


def answer(
    question: str, version: str, mark: str | Mapping[str, str], **more: Any
) -> dict[str, Any]:
    """One open answer from its ratings: 0 to 5, e empty, m failed request, j judge, s skipped."""
    marks = mark if isinstance(mark, Mapping) else dict.fromkeys(DIMENSIONS, mark)
    judge = {"j": "judge_api_error", "s": "unjudged"}
    dimensions = {
        name: {"score": int(m), "status": "ok"}
        if m.isdigit()
        # What was never put to a judge has 0.
        else {"score": None if m in judge else 0, "status": (judge | STATUS)[m]}
        for name, m in marks.items()
    }
    found = [part["status"] for part in dimensions.values() if part["status"] != "ok"]
    return {
        "id": f"{question}/{version}",
        "question_id": question,
        "video": f"video of {question}",
        "version": version,
        "mode": "av",
        **LABELS,
        "status": found[0] if found else "ok",
        "dimensions": dimensions,
        "words": 5,
        "sound": "delivered",
        "hears": dict.fromkeys(metrics.WITH_SOUND, "delivered"),
        **more,
    }


def pair(question: str, marks: str, **more: Any) -> list[dict[str, Any]]:
    return [
        answer(question, version, mark, **more)
        for version, mark in zip(("original", "paraphrase"), marks, strict=True)
    ]
