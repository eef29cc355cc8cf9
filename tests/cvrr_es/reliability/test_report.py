"""The reliability report: numbers computed by hand, and what it says where there are none."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from lmms_eval_tasks.cvrr_es import rating_files, selection
from lmms_eval_tasks.cvrr_es.rating_rows import RatingRow
from lmms_eval_tasks.cvrr_es.reliability import differences, folds, offsets, panels
from lmms_eval_tasks.cvrr_es.reliability.report import NO_REFERENCE, Options, report
from lmms_eval_tasks.cvrr_es.reliability.study import Rater, Study
from lmms_eval_tasks.errors import DataError
from tests.cvrr_es.reliability.hand_made import (
    FOURS,
    KAPPA,
    KAPPA_A,
    LENIENT,
    MEAN_PANEL,
    POOLED,
    REFERENCE,
    given,
    judged,
    referred,
)
from tests.cvrr_es.reliability.study_rows import PARTIAL, TIME, drawn, rows

QUICK = Options(resamples=0)


def rater(found: dict[str, Any], name: str) -> dict[str, Any]:
    return next(part for part in found["raters"] if part["name"] == name)


def panel(found: dict[str, Any], name: str) -> dict[str, Any]:
    return next(part for part in found["panels"]["panels"] if part["name"] == name)


class TestByHand:
    """One rater's numbers."""

    def test_kappas(self) -> None:
        kappa = rater(report(judged(), referred()), "J")["kappa"]
        assert kappa["cells"][PARTIAL]["A"]["kappa"] == pytest.approx(KAPPA_A)
        assert kappa["cells"][PARTIAL]["B"]["kappa"] == 1
        assert kappa["by_dimension"][PARTIAL]["kappa"] == pytest.approx(KAPPA)
        assert kappa["by_candidate"] == {"A": pytest.approx(KAPPA_A), "B": 1}
        mean, pooled = kappa["mean"], kappa["pooled"]
        assert (mean["kappa"], mean["percent"]) == pytest.approx((KAPPA, 100 * KAPPA))
        assert mean["band"] == "almost perfect"
        assert (pooled["kappa"], pooled["n"]) == (pytest.approx(POOLED), 8)
        assert mean["interval"]["clusters"] == 2
        assert kappa["pooled_by_dimension"][PARTIAL]["kappa"] == pytest.approx(POOLED)

    def test_ratings_and_leniency(self) -> None:
        part = rater(report(judged(), referred(), QUICK), "J")
        told = part["ratings"]
        assert told["overall"]["mean"] == 26 / 8
        assert told["overall"]["distribution"] == {"1": 2, "2": 1, "3": 1, "4": 1, "5": 3}
        assert told["cells"][PARTIAL]["A"]["mean"] == 3.5
        assert part["leniency"]["overall"]["value"] == 0.5
        assert part["leniency"]["by_candidate"]["A"]["value"] == 1
        assert part["counts"]["rated"] == 8

    def test_offset_is_taken_off(self) -> None:
        """Fitted on the other video: 1 on A, 0 on B, so half a point, and halves go up."""
        part = rater(report(judged(), referred(), QUICK), "J")["without_offset"]
        assert part["offsets"] == [0.5, 0.5]
        assert part["mean"]["kappa"] == pytest.approx(KAPPA)  # 2 - 0.5 + 0.5 = 2: nothing moves
        lenient = given("J", {name: [min(r + 1, 5) for r in own] for name, own in
                              {"A": [1, 2, 3, 4], "B": [1, 1, 4, 4]}.items()})  # fmt: skip
        truth = given("debate", {"A": [1, 2, 3, 4], "B": [1, 1, 4, 4]}, round="reference")
        made = rater(report(lenient, truth, QUICK), "J")
        assert made["without_offset"]["mean"]["kappa"] == 1
        assert made["kappa"]["mean"]["kappa"] < 1

    def test_seed_is_of_the_folds_too(self) -> None:
        study = drawn(3)
        judge = study.raters[Rater("J", "first")]
        rows = [_row(study, item, "J", rating) for item, rating in judge.items()]
        truth = [_row(study, i, "debate", r, "reference") for i, r in study.reference.items()]
        made = Study.of(rows, truth)
        own = made.raters[Rater("J", "first")]
        expected = [
            list(offsets.take_off(made, own, folds.by_video(made, seed=seed)).offsets)
            for seed in (0, 5)
        ]
        assert expected[0] != expected[1]
        for seed, one in zip((0, 5), expected, strict=True):
            found = report(rows, truth, Options(resamples=0, seed=seed))
            assert found["raters"][0]["without_offset"]["offsets"] == one

    def test_preferences(self) -> None:
        """Reference: A and B tie, A wins, B wins twice. J: A wins twice, B wins, tie."""
        part = rater(report(judged(), referred(), QUICK), "J")
        same = part["preferences"]
        assert (same["same"], same["reference_tied"], same["judge_tied"]) == (2, 1, 1)
        assert same["agreement"] == 0.5
        assert part["win_rates"]["score"] == {"A": 2.5 / 4, "B": 1.5 / 4}
        assert part["win_rates"]["against"]["A"]["B"]["wins"] == 2

    def test_empty_answers_both_ways(self) -> None:
        """Without B's last answer: n 7, D = 4, E = 7 x 138 - 2 x 21 x 17 = 252."""
        with_empty = [
            replace(row, empty=row.candidate == "B" and row.question.endswith("003"))
            for row in judged()
        ]
        found = report(with_empty, referred(), QUICK)
        part = rater(found, "J")
        assert found["data"]["empty"] == 1
        assert part["kappa"]["pooled"]["n"] == 8
        assert part["counts"]["empty_rated"] == 1
        assert part["without_empty"]["n"] == 7
        assert part["without_empty"]["pooled"] == pytest.approx(224 / 252)

    def test_one_that_judges_itself(self) -> None:
        found = report([*judged(), *given("b", LENIENT)], referred(), QUICK)
        assert rater(found, "J")["itself"] == []
        assert rater(found, "J")["self_preference"] is None
        part = rater(found, "b")
        assert part["itself"] == ["B"]
        assert part["self_preference"]["difference"]["value"] == -1  # 0 on its own, 1 on A


