"""ROUGE-1, 2 and L of one summary: by hand, and against rouge-score as it comes."""

from __future__ import annotations

import random
import unicodedata

import pytest

from lmms_eval_tasks.utils import rouge as module
from lmms_eval_tasks.utils import text_metrics
from lmms_eval_tasks.utils.rouge import KINDS, Rouge, rouge
from tests.checks import table


@table("candidate, reference, expected")
def test_by_hand(candidate: str, reference: str, expected: tuple[float, ...]) -> None:
    found = rouge(candidate, reference)
    assert found == pytest.approx(expected, abs=1e-12)
    assert found.rouge == pytest.approx(sum(expected) / 3)
    assert found.rougeL == text_metrics.rouge_l(candidate, [reference])  # the other benchmarks'
    assert rouge(reference, candidate) == found  # F1: they may change places


def test_as_rouge_score_itself_for_ascii() -> None:
    from rouge_score.rouge_scorer import RougeScorer

    theirs = RougeScorer(list(KINDS), use_stemmer=False)  # its own tokenizer
    rng = random.Random(3)
    words = ["The", "man", "RUNS", "home,", "dog", "3", "at", "night.", "(again)"]
    for _ in range(100):
        one, other = (" ".join(rng.choices(words, k=rng.randint(0, 12))) for _ in range(2))
        expected = [theirs.score(other, one)[kind].fmeasure for kind in KINDS]
        assert rouge(one, other) == pytest.approx(expected, abs=1e-12)


def test_forms_of_a_text() -> None:
    composed = "la città è grande perché cresce"
    apart = unicodedata.normalize("NFD", composed)
    assert apart != composed
    assert rouge(apart, composed) == (1, 1, 1)
    # ROUGE-L of the whole text: line by line (rougeLsum) this would be more.
    assert rouge("c d\na b", "a b\nc d") == rouge("c d a b", "a b c d")
    assert rouge("c d\na b", "a b\nc d").rougeL == 0.5
    assert Rouge(0.6, 0.3, 0.0).rouge == pytest.approx(0.3)
    for word in (*KINDS, "rouge-score", "no stemmer", "rougeLsum", "mean", r"\w+"):
        assert word in module.IMPLEMENTATION
