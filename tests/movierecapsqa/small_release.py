"""A small release with published scores: two videos, three models and people, four questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.movierecapsqa.entries import entry, question, write

# By who answers: answers to the four questions with their published factuality and relevance.
Given = tuple[str, tuple[int, int] | None]
ANSWERS: dict[str, list[Given]] = {
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
    "people": [("Delta 5", (5, 5)), ("Delta 4", (4, 5)), ("Delta 3", (5, 4)), ("Delta 0", (1, 1))],
}
TEXTS = [text for given in ANSWERS.values() for text, _ in given if text]


def with_scores(given: Given) -> dict[str, Any]:
    text, scores = given
    names = ("factuality", "relevance")
    return {"answer": text, "scores": scores and dict(zip(names, scores, strict=True))}


def release(folder: Path) -> Path:
    """Two segments of two videos, with two questions each."""
    segments = []
    for place in (0, 1):
        facts = [f"Fact {place} of the film."]
        questions = []
        for number in (0, 1):
            given = {by: with_scores(own[2 * place + number]) for by, own in ANSWERS.items()}
            human = given.pop("people")
            models = [{"model": model, **one} for model, one in given.items()]
            answers = {"humanAnswer": human, "modelAnswers": models}
            questions.append(question(number, **answers, alignedFacts=facts))
        one = entry(place + 1, videoId=f"video{place}", questions=questions, facts=facts)
        segments.append(one)
    return write(folder, segments)
