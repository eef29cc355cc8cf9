"""Cuts of videos that are made before a model is loaded: only those that a run will hand over.

The host cannot pass over an item, so a damaged place in a video would end a run in its middle.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from lmms_eval_tasks.benchmark import MediaJob
from lmms_eval_tasks.errors import DataError, MediaError
from lmms_eval_tasks.utils.released_files import listed

PATIENCE = 10.0  # seconds of cutting after which a bar tells of it

MediaKey = tuple[Any, ...]  # MediaJob.key


class TaskMedia(NamedTuple):
    """The cuts that one task needs."""

    task: str  # its name
    cuts: Sequence[MediaJob]  # of its docs, in their order
    n_docs: int  # how many of these docs are asked

    def first(self, tried: Mapping[MediaKey, str]) -> Iterator[MediaJob]:
        """The cuts of its first docs that were not tried so far; one that failed does not count."""
        good = 0
        for cut in self.cuts:
            if good >= self.n_docs:
                return
            if cut.key not in tried:
                yield cut
            if not tried.get(cut.key):
                good += 1


def docs_per_task(docs: Sequence[int], limit: float | None) -> list[int]:
    """Return how many docs of each task the host asks.

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
        return docs_per_task(docs, limit)
    return [int(limit)] * len(docs)


def make_jobs(parts: Sequence[TaskMedia], title: str, ending: str) -> dict[MediaKey, str]:
    """Make the cuts of the parts, as many at once as there are processors.

    Returns:
        Those that cannot be made, with the reason.
    """
    from tqdm import tqdm

    tried: dict[MediaKey, str] = {}
    pool = ThreadPoolExecutor(max_workers=os.cpu_count() or 1)
    try:
        # A cut that cannot be made makes way for the next one, which is then inside the limit.
        while new := {cut.key: cut for part in parts for cut in part.first(tried)}:
            made = pool.map(_why_not, new.values())
            bar = tqdm(made, f"{title}: {ending}", len(new), delay=PATIENCE)
            tried |= dict(zip(new, bar, strict=True))
    finally:
        pool.shutdown(cancel_futures=True)  # who stops the run does not wait for all of them
    return {window: why for window, why in tried.items() if why}


def _why_not(cut: MediaJob) -> str:
    try:
        cut.make()
    except MediaError as error:
        return str(error)
    return ""


def lost(
    parts: Sequence[TaskMedia], uncut: Mapping[MediaKey, str], impossible: str
) -> dict[str, str]:
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
        own = {cut.name: uncut[cut.key] for cut in part.cuts if cut.key in uncut}
        if own and len(own) == len({cut.name for cut in part.cuts}):
            raise DataError(f"none of the {impossible.format(part.task)}:\n{listed(own)}")
        found |= own
    return found
