"""MovieRecapsQA's numbers, on items whose values can be checked by eye.

Models of text metrics are tiny here and have random weights: rules, not quality.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges.geval import MODES
from lmms_eval_tasks.movierecapsqa import metrics, published
from lmms_eval_tasks.movierecapsqa.baselines import HELMET_NAMES
from lmms_eval_tasks.movierecapsqa.judge import DIMENSIONS
from lmms_eval_tasks.movierecapsqa.schema import SPLITS
from lmms_eval_tasks.runs import scoring
from lmms_eval_tasks.utils import provenance
from lmms_eval_tasks.utils.metrics import local_models
from tests.movierecapsqa.items import TASK, answer, answers, geval, helmet, numbers

METRICS = {metric.name: metric for metric in metrics.METRICS}


# --- ratings ------------------------------------------------------------------------------------


def test_ratings_by_hand() -> None:
    """5 3 1 0 and a cut-off one: 9/5; squares 25 9 1: 35/5 - 81/25 = 94/25."""
    found = numbers(answers("5310tj"))
    for name in DIMENSIONS:
        assert found[f"{name}_valid"] == 9 / 5
        assert found[f"{name}_var"] == pytest.approx(94 / 25)
        assert (found[f"{name}_failed"], found[f"{name}_coverage"]) == (1, 5 / 6)
    for mark in "ftn":  # the candidate's own failures are 0
        found = numbers(answers(f"4{mark}"))
        parts = ("valid", "var", "failed", "low", "high")
        assert [found[f"relevance_{part}"] for part in parts] == [2, 4, 0, 1.5, 1.5]
    for mark in "jpmx":  # all others are left out, and counted
        found = numbers(answers(f"4{mark}2"))
        parts = ("valid", "var", "failed", "coverage")
        assert [found[f"factuality_{part}"] for part in parts] == [3, 1, 1, 2 / 3]
    # Empty answers leave the means, and stand at 0 beside.
    found = numbers(answers("4e2ej"))
    parts = ("valid", "valid_empty_wrong", "var", "failed", "coverage", "low", "high")
    assert [found[f"relevance_{part}"] for part in parts] == [3, 1.5, 1, 3, 2 / 5, 3, 3]
    assert (found["empty"], numbers(answers("e"))["coherence_valid"]) == (2, None)
    texts = [answer("v.1/0", rouge_l=0.5), answer("v.1/1", "e", rouge_l=0.0)]
    found = numbers(texts)
    assert [found[f"rouge_l{form}"] for form in ("", "_var", "_empty_wrong")] == [0.5, 0, 0.25]
    # What looks like a refusal was judged, and is told beside.
    found = numbers([answer("v.1/0", "5", refused=True), *answers("3e")])
    assert (found["refusals"], found["factuality_valid"]) == (1, 4)
    assert found["factuality_valid_refusals_wrong"] == 1.5
    # Dimensions fail apart.
    marks = {"factuality": "j", "relevance": "5", "coherence": "1"}
    found = numbers([answer("v.1/0", marks), answer("v.1/1", "3")])
    assert [found[f"{name}_valid"] for name in DIMENSIONS] == [3, 4, 2]
    assert [found[f"{name}_failed"] for name in DIMENSIONS] == [1, 0, 0]
    items = [answer("a.1/0", n_claims=4), answer("a.1/1", n_claims=1), *answers("nejs")]
    found = numbers(items)
    assert (found["claims_mean"], found["no_claims"]) == (2.5, 1)
    # No claim in any answer is the judge's failure, unless they look like refusals.
    found = numbers(answers("nne"))
    assert (found["factuality_valid"], found["relevance_valid_empty_wrong"]) == (None, 0)
    assert (found["factuality_failed"], found["factuality_valid_modality_unlabelled"]) == (3, None)
    assert numbers([answer("v.1/0", "n", refused=True)])["factuality_valid"] == 0
    # A run that waits for its judge has no number.
    found = numbers(answers("sses"))
    for form in ("valid", "var", "low", "high", "valid_modality_unlabelled"):
        assert found[f"coherence_{form}"] is None, form
    assert (found["claims_mean"], found["coherence_failed"], found["rouge_l"]) == (None, 4, 0.5)


def test_bounds_beside_the_scores() -> None:
    """All supported allows 5 alone, a contradiction 2, nothing supported 0."""
    labels = [["supported"], ["supported", "contradictory"], ["unsupported"]]
    items = [
        answer(f"v.1/{n}", mark, labels={"factuality": own})
        for n, (mark, own) in enumerate(zip("432", labels, strict=True))
    ]
    found = numbers(items)
    parts = ("inconsistent", "low", "high", "valid")
    assert [found[f"factuality_{part}"] for part in parts] == [3, 7 / 3, 7 / 3, 3]
    assert found["coherence_inconsistent"] == 1  # 2, where a claim is redundant
    # Neither failures nor empty answers are scores that break a rule.
    assert numbers([*items, *answers("ejx")])["factuality_inconsistent"] == 3
    assert numbers([*items, answer("v.1/9", "n")])["factuality_low"] == 7 / 4
    assert numbers([*items, answer("v.1/9", "j")])["factuality_low"] == 7 / 3


def test_labels_of_table_5() -> None:
    items = [
        answer("a.1/0", "5", modality="vision", category="sta"),
        answer("a.1/1", "1", modality="vision", category="npa"),
        answer("a.1/2", "4", modality="multimodal", category="npa"),
        answer("a.1/3", "e", modality="dialogue", category="th"),
        answer("b.1/0", "j", modality="dialogue", category="crd"),
        answer("b.1/1", "2"),
        answer("b.1/2", "3", category="temp"),
    ]
    expected = {
        "modality": {"dialogue": None, "vision": 3, "multimodal": 4, "unlabelled": 2.5},
        "category": {"crd": None, "npa": 2.5, "sta": 5, "temp": 3, "th": None, "unlabelled": 2},
    }
    found = numbers(items)
    for name in DIMENSIONS:
        for split, slugs in SPLITS.items():
            own = {slug: found[f"{name}_valid_{split}_{slug}"] for slug in slugs}
            assert own == expected[split]
    # A label that no item has has no number.
    assert len(numbers(items)) - len(numbers(items[:1])) == 3 * (3 + 5)


def test_details_by_hand() -> None:
    items = [answer("a.1/0", "5"), answer("a.1/1", "3"), answer("b.1/0", "1"), answer("b.1/1", "j")]
    found = scoring.details(TASK, items)
    assert found["items"] == 4
    assert found["status"] == found["ratings"]["coherence"] == {"judge_api_error": 1, "ok": 3}
    interval = found["intervals"]["relevance_valid"]
    assert (interval["estimate"], interval["n"], interval["clusters"]) == (3, 3, 2)
    assert set(found["intervals"]) == {f"{name}_valid" for name in DIMENSIONS}
    assert scoring.details(TASK, answers("ss"))["intervals"] == {}
    assert scoring.details(TASK, answers("x"))["ratings"]["factuality"] == {"error": 1}


def test_published_means_come_out_of_published_scores(real: Path) -> None:
    """Nova: 24 of its 52 answers have scores, and 28 are empty."""
    data = published.read(real / "movierecapsqa")
    found = {}
    for model in data.models:
        own = [one for one in data.answers if one.by == model]
        found[model] = numbers([_released(number, one) for number, one in enumerate(own)])
    nova = found["Amazon Nova Lite"]
    assert (nova["empty"], nova["factuality_coverage"]) == (28, 24 / 52)
    assert nova["factuality_valid"] == pytest.approx(98 / 24)
    assert nova["factuality_valid_empty_wrong"] == pytest.approx(98 / 52)
    assert nova["relevance_valid"] == pytest.approx(94 / 24)
    claude = found["Claude 3.5 Sonnet"]
    assert (claude["empty"], claude["factuality_valid"]) == (8, 4.5)
    assert found["GPT-4o"]["factuality_valid"] == pytest.approx(218 / 49)


def _released(number: int, one: published.Released) -> dict[str, Any]:
    scores = {**one.scores, "coherence": None}
    without = "e" if not one.text.strip() else "j"
    marks = {name: without if scores[name] is None else str(scores[name]) for name in scores}
    return answer(f"v.{number}/0", marks)


# --- text metrics -------------------------------------------------------------------------------


@pytest.fixture
def nothing_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No result of another test, and no model of the developer's cache."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(provenance, "_notes", {})
    local_models.loaded.cache_clear()
    yield
    local_models.loaded.cache_clear()


@pytest.mark.usefixtures("nothing_kept")
def test_without_models_there_is_no_number_and_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bertscore", "bertscore_var", "bartscore", "bartscore_var"):
        assert METRICS[name].of(answers("55")) is None
    provenance.note("bertscore", "MAIA's")
    told = metrics.notes_of(["movierecapsqa_segment", "movierecapsqa_movie"])
    reasons = {name: notes["movierecapsqa_segment"] for name, notes in told.items()}
    assert reasons == {
        "bertscore": "BERTScore not computed: encoder 'roberta-large' is not in the local "
        "Hugging Face cache",
        "bartscore": "BARTScore not computed: no model was named with --bartscore "
        "(LMMS_EVAL_TASKS_BARTSCORE)",
    }
    # Each task has its own note: the last one's must not stand for all of them.
    assert all(list(notes) == ["movierecapsqa_segment"] for notes in told.values())
    monkeypatch.setenv(settings.BARTSCORE, "/no/such/folder")
    METRICS["bartscore"].of(answers("5", source="movie", condition="frames"))
    told = metrics.notes_of(["movierecapsqa_segment", "movierecapsqa_movie_frames"])
    assert "no model was named" in told["bartscore"]["movierecapsqa_segment"]
    assert "is no folder" in told["bartscore"]["movierecapsqa_movie_frames"]
    assert metrics.notes_of(["movierecapsqa_recap"]) == {}
    with pytest.raises(TasksError, match=f"^{settings.BARTSCORE}=/no/such/folder: .*is no folder"):
        metrics.check_bartscore()


# --- judged baselines ---------------------------------------------------------------------------


def rated(*made: dict[str, Any]) -> list[dict[str, Any]]:
    return [answer(f"v.1/{n}", baselines=one) for n, one in enumerate(made)]


def four(items: list[dict[str, Any]], name: str) -> list[Any]:
    found = numbers(items)
    return [found[f"{name}{form}"] for form in ("", "_var", "_failed", "_coverage")]


def test_helmet_by_hand() -> None:
    for items in (rated({}, {}), answers("e5x")):  # not asked for
        for name in (*MODES, *HELMET_NAMES):
            assert four(items, name) == [None, None, 0, None]
    waiting = rated(helmet(None, None, "unjudged"))
    assert four(waiting, "helmet_fluency") == [None, None, 1, 0]
    items = rated(helmet(1, 3), helmet(0, 1), helmet(0, 0, "empty"))
    items += rated(helmet(None, None, "judge_truncated"))
    assert four(items, "helmet_fluency") == [1 / 3, pytest.approx(2 / 9), 1, 3 / 4]
    assert numbers(items)["helmet_correctness"] == 4 / 3
    assert four(items, "geval_logprobs") == [None, None, 0, None]
    # Items without a reference are none of theirs; one whose scoring broke counts as failed.
    items = rated(helmet(1, 3), helmet(None, None, "no_reference"))
    assert four(items, "helmet_fluency") == [1, 0, 0, 1]
    items = [*rated(helmet(1, 2) | geval(0.5)), answer("x.1/0", "x")]
    for name in (*HELMET_NAMES, "geval_logprobs"):
        assert four(items, name)[2:] == [1, 1 / 2]
    assert four(items, "geval_samples")[2] == 0


def test_the_modes_of_g_eval_never_share_a_column() -> None:
    for mode, other in (("logprobs", "samples"), ("samples", "logprobs")):
        made = [geval(0.25, mode), geval(0.75, mode), geval(0.0, None, "empty")]
        items = rated(*made, geval(None, None, "judge_refused"))
        variance = pytest.approx(statistics.pvariance([0, 1, 3]) / 16)
        assert four(items, f"geval_{mode}") == [1 / 3, variance, 1, 3 / 4]
        assert four(items, f"geval_{other}") == [None, None, 0, None]
    items = rated(geval(0.25), geval(1.0, "samples"), geval(0.75), geval(0.5, "samples"))
    assert four(items, "geval_logprobs")[0::2] == [0.5, 2]
    assert four(items, "geval_samples")[0::2] == [0.75, 2]
