"""Formats and enumerations of the prompts that depend on how many there are (paper, Appendix C).

What the appendix shows with three and more stays true of one or two: no example asks for more than
there is.
"""

from __future__ import annotations

_LETTERS = ("X", "Y", "Z")
_EXAMPLE = (1, 5, 12)  # the appendix's


def names(word: str, n: int) -> str:
    """`Shot 1, Shot 2, ..., Shot 5`; up to three are listed in full."""
    if n <= 3:
        return ", ".join(f"{word} {number}" for number in range(1, n + 1))
    return f"{word} 1, {word} 2, ..., {word} {n}"


def order(word: str, n: int) -> str:
    """`Shot X > Shot Y > Shot Z > ...`; the dots only where there are more than three."""
    return _form(word, n, 3, " > ")


def picked(word: str, k: int) -> str:
    """`Frame X, Frame Y, ...`; the dots only where there are more than two."""
    return _form(word, k, 2, ", ")


def numbered(n: int) -> str:
    """`1. [sentence 1]` to `n. [sentence n]`, one a line; up to three are listed in full."""
    lines = [f"{number}. [sentence {number}]" for number in range(1, n + 1)]
    return "\n".join(lines if n <= 3 else [*lines[:2], "...", lines[-1]])


def example(k: int, n_frames: int) -> list[int]:
    """The appendix's example, `[1, 5, 12]`, of no more frames than are asked for or there are.

    With K of 15 % of the frames it is never cut for want of frames, and from K = 3 on it is whole.
    """
    return [number for number in _EXAMPLE[:k] if number <= n_frames]


def _form(word: str, n: int, shown: int, separator: str) -> str:
    before = f"{word} " if word else ""
    dots = ["..."] if n > shown else []
    return separator.join([*(f"{before}{letter}" for letter in _LETTERS[: min(n, shown)]), *dots])
