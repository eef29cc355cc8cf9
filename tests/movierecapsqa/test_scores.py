"""MovieRecapsQA's numbers on items whose values can be checked by eye."""

from __future__ import annotations

import random
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_tasks.movierecapsqa import baseline_scores, scores
from lmms_eval_tasks.movierecapsqa.labels import DIMENSIONS, SPLITS
from lmms_eval_tasks.movierecapsqa.uncertainty import details
from tests.movierecapsqa.items import answer, answers, geval, helmet, own

SCORES = scores.SCORES


class TestRatings:
    """Factuality, relevance and coherence."""

    def test_by_hand(self) -> None:
        """5 3 1 0 and an empty one: 9/5; squares 25 9 1: 35/5 - 81/25 = 94/25."""
        items = answers("5310ej")
        for name in DIMENSIONS:
            assert SCORES[f"{name}_valid"](items) == 9 / 5
            assert SCORES[f"{name}_var"](items) == pytest.approx(94 / 25)
            assert SCORES[f"{name}_failed"](items) == 1
            assert SCORES[f"{name}_coverage"](items) == 5 / 6

    @pytest.mark.parametrize("mark", "eftn")
    def test_the_candidates_own_failures_are_zero(self, mark: str) -> None:
        items = answers(f"4{mark}")
        assert SCORES["relevance_valid"](items) == 2
        assert SCORES["relevance_var"](items) == 4
        assert SCORES["relevance_failed"](items) == 0
        assert SCORES["relevance_low"](items) == 0
        assert SCORES["relevance_high"](items) == 2.5

    @pytest.mark.parametrize("mark", "jpmx")
    def test_other_failures_are_left_out_and_counted(self, mark: str) -> None:
        items = answers(f"4{mark}2")
        assert SCORES["factuality_valid"](items) == 3
        assert SCORES["factuality_var"](items) == 1
        assert SCORES["factuality_failed"](items) == 1
        assert SCORES["factuality_coverage"](items) == 2 / 3

    def test_dimensions_fail_apart(self) -> None:
        marks = {"factuality": "j", "relevance": "5", "coherence": "1"}
        items = [answer("v.1/0", marks), answer("v.1/1", "3")]
        found = {name: SCORES[f"{name}_valid"](items) for name in DIMENSIONS}
        assert found == {"factuality": 3, "relevance": 4, "coherence": 2}
        assert [SCORES[f"{name}_failed"](items) for name in DIMENSIONS] == [1, 0, 0]
        assert SCORES["claims_mean"](items) == 2  # the claims of both are known

    def test_a_run_that_waits_for_its_judge_has_no_number(self) -> None:
        items = answers("sses")
        for name in DIMENSIONS:
            for form in ("valid", "var", "low", "high", "valid_modality_unlabelled"):
                assert own(f"{name}_{form}", items) is None, form
            assert SCORES[f"{name}_coverage"](items) == 0
            assert SCORES[f"{name}_failed"](items) == 4
            assert SCORES[f"{name}_inconsistent"](items) == 0
        assert SCORES["claims_mean"](items) is None
        assert SCORES["rouge_l"](items) == 0.5

    def test_bounds_beside_the_scores(self) -> None:
        """All supported allows 5 alone, a contradiction at most 2, nothing supported 0."""
        labels = [["supported"], ["supported", "contradictory"], ["unsupported"]]
        given = zip("432", labels, strict=True)
        items = [
            answer(f"v.1/{n}", mark, labels={"factuality": own_labels})
            for n, (mark, own_labels) in enumerate(given)
        ]
        assert SCORES["factuality_inconsistent"](items) == 3
        assert SCORES["factuality_low"](items) == 5 / 3
        assert SCORES["factuality_high"](items) == 7 / 3
        assert SCORES["factuality_valid"](items) == 3
        assert SCORES["coherence_inconsistent"](items) == 0
        # Neither failures nor empty answers are scores that break a rule.
        assert SCORES["factuality_inconsistent"]([*items, *answers("ejx")]) == 3
        assert SCORES["factuality_low"]([*items, answer("v.1/9", "e")]) == 5 / 4
        assert SCORES["factuality_low"]([*items, answer("v.1/9", "j")]) == 5 / 3

    def test_claims(self) -> None:
        items = [answer("a.1/0", n_claims=4), answer("a.1/1", n_claims=1), *answers("nejs")]
        assert SCORES["claims_mean"](items) == 2.5
        assert SCORES["no_claims"](items) == 1


