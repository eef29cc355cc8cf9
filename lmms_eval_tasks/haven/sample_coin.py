"""A player of HAVEN's packaged sample that draws: orders, keyframes, clips and summaries at random.

It sees what the oracle sees and uses of it how much there is and how much is asked for. A draw
depends on the request's texts and pictures and on the seed, so that it is the same in every process
and another one for every video.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lmms_eval_tasks.haven import sample_oracle, sample_request, sample_texts
from lmms_eval_tasks.haven.sample_request import Request
from lmms_eval_tasks.haven.sample_stories import SCENES
from lmms_eval_tasks.haven.scripted import fitted

if TYPE_CHECKING:
    from PIL.Image import Image

_KEY_SHOTS = 2  # of a made-up summary


def reply(parts: Sequence[str | Image], seed: int = 0) -> str | None:
    """A random reply in the right form.

    Args:
        parts: the request's texts and pictures (sample_request.read).
        seed: another seed draws another reply.

    Returns:
        None if it is no request of the sample's (sample_request.read).
    """
    request = sample_request.read(parts)
    if request is None:
        return None
    return _REPLIES[request.kind](request, random.Random(_digest(parts, seed)))


def _order(request: Request, draw: random.Random) -> str:
    numbers = [unit.number for unit in request.units]
    return sample_oracle.order(request, draw.sample(numbers, len(numbers)))


def _alignment(request: Request, draw: random.Random) -> str:
    """One clip for each sentence."""
    clips = [clip.number for clip in request.units]
    return sample_oracle.alignment(
        {sentence.number: [draw.choice(clips)] for sentence in request.sentences}
    )


def _summary(request: Request, draw: random.Random) -> str:
    """Sentences like the references', about any scenes."""
    sentences = sample_texts.summary(draw.sample(SCENES, _KEY_SHOTS))
    return sample_oracle.written(request, fitted(sentences, request.n_sentences))


def _joint(request: Request, draw: random.Random) -> str:
    chosen = sample_oracle.selection(request, _frames(request, draw))
    return f"{_summary(request, draw)}\n{chosen}"


def _frames(request: Request, draw: random.Random) -> list[int]:
    """As many frames as are asked for, each as likely as any other."""
    numbers = range(1, len(request.frames) + 1)
    return sorted(draw.sample(numbers, min(request.budget, len(numbers))))


def _digest(parts: Sequence[str | Image], seed: int) -> bytes:
    digest = hashlib.sha256(f"{seed}".encode())
    for part in parts:
        digest.update(b"\x1f" + (part.encode() if isinstance(part, str) else part.tobytes()))
    return digest.digest()


_REPLIES: dict[str, Callable[[Request, random.Random], str]] = {
    "v2t": _summary,
    "v2v": lambda request, draw: str(_frames(request, draw)),
    "v2vt": _joint,
    "temporal": _order,
    "saliency": _order,
    "grounding": _alignment,
}
