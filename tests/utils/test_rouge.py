"""ROUGE-1, 2 and L of one summary: by hand, and against rouge-score as it comes."""

from __future__ import annotations

import random
import subprocess
import sys
import unicodedata

import pytest

from lmms_eval_tasks.utils import rouge as module
from lmms_eval_tasks.utils import text_metrics
from lmms_eval_tasks.utils.rouge import KINDS, Rouge, rouge


@pytest.mark.parametrize(
    ("candidate", "reference", "expected"),
    [
        ("The man runs home.", "the man RUNS home", (1, 1, 1)),
        # Words: 3 of 4 and 3 of 5 -> 6/9; pairs: "the man" of 3 and of 4 -> 2/7;
        # in order: "the man ... home" 3 -> 6/9.
        ("the man walks home", "the man runs straight home", (6 / 9, 2 / 7, 6 / 9)),
        # All words and no order: ROUGE-L has one word of three.
        ("home runs man", "man runs home", (1, 0, 1 / 3)),
        # A repeated word counts as often as the reference has it: 1 of 3 and 1 of 2.
        ("man man man", "man runs", (2 / 5, 0, 2 / 5)),
        ("he is running", "he runs", (2 / 5, 0, 2 / 5)),  # no stemmer
        ("one", "one", (1, 0, 1)),  # no two words in a row
        ("perché è", "perche e", (0, 0, 0)),  # an accented letter is another letter
        ("nothing of it", "the man runs", (0, 0, 0)),
        ("", "the man runs", (0, 0, 0)),
        ("...", "the man runs", (0, 0, 0)),
        ("the man runs", "", (0, 0, 0)),
        ("", "", (0, 0, 0)),
    ],
)
def test_by_hand(candidate: str, reference: str, expected: tuple[float, ...]) -> None:
    assert rouge(candidate, reference) == pytest.approx(expected, abs=1e-12)


def test_the_aggregate_is_the_mean_of_three() -> None:
    assert Rouge(0.6, 0.3, 0.0).rouge == pytest.approx(0.3)
    found = rouge("the man walks home", "the man runs straight home")
    assert found.rouge == pytest.approx((6 / 9 + 2 / 7 + 6 / 9) / 3)
    assert rouge("", "x").rouge == 0.0
    assert rouge("a b c", "a b c").rouge == 1.0


def test_recall_and_precision_are_told_apart_by_neither() -> None:
    """F1: what is short and what is long may change places."""
    short, long = "the man runs", "the man with the dog runs home"
    assert rouge(short, long) == rouge(long, short)


def test_as_rouge_score_itself_for_ascii() -> None:
    from rouge_score.rouge_scorer import RougeScorer

    theirs = RougeScorer(list(KINDS), use_stemmer=False)  # its own tokenizer
    rng = random.Random(3)
    words = ["The", "man", "RUNS", "home,", "dog", "3", "at", "night.", "(again)"]
    for _ in range(100):
        one, other = (" ".join(rng.choices(words, k=rng.randint(0, 12))) for _ in range(2))
        expected = [theirs.score(other, one)[kind].fmeasure for kind in KINDS]
        assert rouge(one, other) == pytest.approx(expected, abs=1e-12)


def test_accents_count_in_either_form() -> None:
    composed = "la città è grande perché cresce"
    apart = unicodedata.normalize("NFD", composed)
    assert apart != composed
    assert rouge(apart, composed) == (1, 1, 1)
    # rouge-score's own tokenizer would leave nothing of "è".
    assert rouge("è", "è").rouge1 == 1.0


def test_rouge_l_is_the_one_of_the_other_benchmarks() -> None:
    candidate, reference = "the dog and the man run", "a man and the dog of the man ran"
    assert rouge(candidate, reference).rougeL == text_metrics.rouge_l(candidate, [reference])


def test_line_breaks_are_blanks() -> None:
    """ROUGE-L of the whole text: line by line (rougeLsum) this would be more."""
    assert rouge("c d\na b", "a b\nc d") == rouge("c d a b", "a b c d")
    assert rouge("c d\na b", "a b\nc d").rougeL == 0.5


def test_implementation_and_variant_are_named() -> None:
    for word in (*KINDS, "rouge-score", "no stemmer", "rougeLsum", "mean", r"\w+"):
        assert word in module.IMPLEMENTATION


def test_importing_brings_no_scorer() -> None:
    code = (
        "import sys, lmms_eval_tasks.utils.rouge; print({'rouge_score', 'nltk'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "set()"
