"""Two raters' kappas on the same answers, judges among each other, offsets, pairs, leniency."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.cvrr_es.study import comparisons, leniency
from lmms_eval_tasks.cvrr_es.study.comparisons import Duel
from lmms_eval_tasks.cvrr_es.study.leniency import against_kappa, read_accuracies
from lmms_eval_tasks.cvrr_es.study.ratings import Item
from lmms_eval_tasks.cvrr_es.study.study import Folds, Study
from lmms_eval_tasks.errors import DataError
from tests.cvrr_es.study.hand_made import KAPPA_A, judged, referred
from tests.cvrr_es.study.study_rows import PARTIAL, drawn, of, study

KAPPAS = {"a": 0.1, "b": 0.3, "c": 0.2, "d": 0.4}
JUDGE = {"A": [5, 3, 4], "B": [4, 3, None], "C": [1, 5, 4.5]}
TRUTH = {"A": [5, 3, 4], "B": [5, 1, 1], "C": [2, 3, 4]}


class TestDifferences:
    def test_only_shared_answers_count(self) -> None:
        made = Study.of(judged(), referred())
        one, other = of(made, "J"), of(made, "K")
        part = {item: rating for item, rating in one.items() if item.candidate == "A"}
        found = comparisons.difference(made, part, other, resamples=0)
        assert (found.value, found.n) == (pytest.approx(KAPPA_A), 4)
        assert found.no_interval == "no interval was asked for"
        assert len(comparisons.shared(made, part, other).items) == 4
        turned = comparisons.difference(made, other, part, resamples=0)
        assert (turned.value, turned.n) == (pytest.approx(-KAPPA_A), 4)
        # The same ratings differ by exactly 0 in every resample: the interval is paired.
        same = comparisons.difference(made, one, dict(one))
        assert same.value == 0
        assert same.interval is not None
        assert (same.interval.low, same.interval.high) == (0, 0)
        nobody = comparisons.difference(made, {}, other)
        assert nobody.reason == "no item both rated"
        made = Study.of(judged(), [])
        nothing = comparisons.difference(made, of(made, "J"), of(made, "K"))
        assert nothing.reason == "no item has a reference rating: there is none yet"
        bare = [[replace(one, video="") for one in own] for own in (judged(), referred())]
        made = Study.of(*bare)
        unknown = comparisons.difference(made, *made.raters.values())
        assert unknown.no_interval == "the video of 8 of 8 items is not known"


class TestEachOther:
    def test_pairwise_by_hand(self) -> None:
        """J 1, 3, 4 and L 4, 2, 1: 1 - 3 * 19 / (3 * 47 - 2 * 8 * 7)."""
        given = {"J": {"A": [1, 2, 3, 4]}, "K": {"A": [2, 3, 4, 5]}, "L": {"A": [4, None, 2, 1]}}
        for reference in ({"A": [3]}, {}):  # none is no reason not to compare judges
            made = study(given, reference)
            found = comparisons.pairwise(made, {judge: of(made, judge) for judge in "JKL"})
            assert list(found) == [("J", "K"), ("J", "L"), ("K", "L")]
            assert found["J", "K"].value == 5 / 7
            assert found["J", "L"].value == pytest.approx(1 - 57 / 29)
            assert (found["J", "L"].agreement.n, found["J", "L"].agreement.missing) == (3, 1)

    def test_alpha_by_hand(self) -> None:
        """Items (1, 1), (5, 5), (1, 2): 1 - 5 * 2 / 234 by squared differences."""
        made = study({"J": {"A": [1, 5, 1, 3, 4.5]}, "K": {"A": [1, 5, 2, None, 4]}}, {"A": [1]})
        found = comparisons.alpha(made, [of(made, "J"), of(made, "K")])
        assert found.value == pytest.approx(224 / 234, abs=1e-15)
        assert (found.n, found.missing, found.off_scale) == (3, 1, 1)
        alone = comparisons.alpha(made, [of(made)])
        assert (alone.value, alone.reason) == (None, "alpha needs two judges")


class TestOffsets:
    HALVES = Folds({f"{PARTIAL}/{n:03d}": n // 2 for n in range(4)}, 2)

    def test_by_hand(self) -> None:
        cases: list[tuple[list[Any], list[Any], tuple[Any, ...], list[Any], int, int]] = [
            # Differences 1, 1 | 2, 1: the first half loses 1.5 (0.5 to 1, 1.5 to 2), the second 1.
            ([2, 3, 5, 5], [1, 2, 3, 4], (1.5, 1.0), [1, 2, 4, 4], 0, 0),
            # Offsets -4 and 4 make 9 and -3, which are put back on the scale.
            ([5, 5, 1, 1], [1, 1, 5, 5], (-4.0, 4.0), [5, 5, 1, 1], 4, 0),
            # 3.5 becomes 4, 2.5 becomes 3: halves go up.
            ([3, 3, 3, 3], [2, 3, 4, 3], (-0.5, 0.5), [4, 4, 3, 3], 0, 0),
            ([2, None, 4.5, 3], [1, 1, 3, 2], (1.25, 1.0), [1, None, 4.5, 2], 0, 0),
            ([2, "absent", 3, 3], [1, 1, 2, 2], (1.0, 1.0), [1, 2, 2], 0, 0),
            ([2, 3, 4, 5], [1, 2, None, None], (None, 1.0), [None, None, 3, 4], 0, 2),
            # A fold is never fitted on itself: as the first, but for the first half's ratings.
            ([5, 5, 5, 5], [1, 2, 3, 4], (1.5, 3.5), [4, 4, 2, 2], 0, 0),
        ]
        for judge, reference, taken, ratings, clipped, not_fitted in cases:
            made = study({"J": {"A": judge}}, {"A": reference})
            found = comparisons.take_off(made, of(made), self.HALVES)
            assert list(found.ratings.values()) == ratings
            assert (found.offsets, found.clipped, found.not_fitted) == (taken, clipped, not_fitted)


class TestPreferences:
    def test_win_rates_by_hand(self) -> None:
        made = study({"J": JUDGE}, TRUTH)
        found = comparisons.win_rates(made, of(made))
        assert found == {
            ("A", "B"): Duel(1, 1, 0),
            ("B", "A"): Duel(0, 1, 1),
            ("A", "C"): Duel(1, 0, 2),
            ("C", "A"): Duel(2, 0, 1),
            ("B", "C"): Duel(1, 0, 1),
            ("C", "B"): Duel(1, 0, 1),
        }
        shown = found["A", "B"].as_dict()
        assert shown == {"wins": 1, "ties": 1, "losses": 0, "win_rate": 0.5, "score": 0.75}
        assert Duel(0, 0, 0).as_dict()["win_rate"] is Duel(0, 0, 0).as_dict()["score"] is None
        made = drawn(4)
        found = comparisons.win_rates(made, made.reference)
        for one, other in itertools.combinations(made.candidates, 2):
            both = [found[pair].as_dict() for pair in ((one, other), (other, one))]
            assert sum(own["score"] for own in both) == pytest.approx(1)
            met = [
                question
                for question in made.questions
                if {Item(question, one), Item(question, other)} <= made.reference.keys()
            ]
            assert sum(vars(found[one, other]).values()) == len(met)

    def test_agreement_by_hand(self) -> None:
        """First question: tied by the reference, same, same. Second: tied by the judge, by the
        reference, same. Third: tied by the reference, and B has no rating."""
        made = study({"J": JUDGE}, TRUTH)
        found = comparisons.agreement(made, of(made))
        assert (found.same, found.opposite, found.both_tied) == (3, 0, 0)
        assert (found.judge_tied, found.reference_tied) == (1, 3)
        assert (found.n, found.agreement, found.decided) == (7, 3 / 7, 1)
        shown = json.loads(json.dumps(found.as_dict()))
        assert (shown["n"], shown["same"], shown["interval"]["clusters"]) == (7, 3, 2)
        made = study({"J": {"A": [5, 2, 4], "B": [4, 2, 5]}}, {"A": [1, 3, 2], "B": [2, 3, 3]})
        found = comparisons.agreement(made, of(made))
        assert (found.same, found.opposite, found.both_tied) == (1, 1, 1)
        assert (found.agreement, found.decided) == (2 / 3, 0.5)
        made = study({"J": {"A": [4, 4], "B": [4, 4]}}, {"A": [5, 3], "B": [1, 3]})
        found = comparisons.agreement(made, of(made))  # a constant judge prefers nothing
        assert (found.judge_tied, found.both_tied, found.decided) == (1, 1, None)
        made = study({"J": {"A": [4, 2]}}, {"A": [3, 2]})
        found = comparisons.agreement(made, of(made))
        assert (found.n, found.agreement, found.no_interval) == (0, None, "there is no value")


class TestLeniency:
    def test_by_hand(self) -> None:
        """Differences 2, 0 on a video, 2 on another: se^2 = 2 * (4/9 + 4/9) / 9, t(1) = 12.706."""
        made = study({"J": {"A": [4, 5, 3, None, 2]}}, {"A": [2, 5, 1, 1, None]})
        found = leniency.leniency(made, of(made), made.items)
        assert (found.value, found.n, found.reason, found.no_interval) == (4 / 3, 3, "", "")
        assert found.interval is not None
        assert found.interval.se == pytest.approx(4 / 9)
        assert found.interval.high - 4 / 3 == pytest.approx(12.706 * 4 / 9, abs=1e-3)
        for judge, reference, value in (
            ([4.5, 1], [4, 1], 0.25),
            ([1, 2], [3, 3], -1.5),
            ([3, 3, 5, 5], [3, 3, None, None], 0),  # means over different items would say +1
        ):
            made = study({"J": {"A": judge}}, {"A": reference})
            assert leniency.leniency(made, of(made), made.items).value == value
        made = study({"J": {"A": [4, 4], "B": [1, 2]}}, {"A": [3, 3], "B": [3, 3]})
        split = leniency.leniencies(made, of(made))
        assert split.overall.value == split.by_dimension[PARTIAL].value == -0.25
        assert [one.value for one in split.by_candidate.values()] == [1, -1.5]

    def test_the_judge_among_the_candidates(self) -> None:
        for judge, candidate, same in (
            ("GPT-4o mini", "gpt4o_Mini", True),
            ("Video-LLaVA", "videollava", True),
            ("GPT-4o", "GPT-4o mini", False),
            ("Ｑwen2", "qwen2", True),
            ("???", "!!", False),
            ("通义", "通义", True),
        ):
            own = leniency.own_candidates(judge, ["other", candidate])
            assert own == ((candidate,) if same else ())

    def test_self_preference_by_hand(self) -> None:
        """Toward itself +1 and +2, toward the others 0 and -1: 1.5 - -0.5."""
        made = study(
            {"GPT-4o": {"gpt4o": [4, 5], "B": [3, "absent"], "C": ["absent", 2]}},
            {"gpt4o": [3, 3], "B": [3, 3], "C": [3, 3]},
        )
        found = leniency.self_preference(made, "GPT-4o", of(made, "GPT-4o"), resamples=0)
        assert found is not None
        assert found.own == ("gpt4o",)
        assert (found.toward_itself.value, found.toward_others.value) == (1.5, -0.5)
        assert (found.difference.value, found.difference.n) == (2, 4)
        assert leniency.self_preference(made, "J", of(made, "GPT-4o")) is None
        made = study({"A": {"A": [4, 5]}, "J": {"B": [1, 1]}}, {"A": [3, 3], "B": [1, 1]})
        for judge, whose in (("A", "other candidates'"), ("B", "its own")):
            one = leniency.self_preference(made, judge, of(made, "A"))
            assert one is not None
            assert one.difference.value is None
            assert one.difference.reason.startswith(f"{whose} answers: no item was rated")


class TestAccuracies:
    def test_by_hand(self) -> None:
        """Ranks 1 2 3 4 and 1 3 2 4: 1 - 6 * 2 / 60; with 2 4 1 3: 1 - 6 * 10 / 60."""
        for accuracies in ((10, 20, 30, 40), (0.0, 0.2, 0.3, 1.0)):
            found = against_kappa(KAPPAS, dict(zip("abcd", accuracies, strict=True)))
            assert (found["rho"], found["reason"]) == (pytest.approx(0.8), "")
            assert found["pairs"]["b"] == {"accuracy": accuracies[1], "kappa": 0.3}
        kappas_of = {"a": 0.2, "b": 0.4, "c": 0.1, "d": 0.3}
        found = against_kappa(kappas_of, {"a": 0, "b": 20, "c": 30, "d": 40})
        assert (found["rho"], found["reason"]) == (0, "")
        found = against_kappa(
            {**KAPPAS, "GPT-4o": None, "x": 0.5},
            {"A": 10, "b.": 20, "c": 30, "d": 40, "gpt4o": 75, "nobody": 1.5},
        )
        assert found["rho"] == pytest.approx(0.8)
        left = [found[name] for name in ("without_accuracy", "without_kappa", "unknown")]
        assert left == [["x"], ["GPT-4o"], ["nobody"]]

    def test_undefined_or_refused(self) -> None:
        zero: Any = dict.fromkeys("abc", 0.0)
        for own, accuracies, reason in (
            (KAPPAS, {}, "0 judges have both numbers"),
            (KAPPAS, {"a": 10, "b": 20}, "2 judges have both numbers"),
            (KAPPAS, {"a": 10, "b": 10, "c": 10}, "the same accuracy, or the same kappa"),
            (zero, {"a": 10, "b": 20, "c": 30}, "or the same kappa"),
        ):
            found = against_kappa(own, accuracies)
            assert found["rho"] is None
            assert reason in found["reason"]
        bad: list[tuple[dict[str, Any], str]] = [
            ({"a": 101}, "accuracy of a: 101 is no number from 0 to 100"),
            ({"a": -0.1}, "no number from 0 to 100"),
            ({"a": float("nan")}, "no number from 0 to 100"),
            ({"GPT-4o": 75, "GPT 4o": 70}, "accuracy of GPT 4o: there are two"),
            ({"a": 0.75, "b": 33}, "all as shares"),
        ]
        for accuracies, message in bad:
            with pytest.raises(DataError, match=message):
                against_kappa(KAPPAS, accuracies)

    def test_files(self, tmp_path: Path) -> None:
        file = tmp_path / "a.json"
        file.write_text('\ufeff{"GPT-4o": 70.8, "Video-LLaVA": 16}', encoding="utf-8")
        assert read_accuracies(file) == {"GPT-4o": 70.8, "Video-LLaVA": 16.0}
        for text, told in (
            ("[1, 2]", "expected judges with their accuracy, like"),
            ("{}", "expected judges with their accuracy"),
            ("{", "not valid JSON"),
            ('{"J": "70"}', "J: expected a number, found '70'"),
            ('{"J": true}', "J: expected a number, found True"),
        ):
            file.write_text(text)
            with pytest.raises(DataError, match=rf"a\.json.*{told}"):
                read_accuracies(file)
