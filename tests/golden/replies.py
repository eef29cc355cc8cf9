"""Replies of the model under test to every item of every task on the packaged sample, recorded.

Kept by task and item in replies.json, which was made once and is data now: whatever becomes of the
docs, the model says the same. There are two models: `main` fails now and then; `faulty` on most
items, so that every task meets every status. Of a new task write what both say to its items.
"""

from __future__ import annotations

import json
from pathlib import Path

FILE = Path(__file__).with_name("replies.json")
MODELS = ("main", "faulty")


def write(folder: Path) -> dict[str, Path]:
    """A file for `--model tasks_recorded` for each model."""
    saved = json.loads(FILE.read_text(encoding="utf-8"))
    files = {model: folder / f"replies-{model}.jsonl" for model in MODELS}
    for model, file in files.items():
        lines = [
            json.dumps({"task": task, "id": item, "reply": saved["texts"][place]})
            for task, own in saved["tasks"].items()
            for item, place in zip(saved["items"][own["items"]], own[model], strict=True)
        ]
        file.write_text("\n".join(lines), encoding="utf-8")
    return files
