"""ROUGE, METEOR, BLEU and CIDEr: hand-computed cases, order, what the authors' code computes."""

from __future__ import annotations

import json
import random
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from nltk.stem.snowball import SnowballStemmer

from lmms_eval_tasks.utils.metrics import text_metrics
from lmms_eval_tasks.utils.metrics.text_metrics import rouge
from tests.checks import refused, table
from tests.utils.metrics import tiny_nltk

FILE = Path(__file__).resolve().parents[2] / "cases" / "text_metrics.json"
CASES = json.loads(FILE.read_text(encoding="utf-8"))

CORPUS_METRICS = [text_metrics.corpus_bleu, text_metrics.corpus_cider]


@table(
    "metric, case",
    [(metric, case) for metric in CASES for case in CASES[metric] if isinstance(case, dict)],
)
def test_by_hand(metric: str, case: dict[str, Any]) -> None:
    if metric == "tokenize":
        assert text_metrics.tokenize(case["text"]) == case["expected"]
        return
    if metric in ("rouge_l", "meteor"):
        given = [case["candidate"], case["references"]]
    else:
        metric, given = f"corpus_{metric}", [case["candidates"], case["references"]]
    score = getattr(text_metrics, metric)(*given)
    assert score == pytest.approx(case["expected"], abs=1e-12)


def test_meteor_stems_a_word_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that repeats itself for 200,000 characters costs no 10 seconds; nor do answers."""
    stems: Counter[str] = Counter()
    stemmer = type(SnowballStemmer("italian").stemmer)
    stem = stemmer.stem
    monkeypatch.setattr(
        stemmer, "stem", lambda self, word: stems.update([word]) or stem(self, word)
    )
    text_metrics._italian_stem.cache_clear()
    for candidate in ("la palla rossa " * 100, "palla", "gialla"):
        text_metrics.meteor(candidate, ["la palla", "una palla gialla"] * 4)
    assert stems == dict.fromkeys(("la", "palla", "rossa", "una", "gialla"), 1)


# --- order, form, company ---------------------------------------------------------------------


@table(
    "metric", [*CORPUS_METRICS, partial(text_metrics.corpus_cider, words=text_metrics.ptb_words)]
)
def test_order_changes_no_bit_of_a_corpus_metric(metric) -> None:
    rng = random.Random(11)
    topics = [[f"w{rng.randint(0, 40)}" for _ in range(8)] for _ in range(60)]

    def about(topic: list[str]) -> str:
        return " ".join(rng.choices(topic, k=rng.randint(4, 9)))

    candidates = [about(topic) for topic in topics]
    references = [[about(topic) for _ in range(8)] for topic in topics]
    expected = metric(candidates, references)
    assert expected > 0
    for _ in range(10):
        order = rng.sample(range(60), 60)
        shuffled = [rng.sample(references[i], 8) for i in order]
        assert metric([candidates[i] for i in order], shuffled) == expected


ACCENTED = "Perché la città è così? Però l'uomo è già lì"


@table("metric", CORPUS_METRICS)
@table(
    "candidates, references, message",
    [
        ([], [], "no items"),
        (["a"], [], "1 candidates but 0 lists"),
        (["a", "b"], [["a"], []], "item 1: no references"),
    ],
)
def test_malformed_calls(metric, candidates, references, message) -> None:
    refused(ValueError, message, metric, candidates, references)
    refused(ValueError, "no references", text_metrics.rouge_l, "il gatto", [])


# --- as in the code of MAIA's authors ---------------------------------------------------------


@pytest.fixture
def nltk_paths(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Where NLTK looks for its data: nowhere, until a test adds a folder."""
    from nltk import tokenize
    from nltk.corpus import LazyCorpusLoader, wordnet

    def forget() -> None:
        if type(wordnet) is not LazyCorpusLoader:  # another test has read it
            wordnet._unload()
        tokenize._get_punkt_tokenizer.cache_clear()

    paths: list[str] = []
    monkeypatch.setattr("nltk.data.path", paths)
    forget()
    yield paths
    forget()


def test_meteor_with_the_data_of_nltk(nltk_paths: list[str], tmp_path: Path) -> None:
    """Words, stems and synonyms; the last text is that of `evaluate`'s card, with its number."""
    from nltk.corpus import wordnet

    score = text_metrics.meteor_wordnet
    value, reason = score(["gatto"], [["gatto"]])
    assert value is None
    assert "not all here; to get them: python -m nltk.downloader wordnet punkt_tab" in reason
    nltk_paths.append(str(tiny_nltk.build(tmp_path)))
    for candidate, references, expected in [
        ("Il felino dorme.", ["un cane", "il gatto dorme."], 1 - 0.5 / 4**3),
        ("cats", ["cat"], 0.5),  # English stems
        ("Sì. No.", ["Sì . No ."], 1 - 0.5 / 4**3),  # two sentences
        ("", ["a"], 0.0),
    ]:
        value, how = score([candidate, "x"], [references, ["y"]])
        assert value == pytest.approx(expected / 2)
        assert how == text_metrics.IMPLEMENTATIONS["meteor_wordnet"]
    guide = "It is a guide to action which ensures that the military always obeys the commands of"
    other = "It is a guide to action that ensures that the military will forever heed Party"
    value, _ = score([f"{guide} the party"], [[f"{other} commands"]])
    assert value == pytest.approx(0.6944, abs=5e-5)
    (tmp_path / "corpora" / "wordnet" / "lexnames").write_text("damaged")
    wordnet._unload()
    assert "cannot be used (" in score(["a"], [["a"]])[1]


@table("text, words")
def test_words_as_stanfords_tokenizer_has_them(text: str, words: str) -> None:
    """What Java's said of each, in lower case and without punctuation."""
    assert " ".join(text_metrics.ptb_words(text)) == words


# --- ROUGE-1, 2 and L of one summary -----------------------------------------------------------


@table("candidate, reference, expected")
def test_rouge_by_hand(candidate: str, reference: str, expected: tuple[float, ...]) -> None:
    found = rouge(candidate, reference)
    kinds = dict(zip(text_metrics.ROUGE_KINDS, expected, strict=True))
    whole = {"rouge": sum(expected) / 3, **kinds}
    assert found == pytest.approx(whole, abs=1e-12)
    assert found["rougeL"] == text_metrics.rouge_l(candidate, [reference])  # the other benchmarks'
    assert rouge(reference, candidate) == found  # F1: they may change places


def test_rouge_of_accents_and_lines() -> None:
    assert set(rouge(unicodedata.normalize("NFD", ACCENTED), ACCENTED).values()) == {1}
    # ROUGE-L of the whole text: line by line (rougeLsum) this would be more.
    assert rouge("c d\na b", "a b\nc d")["rougeL"] == 0.5
