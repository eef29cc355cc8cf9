"""Text metrics per item; models here are tiny and have random weights: rules, not quality."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.movierecapsqa import text_scores
from lmms_eval_tasks.utils import bartscore, bertscore, text_metrics
from lmms_eval_tasks.utils import text_scores as shared
from tests.conftest import SHARED
from tests.utils import tiny_bert

CANDIDATES = ["Un uomo corre nel parco", "", "Il gatto dorme.", "chitarra", "un gatto"]
REFERENCES = ["Un uomo dipinge la barca", "un gatto", "Il gatto nero dorme.", "", "un gatto"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("models")
    return {
        kind: str(tiny_bert.build(folder / kind, architecture=kind)) for kind in ("bert", "bart")
    }


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No result of another test, and no model of the developer's cache."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    shared.bertscore.cache_clear()
    text_scores._bartscore.cache_clear()
    yield
    shared.bertscore.cache_clear()
    text_scores._bartscore.cache_clear()


# --- ROUGE-L ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("candidate", "reference", "expected"),
    [
        ("The man runs home.", "the man RUNS home", 1.0),
        # two of four words in order, of four: precision 1/2, recall 1/2
        ("he is the man", "the man runs home", 0.5),
        # the common subsequence is "the ... home": 2 of 3 and 2 of 4 -> 4/7
        ("the long home", "the man runs home", 4 / 7),
        ("he is running", "he runs", 0.4),  # without a stemmer `running` is not `runs`
        ("nothing of it", "the man runs", 0.0),
        ("", "the man runs", 0.0),
        ("...", "the man runs", 0.0),
        ("the man runs", "", None),
        ("", "", None),
        ("the man", " - ", None),
    ],
)
def test_rouge_l(candidate: str, reference: str, expected: float | None) -> None:
    found = text_scores.rouge_l(candidate, reference)
    assert found == (expected if expected is None else pytest.approx(expected))


def test_the_stemmer_is_named() -> None:
    assert "no stemmer" in text_scores.ROUGE_L
    assert text_metrics.IMPLEMENTATIONS["rouge_l"] == text_scores.ROUGE_L


def test_published_answers_have_the_size_of_table_4() -> None:
    """ROUGE-L of the site's sample beside the paper's full set: the same size, and a variance.

    The sample has other questions than the table (52 here), hence the tolerance.
    """
    file = SHARED / "data" / "movierecapsqa" / "segments.json"
    if not file.is_file():
        pytest.skip(f"no real MovieRecapsQA data at {file}")
    questions = [q for segment in json.loads(file.read_text()) for q in segment["questions"]]
    published = {  # Table 4: mean, variance
        "gpt_4o.response": (0.28, 0.03),
        "gemini_2.5-flash.response": (0.22, 0.02),
        "LLaVa-NeXT.response": (0.23, 0.01),
        "human": (0.16, 0.01),
    }
    for model, (mean, variance) in published.items():
        values = []
        for question in questions:
            given = [a["answer"] for a in question["modelAnswers"] if a["model"] == model]
            for answer in given or [question["humanAnswer"]["answer"]] * (model == "human"):
                values.append(text_scores.rouge_l(answer or "", question["datasetAnswer"]))
        assert len(values) > 40
        known = [value for value in values if value is not None]
        assert statistics.fmean(known) == pytest.approx(mean, abs=0.03)
        assert statistics.pvariance(known) == pytest.approx(variance, abs=0.015)


# --- BERTScore --------------------------------------------------------------------------------


def test_bertscore_per_item(folders: dict[str, str]) -> None:
    score = text_scores.bertscore(CANDIDATES, REFERENCES, folders["bert"])

    def alone(place: int) -> float | None:
        given = [CANDIDATES[place]], [[REFERENCES[place]]]
        return bertscore.bert_score(*given, model=folders["bert"]).value

    assert score.computed
    assert score.values == (alone(0), 0.0, alone(2), None, alone(4))
    assert alone(0) != alone(2)
    known = [value for value in score.values if value is not None]
    assert f"BERTScore F1 {statistics.fmean(known):.4f}" in score.note
    assert folders["bert"] in score.note


def test_bertscore_without_its_encoder_is_not_computed() -> None:
    score = text_scores.bertscore(CANDIDATES, REFERENCES)
    assert (score.values, score.computed) == ((None,) * 5, False)
    assert score.note == (
        "BERTScore not computed: encoder 'roberta-large' is not in the local Hugging Face cache"
    )


# --- BARTScore --------------------------------------------------------------------------------


def test_bartscore_per_item_is_exponentiated(folders: dict[str, str]) -> None:
    score = text_scores.bartscore(CANDIDATES, REFERENCES, folders["bart"])

    def alone(place: int) -> float:
        given = [CANDIDATES[place]], [REFERENCES[place]]
        value = bartscore.bart_score(*given, model=folders["bart"]).value
        assert value is not None
        return value

    assert score.computed
    first, empty, second, absent, third = score.values
    assert (empty, absent) == (0.0, None)  # an empty answer is worth 0, and does not vanish
    # Random weights find every text unlikely, so that only the logarithms tell them apart.
    expected = [alone(place) for place in (0, 2, 4)]
    logarithms = [math.log(value) for value in (first, second, third)]
    assert logarithms == pytest.approx(expected, abs=1e-5)
    assert len({round(value, 2) for value in expected}) == 3
    assert "P(candidate | reference) (precision)" in score.note
    assert score.note.endswith(
        "1 of 4 items left out for lack of words; these are 0 in the exponentiated column"
    )


def test_bartscore_without_a_model_is_not_computed() -> None:
    score = text_scores.bartscore(CANDIDATES, REFERENCES, None)
    assert (score.values, score.computed) == ((None,) * 5, False)
    assert score.note == (
        "BARTScore not computed: no model was named with --bartscore (LMMS_EVAL_TASKS_BARTSCORE)"
    )
    absent = text_scores.bartscore(CANDIDATES, REFERENCES, "/no/such/folder")
    assert (absent.values, absent.computed) == ((None,) * 5, False)
    assert "is no folder" in absent.note


def test_only_empty_answers(folders: dict[str, str]) -> None:
    for name in ("bert", "bart"):
        function = getattr(text_scores, f"{name}score")
        score = function(["", "..."], ["un gatto", "un uomo"], folders[name])
        assert (score.values, score.computed) == ((0.0, 0.0), True)


@pytest.mark.parametrize("name", ["bert", "bart"])
class TestBoth:
    """What both metrics of a corpus have in common."""

    def test_no_references(self, folders: dict[str, str], name: str) -> None:
        function = getattr(text_scores, f"{name}score")
        for candidates, references in ((["a", ""], ["", " "]), ([], [])):
            score = function(candidates, references, folders[name])
            assert (score.values, score.computed) == ((None,) * len(candidates), False)
            assert score.note.endswith("not computed: no answer has a reference")

    def test_unequal_lengths(self, folders: dict[str, str], name: str) -> None:
        with pytest.raises(ValueError, match="zip"):
            getattr(text_scores, f"{name}score")(["a"], ["a", "b"], folders[name])

    def test_values_follow_their_items(self, folders: dict[str, str], name: str) -> None:
        function = getattr(text_scores, f"{name}score")
        score = function(CANDIDATES, REFERENCES, folders[name])
        back = function(CANDIDATES[::-1], REFERENCES[::-1], folders[name])
        assert back.values == score.values[::-1]
        assert back.note == score.note

    def test_computed_once_for_the_same_texts(
        self, folders: dict[str, str], name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        module: Any = {"bert": bertscore, "bart": bartscore}[name]
        original, calls = getattr(module, f"{name}_score"), []

        def counted(*arguments: Any, **options: Any) -> Any:
            calls.append(options)
            return original(*arguments, **options)

        monkeypatch.setattr(module, f"{name}_score", counted)
        function = getattr(text_scores, f"{name}score")
        first = function(CANDIDATES, REFERENCES, folders[name])
        assert function(CANDIDATES[::-1], REFERENCES[::-1], folders[name]).note == first.note
        assert len(calls) == 1
        assert function(CANDIDATES[:1], REFERENCES[:1], folders[name]).note != first.note
        assert len(calls) == 2


def test_check(folders: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    text_scores.check()  # nothing is asked for
    monkeypatch.setenv(settings.BARTSCORE, folders["bart"])
    text_scores.check()
    for model, said in (
        ("/no/such/folder", "is no folder"),
        (folders["bert"], "bert is no sequence-to-sequence model"),
    ):
        monkeypatch.setenv(settings.BARTSCORE, model)
        with pytest.raises(TasksError, match=f"^{settings.BARTSCORE}={model}: .*{said}") as raised:
            text_scores.check()
        assert "\n" not in str(raised.value)
