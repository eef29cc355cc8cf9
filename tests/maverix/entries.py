"""Entries of a data file in MAVERIX's schema, for tests: a good one, and files of some."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

CASES = json.loads(
    (Path(__file__).parent.parent / "cases" / "maverix_items.json").read_text(encoding="utf-8")
)


def entry(number: int = 1, **changes: Any) -> dict[str, Any]:
    """A good item; `...` as a change takes the field away."""
    good: dict[str, Any] = {
        "id": f"item-{number}",
        "video": "clip",
        "start": 3.4,
        "end": 9.7,
        "question": f"Who rings bell {number}?",
        "paraphrase": f"Bell {number} is rung by whom?",
        "options": [f"Person {letter}{number}" for letter in "KLMNOPQR"],
        "answer": "C",
        "reference": "The person with the hat",
        "difficulty": "hard",
        "agentic": "social",
        "audio": "speech",
        "topic": "arts",
        "ability": "causal",
        "duration": "short",
        "shuffled": False,
    }
    changed = {**good, **changes}
    return {name: value for name, value in changed.items() if value is not ...}


def lines(number: int, *, video: str = "clip", questions: int = 2) -> list[dict[str, Any]]:
    """Lines in the form of the authors' release, made up; the second question borrows a wording."""
    made = []
    for q in range(1, questions + 1):
        choice = [f"{letter}. Colour {letter}{number}{q}" for letter in "ABCDEFG"] + ["Unsure."]
        for k, question, answer in (
            (1, f"Which lamp {number}.{q} is lit?", "C"),
            (2, f"Which lamp {number}.1 is lit?", f"The lamp {q}"),
            (3, f"Lit is which lamp {number}.{q}?", f"The lamp {q}"),
        ):
            made.append(
                {
                    "video_type": "easy",
                    "duration": 75.5,
                    "domain": ["egocentric_agent", "social"],
                    "sub_category": "None" if q == 2 else "Pets & Animals",
                    "audio_category": "natural_sound",
                    "videoID": video,
                    "question_id": f"{number:04}_{q}-{k}",
                    "task_type": "causal reasoning" if k == 1 else "relationship",
                    "question": question,
                    "options": choice if k == 1 else None,
                    "answer": answer,
                }
            )
    return made


def write_lines(file: Path, rows: Iterable[dict[str, Any]]) -> Path:
    """A file of released lines."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def write(folder: Path, content: Any) -> Path:
    """A data file in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "data.json"
    file.write_text(json.dumps(content, ensure_ascii=True), encoding="utf-8")
    return file
