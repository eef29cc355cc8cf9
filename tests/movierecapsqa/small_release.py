"""A small release with published scores: two videos, three models and people, four questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.movierecapsqa.entries import entry, question, write

# By model: answers to the four questions with their published factuality and relevance.
Given = tuple[str, tuple[int, int] | None]
MODELS: dict[str, list[Given]] = {
    "gpt_4o.response": [("Alpha 5", (5, 4)), ("Alpha 4", (4, 4)), ("Alpha 3", (4, 5)), ("", None)],
    "Qwen.response": [
        ("Beta 2", (3, 4)),
        ("Beta 0", (0, 1)),
        ("Beta 4", (4, 4)),
        ("Beta 1", (1, 3)),
    ],
    "own-model": [
        ("Gamma 1", (1, 4)),
        ("Gamma 1", (2, 2)),
        ("I cannot help with that.", None),
        ("Gamma 2", (2, 2)),
    ],
}
PEOPLE: list[list[Given]] = [
    [("Delta 5", (5, 5)), ("Delta 2", (3, 5))],
    [("Delta 4", (4, 5))],
    [("Delta 3", (5, 4))],
    [("Delta 0", (1, 1))],
]
SCORED = 10 + 5  # answers with scores


def with_scores(given: Given) -> dict[str, Any]:
    text, scores = given
    names = ("factuality", "relevance")
    return {"answer": text, "scores": scores and dict(zip(names, scores, strict=True))}


def release(folder: Path) -> Path:
    """Two segments of two videos, with two questions each."""
    segments = []
    for place in (0, 1):
        questions = [
            question(
                number,
                factsUsed=[number],  # from 0 in the one, from 1 in the other
                humanAnswer=...,
                humanAnswers=[with_scores(given) for given in PEOPLE[2 * place + number]],
                modelAnswers=[
                    {"model": model, **with_scores(given[2 * place + number])}
                    for model, given in MODELS.items()
                ],
            )
            for number in (0, 1)
        ]
        facts = [f"Fact {place} of the film."]
        one = entry(place + 1, videoId=f"video{place}", questions=questions, facts=facts)
        segments.append(one)
    return write(folder, segments)
