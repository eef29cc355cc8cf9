"""Cuts of videos that are made before a model is loaded: only those that a run will hand over.

The host cannot pass over an item, so a damaged place in a video would end a run in its middle.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, NamedTuple

from lmms_eval_tasks import settings
from lmms_eval_tasks.console import say
from lmms_eval_tasks.errors import DataError, MediaError
from lmms_eval_tasks.utils.video_checks import listed

PATIENCE = 10.0  # seconds between two lines about the cuts

Window = tuple[Any, ...]  # a video's path, start and end in seconds; or what else tells cuts apart


class Needed(NamedTuple):
    """An item that is shown a window: its name and how many docs are made of it."""

    name: str
    window: Window
    docs: int


class Part:
    """What one task needs: its items in order, and how many docs of theirs are asked."""

    def __init__(self, task: str, items: Sequence[Needed], asked: int) -> None:
        self.task, self.items, self.asked = task, items, asked

    def first(self, tried: Mapping[Window, str]) -> Iterator[Window]:
        """Windows of its first docs, not tried so far; an item that failed does not count."""
        good = 0
        for item in self.items:
            if good >= self.asked:
                return
            if item.window not in tried:
                yield item.window
            if not tried.get(item.window):
                good += item.docs


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


def make(
    parts: Sequence[Part],
    cut: Callable[[Window], object],
    title: str,
    done: str = "segments cut",
) -> dict[Window, str]:
    """Make the cuts of the parts; returns those that cannot be made, with the reason.

    Args:
        parts: what the tasks need.
        cut: makes one, or finds it; a MediaError says why it cannot.
        title: of the benchmark, for lines on stderr while they take long.
        done: what is counted in these lines.
    """
    tried: dict[Window, str] = {}
    # An item that cannot be cut makes way for the next one, which is then inside the limit.
    while new := list(dict.fromkeys(w for part in parts for w in part.first(tried))):
        tried |= _cut(new, cut, f"{title}: {{:,}} of {{:,}} {done}")
    return {window: why for window, why in tried.items() if why}


def lost(
    parts: Sequence[Part],
    uncut: Mapping[Window, str],
    impossible: str = "segments of {} can be cut",
) -> dict[str, str]:
    """Items whose window cannot be cut, with the reason.

    Args:
        parts: what the tasks need.
        uncut: what `make` returned.
        impossible: what cannot be done with any item of a task, for the message.

    Raises:
        DataError: a part has no other ones.
    """
    found: dict[str, str] = {}
    for part in parts:
        own = {item.name: uncut[item.window] for item in part.items if item.window in uncut}
        if own and len(own) == len({item.name for item in part.items}):
            raise DataError(f"none of the {impossible.format(part.task)}:\n{listed(own)}")
        found |= own
    return found


def _cut(
    windows: Sequence[Window], cut: Callable[[Window], object], line: str
) -> dict[Window, str]:
    """Make cuts, as many at once as there are processors; why each failed, or ""."""

    def why_not(window: Window) -> str:
        try:
            cut(window)
        except MediaError as error:
            return str(error)
        return ""

    found: dict[Window, str] = {}
    pool = ThreadPoolExecutor(max_workers=os.cpu_count() or 1)
    try:
        futures = {pool.submit(why_not, window): window for window in windows}
        for future in _told(as_completed(futures), len(windows), line):
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
