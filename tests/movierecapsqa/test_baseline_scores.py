"""Table 4's baselines as numbers, on items whose values can be checked by eye."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.movierecapsqa import baseline_scores, scores, text_scores
from lmms_eval_tasks.utils import provenance
from lmms_eval_tasks.utils import text_scores as shared
from tests.movierecapsqa.items import answer, answers, geval, helmet
from tests.utils import tiny_bert

SCORES = scores.SCORES


class TestTextMetrics:
    """ROUGE-L, BERTScore and BARTScore: mean and variance over items with a reference."""

    @pytest.fixture(autouse=True)
    def nothing_kept(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
        from huggingface_hub import constants

        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setattr(provenance, "_notes", {})
        shared.bertscore.cache_clear()
        text_scores._bartscore.cache_clear()
        yield
        shared.bertscore.cache_clear()
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
            return shared.TextScores((0.5,) * len(candidates), "note", computed=True)

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
            return shared.TextScores((0.5,) * len(candidates), note, computed=True)

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
