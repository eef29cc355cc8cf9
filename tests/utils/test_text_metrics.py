"""ROUGE-L, METEOR, BLEU and CIDEr: hand-computed cases, order, threads, and the real data."""

from __future__ import annotations

import itertools
import json
import math
import random
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.utils import text_metrics

TESTS = Path(__file__).resolve().parent.parent
CASES = json.loads((TESTS / "cases" / "text_metrics.json").read_text(encoding="utf-8"))
MAIA = TESTS.parent.parent / "shared" / "data" / "maia" / "data.json"
TOLERANCE = 1e-12

ITEM_METRICS = [text_metrics.rouge_l, text_metrics.meteor]
CORPUS_METRICS = [text_metrics.corpus_bleu, text_metrics.corpus_cider]


def cases(metric: str) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in CASES[metric]]


# --- cases as data ----------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES["tokenize"], ids=lambda case: repr(case["text"]))
def test_tokenize(case: dict[str, Any]) -> None:
    assert text_metrics.tokenize(case["text"]) == case["expected"]


@pytest.mark.parametrize("case", cases("rouge_l"))
def test_rouge_l(case: dict[str, Any]) -> None:
    score = text_metrics.rouge_l(case["candidate"], case["references"])
    assert score == pytest.approx(case["expected"], abs=TOLERANCE)


@pytest.mark.parametrize("case", cases("meteor"))
def test_meteor(case: dict[str, Any]) -> None:
    language = case.get("language", "italian")
    score = text_metrics.meteor(case["candidate"], case["references"], language)
    assert score == pytest.approx(case["expected"], abs=TOLERANCE)


@pytest.mark.parametrize("case", cases("bleu"))
def test_bleu(case: dict[str, Any]) -> None:
    score = text_metrics.corpus_bleu(case["candidates"], case["references"])
    assert score == pytest.approx(case["expected"], abs=TOLERANCE)


@pytest.mark.parametrize("case", cases("cider"))
def test_cider(case: dict[str, Any]) -> None:
    score = text_metrics.corpus_cider(case["candidates"], case["references"])
    assert score == pytest.approx(case["expected"], abs=TOLERANCE)


def test_maxima_are_exact() -> None:
    texts = ["il gatto nero dorme sul letto", "una donna suona la chitarra in piazza"]
    identical = [[text] for text in texts]
    assert text_metrics.corpus_bleu(texts, identical) == 1.0  # sacrebleu: 1.0000000000000004
    assert text_metrics.rouge_l(texts[0], identical[0]) == 1.0
    assert text_metrics.corpus_cider(texts, identical) == pytest.approx(text_metrics.CIDER_MAX)


# --- against the libraries as they come, where the tokenizers agree ---------------------------


def plain_corpus(rng: random.Random, n_items: int) -> tuple[list[str], list[list[str]]]:
    """Lower-case words without accents, so that every tokenizer sees the same ones."""

    def sentence() -> str:
        return " ".join(
            rng.choice(["il", "gatto", "cane", "nero", "dorme", "corre", "sul", "letto"])
            for _ in "x" * rng.randint(3, 12)
        )

    return (
        [sentence() for _ in range(n_items)],
        [[sentence() for _ in range(rng.randint(1, 5))] for _ in range(n_items)],
    )


def test_same_numbers_as_the_libraries() -> None:
    import sacrebleu
    from pycocoevalcap.cider.cider import Cider
    from rouge_score.rouge_scorer import RougeScorer

    candidates, references = plain_corpus(random.Random(5), 40)
    width = max(map(len, references))
    streams = [[r[k] if k < len(r) else None for r in references] for k in range(width)]
    bleu = sacrebleu.corpus_bleu(candidates, streams).score
    assert text_metrics.corpus_bleu(candidates, references) == pytest.approx(bleu / 100)
    cider, _ = Cider().compute_score(
        dict(enumerate(references)), {i: [text] for i, text in enumerate(candidates)}
    )
    assert text_metrics.corpus_cider(candidates, references) == pytest.approx(cider)
    assert 0 < cider < text_metrics.CIDER_MAX
    scorer = RougeScorer(["rougeL"])
    for candidate, refs in zip(candidates, references, strict=True):
        theirs = scorer.score_multi(refs, candidate)["rougeL"].fmeasure
        assert text_metrics.rouge_l(candidate, refs) == pytest.approx(theirs)


