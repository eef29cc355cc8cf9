"""Files of ratings: read back as written, bad rows told in a line, odd judges noted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.cvrr_es.labels import JUDGE_TASKS
from lmms_eval_tasks.cvrr_es.study import ratings
from lmms_eval_tasks.cvrr_es.study.ratings import AnswerKey, RatingRow, load_ratings, read_ratings
from lmms_eval_tasks.errors import DataError
from tests.checks import refused
from tests.cvrr_es.scored import PART, rated, rated_doc, row, write_ratings


def rating(place: int = 1, value: float | None = 4.0, judge: str = "J", **more: Any) -> RatingRow:
    """A row; a failed one where there is no value."""
    return row(place, value, judge, **{"candidate": "C", "reason": "so", **more})


def lines(path: Path, *entries: Any) -> Path:
    """A file with these as lines; texts as they are."""
    texts = (one if isinstance(one, str) else json.dumps(one) for one in entries)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


def test_rows(tmp_path: Path) -> None:
    rows = [
        rating(1, 4.5, reason="l\u00e0\u2028next"),
        rating(2, None, empty=True),
        rating(2, 3.0, judge="K"),
        rating(2, 3.0, round="reference"),
        rating(1, 1.0, candidate="D"),
    ]
    path = write_ratings(tmp_path / "ratings.jsonl", rows)
    assert read_ratings([path]) == read_ratings([path, tmp_path]) == rows
    optional = ("reason", "status", "empty")  # in a file that was written by hand
    least = {name: v for name, v in rating(1, 4).as_dict().items() if name not in optional}
    (found,) = read_ratings([lines(tmp_path / "r.jsonl", "", least, " ")])
    assert found == rating(1, 4.0, reason="")
    assert isinstance(found.rating, float)


def test_saved_samples_of_judges(tmp_path: Path) -> None:
    """From under the metric that has the item whole; of a folder our judges' alone."""
    items = [rated(4, rated_doc(1)), rated("hm", rated_doc(2, empty=True))]
    for task in JUDGE_TASKS:
        entries = [{"doc_id": n, "kappa": {"id": "x"}, "failed": i} for n, i in enumerate(items)]
        folder = tmp_path / task
        lines(folder / f"20250101_samples_{task}.jsonl", *entries)
        lines(folder / f"20250101_samples_cvrr_es_{PART}.jsonl", {"other": "task"})
        good, bad = read_ratings([folder])
        assert (good.rating, good.reason, good.judge, good.candidate) == (4.0, "so", "model", "ada")
        assert (bad.rating, bad.status, bad.empty) == (None, "unparsed", True)
    for name, told in (
        ("cvrr_judge", "line 2: no `failed` item of lmms-eval-tasks"),
        ("maia_oe", "no"),
    ):
        file = tmp_path / f"x_samples_{name}.jsonl"
        refused(DataError, told, read_ratings, [lines(file, {"failed": items[0]}, {"failed": {}})])


def test_bad_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line each, with file and line; left out where the user says so."""
    cases: list[tuple[dict[str, Any], str]] = [
        ({"colour": "red"}, "colour: no such name"),
        ({"judge": ...}, "judge: the field is missing"),
        ({"video": ...}, "video: the field is missing"),
        ({"video": "1.mp4"}, "video: '1.mp4' does not belong to partial_actions"),
        ({"rating": ...}, "rating: the field is missing"),
        ({"rating": "4"}, "rating: Input should be a valid number, found '4'"),
        ({"rating": True}, "rating: Input should be a valid number, found True"),
        *(({"rating": n}, "rating: expected 1.0 or more") for n in (0.0, float("-inf"))),
        ({"rating": 5.01}, "rating: Input should be less than or equal to 5"),
        ({"rating": float("nan")}, "rating: "),
        ({"reason": None}, "reason: expected a text, found None"),
        ({"empty": "no"}, "empty: expected true or false, found 'no'"),
        ({"dimension": "x"}, "dimension: String should match pattern"),
        ({"question": "3"}, "question: '3' does not belong to partial_actions"),
        ({"round": "second"}, "round: String should match pattern '^(first|collective|"),
        ({"candidate": " "}, "candidate: String should match pattern"),
        ({"rating": None}, "rating: None does not fit the status 'ok'"),
        ({"status": "refused"}, "rating: 4.0 does not fit the status 'refused'"),
    ]
    for change, told in cases:
        monkeypatch.delenv(settings.ALLOW_BAD_ITEMS, raising=False)
        bad = {n: v for n, v in {**rating(2).as_dict(), **change}.items() if v is not ...}
        file = lines(tmp_path / "r.jsonl", rating(1).as_dict(), bad)
        with pytest.raises(DataError, match="1 ratings cannot be used") as error:
            read_ratings([file])
        assert f"\n  {file}, line 2: {told}" in str(error.value)
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        assert read_ratings([file]) == [rating(1)]


def test_rows_of_one_item(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = lines(tmp_path / "a.jsonl", rating(1).as_dict(), rating(2).as_dict())
    second = lines(tmp_path / "b.jsonl", rating(1, 5.0).as_dict(), rating(2).as_dict())
    with pytest.raises(DataError, match="1 ratings cannot be used"):
        read_ratings([first, second])
    monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
    found = load_ratings([tmp_path])
    assert found.problems == {
        f"{second}, line 1": f"another rating of C's answer to {PART}/001 by J (first) is at "
        f"{first}, line 1: both are skipped"
    }
    assert found.rows == [rating(2)]


def test_bad_files(tmp_path: Path) -> None:
    refused(DataError, "nowhere: no such file or folder", read_ratings, [tmp_path / "nowhere"])
    refused(DataError, r"no ratings \(\*\.jsonl", read_ratings, [tmp_path])
    file = lines(tmp_path / "r.jsonl", [1])
    refused(DataError, r"no usable ratings; .*line 1: ", read_ratings, [file])


def test_odd_judges_are_no_errors() -> None:
    constant = ": the kappa of a constant judge is 0, and there is none between two constant judges"
    part = [rating(1, 1.0), rating(2, 2.0), rating(3, None), rating(9, None)]  # 9 is not of it
    for rows, told in (
        ([rating(n, float(n)) for n in range(1, 6)], []),
        ([rating(n, 4.0) for n in range(1, 6)], [f"J (first): all 5 ratings are 4{constant}"]),
        (part, ["J (first): rated 2 of 5 answers (1 parse_failure, 2 without a row)"]),
    ):
        items = [AnswerKey(f"{PART}/{n:03d}", "C") for n in range(1, 6)]
        assert [*ratings.rating_notes(rows, items)] == told
