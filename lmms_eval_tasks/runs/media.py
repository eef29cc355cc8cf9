"""Media that are cut before the model is loaded, limited to those that the run will show.

lmms-eval cannot skip an item, so a damaged place in a video would end the run in the middle.
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

PATIENCE = 10.0  # seconds of cutting before a progress bar appears

MediaKey = tuple[Any, ...]  # MediaJob.key


class TaskMedia(NamedTuple):
    """The media jobs of one task."""

    task: str  # the task's name
    cuts: Sequence[MediaJob]  # jobs of the task's docs, in their order
    n_docs: int  # number of these docs that the run asks

    def first(self, tried: Mapping[MediaKey, str]) -> Iterator[MediaJob]:
        """Yield the jobs of the first docs that were not tried yet.

        A failed job makes room for another.
        """
        good = 0
        for cut in self.cuts:
            if good >= self.n_docs:
                return
            if cut.key not in tried:
                yield cut
            if not tried.get(cut.key):
                good += 1


def docs_per_task(docs: Sequence[int], limit: float | None) -> list[int]:
    """Return the number of docs of each task that lmms-eval asks.

    Args:
        docs: the number of docs of each task, in the run's order.
        limit: lmms-eval's `--limit`: a number, or a share. lmms-eval computes the number from the
            share of the first task's docs and uses it for all tasks. None, 0 and -1 mean all docs.
    """
    if limit is None or limit <= 0:
        return list(docs)
    if limit < 1:
        limit = math.ceil(docs[0] * limit) if docs else 0
        # A share of no docs is 0, which lmms-eval takes for all docs of the other tasks.
        return docs_per_task(docs, limit)
    return [int(limit)] * len(docs)


def make_jobs(parts: Sequence[TaskMedia], title: str, ending: str) -> dict[MediaKey, str]:
    """Run the media jobs of tasks, as many at once as there are processors.

    Args:
        parts: the jobs of each task.
        title: the benchmark's title, for the progress bar.
        ending: the fragment about finished jobs, for the progress bar.

    Returns:
        The reason for each failed job, by its key.
    """
    from tqdm import tqdm

    tried: dict[MediaKey, str] = {}
    pool = ThreadPoolExecutor(max_workers=os.cpu_count() or 1)
    try:
        # A failed job is replaced by the next doc's job, which then falls within the limit.
        while new := {cut.key: cut for part in parts for cut in part.first(tried)}:
            made = pool.map(_why_not, new.values())
            bar = tqdm(made, f"{title}: {ending}", len(new), delay=PATIENCE)
            tried |= dict(zip(new, bar, strict=True))
    finally:
        pool.shutdown(cancel_futures=True)  # a user who stops the run need not wait for all jobs
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
    """Return the reason for each failed job, by its name.

    Args:
        parts: the jobs of each task.
        uncut: the failed jobs, as `make` returned them.
        impossible: message fragment for a task whose jobs all failed.

    Raises:
        DataError: all jobs of a task failed.
    """
    reasons: dict[str, str] = {}
    for part in parts:
        failed = {cut.name: uncut[cut.key] for cut in part.cuts if cut.key in uncut}
        if failed and len(failed) == len({cut.name for cut in part.cuts}):
            raise DataError(f"none of the {impossible.format(part.task)}:\n{listed(failed)}")
        reasons |= failed
    return reasons