class TestTogether:
    """Panels, selection, the final judge, and judges with each other."""

    def test_panels(self) -> None:
        found = report(judged(), referred())
        assert found["panels"]["best_single"] == "J"
        assert found["panels"]["judges"] == ["J", "K"]
        mean = panel(found, "mean")
        assert mean["fitted_to"] == "nothing"
        assert mean["kappa"]["mean"]["kappa"] == pytest.approx(MEAN_PANEL)
        assert mean["over_best"]["value"] == pytest.approx(MEAN_PANEL - KAPPA)
        assert mean["over_best"]["n"] == 8
        assert mean["over_mean"] is None
        best = panel(found, "best_judge")
        assert best["fitted_to"] == "other folds"
        assert best["over_best"]["value"] == 0
        assert best["over_mean"]["value"] == pytest.approx(KAPPA - MEAN_PANEL)
        assert panel(found, "selected_mean")["kappa"]["mean"]["kappa"] == pytest.approx(KAPPA)
        assert panel(found, "selected_mean_same_items")["fitted_to"] == "the same items"

    def test_panels_are_those_of_compare(self) -> None:
        study = drawn(3)
        judge = study.raters[Rater("J", "first")]
        rows = [_row(study, item, "J", rating) for item, rating in judge.items()]
        rows += [_row(study, item, "K", 1 + len(item.candidate + item.question) % 5)
                 for item in judge]  # fmt: skip
        truth = [_row(study, i, "debate", r, "reference") for i, r in study.reference.items()]
        made = Study.of(rows, truth)
        whole = {i: r for i, r in made.reference.items() if r in (1, 2, 3, 4, 5)}
        expected = panels.compare(
            {r.judge: own for r, own in made.raters.items()},
            whole,  # type: ignore[arg-type]
            {item: made.dimension(item) for item in made.items},
            folds.by_video(made).fold_of(made.items),
        )
        found = report(rows, truth, QUICK)
        for one in expected:
            kappa = panel(found, one.name)["kappa"]
            assert kappa["mean"]["kappa"] == pytest.approx(one.kappa), one.name
            assert kappa["pooled"]["kappa"] == pytest.approx(one.pooled), one.name
            assert panel(found, one.name)["note"] == one.note

    def test_selection_both_ways(self) -> None:
        """J has (1/3 and none) / 1 on either video, K nothing."""
        found = report(judged(), referred(), QUICK)["selection"]
        across = found["ways"]["cross_fitted"]["dimensions"][PARTIAL]
        assert across["choices"] == 2
        assert across["chosen"] == {"J": 2}
        assert across["kappas"]["J"] == pytest.approx([1 / 3, 1 / 3])
        same = found["ways"]["same_items"]["dimensions"][PARTIAL]
        assert same["choices"] == 1
        assert same["kappas"]["J"] == [pytest.approx(KAPPA)]
        assert same["fell_back"] == 0

    def test_rule_of_the_selection(self) -> None:
        rule = selection.parse("theta=0.9")
        found = report(judged(), referred(), Options(resamples=0, selection=rule))["selection"]
        one = found["ways"]["same_items"]["dimensions"][PARTIAL]
        assert one["fell_back"] == 1
        assert one["chosen"] == {"J": 1, "K": 1}
        assert found["rule"].startswith("theta=0.9")

    def test_final_judge_is_not_selected_from(self) -> None:
        collective = given("J", REFERENCE, round="collective")
        found = report([*judged(), *collective], referred(), QUICK)
        assert found["final_judges"] == ["J"]
        assert found["selection"]["judges"] == ["K"]
        assert found["panels"]["judges"] == ["J", "K"]

    def test_collective_beside_the_same_judge_alone(self) -> None:
        """One failure: on the other seven J alone has (12 / 21 + 1) / 2."""
        exact = {"A": [None, 2, 3, 4], "B": [1, 1, 5, 5]}
        rows = [*judged(), *given("J", exact, round="collective")]
        one = report(rows, referred())["rounds"][0]
        assert (one["name"], one["alone"]) == ("J, collective", True)
        assert one["together"] == {"n": 7, "mean": 1, "by_dimension": {PARTIAL: 1}}
        assert one["by_itself"]["mean"] == pytest.approx((12 / 21 + 1) / 2)
        assert one["difference"]["value"] == pytest.approx(1 - (12 / 21 + 1) / 2)
        assert one["difference"]["n"] == 7
        low = one["difference"]["interval"]["low"]
        assert low is not None
        assert one["difference"]["interval"]["clusters"] == 2

    def test_round_without_the_judge_alone(self) -> None:
        rows = [*given("K", FOURS), *given("J", REFERENCE, round="mixture")]
        one = report(rows, referred(), QUICK)["rounds"][0]
        assert one == {"name": "J, mixture", "judge": "J", "round": "mixture", "alone": False}

    def test_named_final_judge(self) -> None:
        rows = [*judged(), *given("J", REFERENCE, round="mixture"),
                *given("K", REFERENCE, round="mixture")]  # fmt: skip
        found = report(rows, referred(), Options(final_judge="j", resamples=0))
        assert [one["name"] for one in found["rounds"]] == ["J, mixture"]
        assert [part["name"] for part in found["raters"]] == ["J", "K", "J, mixture"]
        assert "K (mixture): not the final judge that was named; left out" in found["notes"]
        with pytest.raises(DataError, match=r"--final-judge Q: has no ratings here; judges: J, K"):
            report(rows, referred(), Options(final_judge="Q"))

    def test_with_each_other(self) -> None:
        """J twice: agree wholly. Alpha is of judges alone."""
        found = report([*judged(), *given("M", LENIENT)], referred(), QUICK)["between"]
        kappas = {(one["one"], one["other"]): one["kappa"] for one in found["pairs"]}
        assert kappas == {("J", "K"): 0, ("J", "M"): 1, ("K", "M"): 0}
        assert found["alpha"]["judges"] == 3
        assert found["alpha"]["value"] is not None

    def test_accuracy(self) -> None:
        more = [*judged(), *given("M", REFERENCE)]
        accuracies = {"j": 40.0, "K": 10.0, "m": 70.0, "Z": 5.0}
        options = Options(accuracies=accuracies, resamples=0)
        found = report(more, referred(), options)["accuracy"]
        assert found["rho"] == 1
        assert found["pairs"]["J"] == {"accuracy": 40, "kappa": pytest.approx(KAPPA)}
        assert found["unknown"] == ["Z"]
        assert report(judged(), referred(), QUICK)["accuracy"] is None


