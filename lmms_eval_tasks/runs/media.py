"""Cuts of videos that are made before a model is loaded: only those that a run will hand over.

The host cannot pass over an item, so a damaged place in a video would end a run in its middle.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, NamedTuple

from lmms_eval_tasks import settings
from lmms_eval_tasks.benchmark import Cut
from lmms_eval_tasks.console import say
from lmms_eval_tasks.errors import DataError, MediaError
from lmms_eval_tasks.utils.media.video_checks import listed

PATIENCE = 10.0  # seconds between two lines about the cuts

Window = tuple[Any, ...]  # of a Cut: what tells it apart


class Needs(NamedTuple):
    """What one task needs.

    Attributes:
        task: its name.
        cuts: of its docs, in their order.
        asked: how many of these docs are asked.
    """

    task: str
    cuts: Sequence[Cut]
    asked: int

    def first(self, tried: Mapping[Window, str]) -> Iterator[Cut]:
        """Those of its first docs, not tried so far; one that failed does not count."""
        good = 0
        for cut in self.cuts:
            if good >= self.asked:
                return
            if cut.window not in tried:
                yield cut
            if not tried.get(cut.window):
                good += 1


def asked(docs: Sequence[int], limit: float | None) -> list[int]:
    """How many docs of each task the host asks.

    Args:
        docs: how many each task of the run has, in its order.
        limit: the host's `--limit`: a number, or a share of the first task's docs, which is then
            the number for all tasks (host's evaluator); None, 0 and -1 are all of them.
    """
    if limit is None or limit <= 0:
        return list(docs)
    if limit < 1:
        limit = math.ceil(docs[0] * limit) if docs else 0
        # Of no docs at all the share is 0, which the host takes for all in the other tasks.
        return asked(docs, limit)
    return [int(limit)] * len(docs)


def make(parts: Sequence[Needs], title: str, done: str) -> dict[Window, str]:
    """Make the cuts of the parts; returns those that cannot be made, with the reason.

    Args:
        parts: what the tasks need.
        title: of the benchmark, for lines on stderr while they take long.
        done: what is counted in these lines.
    """
    tried: dict[Window, str] = {}
    # A cut that cannot be made makes way for the next one, which is then inside the limit.
    while new := {cut.window: cut for part in parts for cut in part.first(tried)}:
        tried |= _made(new, f"{title}: {{:,}} of {{:,}} {done}")
    return {window: why for window, why in tried.items() if why}


def lost(parts: Sequence[Needs], uncut: Mapping[Window, str], impossible: str) -> dict[str, str]:
    """Names of cuts that cannot be made, with the reason.

    Args:
        parts: what the tasks need.
        uncut: what `make` returned.
        impossible: what cannot be done with any cut of a task, for the message.

    Raises:
        DataError: a part has no other ones.
    """
    found: dict[str, str] = {}
    for part in parts:
        own = {cut.name: uncut[cut.window] for cut in part.cuts if cut.window in uncut}
        if own and len(own) == len({cut.name for cut in part.cuts}):
            raise DataError(f"none of the {impossible.format(part.task)}:\n{listed(own)}")
        found |= own
    return found


def _made(cuts: Mapping[Window, Cut], line: str) -> dict[Window, str]:
    """Make cuts, as many at once as there are processors; why each failed, or ""."""

    def why_not(cut: Cut) -> str:
        try:
            cut.make()
        except MediaError as error:
            return str(error)
        return ""

    found: dict[Window, str] = {}
    pool = ThreadPoolExecutor(max_workers=os.cpu_count() or 1)
    try:
        futures = {pool.submit(why_not, cut): window for window, cut in cuts.items()}
        for future in _told(as_completed(futures), len(cuts), line):
            found[futures[future]] = future.result()
    finally:
        pool.shutdown(cancel_futures=True)  # who stops the run does not wait for all of them
    return found


def _told(things: Iterable[Any], total: int, line: str) -> Iterator[Any]:
    """`things`, with a line on stderr now and then while they take long."""
    told = time.monotonic()
    for number, thing in enumerate(things, 1):
        yield thing
        if number < total and time.monotonic() - told > PATIENCE:
            told = time.monotonic()
            say(f"{line.format(number, total)} (kept in {settings.cache_dir()})")
