"""Subtitles against a table of files, cuts by hand and by property, a release's real srt."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils.media import subtitles
from lmms_eval_tasks.utils.media.subtitles import Cue
from tests.checks import refused, table
from tests.conftest import SHARED

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "cases" / "subtitles.json").read_text(encoding="utf-8")
)
REAL = SHARED / "data" / "movierecapsqa" / "segments.json"
READABLE = [case for case in CASES if "cues" in case]
BROKEN = [case for case in CASES if "error" in case]


# --- reading ----------------------------------------------------------------------------------


@table("case", READABLE)
def test_readable(case: dict[str, Any], tmp_path: Path) -> None:
    wanted = [Cue(*cue) for cue in case["cues"]]
    assert subtitles.parse(case["text"]) == wanted
    file = tmp_path / "video.srt"
    for mark in ("", "\ufeff"):
        file.write_bytes((mark + case["text"].removeprefix("\ufeff")).encode())
        assert subtitles.read_cues(file) == wanted


@table("case", BROKEN)
def test_broken(case: dict[str, Any]) -> None:
    message = refused(DataError, "^f", subtitles.parse, case["text"], "f.x")
    assert message.startswith(case["error"])


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    file = tmp_path / "video.srt"
    refused(DataError, r"video\.srt: No such file", subtitles.read_cues, file)
    for coded in ("Жили-были дед".encode("cp1251"), "Καλημέρα σας".encode("cp1253")):
        file.write_bytes(b"1\n00:00:01,000 --> 00:00:02,000\n" + coded)
        refused(DataError, r"video\.srt: neither UTF-8 nor", subtitles.read_cues, file)


@table("coding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
def test_encodings(tmp_path: Path, coding: str) -> None:
    file = tmp_path / "video.srt"
    text = "1\n00:00:01,000 --> 00:00:02,000\nPerché no? “È così”, disse – 5 €.\n"
    file.write_bytes(text.encode(coding))
    assert subtitles.read_cues(file) == [Cue(1, 2, "Perché no? “È così”, disse – 5 €.")]


@pytest.mark.skipif(not REAL.is_file(), reason=f"no real MovieRecapsQA data at {REAL}")
def test_the_released_srt_of_movierecapsqa() -> None:
    segments = json.loads(REAL.read_text(encoding="utf-8"))
    read = {s["id"]: subtitles.parse(s["srt"], s["id"]) for s in segments}
    # As many as pysubs2 1.8.1 reads, with the same times and texts (compared once, by hand).
    assert [len(cues) for cues in read.values()] == [s["srt"].count("-->") for s in segments]
    assert not any("-->" in cue.text or "<" in cue.text for cues in read.values() for cue in cues)
    assert read["0tpjNLKlatU.1"][0] == Cue(49.708, 51.126, "I was free.")
    assert Cue(959.58, 959.58, "Uhh!") in read["QX2f6oFR-Bs.2"]


# --- whatever is in a file ---------------------------------------------------------------------

PIECES = ["-->", "00:00:01,000", " --> ", "00:01.000 --> 00:02.000", "\n", "\r\n", "7"]
PIECES += ["<i>", "</v>", "<", "{\\an8}", "{", "&amp;", "&", "\ufeff", "\0", " ", "NOTE", "[", '{"']


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3)))
def test_any_text_is_cues_or_one_line_of_trouble(pieces: list[str]) -> None:
    message, cues = "f", []
    try:
        cues = subtitles.parse("".join(pieces), "f")
    except DataError as error:
        message = str(error)
    assert message.startswith("f")
    assert len(message.splitlines()) == 1
    assert all(cue.text == " ".join(cue.text.split()) != "" for cue in cues)


# --- cutting ----------------------------------------------------------------------------------


@table("cue, wanted")
def test_cut(cue: tuple[float, float], wanted: tuple[float, float] | None) -> None:
    made = subtitles.cut([Cue(*cue, "text")], 10, 20)
    assert made == ([] if wanted is None else [Cue(*wanted, "text")])


def test_half_in_decimal_fractions() -> None:
    # 0.1 + 0.2 > 0.3 in floats: a cue cut in half exactly must not fall out on either side.
    cue = Cue(0.1, 0.3, "text")
    assert subtitles.cut([cue], 0, 0.2) == [Cue(0.1, 0.2, "text")]
    assert subtitles.cut([cue], 0.2, 1) == [Cue(0, 0.1, "text")]


def test_windows_and_cues_that_are_none() -> None:
    for window in ((5, 5), (6, 5), (-1, 5), (0, math.inf), (0, math.nan)):
        refused(ValueError, "cannot cut subtitles", subtitles.cut, [], *window)
    for times in ((-1, 1), (2, 1), (0, math.inf), (math.nan, 1)):
        refused(ValueError, "expected 0 <= start <= end", Cue, *times, "text")


# --- rendering and finding --------------------------------------------------------------------


def test_render() -> None:
    assert subtitles.render([]) == ""
    cues = [Cue(12.34, 15, "Hello."), Cue(3599.94, 3599.94, "Now.")]
    minutes = ["[00:12.3 - 00:15.0] Hello.", "[59:59.9 - 59:59.9] Now."]
    assert subtitles.render(cues).split("\n") == minutes
    assert subtitles.render([*cues, Cue(3599.96, 36_000, "Late.")]).split("\n") == [
        "[0:00:12.3 - 0:00:15.0] Hello.",
        "[0:59:59.9 - 0:59:59.9] Now.",
        "[1:00:00.0 - 10:00:00.0] Late.",
    ]


def test_find(tmp_path: Path) -> None:
    assert subtitles.find_subtitles(tmp_path / "absent", "5") is None
    assert subtitles.find_subtitles(tmp_path, "5") is None
    (tmp_path / "5.srt").touch()
    assert subtitles.find_subtitles(tmp_path, "5") == tmp_path / "5.srt"
    (tmp_path / "6.srt").mkdir()
    assert subtitles.find_subtitles(tmp_path, "6") is None
    # Ids with points and folders, and those that lead elsewhere.
    (tmp_path / "talk.srt").touch()
    assert subtitles.find_subtitles(tmp_path, "talk.part1") is None
    (tmp_path / "cooking").mkdir()
    (tmp_path / "cooking" / "talk.part1.srt").touch()
    assert subtitles.find_subtitles(tmp_path, "cooking/talk.part1") is not None
    (tmp_path / "8.SRT").touch()
    assert subtitles.find_subtitles(tmp_path, "8") == tmp_path / "8.SRT"
    for video in ("", "../5", "/etc/passwd", "a/../../b", "."):
        refused(DataError, "video id", subtitles.find_subtitles, tmp_path, video)
