"""The oracle of HAVEN's packaged sample: the best reply to a request, from the request alone.

It has no key, no file and no doc: what a picture's strip or a description says is all it knows. So
labels that are wrong in the data, pictures in the wrong order and prompts that lost a number show
in its scores. Where importance ties it reaches the item's best value: any order of what ties is as
good, and of keyframes that tie the earlier ones are true (paper, 3.2: the top 15 %).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from lmms_eval_tasks.haven import sample_request, sample_texts
from lmms_eval_tasks.haven.sample_request import Request, Unit
from lmms_eval_tasks.haven.scripted import fitted

if TYPE_CHECKING:
    from PIL.Image import Image


def reply(parts: Sequence[str | Image]) -> str | None:
    """The best reply.

    Args:
        parts: the request's texts and pictures (sample_request.read).

    Returns:
        None if it is no request of the sample's (sample_request.read).
    """
    request = sample_request.read(parts)
    return None if request is None else _REPLIES[request.kind](request)


def summary(request: Request) -> list[str]:
    """The sentences about the key shots, in order; of fewer than there are the last holds more."""
    scenes = list(dict.fromkeys(frame.scene for frame in request.frames if frame.key))
    return fitted(sample_texts.summary(scenes) if scenes else [], request.n_sentences)


def keyframes(request: Request) -> list[int]:
    """Numbers of the frames with the highest levels, as many as are asked for."""
    numbers = range(1, len(request.frames) + 1)
    best = sorted(numbers, key=lambda number: (-request.frames[number - 1].level, number))
    return sorted(best[: request.budget])


def best_order(request: Request) -> list[int]:
    """Numbers of the units, sorted by time or by importance."""

    def place(unit: Unit) -> tuple[Fraction, int]:
        by_time = request.kind == "temporal"
        return Fraction((unit.order if by_time else -(unit.importance or 0)) or 0), unit.number

    return [unit.number for unit in sorted(request.units, key=place)]


def grounded(request: Request) -> dict[int, list[int]]:
    """Number of each sentence -> numbers of the clips whose scenes it names."""
    return {
        sentence.number: [
            clip.number for clip in request.units if set(clip.scenes) & set(sentence.scenes)
        ]
        for sentence in request.sentences
    }


# --- forms of replies, for the other players too ----------------------------------------------


def written(request: Request, sentences: Sequence[str]) -> str:
    """A summary in the form that the prompt asks for."""
    if not request.numbered:
        return " ".join(sentences)
    lines = [f"{number}. {sentence}" for number, sentence in enumerate(sentences, 1)]
    return "\n".join(["SUMMARY:", *lines])


def selection(request: Request, frames: Sequence[int]) -> str:
    """The line with a joint summary's keyframes."""
    name = "Frame " if request.named else ""
    return f"IMPORTANT FRAMES: [{', '.join(f'{name}{frame}' for frame in frames)}]"


def order(request: Request, numbers: Sequence[int]) -> str:
    """An order of all units."""
    return " > ".join(f"{request.word} {number}" for number in numbers)


def alignment(clips: Mapping[int, Sequence[int]]) -> str:
    """A line for each sentence, by number, with its clips."""
    return "\n".join(
        f"Summary {sentence}: {', '.join(f'Clip {clip}' for clip in found)}"
        for sentence, found in clips.items()
    )


def _joint(request: Request) -> str:
    return f"{written(request, summary(request))}\n{selection(request, keyframes(request))}"


_REPLIES: dict[str, Callable[[Request], str]] = {
    "v2t": lambda request: written(request, summary(request)),
    "v2v": lambda request: str(keyframes(request)),
    "v2vt": _joint,
    "temporal": lambda request: order(request, best_order(request)),
    "saliency": lambda request: order(request, best_order(request)),
    "grounding": lambda request: alignment(grounded(request)),
}
