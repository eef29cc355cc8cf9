"""The texts of HAVEN's packaged sample, made of what its videos show, and how they are read back.

A text says what its text proxy is asked about, so that a reader who sees nothing else can be right:
a frame's description its level, a shot's the sum of its levels and its length, a document's
sentence its place, a summary's sentence what its shots show.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from lmms_eval_tasks.haven.sample_stories import COLOURS, GROUNDS, SHAPES, TOP, Scene, Story

PLACES = ("First", "Second", "Third", "Fourth", "Fifth", "Sixth", "Seventh", "Eighth")
N_SUMMARY = 4  # sentences of every summary
_HIGHLIGHT = " in a highlight"

_SCENE = re.compile(
    rf"\ba ({'|'.join(COLOURS)}) ({'|'.join(SHAPES)}) on a ({'|'.join(GROUNDS)}) ground\b",
    re.IGNORECASE,
)
_FRAME = re.compile(rf"marked (\d) of {TOP} for importance({_HIGHLIGHT})?\.")
_SHOT = re.compile(r"for (\d+) sampled frames; its marks for importance add up to (\d+)\.")


class FrameText(NamedTuple):
    """What the description of a frame tells."""

    scene: Scene
    level: int
    key: bool  # whether its shot is a key shot


# --- written ----------------------------------------------------------------------------------


def frame(scene: Scene, level: int, key: bool) -> str:
    """The description of a frame; `key`: its shot is a key shot."""
    highlight = _HIGHLIGHT if key else ""
    return f"{_capital(str(scene))}, marked {level} of {TOP} for importance{highlight}."


def shot(scene: Scene, levels: Sequence[int]) -> str:
    """The description of a shot."""
    return (
        f"{_capital(str(scene))} moves for {len(levels)} sampled frames; its marks for importance "
        f"add up to {sum(levels)}."
    )


def document(story: Story) -> list[str]:
    """The document's sentences; a sentence's number is its first word."""
    return [
        f"{PLACES[place]}, {_joined([story.scenes[number - 1] for number in shots])} "
        f"{'moves' if len(shots) == 1 else 'move'} across the picture."
        for place, shots in enumerate(story.document_shots)
    ]


def summary(scenes: Sequence[Scene]) -> list[str]:
    """The summary's sentences, N_SUMMARY of them.

    Args:
        scenes: of the key shots, in order; at least one.
    """
    first, *_, last = (*scenes[:1], *scenes)
    return [
        f"The highlights open with {first}.",
        f"All that counts in this video is {_joined(scenes)}.",
        f"The last highlight is {last}.",
        f"One remembers {_joined(dict.fromkeys((first, last)))}.",
    ]


def summary_shots(key_shots: Sequence[int]) -> list[list[int]]:
    """The shots of the summary's sentences, as `summary` names them."""
    first, last = key_shots[0], key_shots[-1]
    return [[first], list(key_shots), [last], sorted({first, last})]


# --- read -------------------------------------------------------------------------------------


def scenes_of(text: str) -> list[Scene]:
    """The scenes that a text names, in its order."""
    return [
        Scene(shape.lower(), colour.lower(), ground.lower())
        for colour, shape, ground in _SCENE.findall(text)
    ]


def read_frame(text: str) -> FrameText | None:
    """What a frame's description tells; None for any other text."""
    scenes, told = scenes_of(text), _FRAME.search(text)
    if len(scenes) != 1 or told is None:
        return None
    return FrameText(scenes[0], int(told[1]), told[2] is not None)


def read_importance(text: str) -> Fraction | None:
    """The importance that a shot's description tells; None for any other text."""
    told = _SHOT.search(text)
    return Fraction(int(told[2]), int(told[1])) if told and int(told[1]) else None


def read_place(text: str) -> int | None:
    """The place in its document that a sentence tells, from 0; None for any other text."""
    word = text.strip().partition(",")[0]
    return PLACES.index(word) if word in PLACES else None


def _joined(scenes: Iterable[Scene]) -> str:
    *before, last = map(str, scenes)
    return f"{', '.join(before)} and {last}" if before else last


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
