"""The reliability report: numbers computed by hand, and what it says where there are none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lmms_eval_tasks.cvrr_es.study import comparisons, selection
from lmms_eval_tasks.cvrr_es.study.panel_sheets import all_sheets
from lmms_eval_tasks.cvrr_es.study.panels import PANELS, Judges
from lmms_eval_tasks.cvrr_es.study.ratings import RatingRow
from lmms_eval_tasks.cvrr_es.study.report import Options, report
from lmms_eval_tasks.cvrr_es.study.selection import judge_kappa
from lmms_eval_tasks.cvrr_es.study.study import Rater, Study
from lmms_eval_tasks.errors import DataError
from tests.cvrr_es.study.hand_made import (
    FOURS,
    KAPPA,
    KAPPA_A,
    LENIENT,
    MEAN_PANEL,
    POOLED,
    REFERENCE,
    given,
    judged,
    panel,
    rater,
    referred,
)
from tests.cvrr_es.study.study_rows import PARTIAL, drawn

QUICK = Options(resamples=0)


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
            list(comparisons.take_off(made, own, study.by_video(made, seed=seed)).offsets)
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

    def test_panels_are_the_judges_together(self) -> None:
        study = drawn(3)
        judge = study.raters[Rater("J", "first")]
        rows = [_row(study, item, "J", rating) for item, rating in judge.items()]
        rows += [_row(study, item, "K", 1 + len(item.candidate + item.question) % 5)
                 for item in judge]  # fmt: skip
        truth = [_row(study, i, "debate", r, "reference") for i, r in study.reference.items()]
        made = Study.of(rows, truth)
        whole = {i: r for i, r in made.reference.items() if r in (1, 2, 3, 4, 5)}
        dimension_of = {item: made.dimension(item) for item in made.items}
        judges = Judges(
            {r.judge: own for r, own in made.raters.items()},
            whole,  # type: ignore[arg-type]
            dimension_of,
            study.by_video(made).fold_of(made.items),
        )
        found = report(rows, truth, QUICK)
        for name in PANELS:
            expected = judges.panel(name)
            by_dimension = {
                one: judge_kappa(
                    expected.ratings, whole, [i for i in made.items if dimension_of[i] == one]
                )
                for one in made.dimensions
            }
            shown = panel(found, name)
            kappas = shown["kappa"]["by_dimension"]
            assert {one: kappas[one]["kappa"] for one in kappas} == pytest.approx(by_dimension)
            assert shown["note"] == expected.note

    def test_best_single_judge_is_chosen_on_shared_answers(self) -> None:
        """H, with B alone, has 0.97 there (E = 116, D = 1); J 0.86 on all, but 1 on B."""
        few = given("H", {"B": [1, 1, 5, 4]})
        found = report([*judged(), *few], referred(), QUICK)
        assert rater(found, "H")["kappa"]["mean"]["kappa"] == pytest.approx(112 / 116)
        assert found["panels"]["best_single"] == "J"
        assert found["panels"]["best_single_n"] == 4

    def test_best_single_judge_where_no_answer_was_rated_by_all(self) -> None:
        parts = [row for row in judged() if (row.judge == "J") == (row.candidate == "A")]
        found = report(parts, referred(), QUICK)["panels"]
        assert (found["best_single"], found["best_single_n"]) == ("J", None)
        (note,) = [
            line
            for one in all_sheets(report(parts, referred(), QUICK))
            for line in one.notes
            if line.startswith("best single judge: J")
        ]
        assert "chosen on each judge's own answers" in note

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
