"""The reliability report where something is missing: nothing is made up, each lack is one line."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lmms_eval_tasks.cvrr_es.study import ratings
from lmms_eval_tasks.cvrr_es.study.ratings import RatingRow
from lmms_eval_tasks.cvrr_es.study.report import NO_REFERENCE, Options, report
from lmms_eval_tasks.errors import DataError
from tests.cvrr_es.study.hand_made import (
    FOURS,
    KAPPA,
    LENIENT,
    REFERENCE,
    given,
    judged,
    panel,
    rater,
    referred,
)
from tests.cvrr_es.study.study_rows import PARTIAL, TIME, rows

QUICK = Options(resamples=0)


def test_no_reference() -> None:
    found = report([*judged(), *given("J", REFERENCE, round="collective")], [])
    assert found["reference"] is None
    assert found["notes"][0] == NO_REFERENCE
    part = rater(found, "J")
    assert part["kappa"]["mean"]["kappa"] is None
    assert part["kappa"]["pooled"]["reason"] == "there is no reference yet"
    assert part["ratings"]["overall"]["mean"] == 26 / 8
    assert panel(found, "kappa_weighted")["kappa"] is None
    assert "no kappa" in panel(found, "naive_bayes")["note"]
    assert found["selection"]["ways"]["same_items"]["dimensions"] == {}
    assert found["panels"]["best_single"] is None
    assert found["rounds"][0]["difference"]["value"] is None
    json.dumps(found, allow_nan=False)


def test_no_videos() -> None:
    bare = [[replace(row, video="") for row in own] for own in (judged(), referred())]
    found = report(*bare)
    mean = rater(found, "J")["kappa"]["mean"]
    assert mean["kappa"] == pytest.approx(KAPPA)
    assert mean["interval"] is None
    assert found["data"]["videos"] == 0
    assert any(
        line.startswith("no intervals where they would need it: the video of 4 of 4")
        for line in found["notes"]
    )
    assert "by question" in found["data"]["folds_note"]


def test_few_videos() -> None:
    """Percentile intervals are too narrow on few videos, and the report says so."""
    told = [line for line in report(judged(), referred())["notes"] if "too narrow" in line]
    assert told == [
        "the intervals rest on as few as 2 videos: percentile intervals on fewer than 20 are "
        "too narrow, and low"
    ]
    assert not any("narrow" in line for line in report(judged(), referred(), QUICK)["notes"])

    def spread(number: int, dimension: str) -> list[list[RatingRow]]:
        return [
            [
                replace(row, video=f"v{place}")
                for place, row in enumerate(rows([1, 5] * number, judge=judge,
                                                 dimension=dimension, **more))
            ]
            for judge, more in (("J", {}), ("debate", {"round": "reference"}))
        ]  # fmt: skip

    many, few = spread(15, PARTIAL), spread(3, TIME)
    both = [one + other for one, other in zip(many, few, strict=True)]
    assert not any("narrow" in line for line in report(*many)["notes"])
    assert any(
        line.startswith("intervals of single dimensions rest on as few as 6 videos")
        for line in report(*both)["notes"]
    )


def test_one_video_fits_nothing() -> None:
    one = [[replace(row, video="v") for row in own] for own in (judged(), referred())]
    found = report(*one)
    assert found["data"]["folds"] == 1
    note = "not computed: fitting on other videos needs two videos or more"
    assert panel(found, "best_judge")["note"] == note
    assert panel(found, "best_judge")["kappa"] is None
    assert panel(found, "selected_mean")["note"] == note
    assert panel(found, "selected_mean_same_items")["kappa"] is not None
    assert found["selection"]["ways"]["cross_fitted"]["reason"] == note


def test_one_judge_makes_no_panel() -> None:
    found = report(given("J", LENIENT), referred(), QUICK)
    assert found["panels"] is None
    assert found["between"]["alpha"]["reason"] == "alpha needs two judges"


def test_part_rated_constant_and_off_scale() -> None:
    given_rows = given("J", {"A": [2, "absent", None, 5], "B": [1, 1, 5, "absent"]})
    off = replace(given_rows[1], rating=None, status=ratings.OFF_SCALE)
    rows = [given_rows[0], off, *given_rows[2:], *given("K", FOURS)]
    notes = report(rows, referred(), QUICK)["notes"]
    assert "ratings off the scale of 1 to 5, counted as failures: 1" in notes
    assert "J (first): rated 5 of 8 answers (1 off_scale, 2 without a row)" in notes
    assert any(
        line.startswith("K (first): all 8 ratings are 4: a constant judge's kappa is 0")
        for line in notes
    )


def test_off_scale_is_counted_once_and_of_what_is_shown() -> None:
    """A folder may hold the reference's file as well; rounds that are left out do not count."""
    truth = [replace(referred()[0], rating=None, status=ratings.OFF_SCALE), *referred()[1:]]
    other = given("K", REFERENCE, round="mixture")
    off = replace(other[0], rating=None, status=ratings.OFF_SCALE)
    more = [off, *other[1:], *given("J", REFERENCE, round="mixture"), *truth]
    notes = report([*judged(), *more], truth, Options(final_judge="J", resamples=0))["notes"]
    assert [line for line in notes if "off the scale" in line] == [
        "ratings off the scale of 1 to 5, counted as failures: 1"
    ]


