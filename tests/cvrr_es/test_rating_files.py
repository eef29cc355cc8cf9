"""Files of ratings: read back as written, bad rows told in a line, odd judges noted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.cvrr_es.labels import JUDGE_TASKS
from lmms_eval_tasks.cvrr_es.study import ratings
from lmms_eval_tasks.cvrr_es.study.ratings import OFF_SCALE, Item, RatingRow, load, read, write
from lmms_eval_tasks.errors import DataError

PART = "partial_actions"
ALLOW = "LMMS_EVAL_TASKS_ALLOW_BAD_ITEMS"


def rating(place: int = 1, value: float | None = 4.0, **changes: Any) -> RatingRow:
    """A row; a failed one where there is no value."""
    row = RatingRow(
        dimension=PART,
        question=f"{PART}/{place:03d}",
        video="partial_actions/1.mp4",
        candidate="C",
        judge="J",
        round="first",
        rating=value,
        reason="so",
        status="ok" if value is not None else "parse_failure",
    )
    return replace(row, **changes)


def lines(path: Path, *entries: Any) -> Path:
    """A file with these as lines; texts as they are."""
    texts = (one if isinstance(one, str) else json.dumps(one) for one in entries)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


class TestRoundTrip:
    """What `write` writes `read` reads."""

    def test_rows(self, tmp_path: Path) -> None:
        rows = [
            rating(1, 4.5, reason="l\u00e0\u2028next"),
            rating(2, None, empty=True),
            rating(2, 3.0, judge="K"),
            rating(2, 3.0, round="reference"),
            rating(1, 1.0, candidate="D", video=""),
        ]
        path = tmp_path / "new" / "ratings.jsonl"
        write(path, rows)
        assert read([path]) == rows
        assert [p.name for p in path.parent.iterdir()] == ["ratings.jsonl"]
        write(path, rows[:1])
        assert read([path]) == rows[:1]

    def test_a_videos_bare_name_is_of_its_dimension(self, tmp_path: Path) -> None:
        """As one writes it by hand; our own rows name the dimension as well."""
        entries = [rating(1).as_dict(), rating(2).as_dict() | {"video": "1.mp4"}]
        found = read([lines(tmp_path / "r.jsonl", *entries)])
        assert {row.video for row in found} == {f"{PART}/1.mp4"}

    def test_defaults_and_whole_numbers(self, tmp_path: Path) -> None:
        entry = {n: v for n, v in rating(1, 4).as_dict().items() if n in ratings._REQUIRED}
        del entry["video"]
        (found,) = read([lines(tmp_path / "r.jsonl", "", entry, " ")])
        assert found == rating(1, 4.0, video="", reason="")
        assert isinstance(found.rating, float)

    def test_what_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(DataError, match="the ratings cannot be written"):
            write(tmp_path / "file" / "ratings.jsonl", [rating()])


class TestSavedSamples:
    """Runs of the judge tasks, whose items hold more than a row."""

    @pytest.mark.parametrize("task", JUDGE_TASKS)
    def test_items(self, task: str, tmp_path: Path) -> None:
        rows = [rating(1), rating(2, None, empty=True)]
        entries = [
            {"doc_id": n, "light": {"id": "x"}, "first": {"reply": "4", **row.as_dict()}}
            for n, row in enumerate(rows)
        ]
        lines(tmp_path / f"20250101_samples_{task}.jsonl", *entries)
        lines(tmp_path / f"20250101_samples_cvrr_es_{PART}.jsonl", {"other": "task"})
        assert read([tmp_path]) == rows

    def test_bad_samples(self, tmp_path: Path) -> None:
        file = lines(
            tmp_path / "x_samples_cvrr_judge.jsonl", {"first": rating().as_dict()}, {"first": {}}
        )
        with pytest.raises(DataError, match=r"line 2: expected an object with dimension, quest"):
            read([file])
        other = lines(tmp_path / "x_samples_maia_oe.jsonl", {"first": rating().as_dict()})
        with pytest.raises(DataError, match="maia_oe is no task of judges"):
            read([other])


class TestBadRows:
    """One line each, with file and line; left out where the user says so."""

    @pytest.mark.parametrize(
        ("change", "told"),
        [
            ({"colour": "red"}, "unknown field colour; known: dimension, question, video,"),
            ({"judge": ...}, "judge: the field is missing"),
            ({"rating": ...}, "rating: the field is missing"),
            ({"rating": "4"}, "rating: expected a number or null, found '4'"),
            ({"rating": True}, "rating: expected a number or null, found True"),
            ({"reason": None}, "reason: expected a text, found None"),
            ({"empty": "no"}, "empty: expected true or false, found 'no'"),
            ({"dimension": "x"}, "dimension: no dimension of CVRR-ES is called 'x'"),
            ({"question": "3"}, "question: '3' is no id of partial_actions"),
            ({"round": "second"}, "round: expected first, collective, mixture, reference, found"),
            ({"candidate": " "}, "candidate: expected a name, found an empty text"),
            ({"rating": None}, "rating: null does not go with the status 'ok'"),
            ({"status": "refused"}, "rating: 4.0 does not go with the status 'refused'"),
        ],
    )
    def test_one_line(
        self,
        change: dict[str, Any],
        told: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        bad = {n: v for n, v in {**rating(2).as_dict(), **change}.items() if v is not ...}
        file = lines(tmp_path / "r.jsonl", rating(1).as_dict(), bad)
        with pytest.raises(DataError, match="1 ratings cannot be used") as error:
            read([file])
        place = f"  {file}, line 2: {told}"
        (line,) = [one for one in str(error.value).split("\n") if one.startswith("  ")]
        assert line.startswith(place)
        monkeypatch.setenv(ALLOW, "1")
        assert read([file]) == [rating(1)]

    @pytest.mark.parametrize("value", ["0", "6", "5.01", "-1", "NaN", "Infinity", "1" + "0" * 400])
    def test_off_the_scale(
        self, value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Told; where it is left out, its row stays and counts as a failure."""
        text = json.dumps(rating(1).as_dict()).replace("4.0", value)
        file = lines(tmp_path / "r.jsonl", text, rating(2).as_dict())
        with pytest.raises(DataError, match=r"line 1: rating: \S+ is off the scale of 1 to 5"):
            read([file])
        monkeypatch.setenv(ALLOW, "1")
        assert read([file]) == [rating(1, None, status=OFF_SCALE), rating(2)]

    @pytest.mark.parametrize("value", [1, 5, 4.5])
    def test_on_the_scale(self, value: float, tmp_path: Path) -> None:
        (found,) = read([lines(tmp_path / "r.jsonl", rating(1, value).as_dict())])
        assert found.rating == value

    def test_several_rows_of_one_item(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = lines(tmp_path / "a.jsonl", rating(1).as_dict(), rating(2).as_dict())
        second = lines(tmp_path / "b.jsonl", rating(1, 5.0).as_dict(), rating(2).as_dict())
        with pytest.raises(DataError, match="1 ratings cannot be used"):
            read([first, second])
        monkeypatch.setenv(ALLOW, "1")
        found = load([tmp_path])
        assert found.problems == {
            f"{second}, line 1": f"another rating of C's answer to {PART}/001 by J (first) is at "
            f"{first}, line 1: none of them is kept"
        }
        assert found.rows == read([first, second]) == [rating(2)]

    @pytest.mark.parametrize(
        "change", [{"judge": "K"}, {"candidate": "D"}, {"round": "collective"}]
    )
    def test_what_is_another_item(self, change: dict[str, str], tmp_path: Path) -> None:
        rows = [rating(1), rating(1, 5.0, **change)]
        file = tmp_path / "r.jsonl"
        write(file, rows)
        assert read([file, tmp_path]) == rows

    def test_blank_files(self, tmp_path: Path) -> None:
        """Named; files of other tasks are not looked into."""
        blank = lines(tmp_path / "a.jsonl", " ")
        lines(tmp_path / "b.jsonl", rating(1).as_dict())
        lines(tmp_path / "x_samples_maia_oe.jsonl", "")
        assert load([tmp_path]).blank == [blank]

    def test_bad_files(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="nowhere: no such file or folder"):
            read([tmp_path / "nowhere"])
        with pytest.raises(DataError, match=r"no ratings \(\*\.jsonl"):
            read([tmp_path])
        with pytest.raises(DataError, match=r"r\.jsonl, line 2: not valid JSON"):
            read([lines(tmp_path / "r.jsonl", rating().as_dict(), "{")])
        with pytest.raises(DataError, match=r"no ratings that can be used; .*line 1: expected an"):
            read([lines(tmp_path / "r.jsonl", [1])])
        (tmp_path / "r.jsonl").write_bytes(b"\xff")
        with pytest.raises(DataError, match="not UTF-8 text"):
            read([tmp_path / "r.jsonl"])


def notes(rows: list[RatingRow], items: Sequence[Item] = ()) -> list[str]:
    """Of these items; else of those that anybody has a row for."""
    return ratings.notes(rows, items or {row.item for row in rows})


class TestNotes:
    """Odd judges are no errors."""

    def test_nothing_to_tell(self) -> None:
        assert notes([rating(1, 4.0), rating(2, 5.0)]) == []
        assert notes([rating(1, 4.0)]) == []  # one rating is not constant

    def test_constant(self) -> None:
        rows = [rating(1, 4.0), rating(2, 4.0), rating(1, 2.0, judge="K"), rating(2, judge="K")]
        assert notes(rows) == [
            "J (first): all 2 ratings are 4: a constant judge's kappa is 0, and none with another "
            "that always gives the same"
        ]

    def test_only_part(self) -> None:
        rows = [rating(n, float(n)) for n in range(1, 6)]
        rows += [rating(1, 1.0, judge="K"), rating(2, 2.0, judge="K"), rating(3, None, judge="K")]
        assert notes(rows) == ["K (first): rated 2 of 5 answers (1 parse_failure, 2 without a row)"]
        assert notes(rows[:5], [Item(f"{PART}/{n:03d}", "C") for n in range(2, 8)]) == [
            "J (first): rated 4 of 6 answers (2 without a row)",
        ]

    def test_failures_elsewhere_are_not_of_the_part(self) -> None:
        rows = [rating(1, 1.0), rating(2, 2.0), rating(9, None)]
        asked = [Item(f"{PART}/{n:03d}", "C") for n in (1, 2, 3)]
        assert notes(rows, asked) == ["J (first): rated 2 of 3 answers (1 without a row)"]

    def test_rounds_are_apart(self) -> None:
        rows = [rating(1, 1.0), rating(2, 2.0), rating(1, 3.0, round="collective")]
        assert notes(rows) == ["J (collective): rated 1 of 2 answers (1 without a row)"]

    def test_no_whole_numbers(self) -> None:
        assert notes([rating(1, 4.5), rating(2, 1.0)]) == [
            "J (first): 1 ratings are no whole numbers: means count them, kappas and panels do not"
        ]

    def test_numbers_made_in_python(self) -> None:
        """An int has no `is_integer` before Python 3.12."""
        assert notes([rating(1, 4), rating(2, 1)]) == []

    def test_constant_but_for_what_kappa_leaves_out(self) -> None:
        assert notes([rating(1, 4.0), rating(2, 4.0), rating(3, 4.5)])[0] == (
            "J (first): all 2 whole ratings are 4: a constant judge's kappa is 0, and none with "
            "another that always gives the same"
        )
