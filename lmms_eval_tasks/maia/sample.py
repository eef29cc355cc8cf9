"""MAIA's packaged sample in the released layout: two videos, 48 questions, 384 pairs, and a key.

    maia/data.json      as released: 12 categories x (A, B) x 8 answers, true and false statements
    maia/videos/N.mp4   the clip of "videoN"
    maia/key.json       {"pairs": [[true, false], ...],
                         "answers": {question: right answer},
                         "lures": {question: wrong answer that looks right}}

The key is for the demo's oracle and for tests, by text: every question occurs once, and no
statement is true of one video and false of the other. No task reads it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lmms_eval_tasks.maia import sample_draw, sample_scene, sample_texts
from lmms_eval_tasks.maia.sample_scene import Scene
from lmms_eval_tasks.sample import render

PARTS = ("A", "B")
LINK = "packaged sample of lmms-eval-tasks"  # stands where the release names the source on the web


def write(folder: Path) -> None:
    """Write the sample into an existing empty folder.

    Raises:
        MediaError: a clip cannot be encoded.
    """
    (folder / "videos").mkdir()
    for scene in sample_scene.SCENES:
        write_video(scene, folder / "videos" / f"{scene.number}.mp4")
    _write_json(folder / "data.json", [entry(scene) for scene in sample_scene.SCENES])
    _write_json(folder / "key.json", key())


def write_video(scene: Scene, path: Path) -> None:
    """Draw and encode one scene with its sound."""
    rate = sample_scene.AUDIO_RATE
    sound = render.soundtrack(scene.tones(), scene.seconds, rate)
    render.write_mp4(path, sample_draw.frames(scene), sample_scene.FPS, sound, rate)


def entry(scene: Scene) -> dict[str, Any]:
    """One video of data.json (data_schemas.md, MAIA)."""
    video: dict[str, Any] = {"video": f"video{scene.number}", "link": LINK}
    for part in PARTS:
        video[f"question_categories_{part}"] = [
            {
                "category": item.category,
                "question": item.question,
                "answer": item.answers,
                "true_statement": [true for true, _ in item.pairs],
                "false_statement": [false for _, false in item.pairs],
            }
            for item in sample_texts.items(scene, part)
        ]
    return video


def key() -> dict[str, Any]:
    """What is right, over all videos; see the module's docstring for the form."""
    items = [
        item
        for scene in sample_scene.SCENES
        for part in PARTS
        for item in sample_texts.items(scene, part)
    ]
    return {
        "pairs": [list(pair) for item in items for pair in item.pairs],
        "answers": {item.question: item.right for item in items},
        "lures": {item.question: item.lure for item in items},
    }


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
