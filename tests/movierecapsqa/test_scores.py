"""MovieRecapsQA's numbers on items whose values can be checked by eye."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_tasks import provenance, settings
from lmms_eval_tasks.movierecapsqa import baseline_scores, scores, text_scores
from lmms_eval_tasks.movierecapsqa.labels import DIMENSIONS, SPLITS
from lmms_eval_tasks.movierecapsqa.uncertainty import details
from tests.movierecapsqa.items import answer, answers, own
from tests.utils import tiny_bert

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


# --- baselines ----------------------------------------------------------------------------------


class TestTextMetrics:
    """ROUGE-L, BERTScore and BARTScore: mean and variance over items with a reference."""

    @pytest.fixture(autouse=True)
    def nothing_kept(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
        from huggingface_hub import constants

        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setattr(provenance, "_notes", {})
        text_scores._bertscore.cache_clear()
        text_scores._bartscore.cache_clear()
        yield
        text_scores._bertscore.cache_clear()
        text_scores._bartscore.cache_clear()

    def test_rouge_l(self) -> None:
        items = [answer(f"v.1/{n}", rouge_l=value) for n, value in enumerate((0.25, 0.75, None))]
        assert SCORES["rouge_l"](items) == 0.5
        assert SCORES["rouge_l_var"](items) == 0.0625
        assert SCORES["rouge_l"](items[2:]) is None
        assert SCORES["rouge_l_var"](items[2:]) is None

    @pytest.mark.parametrize("mark", "mx")
    def test_without_a_text_of_the_models_there_is_no_zero(
        self, mark: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen: list[str] = []

        def one(candidates: list[str], references: list[str], model: Any) -> Any:
            seen.extend(candidates)
            return text_scores.TextScores((0.5,) * len(candidates), "note", computed=True)

        monkeypatch.setattr(text_scores, "bertscore", one)
        monkeypatch.setattr(text_scores, "bartscore", one)
        items = [answer("v.1/0", "e", candidate="", rouge_l=0.0), answer("v.1/1")]
        items.append(answer("v.1/2", mark, candidate="", rouge_l=0.0))
        assert SCORES["rouge_l"](items) == 0.25  # the empty one counts, the failed one does not
        for name in ("bertscore", "bertscore_var", "bartscore", "bartscore_var"):
            SCORES[name](items)
        assert seen == ["", "a man"] * 4

    def test_a_tiny_encoder_and_a_tiny_seq2seq_model(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As the metrics give them one by one: weights are random, the rules are not."""
        bert = str(tiny_bert.build(tmp_path / "bert"))
        bart = str(tiny_bert.build(tmp_path / "bart", architecture="bart"))
        monkeypatch.setenv(settings.BERTSCORE, bert)
        monkeypatch.setenv(settings.BARTSCORE, bart)
        texts = [("un gatto", "il gatto dorme"), ("", "il gatto"), ("barca", ""), ("re", "un re")]
        items = [
            answer(f"v.1/{n}", candidate=one, reference=other)
            for n, (one, other) in enumerate(texts)
        ]
        given = [one for one, _ in texts], [other for _, other in texts]
        for name, found in (
            ("bertscore", text_scores.bertscore(*given, model=bert)),
            ("bartscore", text_scores.bartscore(*given, model=bart)),
        ):
            values = [value for value in found.values if value is not None]
            assert len(values) == 3
            assert values[1] == 0  # the empty answer
            for order in (items, items[::-1]):
                mean, variance = SCORES[name](order), SCORES[f"{name}_var"](order)
                assert mean == math.fsum(values) / 3
                # BARTScore's values are tiny here: random weights find every text unlikely.
                assert variance == pytest.approx(statistics.pvariance(values), rel=1e-9, abs=0)
            (note,) = baseline_scores.notes_of(["movierecapsqa_segment"])[name].values()
            assert note == found.note

    def test_without_models_there_is_no_number_and_a_reason(self) -> None:
        for name in ("bertscore", "bertscore_var", "bartscore", "bartscore_var"):
            assert SCORES[name](answers("55")) is None
        told = baseline_scores.notes_of(["movierecapsqa_segment", "movierecapsqa_movie"])
        assert "roberta-large" in told["bertscore"]["movierecapsqa_segment"]
        assert "--bartscore" in told["bartscore"]["movierecapsqa_segment"]
        assert all(list(notes) == ["movierecapsqa_segment"] for notes in told.values())

    def test_each_task_has_its_own_note(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The last task's model and number must not stand for all of them, nor MAIA's for ours."""

        def one(candidates: list[str], references: list[str], model: Any) -> Any:
            note = f"{len(candidates)} texts"
            return text_scores.TextScores((0.5,) * len(candidates), note, computed=True)

        monkeypatch.setattr(text_scores, "bertscore", one)
        SCORES["bertscore"](answers("55"))
        SCORES["bertscore"](answers("555", source="movie", condition="frames"))
        provenance.note("bertscore", "MAIA's")
        assert baseline_scores.notes_of(
            ["movierecapsqa_segment", "movierecapsqa_movie_frames"]
        ) == {
            "bertscore": {
                "movierecapsqa_segment": "2 texts",
                "movierecapsqa_movie_frames": "3 texts",
            }
        }
        assert baseline_scores.notes_of(["movierecapsqa_recap"]) == {}


def geval(score: float | None, mode: str | None = "logprobs", status: str = "ok") -> dict[str, Any]:
    return {"geval": {"score": score, "status": status, "mode": mode}}


def helmet(fluency: int | None, correctness: int | None, status: str = "ok") -> dict[str, Any]:
    given = {"fluency": fluency, "correctness": correctness}
    return {f"helmet_{name}": {"score": s, "status": status} for name, s in given.items()}


def rated(*made: dict[str, Any]) -> list[dict[str, Any]]:
    return [answer(f"v.1/{n}", baselines=one) for n, one in enumerate(made)]


class TestJudgedBaselines:
    """G-Eval and HELMET, where the user asked for them."""

    def test_not_asked_for(self) -> None:
        for items in (rated({}, {}), answers("e5x")):
            for name in baseline_scores.JUDGED:
                assert SCORES[name](items) is None
                assert SCORES[f"{name}_var"](items) is None
                assert SCORES[f"{name}_failed"](items) == 0
                assert SCORES[f"{name}_coverage"](items) is None

    def test_helmet_by_hand(self) -> None:
        items = rated(helmet(1, 3), helmet(0, 1), helmet(0, 0, "empty"))
        items += rated(helmet(None, None, "judge_truncated"))
        assert SCORES["helmet_fluency"](items) == 1 / 3
        assert SCORES["helmet_fluency_var"](items) == pytest.approx(2 / 9)
        assert SCORES["helmet_correctness"](items) == 4 / 3
        assert SCORES["helmet_correctness_failed"](items) == 1
        assert SCORES["helmet_correctness_coverage"](items) == 3 / 4
        assert SCORES["geval_logprobs"](items) is None
        assert SCORES["geval_samples_failed"](items) == 0

    def test_items_without_a_reference_are_none_of_theirs(self) -> None:
        items = rated(helmet(1, 3), helmet(None, None, "no_reference"))
        assert SCORES["helmet_fluency"](items) == 1
        assert SCORES["helmet_fluency_failed"](items) == 0
        assert SCORES["helmet_fluency_coverage"](items) == 1

    def test_an_item_whose_scoring_broke_counts_as_failed(self) -> None:
        items = [*rated(helmet(1, 2) | geval(0.5)), answer("x.1/0", "x")]
        for name in ("helmet_fluency", "helmet_correctness", "geval_logprobs"):
            assert SCORES[f"{name}_failed"](items) == 1
            assert SCORES[f"{name}_coverage"](items) == 1 / 2
        assert SCORES["helmet_correctness"](items) == 2
        assert SCORES["geval_samples_failed"](items) == 0

    @pytest.mark.parametrize(("mode", "other"), [("logprobs", "samples"), ("samples", "logprobs")])
    def test_one_mode_is_one_column(self, mode: str, other: str) -> None:
        made = [geval(0.25, mode), geval(0.75, mode), geval(0.0, None, "empty")]
        items = rated(*made, geval(None, None, "judge_refused"))
        assert SCORES[f"geval_{mode}"](items) == 1 / 3
        assert SCORES[f"geval_{mode}_var"](items) == pytest.approx(
            statistics.pvariance([0, 1, 3]) / 16
        )
        assert SCORES[f"geval_{mode}_failed"](items) == 1
        assert SCORES[f"geval_{other}"](items) is None
        assert SCORES[f"geval_{other}_failed"](items) == 0

    def test_both_modes_in_one_run_never_share_a_column(self) -> None:
        items = rated(geval(0.25), geval(1.0, "samples"), geval(0.75), geval(0.5, "samples"))
        assert SCORES["geval_logprobs"](items) == 0.5
        assert SCORES["geval_samples"](items) == 0.75
        for name in ("geval_logprobs", "geval_samples"):
            assert SCORES[f"{name}_coverage"](items) == 0.5
            assert SCORES[f"{name}_failed"](items) == 2

    def test_waiting_for_the_judge(self) -> None:
        items = rated(helmet(None, None, "unjudged") | geval(None, None, "unjudged"))
        assert SCORES["helmet_fluency"](items) is None
        assert SCORES["helmet_fluency_failed"](items) == 1
        assert SCORES["geval_samples"](items) is None

    @pytest.mark.parametrize("name", baseline_scores.JUDGED)
    def test_forms(self, name: str) -> None:
        assert {f"{name}{form}" for form in ("", "_var", "_failed", "_coverage")} <= SCORES.keys()


# --- all of them --------------------------------------------------------------------------------

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
