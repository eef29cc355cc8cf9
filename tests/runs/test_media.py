"""Cuts before a run: which ones a limit leaves, and what becomes of those that fail."""

from __future__ import annotations

import functools
import threading

import pytest

from lmms_eval_tasks.benchmark import MediaJob
from lmms_eval_tasks.errors import DataError, MediaError
from lmms_eval_tasks.runs import media
from lmms_eval_tasks.runs.media import TaskMedia
from tests.checks import table

IMPOSSIBLE = "segments of {} can be cut"


class Maker:
    """Notes what is cut, and fails on some windows."""

    def __init__(self, *bad: int) -> None:
        self.bad = bad
        self.made: list[int] = []

    def __call__(self, number: int) -> None:
        self.made.append(number)
        if number in self.bad:
            raise MediaError(f"damaged at {number} s")

    def part(self, asked: int, numbers: str = "01234", task: str = "t") -> TaskMedia:
        cuts = [MediaJob(f"item {n}", (int(n),), functools.partial(self, int(n))) for n in numbers]
        return TaskMedia(task, cuts, asked)


@table(
    "docs, limit, asked",
    [
        ([10, 20], None, [10, 20]),
        ([10, 20], 0, [10, 20]),
        ([10, 20], -1, [10, 20]),
        ([10, 20], 3, [3, 3]),
        ([10, 20], 3.0, [3, 3]),
        ([10, 20], 99, [99, 99]),
        ([10, 20], 0.25, [3, 3]),
        ([20, 10], 0.25, [5, 5]),
        ([0, 10], 0.25, [0, 10]),
        ([], 0.25, []),
        ([], 5, []),
    ],
)
def test_what_a_limit_leaves(docs: list[int], limit: float | None, asked: list[int]) -> None:
    assert media.docs_per_task(docs, limit) == asked


@table(
    "bad, parts, uncut, made",
    [
        ([], [(2, "01234"), (3, "2341"), (99, "110")], [], 5),  # each window once over all parts
        ([0, 2], [(2, "01234")], [0, 2], 4),  # one that fails makes way for the next
    ],
)
def test_what_is_made(
    bad: list[int], parts: list[tuple[int, str]], uncut: list[int], made: int
) -> None:
    maker = Maker(*bad)
    needs = [maker.part(asked, numbers=numbers) for asked, numbers in parts]
    found = media.make_jobs(needs, "X", "cut")
    assert found == {(n,): f"damaged at {n} s" for n in uncut}
    assert sorted(maker.made) == list(range(made))
    lost = media.lost(needs, found, IMPOSSIBLE)
    assert lost == {f"item {n}": f"damaged at {n} s" for n in uncut}


def test_nothing_left_of_a_part() -> None:
    maker = Maker(0, 1)
    parts = [maker.part(1), maker.part(1, numbers="01", task="other")]
    uncut = media.make_jobs(parts, "X", "cut")
    with pytest.raises(DataError, match="none of the segments of other can be cut:\n  item 0: "):
        media.lost(parts, uncut, IMPOSSIBLE)


def test_several_at_once_and_a_bug_is_no_bad_media(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media.os, "cpu_count", lambda: 3)
    met = threading.Barrier(3, timeout=10)
    cuts = [MediaJob("item", (number,), met.wait) for number in range(3)]
    assert media.make_jobs([TaskMedia("t", cuts, 3)], "X", "cut") == {}
    with pytest.raises(ZeroDivisionError):
        media.make_jobs([TaskMedia("t", [MediaJob("item", (0,), lambda: 1 // 0)], 1)], "X", "cut")
