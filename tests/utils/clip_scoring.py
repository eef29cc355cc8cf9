"""Sentences and pictures that CLIPScore's tests share, and scores of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tiny_clip import picture

from lmms_eval_tasks.utils.clip_encoder import Picture
from lmms_eval_tasks.utils.clipscore import clip_score

SENTENCES = ["A man paints the boat.", "The red dog sleeps", "a woman runs by the green river"]
IMAGES = {
    "sea": picture((20, 60, 200)),
    "meadow": picture((40, 180, 60), (250, 250, 250)),
    "sunset": picture((230, 90, 20), (20, 20, 90)),
}


def given(names: Sequence[str], opened: list[str] | None = None) -> list[Picture]:
    """Pictures that note that they are opened."""

    def opener(name: str) -> Any:
        def opens() -> Any:
            if opened is not None:
                opened.append(name)
            return IMAGES[name].copy()

        return opens

    return [Picture(name, opener(name)) for name in names]


def scored(model: str, sentences: Sequence[str], names: Sequence[str], **options: Any) -> float:
    """The score, which there has to be."""
    score = clip_score(sentences, given(names), model, **options)
    assert score.reason is None, score.reason
    assert score.value is not None
    return score.value