# --- order, form, company ---------------------------------------------------------------------


@pytest.mark.parametrize("metric", CORPUS_METRICS)
def test_order_changes_no_bit(metric: Callable[..., float]) -> None:
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


def test_order_of_references_changes_no_bit_of_cider() -> None:
    """One item with many references, so that no sum over items hides the last digit."""
    candidates = ["a b c d e", "v w x y z"]
    references = [["a b c", "b c d f g", "c d e", "a b x", "d e a b c"], ["s t"]]
    expected = text_metrics.corpus_cider(candidates, references)
    for order in itertools.permutations(references[0]):
        assert text_metrics.corpus_cider(candidates, [list(order), ["s t"]]) == expected


@pytest.mark.parametrize("metric", ITEM_METRICS)
def test_order_of_references_changes_no_bit(metric: Callable[..., float]) -> None:
    rng = random.Random(12)
    for candidate, refs in zip(*plain_corpus(rng, 30), strict=True):
        expected = metric(candidate, refs)
        assert metric(candidate, rng.sample(refs, len(refs))) == expected
        assert metric(candidate, refs + refs[:1]) == expected


ACCENTED = "Perché la città è così? Però l'uomo è già lì"


def test_composed_and_decomposed_are_equal() -> None:
    apart = unicodedata.normalize("NFD", ACCENTED)
    assert apart != ACCENTED
    other = "Perché l'uomo è là? La città è bella così"
    for item_metric in ITEM_METRICS:
        assert item_metric(apart, [other]) == item_metric(ACCENTED, [other]) > 0
        assert item_metric(other, [apart]) == item_metric(other, [ACCENTED])
    for corpus_metric in CORPUS_METRICS:
        expected = corpus_metric([ACCENTED, "un cane nero"], [[other], ["un gatto nero"]])
        assert corpus_metric([apart, "un cane nero"], [[other], ["un gatto nero"]]) == expected > 0


@pytest.mark.parametrize("metric", ITEM_METRICS)
def test_range(metric: Callable[..., float]) -> None:
    for candidate, refs in zip(*plain_corpus(random.Random(13), 50), strict=True):
        assert 0 <= metric(candidate, refs) <= 1


def test_very_long_candidate() -> None:
    long = "il gatto dorme " * 5000
    assert text_metrics.rouge_l(long, ["il gatto dorme"]) == pytest.approx(2 * 3 / 15003)
    assert 0 < text_metrics.meteor(long, ["il gatto dorme"]) < 0.01
    assert 0 < text_metrics.corpus_bleu([long], [["il gatto dorme qui"]]) < 0.01
    assert text_metrics.corpus_cider([long, "a"], [["il gatto dorme"], ["b"]]) == 0.0


# --- errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ITEM_METRICS)
@pytest.mark.parametrize("references", [[], (), "il gatto"])
def test_item_without_references(metric: Callable[..., float], references: Any) -> None:
    with pytest.raises(ValueError, match="references"):
        metric("il gatto", references)


@pytest.mark.parametrize("metric", CORPUS_METRICS)
@pytest.mark.parametrize(
    ("candidates", "references", "message"),
    [
        ([], [], "no items"),
        (["a"], [], "1 candidates but 0 lists"),
        (["a", "b"], [["a"], []], "item 1: no references"),
        (["a"], ["a"], "item 0: references must be a list"),
    ],
)
def test_malformed_corpus(
    metric: Callable[..., float], candidates: Any, references: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        metric(candidates, references)


def test_unknown_language() -> None:
    with pytest.raises(ValueError, match="klingon"):
        text_metrics.meteor("a", ["a"], "klingon")


# --- process: imports, noise, threads ---------------------------------------------------------


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )


