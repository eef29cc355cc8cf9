"""Dialogue, facts and questions of the packaged movies, filled in from their scenes.

The sentences are templates (sample_story_yaml); what is to be seen comes from the scene that the
picture is drawn from, so that a fact is true because it is asked of the same fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from lmms_eval_tasks.movierecapsqa.sample_scenes import STORIES, Scene, Story

MODALITIES = {("seen",): "vision", ("said",): "dialogue"}  # of a question, by its facts' kinds

_ALTERNATIVES = re.compile(r"\[([^][|]*)\|([^][|]*)\]")


class Line(NamedTuple):
    """A line of dialogue; start and end are shares of its scene."""

    start: float
    end: float
    text: str


class Asked(NamedTuple):
    """One question. `wrong` is an answer that is false; `partly` one that is half true, or ""."""

    question: str
    modality: str  # of labels.SPLITS, "" if unlabelled
    category: str
    facts: tuple[int, ...]  # numbers of the facts that it rests on, from 1 on
    answer: tuple[str, ...]  # its sentences
    wrong: str
    partly: str

    @property
    def reference(self) -> str:
        """The right answer."""
        return " ".join(self.answer)


class Part(NamedTuple):
    """A segment: a scene with its texts."""

    id: str
    story: Story
    scene: Scene
    dialogue: tuple[Line, ...]
    facts: tuple[tuple[str, str], ...]  # kind (seen, said, both) and text
    questions: tuple[Asked, ...]


@lru_cache(maxsize=1)
def parts() -> tuple[Part, ...]:
    """All segments of both movies.

    Raises:
        KeyError, ValueError: a template names an unknown slot, has no choice or more than one, or
            there are texts for other scenes than there are.
    """
    import yaml

    file = Path(__file__).with_name("sample_story_yaml")
    texts = yaml.safe_load(file.read_text(encoding="utf-8"))
    return tuple(part for story in STORIES for part in _story(story, texts[story.movie_id]))


def lure(number: int) -> str:
    """What answers a question of another segment, in place of those of segment `number`."""
    every = parts()
    return every[(number + 1) % len(every)].questions[0].reference


def _story(story: Story, entries: Sequence[dict[str, Any]]) -> Iterator[Part]:
    for number, (scene, entry) in enumerate(zip(story.scenes, entries, strict=True), 1):
        words = scene.words()
        facts = [
            (kind, text.format_map(words)) for one in entry["facts"] for kind, text in one.items()
        ]
        asked = (_asked(one, [kind for kind, _ in facts], words) for one in entry["questions"])
        lines = (Line(**line) for line in entry["dialogue"])
        name = f"{story.video}.{number}"
        yield Part(name, story, scene, tuple(lines), tuple(facts), tuple(asked))


def _asked(entry: dict[str, Any], kinds: Sequence[str], words: dict[str, str]) -> Asked:
    question = entry["ask"].format_map(words)
    answer = [sentence.format_map(words) for sentence in entry["answer"]]
    choices = [sentence for sentence in answer if _ALTERNATIVES.search(sentence)]
    if len(choices) != 1 or len(_ALTERNATIVES.findall(choices[0])) != 1:
        raise ValueError(f"expected exactly one [true|false] in the answer to: {question}")
    used = tuple(sorted({kinds[number - 1] for number in entry["facts"]}))
    category = entry.get("category", "")
    return Asked(
        question=question,
        modality=MODALITIES.get(used, "multimodal") if category else "",
        category=category,
        facts=tuple(entry["facts"]),
        answer=tuple(_ALTERNATIVES.sub(r"\1", sentence) for sentence in answer),
        wrong=_ALTERNATIVES.sub(r"\2", choices[0]),
        partly=entry.get("partly", "").format_map(words),
    )
