"""Does a model agree with itself about a video, over tasks? Nobody reports it.

Of the keyframes that it selected: which share lies in the shots that it ranks as salient, and which
share in the clips that its sentences ground to? Each beside the share that as many frames drawn at
random would have, which is the share of all frames that lie there: a model that finds everything
salient, or grounds every sentence to every clip, is consistent and says nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Overlap:
    """Shares in 0..1, or None for both with the reason.

    share: of the selected frames, those in the shots in question.
    chance: of all frames that could be selected there, the same; what a random selection expects.
    left_out: selected frames that lie in no shot that was shown to the other task.
    """

    share: float | None
    chance: float | None
    reason: str = ""
    left_out: int = 0

    @property
    def difference(self) -> float | None:
        """How much more than chance, -1..1; None if undefined."""
        return None if self.share is None or self.chance is None else self.share - self.chance


def upper_half(ranked: Sequence[int]) -> list[int]:
    """The first half of a ranking; of an odd number the middle one belongs to it."""
    return list(ranked[: (len(ranked) + 1) // 2])


def with_saliency(
    frames: Collection[int], shots: Sequence[Collection[int]], ranked: Sequence[int]
) -> Overlap:
    """Do the keyframes lie in the upper half of the shots that the model ranks?

    Frames of shots that were not ranked, because only some were drawn, count on neither side.

    Args:
        frames: numbers of the selected frames; repeated ones count once.
        shots: of each shot, the numbers of its frames.
        ranked: numbers of all shots that were shown, from 1, most salient first.

    Raises:
        ValueError: a ranked shot does not exist or is repeated.
    """
    _check(ranked, shots)
    if len(set(ranked)) < len(ranked):
        raise ValueError(f"ranked shots {list(ranked)}: one is repeated")
    if len(ranked) < 2:
        return Overlap(None, None, "fewer than two shots are ranked")
    return _overlap(frames, _frames(shots, upper_half(ranked)), _frames(shots, ranked))


def with_grounding(
    frames: Collection[int], shots: Sequence[Collection[int]], grounded: Collection[int]
) -> Overlap:
    """Do the keyframes lie in clips that any of the model's sentences is grounded to?

    Args:
        frames: numbers of the selected frames; repeated ones count once.
        shots: of each shot, the numbers of its frames; all were shown.
        grounded: numbers of the shots, from 1.

    Raises:
        ValueError: a grounded shot does not exist.
    """
    _check(grounded, shots)
    if not grounded:
        return Overlap(None, None, "no sentence is grounded to a clip")
    shown = _frames(shots, range(1, len(shots) + 1))
    return _overlap(frames, _frames(shots, grounded), shown)


def _overlap(frames: Collection[int], inside: set[int], shown: set[int]) -> Overlap:
    selected = set(frames)
    counted = selected & shown
    left_out = len(selected) - len(counted)
    if not selected:
        return Overlap(None, None, "no frame is selected")
    if not counted:
        return Overlap(None, None, "no selected frame lies in a shot that was shown", left_out)
    return Overlap(
        len(counted & inside) / len(counted), len(inside) / len(shown), left_out=left_out
    )


def _frames(shots: Sequence[Collection[int]], numbers: Collection[int]) -> set[int]:
    return {frame for number in numbers for frame in shots[number - 1]}


def _check(numbers: Collection[int], shots: Sequence[Collection[int]]) -> None:
    wrong = sorted(number for number in set(numbers) if not 1 <= number <= len(shots))
    if wrong:
        raise ValueError(f"shot {wrong[0]}: there are {len(shots)} shots")
