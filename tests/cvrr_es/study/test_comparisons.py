"""Two raters' kappas on the same answers, judges among each other, offsets, pairs, leniency."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.cvrr_es.study import comparisons, leniency
from lmms_eval_tasks.cvrr_es.study.leniency import against_kappa, read_accuracies
from lmms_eval_tasks.cvrr_es.study.study import Folds, Study
from lmms_eval_tasks.errors import DataError
from tests.checks import refused
from tests.cvrr_es.study.study_rows import KAPPA_A, PARTIAL, judged, of, referred, study

KAPPAS = {"a": 0.1, "b": 0.3, "c": 0.2, "d": 0.4}
JUDGE = {"A": [5, 3, 4], "B": [4, 3, None], "C": [1, 5, 4.5]}
TRUTH = {"A": [5, 3, 4], "B": [5, 1, 1], "C": [2, 3, 4]}


class TestDifferences:
    def test_only_shared_answers_count(self) -> None:
        made = Study.of(judged(), referred())
        one, other = of(made, "J"), of(made, "K")
        part = {item: rating for item, rating in one.items() if item.candidate == "A"}
        for pair, value in (((part, other), KAPPA_A), ((other, part), -KAPPA_A)):
            found = comparisons.difference(made, *pair, resamples=0)
            assert (found["value"], found["n"]) == (pytest.approx(value), 4)
        assert len(comparisons.shared(made, part, other).items) == 4
        # The same ratings differ by exactly 0 in every resample: the interval is paired.
        same = comparisons.difference(made, one, dict(one))
        assert same["value"] == same["interval"]["low"] == same["interval"]["high"] == 0
        assert comparisons.difference(made, {}, other)["reason"] == "no item both rated"
        made = Study.of(judged(), [])
        nothing = comparisons.difference(made, of(made, "J"), of(made, "K"))
        assert nothing["reason"] == "no item has a reference rating: there is none yet"
        bare = [[replace(one, video="") for one in own] for own in (judged(), referred())]
        made = Study.of(*bare)
        unknown = comparisons.difference(made, *made.raters.values())
        assert unknown["no_interval"] == "the video of 8 of 8 items is not known"


class TestEachOther:
    def test_pairwise_by_hand(self) -> None:
        """J 1, 3, 4 and L 4, 2, 1: 1 - 3 * 19 / (3 * 47 - 2 * 8 * 7)."""
        given = {"J": {"A": [1, 2, 3, 4]}, "K": {"A": [2, 3, 4, 5]}, "L": {"A": [4, None, 2, 1]}}
        for reference in ({"A": [3]}, {}):  # none is no reason not to compare judges
            made = study(given, reference)
            found = comparisons.pairwise(made, {judge: of(made, judge) for judge in "JKL"})
            assert list(found) == [("J", "K"), ("J", "L"), ("K", "L")]
            assert found["J", "K"]["kappa"] == 5 / 7
            assert found["J", "L"]["kappa"] == pytest.approx(1 - 57 / 29)
            assert (found["J", "L"]["n"], found["J", "L"]["missing"]) == (3, 1)

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
            found, told = comparisons.take_off(made, of(made), self.HALVES)
            assert list(found.values()) == ratings
            expected = {"offsets": [*taken], "clipped": clipped, "not_fitted": not_fitted}
            assert told == expected


class TestPreferences:
    def test_win_rates_by_hand(self) -> None:
        made = study({"J": JUDGE}, TRUTH)
        found = comparisons.win_rates(made, of(made))
        counts = ("wins", "ties", "losses")
        against = {
            f"{one}{other}": tuple(duel[name] for name in counts)
            for one, own in found["against"].items()
            for other, duel in own.items()
        }
        assert against == {
            **{"AB": (1, 1, 0), "BA": (0, 1, 1), "AC": (1, 0, 2)},
            **{"CA": (2, 0, 1), "BC": (1, 0, 1), "CB": (1, 0, 1)},
        }
        duel = found["against"]["A"]["B"]
        assert (duel["win_rate"], duel["score"]) == (0.5, 0.75)
        assert found["score"] == {"A": 2.5 / 5, "B": 1.5 / 4, "C": 3 / 5}
        nobody = comparisons.win_rates(made, {})
        assert nobody["against"]["A"]["B"]["win_rate"] is None is nobody["score"]["A"]

    def test_agreement_by_hand(self) -> None:
        """First question: tied by the reference, same, same. Second: tied by the judge, by the
        reference, same. Third: tied by the reference, and B has no rating."""
        few = {"A": [5, 2, 4], "B": [4, 2, 5]}
        # The numbers of same, opposite, both, judge and reference tied; two shares.
        cases: list[tuple[Any, Any, tuple[int, ...], float | None, float | None]] = [
            (JUDGE, TRUTH, (3, 0, 0, 1, 3), 3 / 7, 1),
            (few, {"A": [1, 3, 2], "B": [2, 3, 3]}, (1, 1, 1, 0, 0), 2 / 3, 0.5),
            # A constant judge prefers nothing.
            ({"A": [4, 4], "B": [4, 4]}, {"A": [5, 3], "B": [1, 3]}, (0, 0, 1, 1, 0), 0.5, None),
            ({"A": [4, 2]}, {"A": [3, 2]}, (0, 0, 0, 0, 0), None, None),
        ]
        for judge, truth, numbers, same, decided in cases:
            made = study({"J": judge}, truth)
            found = comparisons.agreement(made, of(made))
            kinds = ("same", "opposite", "both_tied", "judge_tied", "reference_tied")
            assert tuple(found[kind] for kind in kinds) == numbers
            assert (found["n"], found["agreement"], found["decided"]) == (
                *(sum(numbers), same, decided),
            )


class TestLeniency:
    def test_by_hand(self) -> None:
        """Differences 2, 0 on a video, 2 on another, 3: se^2 = 1.5 * (36 + 1 + 25) / 16 / 16."""
        made = study({"J": {"A": [4, 5, 3, None, 4]}}, {"A": [2, 5, 1, 1, 1]})
        found = leniency.leniency(made, of(made), made.items)
        assert (found["value"], found["n"], found["reason"]) == (7 / 4, 4, "")
        se = (1.5 * 62) ** 0.5 / 16
        assert found["interval"]["se"] == pytest.approx(se)
        assert found["interval"]["high"] - 7 / 4 == pytest.approx(4.3027 * se, abs=1e-3)  # t(2)
        for judge, reference, value in (
            ([4.5, 1], [4, 1], 0.25),
            ([1, 2], [3, 3], -1.5),
            ([3, 3, 5, 5], [3, 3, None, None], 0),  # means over different items would say +1
        ):
            made = study({"J": {"A": judge}}, {"A": reference})
            assert leniency.leniency(made, of(made), made.items)["value"] == value
        made = study({"J": {"A": [4, 4], "B": [1, 2]}}, {"A": [3, 3], "B": [3, 3]})
        split = leniency.leniencies(made, of(made))
        assert split["overall"]["value"] == split["by_dimension"][PARTIAL]["value"] == -0.25
        assert [one["value"] for one in split["by_candidate"].values()] == [1, -1.5]

    def test_the_judge_among_the_candidates(self) -> None:
        for judge, candidate, same in (
            ("GPT-4o mini", "gpt4o_Mini", True),
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
        assert found["candidates"] == ["gpt4o"]
        assert found["toward_itself"]["value"] == 1.5
        assert found["toward_others"]["value"] == -0.5
        assert (found["difference"]["value"], found["difference"]["n"]) == (2, 4)
        assert leniency.self_preference(made, "J", of(made, "GPT-4o")) is None
        made = study({"A": {"A": [4, 5]}, "J": {"B": [1, 1]}}, {"A": [3, 3], "B": [1, 1]})
        for judge, whose in (("A", "other candidates'"), ("B", "its own")):
            one = leniency.self_preference(made, judge, of(made, "A"))
            assert one is not None
            assert one["difference"]["value"] is None
            assert one["difference"]["reason"].startswith(f"{whose} answers: no item was rated")


class TestAccuracies:
    def test_by_hand(self) -> None:
        """Ranks 1 2 3 4 and 1 3 2 4: 1 - 6 * 2 / 60; with 2 4 1 3: 1 - 6 * 10 / 60."""
        for accuracies in ((10, 20, 30, 40), (0.0, 0.2, 0.3, 1.0)):
            found = against_kappa(KAPPAS, dict(zip("abcd", accuracies, strict=True)))
            assert (found["rho"], found["reason"]) == (pytest.approx(0.8), "")
            assert found["pairs"]["b"] == {"accuracy": accuracies[1], "kappa": 0.3}
        kappas_of = {"a": 0.2, "b": 0.4, "c": 0.1, "d": 0.3, "GPT-4o": None, "x": 0.5}
        accuracies_of = {"A": 0, "b.": 20, "c": 30, "d": 40, "gpt4o": 75, "nobody": 1.5}
        found = against_kappa(kappas_of, accuracies_of)
        assert (found["rho"], found["reason"]) == (0, "")
        left = [found[name] for name in ("without_accuracy", "without_kappa", "unknown")]
        assert left == [["x"], ["GPT-4o"], ["nobody"]]

    def test_undefined_or_refused(self) -> None:
        for accuracies, reason in (
            ({"a": 10, "b": 20}, "2 judges have both numbers"),
            ({"a": 10, "b": 10, "c": 10}, "the same accuracy, or the same kappa"),
        ):
            found = against_kappa(KAPPAS, accuracies)
            assert found["rho"] is None
            assert reason in found["reason"]
        bad: list[tuple[dict[str, Any], str]] = [
            ({"a": 101}, "accuracy of a: 101 is no number from 0 to 100"),
            ({"a": float("nan")}, "no number from 0 to 100"),
            ({"GPT-4o": 75, "GPT 4o": 70}, "accuracy of GPT 4o: there are two"),
            ({"a": 0.75, "b": 33}, "all as shares"),
        ]
        for accuracies, message in bad:
            refused(DataError, message, against_kappa, KAPPAS, accuracies)

    def test_files(self, tmp_path: Path) -> None:
        file = tmp_path / "a.json"
        file.write_text('\ufeff{"GPT-4o": 70.8, "Video-LLaVA": 16}', encoding="utf-8")
        assert read_accuracies(file) == {"GPT-4o": 70.8, "Video-LLaVA": 16.0}
        for text, told in (
            ("[1, 2]", "expected judges with their accuracy, like"),
            ('{"J": true}', "J: expected a number, found True"),
        ):
            file.write_text(text)
            refused(DataError, rf"a\.json.*{told}", read_accuracies, file)
