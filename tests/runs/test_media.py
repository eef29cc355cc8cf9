"""Cuts before a run: which ones a limit leaves, and what becomes of those that fail."""

from __future__ import annotations

import threading

import pytest

from lmms_eval_tasks.errors import DataError, MediaError
from lmms_eval_tasks.runs import media
from lmms_eval_tasks.runs.media import Needed, Part, Window


def window(number: int) -> Window:
    return ("x.mp4", float(number), number + 1.0)


def part(asked: int, docs: int = 1, numbers: str = "01234", task: str = "t") -> Part:
    return Part(task, [Needed(f"item {n}", window(int(n)), docs) for n in numbers], asked)


class Maker:
    """Notes what is cut, and fails on some windows."""

    def __init__(self, *bad: int) -> None:
        self.bad = {window(number) for number in bad}
        self.made: list[Window] = []

    def __call__(self, one: Window) -> None:
        self.made.append(one)
        if one in self.bad:
            raise MediaError(f"{one[0]}: damaged at {one[1]:g} s")


@pytest.mark.parametrize(
    ("docs", "limit", "asked"),
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


@pytest.mark.parametrize(
    ("asked", "docs", "made"), [(5, 1, 5), (2, 1, 2), (99, 1, 5), (3, 2, 2), (4, 2, 2), (9, 8, 2)]
)
def test_first_items_only(asked: int, docs: int, made: int) -> None:
    assert list(part(asked, docs).first({})) == [window(n) for n in range(made)]


def test_each_window_once_over_all_parts() -> None:
    maker = Maker()
    assert media.make([part(3), part(5, numbers="2341"), part(5)], maker, "X") == {}
    assert sorted(maker.made) == [window(n) for n in range(5)]


def test_an_item_that_fails_makes_way_for_the_next_one() -> None:
    maker = Maker(0, 2)
    parts = [part(2)]
    uncut = media.make(parts, maker, "X")
    assert uncut == {window(n): f"x.mp4: damaged at {n} s" for n in (0, 2)}
    assert sorted(maker.made) == [window(n) for n in range(4)]
    assert media.lost(parts, uncut) == {
        "item 0": "x.mp4: damaged at 0 s",
        "item 2": "x.mp4: damaged at 2 s",
    }


def test_nothing_left_of_a_part() -> None:
    parts = [part(2), part(2, numbers="13", task="other")]
    uncut = media.make(parts, Maker(1, 3), "X")
    with pytest.raises(DataError, match="none of the segments of other can be cut:\n  item 1: x"):
        media.lost(parts, uncut)


def test_other_errors_are_not_swallowed() -> None:
    def cut(_: Window) -> None:
        raise KeyError("a bug of ours")

    with pytest.raises(KeyError, match="a bug of ours"):
        media.make([part(1)], cut, "X")


def test_several_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media.os, "cpu_count", lambda: 3)
    met = threading.Barrier(3, timeout=10)
    assert media.make([part(3)], lambda _: met.wait(), "X") == {}
