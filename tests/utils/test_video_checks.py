"""Checks of videos that benchmarks share: what can be read, and whether windows are inside."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval_tasks.utils import video_checks


@pytest.mark.parametrize(
    ("start", "end", "says"),
    [
        (None, None, ""),
        (0, 10, ""),
        (9.9, 10, ""),
        (5, 11, ""),
        (5, 11.5, "ends at 11.5 s; its video ends at 10.000 s"),
        (None, 12, "ends at 12 s; its video ends at 10.000 s"),
        (9.99, 10.5, "starts at 9.99 s; its video ends at 10.000 s"),
        (10, 12, "starts at 10 s; its video ends at 10.000 s"),
    ],
)
def test_windows(start: float | None, end: float | None, says: str) -> None:
    assert video_checks.outside(start, end, 10.0) == says


def test_missing_and_unreadable(tmp_path: Path) -> None:
    (tmp_path / "bad.mp4").write_bytes(b"no video")
    found, problems = video_checks.look(
        {"gone": tmp_path / "gone.mp4", "bad": tmp_path / "bad.mp4", "folder": tmp_path}
    )
    assert found == {}
    assert problems["gone"] == f"missing: {tmp_path / 'gone.mp4'}"
    assert problems["bad"].startswith("unreadable: ")
    assert problems["folder"].startswith("unreadable: ")
    assert video_checks.look({}) == ({}, {})


def test_at_most_twenty_are_listed() -> None:
    told = video_checks.listed({f"n{number}": "why" for number in range(23)}).splitlines()
    assert told[0] == "  n0: why"
    assert told[20:] == ["  and 3 more"]
    assert video_checks.listed({"a": "b"}) == "  a: b"