class TestLabels:
    """Table 5's columns, on a synthetic set."""

    ITEMS: ClassVar = [
        answer("a.1/0", "5", modality="vision", category="sta"),
        answer("a.1/1", "1", modality="vision", category="npa"),
        answer("a.1/2", "4", modality="multimodal", category="npa"),
        answer("a.1/3", "e", modality="dialogue", category="th"),
        answer("b.1/0", "j", modality="dialogue", category="crd"),
        answer("b.1/1", "2"),
        answer("b.1/2", "3", category="temp"),
    ]

    def test_each_takes_its_own(self) -> None:
        expected = {
            "modality": {"dialogue": 0, "vision": 3, "multimodal": 4, "unlabelled": 2.5},
            "category": {"crd": None, "npa": 2.5, "sta": 5, "temp": 3, "th": 0, "unlabelled": 2},
        }
        for name in DIMENSIONS:
            for split, slugs in SPLITS.items():
                found = {slug: own(f"{name}_valid_{split}_{slug}", self.ITEMS) for slug in slugs}
                assert found == expected[split]

    def test_every_item_has_one_label_of_each_split(self) -> None:
        for item in self.ITEMS:
            for name in DIMENSIONS:
                for split, slugs in SPLITS.items():
                    metrics = [f"{name}_valid_{split}_{slug}" for slug in slugs]
                    taken = [metric for metric in metrics if scores.of_item(metric, item)]
                    assert taken == [f"{name}_valid_{split}_{item[split]}"]

    def test_all_other_metrics_take_every_item(self) -> None:
        every = {name for name in SCORES if scores.of_item(name, answer("a.1/0"))}
        assert len(SCORES) - len(every) == 3 * (3 + 5)


MARKS = st.sampled_from("012345eftnmxjps")


@given(
    st.lists(st.tuples(MARKS, MARKS, MARKS, st.floats(0, 1)), min_size=1, max_size=7),
    st.randoms(use_true_random=False),
)
def test_no_number_depends_on_the_order(
    drawn: list[tuple[str, str, str, float]], shuffled: random.Random
) -> None:
    items = [
        answer(
            f"v{n % 2}.1/{n}",
            dict(zip(DIMENSIONS, marks, strict=True)),
            rouge_l=share,
            baselines=geval(share, ("logprobs", "samples")[n % 2]) | helmet(n % 2, n % 4),
            n_claims=n,
        )
        for n, (*marks, share) in enumerate(drawn)
    ]
    other = items[:]
    shuffled.shuffle(other)
    for name, metric in SCORES.items():
        if name not in baseline_scores.TEXT_METRICS:
            assert metric(items) == metric(other), name
    assert details(items) == details(other)


def test_details_by_hand() -> None:
    items = [answer("a.1/0", "5"), answer("a.1/1", "3"), answer("b.1/0", "1"), answer("b.1/1", "j")]
    found = details(items)
    assert found["items"] == 4
    assert found["status"] == {"judge_api_error": 1, "ok": 3}
    assert found["ratings"]["coherence"] == {"judge_api_error": 1, "ok": 3}
    interval = found["intervals"]["relevance_valid"]
    assert (interval["estimate"], interval["n"], interval["clusters"]) == (3, 3, 2)
    assert details(answers("ss"))["intervals"] == {}
    assert details(answers("x"))["ratings"]["factuality"] == {"error": 1}


def test_metric_list() -> None:
    better = {one["metric"]: one["higher_is_better"] for one in scores.METRICS}
    assert list(better) == list(SCORES)
    assert better["factuality_valid"] is better["coherence_coverage"] is True
    assert (
        better["rouge_l"]
        is better["geval_samples"]
        is better["relevance_valid_category_th"]
        is True
    )
    low = {name for name, higher in better.items() if higher is False}
    assert low == {
        "no_claims",
        *(f"{name}_{form}" for name in DIMENSIONS for form in ("failed", "inconsistent")),
        *(f"{name}_failed" for name in baseline_scores.JUDGED),
    }
    neither = {name for name, higher in better.items() if higher is None}
    assert neither == {
        "claims_mean",
        *(f"{name}_{form}" for name in DIMENSIONS for form in ("var", "low", "high")),
        *(f"{name}_var" for name in (*baseline_scores.JUDGED, "rouge_l", "bertscore", "bartscore")),
    }
    assert scores.FIRST == "factuality_valid"


def test_nothing_raises(capsys: pytest.CaptureFixture[str]) -> None:
    for entry in scores.METRICS:
        entry["aggregation"]([])
        if entry["metric"] not in baseline_scores.RATED:  # not asked for
            assert entry["aggregation"]([{"id": "x"}]) is None, entry["metric"]
    told = capsys.readouterr().err
    for name in ("relevance_valid_modality_vision", "bertscore_var", "claims_mean"):
        assert f"{name} failed and is reported as N/A" in told