def _row(study: Study, item: Any, judge: str, rating: Any, kind: str = "first") -> RatingRow:
    place = study.questions[item.question]
    status = "ok" if rating is not None else "parse_failure"
    return RatingRow(place.dimension, item.question, place.video, item.candidate, judge, kind,
                     rating, "", status)  # fmt: skip


class TestDifferences:
    """Two raters on shared answers."""

    def study(self) -> Study:
        return Study.of(judged(), referred())

    def test_only_shared_answers_count(self) -> None:
        made = self.study()
        one, other = made.raters[Rater("J", "first")], made.raters[Rater("K", "first")]
        part = {item: rating for item, rating in one.items() if item.candidate == "A"}
        found = differences.difference(made, part, other, resamples=0)
        assert (found.value, found.n) == (pytest.approx(KAPPA_A), 4)
        assert found.no_interval == "no interval was asked for"
        assert len(differences.shared(made, part, other).items) == 4
        turned = differences.difference(made, other, part, resamples=0)
        assert (turned.value, turned.n) == (pytest.approx(-KAPPA_A), 4)

    def test_interval_is_paired(self) -> None:
        """The same ratings differ by exactly 0 in every resample."""
        made = self.study()
        own = made.raters[Rater("J", "first")]
        found = differences.difference(made, own, dict(own))
        assert found.value == 0
        assert found.interval is not None
        assert (found.interval.low, found.interval.high) == (0, 0)

    def test_no_interval_without_videos(self) -> None:
        made = Study.of([replace(row, video="") for row in judged()],
                        [replace(row, video="") for row in referred()])  # fmt: skip
        one, other = made.raters.values()
        found = differences.difference(made, one, other)
        assert found.interval is None
        assert found.no_interval == "the video of 8 of 8 items is not known"

    def test_nothing_to_compare(self) -> None:
        made = Study.of(judged(), [])
        one, other = made.raters.values()
        found = differences.difference(made, one, other)
        assert found.value is None
        assert found.reason == "no item has a reference rating: there is none yet"
        nobody = differences.difference(self.study(), {}, other)
        assert nobody.reason == "no item both rated"

    def test_dimensions_count_alike(self) -> None:
        """(KAPPA_A + 1) / 2 in one dimension, 1 in the other, whatever their sizes."""
        more = [*judged(), *rows([1, 5, 1], judge="J", dimension=TIME)]
        more += rows([3, 3, 3], judge="K", dimension=TIME)
        truth = [
            *referred(),
            *rows([1, 5, 1], judge="debate", round="reference", dimension=TIME),
        ]
        made = Study.of(more, truth)
        one, other = made.raters[Rater("J", "first")], made.raters[Rater("K", "first")]
        assert differences.difference(made, one, other).value == pytest.approx((KAPPA + 1) / 2)


