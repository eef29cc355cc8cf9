"""MovieRecapsQA's numbers, on items whose values can be checked by eye.

Models of text metrics are tiny elsewhere (tests/golden): here are rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.benchmark import LoadedData
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges.geval import MODES
from lmms_eval_tasks.movierecapsqa import metrics
from lmms_eval_tasks.movierecapsqa.baselines import HELMET_NAMES
from lmms_eval_tasks.movierecapsqa.judge import DIMENSIONS
from lmms_eval_tasks.movierecapsqa.release import SPLITS
from lmms_eval_tasks.movierecapsqa.settings import BARTSCORE
from lmms_eval_tasks.movierecapsqa.tasks import BENCHMARK
from lmms_eval_tasks.report import aggregation, provenance
from lmms_eval_tasks.utils.metrics import local_models

METRICS = {metric.name: metric for metric in metrics.METRICS}
TASK = BENCHMARK.tasks["movierecapsqa_segment"]
STATUS = {
    **{"e": "empty", "f": "refused", "t": "truncated", "n": "no_claims"},  # the candidate's
    **{"m": "model_error", "x": "error", "j": "judge_api_error", "s": "unjudged"},
}


def answer(name: str, mark: str | Mapping[str, str] = "5", **more: Any) -> dict[str, Any]:
    """One answer from its marks, the same in all dimensions or one each: a score or a STATUS."""
    marks = mark if isinstance(mark, Mapping) else dict.fromkeys(DIMENSIONS, mark)
    dimensions = {
        dimension: {
            "score": int(one) if one.isdigit() else 0 if one in "eftnm" else None,
            "status": STATUS.get(one, "ok"),
        }
        for dimension, one in marks.items()
    }
    return {
        **{"id": name, "video": name.partition(".")[0], "source": "segment", "condition": ""},
        **dict.fromkeys(SPLITS, "unlabelled"),
        "status": next((STATUS[one] for one in marks.values() if one in STATUS), "ok"),
        "dimensions": {} if mark == "x" else dimensions,
        "baselines": {},
        **{"candidate": "a man", "reference": "the man", "rouge_l": 0.5},
        **more,
    }


def answers(marks: str, **more: Any) -> list[dict[str, Any]]:
    return [answer(f"v{n}.1/{n}", mark, **more) for n, mark in enumerate(marks)]


def numbers(items: list[dict[str, Any]]) -> dict[str, Any]:
    """Every number of the items that no model computes."""
    plain = [metric for metric in metrics.METRICS if not metric.name.startswith(("bert", "bart"))]
    return aggregation.numbers(replace(TASK, metrics=plain), items)


# --- ratings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("marks", "expected"),
    [  # mean, with empty answers at 0, variance, failed, coverage
        ("5310t", (9 / 5, 9 / 5, 94 / 25, 0, 1)),
        *((f"4{mark}", (2, 2, 4, 0, 1)) for mark in "fn"),  # the candidate's own failures are 0
        *((f"4{mark}2", (3, 3, 1, 1, 2 / 3)) for mark in "jmx"),  # others are left out, and counted
        ("4e2ej", (3, 1.5, 1, 3, 2 / 5)),
        ("nne", (None, 0, None, 3, 0)),  # no claim in any answer is the judge's failure
        ("sses", (None, None, None, 4, 0)),  # a run that waits for its judge has no number
    ],
)
def test_ratings_by_hand(marks: str, expected: tuple[Any, ...]) -> None:
    found = numbers(answers(marks))
    parts = ("valid", "valid_empty_wrong", "var", "failed", "coverage")
    for name in DIMENSIONS:
        assert tuple(found[f"{name}_{part}"] for part in parts) == pytest.approx(expected)
        assert found[f"{name}_valid_modality_unlabelled"] == found[f"{name}_valid"]
    assert (found["empty"], found["no_claims"]) == (marks.count("e"), marks.count("n") % 2)


def test_dimensions_fail_apart_and_refusals_are_told() -> None:
    marks = {"factuality": "j", "relevance": "5", "coherence": "1"}
    found = numbers([answer("v.1/0", marks), answer("v.1/1", "3")])
    assert [found[f"{name}_valid"] for name in DIMENSIONS] == [3, 4, 2]
    assert [found[f"{name}_failed"] for name in DIMENSIONS] == [1, 0, 0]
    found = numbers([answer("v.1/0", "5", refused=True), *answers("3e")])
    assert (found["refusals"], found["factuality_valid"]) == (1, 4)
    assert found["factuality_valid_refusals_wrong"] == 1.5
    assert numbers([answer("v.1/0", "n", refused=True)])["factuality_valid"] == 0
    found = numbers([answer("v.1/0", rouge_l=0.5), answer("v.1/1", "e", rouge_l=0.0)])
    assert [found[f"rouge_l{form}"] for form in ("", "_var", "_empty_wrong")] == [0.5, 0, 0.25]


# --- text metrics -------------------------------------------------------------------------------


@pytest.fixture
def nothing_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No result of another test, and no model of the developer's cache."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    local_models.loaded.cache_clear()
    yield
    local_models.loaded.cache_clear()


@pytest.mark.usefixtures("nothing_kept")
def test_without_models_there_is_no_number_and_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bertscore", "bertscore_var", "bartscore", "bartscore_var"):
        assert METRICS[name].compute(answers("55")) is None
    no_encoder = "encoder 'roberta-large' is neither a folder nor in the local Hugging Face cache"
    unnamed = "no model was named with --bartscore"
    assert provenance.implementation_notes("movierecapsqa") == {
        "bertscore": f"BERTScore not computed: {no_encoder}",
        "bartscore": f"BARTScore not computed: {unnamed}",
    }
    monkeypatch.setenv(BARTSCORE, "/no/such/folder")
    with pytest.raises(TasksError, match=f"^{BARTSCORE}=/no/such/folder: .*is neither a folder"):
        BENCHMARK.check([], LoadedData(None, ""))


# --- judged baselines ---------------------------------------------------------------------------


def geval(score: float | None, mode: str | None = "logprobs", status: str = "ok") -> dict[str, Any]:
    return {"geval": {"score": score, "status": status, "mode": mode}}


def helmet(fluency: int | None, correctness: int | None, status: str = "ok") -> dict[str, Any]:
    given = {"fluency": fluency, "correctness": correctness}
    return {f"helmet_{name}": {"score": s, "status": status} for name, s in given.items()}


def rated(*made: dict[str, Any]) -> list[dict[str, Any]]:
    return [answer(f"v.1/{n}", baselines=one) for n, one in enumerate(made)]


def four(items: list[dict[str, Any]], name: str) -> list[Any]:
    found = numbers(items)
    return [found[f"{name}{form}"] for form in ("", "_var", "_failed", "_coverage")]


def test_who_is_counted_by_a_baseline() -> None:
    for items in (rated({}, {}), answers("e5x")):  # not asked for
        for name in (*MODES, *HELMET_NAMES):
            assert four(items, name) == [None, None, 0, None]
    items = rated(helmet(1, 3), helmet(0, 1), helmet(0, 0, "truncated"))
    items += rated(helmet(None, None, "judge_truncated"))
    assert four(items, "helmet_fluency") == [1 / 3, pytest.approx(2 / 9), 1, 3 / 4]
    # Items without a reference are none of theirs; one whose scoring broke counts as failed.
    items = rated(helmet(1, 3), helmet(None, None, "no_reference"))
    assert four([*items, answer("x.1/0", "x")], "helmet_fluency") == [1, 0, 1, 1 / 2]


def test_the_modes_of_g_eval_never_share_a_column() -> None:
    items = rated(geval(0.25), geval(1.0, "samples"), geval(0.75), geval(0.5, "samples"))
    items += rated(geval(0.0, None, "truncated"), geval(None, None, "judge_refused"))
    assert four(items, "geval_logprobs") == [1 / 3, pytest.approx(0.875 / 9), 3, 3 / 6]
    assert four(items, "geval_samples")[0::2] == [0.5, 3]
    items = rated(geval(0.25), geval(None, None, "judge_refused"))
    assert four(items, "geval_samples") == [None, None, 0, None]
