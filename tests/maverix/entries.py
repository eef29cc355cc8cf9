"""Entries of a data file in MAVERIX's schema, for tests: a good one, and files of some."""

from __future__ import annotations

import json
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


def write(folder: Path, content: Any, name: str = "data.json", columns: str = "") -> Path:
    """A data file in `folder`, with a column map beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(json.dumps(content, ensure_ascii=True), encoding="utf-8")
    if columns:
        (folder / "columns.yml").write_text(columns, encoding="utf-8")
    return file
