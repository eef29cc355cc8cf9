"""Players that read a request's pictures too: one benchmark's packaged sample, one module each.

Most packaged questions are answered from a request's text and a key (players.py). Where a sample's
pictures themselves say what is true, its oracle needs no answers: the key names the sample under
`pictures`, and the modules here read the request. A request that is none of theirs is left to the
players of text.

A benchmark adds itself with one line in `PLAYERS`. Its module offers `oracle(parts) -> str | None`
and `coin(parts, seed) -> str | None`; parts are the request's texts and PIL images in their order,
and None says that the request is not the sample's. Both see neither doc nor key.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

    Part = str | Image

# Benchmark -> the module that plays its sample, imported when a key names it.
PLAYERS: dict[str, str] = {"haven": "lmms_eval_tasks.haven.sample_players"}


def oracle(parts: Sequence[Part], names: Iterable[str]) -> str | None:
    """The right reply to a request of one of the samples `names`; None if it is none of theirs."""
    replies = (importlib.import_module(PLAYERS[name]).oracle(parts) for name in names)
    return next((reply for reply in replies if reply is not None), None)


def coin(parts: Sequence[Part], names: Iterable[str], seed: int) -> str | None:
    """A random reply to a request of one of the samples `names`; None if it is none of theirs."""
    replies = (importlib.import_module(PLAYERS[name]).coin(parts, seed) for name in names)
    return next((reply for reply in replies if reply is not None), None)


def text(parts: Sequence[Part]) -> str:
    """All texts of a request in order, as the players of text see it."""
    return "\n".join(part for part in parts if isinstance(part, str))
