"""Many items judged at once, outside the host: as many threads as requests may be in flight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from lmms_eval_tasks.console import say
from lmms_eval_tasks.judges import run
from lmms_eval_tasks.judges.ledger import task as as_task

Given = TypeVar("Given")
Made = TypeVar("Made")


def ordered_map(function: Callable[[Given], Made], items: Sequence[Given], task: str) -> list[Made]:
    """`function` of every item, in the order of `items`; verdicts are booked under `task`.

    An exception in one item is raised once the items that were begun are through.
    """
    current = run.current()
    current.progress.expect(len(items))

    def booked(item: Given) -> Made:
        with as_task(task):  # a context variable: threads do not inherit it
            return function(item)

    with ThreadPoolExecutor(max_workers=current.concurrency) as pool:
        try:
            return list(pool.map(booked, items))
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            current.give_up("interrupted")  # or retries would go on for minutes
            say("interrupted: replies so far are kept, the same command goes on from there")
            raise