def test_import_is_light() -> None:
    heavy = "{'nltk', 'torch', 'bert_score', 'sacrebleu', 'pycocoevalcap', 'rouge_score', 'numpy'}"
    modules = "lmms_eval_tasks.utils.text_metrics, lmms_eval_tasks.utils.bertscore"
    done = run(f"import sys, {modules}; print(sorted({heavy} & set(sys.modules)))")
    assert done.stdout.strip() == "[]"


THREADS = """
import json, sys, threading
from concurrent.futures import ThreadPoolExecutor
from lmms_eval_tasks.utils import text_metrics as t
texts = ["il gatto numero %d dorme sui letti, perché è stanco" % i for i in range(40)]
jobs = [(f, a, [b]) for f in (t.rouge_l, t.meteor) for a, b in zip(texts, texts[7:])]
start = threading.Barrier(8)
def work(_):
    start.wait()  # the first call imports the libraries: all threads at once
    return [f(a, b) for f, a, b in jobs]
with ThreadPoolExecutor(8) as pool:
    results = list(pool.map(work, range(8)))
assert all(r == [f(a, b) for f, a, b in jobs] for r in results), "threads disagree"
t.corpus_bleu(texts, [[x] for x in texts])
t.corpus_cider(texts, [[x] for x in texts])
print("done", "torch" in sys.modules)
"""


def test_threads_agree_and_nothing_is_printed() -> None:
    done = run(THREADS)
    assert done.stdout.split() == ["done", "False"]
    assert done.stderr == ""


def test_no_other_program_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """CIDEr and METEOR have Java packages; ours need none."""

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError(f"started {args}")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr("os.system", refuse)
    assert text_metrics.corpus_cider(["a b", "c d"], [["a b"], ["c d"]]) > 0
    assert text_metrics.meteor("a b", ["a b"]) > 0


def test_every_metric_names_its_implementation() -> None:
    assert set(text_metrics.IMPLEMENTATIONS) == {"rouge_l", "meteor", "bleu", "cider", "bertscore"}
    for line in text_metrics.IMPLEMENTATIONS.values():
        assert "\n" not in line
        assert "not " in line  # what it is not
    assert text_metrics.BLEU_SMOOTHING in text_metrics.IMPLEMENTATIONS["bleu"]


# --- real data --------------------------------------------------------------------------------


@pytest.mark.skipif(not MAIA.is_file(), reason=f"no real data at {MAIA}")
def test_real_answers_against_each_other() -> None:
    """One annotator's answer against the other seven: figures of the paper's size (Table 4)."""
    videos = json.loads(MAIA.read_text(encoding="utf-8"))
    questions = [
        question
        for video in videos
        for key, group in video.items()
        if key.startswith("question_categories")
        for question in group
    ]
    candidates = [question["answer"][0] for question in questions]
    references = [question["answer"][1:8] for question in questions]
    others = candidates[1:] + candidates[:1]  # each question gets another one's answer

    def figures(texts: list[str]) -> dict[str, float]:
        pairs = list(zip(texts, references, strict=True))
        return {
            "rouge_l": math.fsum(text_metrics.rouge_l(*pair) for pair in pairs) / len(pairs),
            "meteor": math.fsum(text_metrics.meteor(*pair) for pair in pairs) / len(pairs),
            "bleu": text_metrics.corpus_bleu(texts, references),
            "cider": text_metrics.corpus_cider(texts, references),
        }

    own, foreign = figures(candidates), figures(others)
    assert all(own[name] > foreign[name] for name in own)
    if len(questions) == 120:  # the sample of 5 videos
        measured = {"rouge_l": 0.3630, "meteor": 0.3111, "bleu": 0.2072, "cider": 0.4215}
        assert own == pytest.approx(measured, abs=5e-5)
