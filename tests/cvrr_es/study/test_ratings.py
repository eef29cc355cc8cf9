"""Files of ratings: read back as written, bad rows told in a line, odd judges noted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.cvrr_es.labels import JUDGE_TASKS
from lmms_eval_tasks.cvrr_es.study import ratings
from lmms_eval_tasks.cvrr_es.study.ratings import Item, RatingRow, load, read
from lmms_eval_tasks.errors import DataError, TasksError
from tests.checks import refused
from tests.cvrr_es.scored import PART, rated, rated_doc, row, write_ratings

ALLOW = "LMMS_EVAL_TASKS_ALLOW_BAD_ITEMS"


def rating(place: int = 1, value: float | None = 4.0, judge: str = "J", **more: Any) -> RatingRow:
    """A row; a failed one where there is no value."""
    return row(place, value, judge, **{"candidate": "C", "reason": "so", **more})


def lines(path: Path, *entries: Any) -> Path:
    """A file with these as lines; texts as they are."""
    texts = (one if isinstance(one, str) else json.dumps(one) for one in entries)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


class TestRoundTrip:
    def test_rows(self, tmp_path: Path) -> None:
        rows = [
            rating(1, 4.5, reason="l\u00e0\u2028next"),
            rating(2, None, empty=True),
            rating(2, 3.0, judge="K"),
            rating(2, 3.0, round="reference"),
            rating(1, 1.0, candidate="D", video=""),
        ]
        path = write_ratings(tmp_path / "ratings.jsonl", rows)
        assert read([path]) == read([path, tmp_path]) == rows
        assert [p.name for p in tmp_path.iterdir()] == ["ratings.jsonl"]
        with pytest.raises(TasksError, match=r"ratings\.jsonl: cannot be written"):
            write_ratings(path / "ratings.jsonl", rows)

    def test_written_by_hand(self, tmp_path: Path) -> None:
        """Only what is needed; a video's bare name is of its dimension."""
        entry = rating(1, 4).as_dict()
        least = {n: v for n, v in entry.items() if n not in ("video", "reason", "status", "empty")}
        (found,) = read([lines(tmp_path / "r.jsonl", "", least, " ")])
        assert found == rating(1, 4.0, video="", reason="")
        assert isinstance(found.rating, float)
        (found,) = read([lines(tmp_path / "r.jsonl", {**entry, "video": "1.mp4"})])
        assert found.video == f"{PART}/1.mp4"

    def test_saved_samples_of_judges(self, tmp_path: Path) -> None:
        """From under the metric that has the item whole."""
        items = [rated(4, rated_doc(1)), rated("hm", rated_doc(2, empty=True))]
        for task in JUDGE_TASKS:
            entries = [
                {"doc_id": n, "kappa": {"id": "x"}, "failed": i} for n, i in enumerate(items)
            ]
            folder = tmp_path / task
            lines(folder / f"20250101_samples_{task}.jsonl", *entries)
            lines(folder / f"20250101_samples_cvrr_es_{PART}.jsonl", {"other": "task"})
            good, bad = read([folder])
            assert (good.rating, good.reason, good.judge, good.candidate) == (
                *(4.0, "so", "model", "ada"),
            )
            assert (bad.rating, bad.status, bad.empty) == (None, "unparsed", True)
        file = lines(tmp_path / "x_samples_cvrr_judge.jsonl", {"failed": items[0]}, {"failed": {}})
        with pytest.raises(DataError, match=r"line 2: no `failed` item of this suite"):
            read([file])
        other = lines(tmp_path / "x_samples_maia_oe.jsonl", {"failed": items[0]})
        with pytest.raises(DataError, match=r"maia_oe\.jsonl: no task of judges"):
            read([other])


class TestBadRows:
    """One line each, with file and line; left out where the user says so."""

    def test_one_line(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        cases: list[tuple[dict[str, Any], str]] = [
            ({"colour": "red"}, "colour: no such name"),
            ({"judge": ...}, "judge: the field is missing"),
            ({"rating": ...}, "rating: the field is missing"),
            ({"rating": "4"}, "rating: Input should be a valid number, found '4'"),
            ({"rating": True}, "rating: Input should be a valid number, found True"),
            *(({"rating": n}, "rating: expected 1.0 or more") for n in (0.0, -1.0, float("-inf"))),
            *(
                ({"rating": n}, "rating: Input should be less than or equal to 5")
                for n in (6.0, 5.01)
            ),
            ({"rating": float("nan")}, "rating: "),
            ({"reason": None}, "reason: expected a text, found None"),
            ({"empty": "no"}, "empty: expected true or false, found 'no'"),
            ({"dimension": "x"}, "dimension: String should match pattern"),
            ({"question": "3"}, "question: '3' is no id of partial_actions"),
            ({"round": "second"}, "round: String should match pattern '^(first|collective|"),
            ({"candidate": " "}, "candidate: String should match pattern"),
            ({"rating": None}, "rating: None does not go with the status 'ok'"),
            ({"status": "refused"}, "rating: 4.0 does not go with the status 'refused'"),
        ]
        for change, told in cases:
            monkeypatch.delenv(ALLOW, raising=False)
            bad = {n: v for n, v in {**rating(2).as_dict(), **change}.items() if v is not ...}
            file = lines(tmp_path / "r.jsonl", rating(1).as_dict(), bad)
            with pytest.raises(DataError, match="1 ratings cannot be used") as error:
                read([file])
            (line,) = [one for one in str(error.value).split("\n") if one.startswith("  ")]
            assert line.startswith(f"  {file}, line 2: {told}")
            monkeypatch.setenv(ALLOW, "1")
            assert read([file]) == [rating(1)]

    def test_rows_of_one_item(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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

    def test_bad_files(self, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()
        for paths, told in (
            ([tmp_path / "nowhere"], "nowhere: no such file or folder"),
            ([tmp_path / "folder"], r"no ratings \(\*\.jsonl"),
            ([lines(tmp_path / "r.jsonl", [1])], r"no ratings that can be used; .*line 1: "),
        ):
            refused(DataError, told, read, paths)
        (tmp_path / "r.jsonl").unlink()
        lines(tmp_path / "a.jsonl", " ")
        lines(tmp_path / "b.jsonl", rating(1).as_dict())
        lines(tmp_path / "x_samples_maia_oe.jsonl", "")  # is not looked into
        assert read([tmp_path]) == [rating(1)]


def test_odd_judges_are_no_errors() -> None:
    constant = ": a constant judge's kappa is 0, and none with another that always gives the same"
    five = [rating(n, float(n)) for n in range(1, 6)]
    fours = [rating(1, 4.0), rating(2, 4.0)]
    for rows, places, told in (
        (five, range(1, 6), []),
        ([rating(1, 4.0)], [1], []),
        (fours, [1, 2], [f"J (first): all 2 ratings are 4{constant}"]),
        (
            [rating(1, 1.0), rating(2, 2.0), rating(3, None), rating(9, None)],  # 9 is not of it
            range(1, 6),
            ["J (first): rated 2 of 5 answers (1 parse_failure, 2 without a row)"],
        ),
        (
            [*five, rating(1, 3.0, round="collective")],
            range(1, 6),
            ["J (collective): rated 1 of 5 answers (4 without a row)"],
        ),
    ):
        items = [Item(f"{PART}/{n:03d}", "C") for n in places]
        assert ratings.notes(rows, items) == told
