"""Cuts before a run: which ones a limit leaves, and what becomes of those that fail."""

from __future__ import annotations

import functools
import threading

import pytest

from lmms_eval_tasks.benchmark import Cut
from lmms_eval_tasks.errors import DataError, MediaError
from lmms_eval_tasks.runs import media
from lmms_eval_tasks.runs.media import Needs
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

    def part(self, asked: int, numbers: str = "01234", task: str = "t") -> Needs:
        cuts = [Cut(f"item {n}", (int(n),), functools.partial(self, int(n))) for n in numbers]
        return Needs(task, cuts, asked)


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
    assert media.asked(docs, limit) == asked


def test_each_window_once_over_all_parts() -> None:
    maker = Maker()
    parts = [maker.part(2), maker.part(3, numbers="2341"), maker.part(99, numbers="110")]
    assert media.make(parts, "X", "cut") == {}
    assert sorted(maker.made) == list(range(5))


def test_a_cut_that_fails_makes_way_for_the_next_one() -> None:
    maker = Maker(0, 2)
    parts = [maker.part(2)]
    uncut = media.make(parts, "X", "cut")
    assert uncut == {(n,): f"damaged at {n} s" for n in (0, 2)}
    assert sorted(maker.made) == list(range(4))
    lost = media.lost(parts, uncut, IMPOSSIBLE)
    assert lost == {f"item {n}": f"damaged at {n} s" for n in (0, 2)}


def test_nothing_left_of_a_part() -> None:
    maker = Maker(1, 3)
    parts = [maker.part(2), maker.part(2, numbers="13", task="other")]
    uncut = media.make(parts, "X", "cut")
    with pytest.raises(DataError, match="none of the segments of other can be cut:\n  item 1: d"):
        media.lost(parts, uncut, IMPOSSIBLE)


def test_other_errors_are_not_swallowed() -> None:
    def cut() -> None:
        raise KeyError("a bug of ours")

    with pytest.raises(KeyError, match="a bug of ours"):
        media.make([Needs("t", [Cut("item", (0,), cut)], 1)], "X", "cut")


def test_several_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media.os, "cpu_count", lambda: 3)
    met = threading.Barrier(3, timeout=10)
    cuts = [Cut("item", (number,), met.wait) for number in range(3)]
    assert media.make([Needs("t", cuts, 3)], "X", "cut") == {}