def test_undefined_resamples_are_told() -> None:
    """On one of the two videos all ratings are 3: drawn twice, there is no kappa."""
    truth = given("debate", {"A": [3, 3, 1, 5]}, round="reference")
    found = report(given("J", {"A": [3, 3, 1, 4]}), truth)
    intervals = [rater(found, "J")["kappa"][kind]["interval"] for kind in ("mean", "pooled")]
    number = intervals[0]["undefined"]
    assert 200 < number == intervals[1]["undefined"] < 300
    line = f"J, J (pooled): {number} of 1,000 resamples have no kappa"
    assert [note for note in found["notes"] if "resamples have" in note] == [line]
    panels = report([*given("J", {"A": [3, 3, 1, 4]}), *given("K", {"A": [3, 3, 2, 4]})], truth)
    (note,) = [note for note in panels["notes"] if "resamples have" in note]
    assert note.startswith("J, J (pooled), K, K (pooled), panel majority, panel majority (pooled),")
    assert not any("resamples have" in line for line in report(judged(), truth, QUICK)["notes"])


def test_folds_without_an_offset_are_told() -> None:
    """The reference is of the first video alone: nothing to fit that video's offset on."""
    truth = [row for row in referred() if row.question < f"{PARTIAL}/002"]
    notes = report(judged(), truth, QUICK)["notes"]
    told = "4 ratings are in a fold without an offset: the kappa without offset is not of them"
    assert f"J: {told}" in notes
    assert not any("offset" in line for line in report(judged(), referred(), QUICK)["notes"])
    assert not any("offset" in line for line in report(judged(), [], QUICK)["notes"])


def test_why_a_judge_has_no_kappa() -> None:
    """Both constant on one rating, and nothing rated: a dash alone would not say which."""
    truth = given("debate", FOURS, round="reference")
    failed = given("M", {"A": [None] * 4, "B": [None] * 4})
    notes = report([*judged(), *failed], truth, QUICK)["notes"]
    assert "K: no kappa: both raters gave one and the same label to every item" in notes
    assert "M: no kappa: no item was rated on the scale by both" in notes
    assert not any(line.startswith("J: no kappa") for line in notes)


def test_reference_of_several() -> None:
    other = given("GPT-3.5", FOURS, round="reference")
    with pytest.raises(DataError, match=r"of 2 raters: GPT-3.5 \(reference\), debate"):
        report(judged(), [*referred(), *other])


def test_reference_among_the_ratings() -> None:
    single = given("GPT-3.5", FOURS, round="reference")
    found = report([*judged(), *referred(), *single], referred(), QUICK)
    names = [part["name"] for part in found["raters"]]
    assert names == ["J", "K", "GPT-3.5, with reference"]
    assert found["panels"]["judges"] == ["J", "K"]
    assert "debate (reference) made the reference: not compared with itself" in found["notes"]
    with pytest.raises(DataError, match="no ratings but the reference's"):
        report(referred(), referred())


def test_json_knows_everything() -> None:
    found = report([*judged(), *given("J", REFERENCE, round="mixture")], referred())
    assert json.loads(json.dumps(found, allow_nan=False)) == found