class TestWhatIsMissing:
    """Nothing is made up, and each lack is one line."""

    def test_no_reference(self) -> None:
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

    def test_no_videos(self) -> None:
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

    def test_one_video_fits_nothing(self) -> None:
        one = [[replace(row, video="v") for row in own] for own in (judged(), referred())]
        found = report(*one)
        assert found["data"]["folds"] == 1
        note = "not computed: fitting on other videos needs two videos or more"
        assert panel(found, "best_judge")["note"] == note
        assert panel(found, "best_judge")["kappa"] is None
        assert panel(found, "selected_mean")["note"] == note
        assert panel(found, "selected_mean_same_items")["kappa"] is not None
        assert found["selection"]["ways"]["cross_fitted"]["reason"] == note

    def test_one_judge_makes_no_panel(self) -> None:
        found = report(given("J", LENIENT), referred(), QUICK)
        assert found["panels"] is None
        assert found["between"]["alpha"]["reason"] == "alpha needs two judges"

    def test_part_rated_constant_and_off_scale(self) -> None:
        given_rows = given("J", {"A": [2, "absent", None, 5], "B": [1, 1, 5, "absent"]})
        off = replace(given_rows[1], rating=None, status=rating_files.OFF_SCALE)
        rows = [given_rows[0], off, *given_rows[2:], *given("K", FOURS)]
        notes = report(rows, referred(), QUICK)["notes"]
        assert "ratings off the scale of 1 to 5, counted as failures: 1" in notes
        assert "J (first): rated 5 of 8 answers (1 off_scale, 2 without a row)" in notes
        assert "K (first): all 8 ratings are 4: a constant judge's kappa is 0" in notes

    def test_reference_of_several(self) -> None:
        other = given("GPT-3.5", FOURS, round="reference")
        with pytest.raises(DataError, match=r"of 2 raters: GPT-3.5 \(reference\), debate"):
            report(judged(), [*referred(), *other])

    def test_reference_among_the_ratings(self) -> None:
        single = given("GPT-3.5", FOURS, round="reference")
        found = report([*judged(), *referred(), *single], referred(), QUICK)
        names = [part["name"] for part in found["raters"]]
        assert names == ["J", "K", "GPT-3.5, with reference"]
        assert found["panels"]["judges"] == ["J", "K"]
        assert "debate (reference) made the reference: not compared with itself" in found["notes"]
        with pytest.raises(DataError, match="no ratings but the reference's"):
            report(referred(), referred())

    def test_json_knows_everything(self) -> None:
        found = report([*judged(), *given("J", REFERENCE, round="mixture")], referred())
        assert json.loads(json.dumps(found, allow_nan=False)) == found
