"""BERTScore on tiny random-weight encoders: the rules are tested here, not the quality.

Which models are found and what is said of bad ones: test_local_models.py.
"""

from __future__ import annotations

import math
import random
import unicodedata
from typing import Any

import pytest
import tiny_bert

from lmms_eval_tasks.utils.bertscore import BertScore, bert_score
from tests.checks import table

pytestmark = pytest.mark.usefixtures("one_thread")
CANDIDATES = [
    "Il gatto dorme.",
    "Un uomo dipinge la barca",
    "la città è grande e verde, non so perché",
    "chitarra",
]
REFERENCES = [
    ["Il gatto nero dorme sul letto.", "un gatto"],
    ["Un uomo corre nel parco", "la barca è vecchia", "Un uomo dipinge con un pennello"],
    ["La città è grande."],
    ["Una donna suona la chitarra in una piazza", "suona la chitarra"],
]
PAIRS = list(zip(CANDIDATES, REFERENCES, strict=True))
DEFAULT = "bert-base-multilingual-cased"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_bert.build(tmp_path_factory.mktemp("encoder") / "tiny"))


def value(score: BertScore) -> float:
    assert score.value is not None, score.reason
    return score.value


def one(encoder: str, candidate: str, *references: str) -> float:
    return value(bert_score([candidate], [list(references)], model=encoder))


# --- which encoder and which layer ------------------------------------------------------------


@table(
    "name, layers, layer",
    # bert-score's layer where it knows the name, else the last; any path with t5 is a T5 to it.
    [(DEFAULT, 12, 9), (DEFAULT, 4, 4), ("distilroberta-base", 6, 5), ("not-t5/x", 6, 6)],
)
def test_the_layer_that_is_named_is_the_layer_that_is_used(name, layers, layer, tmp_path) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = tiny_bert.build(tmp_path / name, layers=layers)
    score = bert_score(CANDIDATES[:1], REFERENCES[:1], model=str(folder))
    assert (score.layer, score.max_tokens) == (layer, 64)
    assert f"{folder}_L{layer}_no-idf_version=" in (score.hash or "")
    model, tokenizer = (kind.from_pretrained(folder) for kind in (AutoModel, AutoTokenizer))

    def tokens(text: str) -> Any:
        with torch.no_grad():
            states = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True)
        return torch.nn.functional.normalize(states.hidden_states[layer][0], dim=1)

    def f1(reference: str) -> float:
        cosines = tokens(reference) @ tokens(CANDIDATES[0]).T
        # The first and the last token are matched, and count nothing.
        recall, precision = (cosines.max(axis).values[1:-1].mean() for axis in (1, 0))
        return float(2 * precision * recall / (precision + recall))

    assert value(score) == pytest.approx(max(map(f1, REFERENCES[0])), abs=1e-5)


# --- the same numbers as bert-score -----------------------------------------------------------


@table("layer", [3, 2])
def test_agrees_with_bert_score(encoder, monkeypatch, layer) -> None:
    from bert_score import BERTScorer
    from bert_score import utils as library

    monkeypatch.setitem(library.model2layers, encoder, layer)
    theirs = BERTScorer(model_type=encoder, num_layers=layer, device="cpu")
    _, _, best = theirs.score(CANDIDATES, REFERENCES)
    score = bert_score(CANDIDATES, REFERENCES, model=encoder)
    assert list(score.values or ()) == pytest.approx(best.tolist(), abs=1e-5)
    assert value(score) == pytest.approx(best.mean().item(), abs=1e-5)
    assert score.hash == theirs.hash
    alone = [one(encoder, candidate, *refs) for candidate, refs in PAIRS]
    assert len(set(alone)) == len(alone)  # wrongly paired sentences would show
    assert value(score) == math.fsum(alone) / len(alone)


def test_order_and_composed_accents_change_no_bit(encoder: str) -> None:
    rng = random.Random(3)
    words = " ".join(tiny_bert.TEXTS).split()
    candidates = [" ".join(rng.sample(words, 4)) for _ in range(10)]
    references = [[" ".join(rng.sample(words, n)) for n in (2, 3, 5)] for _ in range(10)]
    expected = bert_score(candidates, references, model=encoder)
    assert 0 < value(expected) < 1
    for _ in range(3):
        order = rng.sample(range(10), 10)
        shuffled = [rng.sample(references[i], 3) for i in order]
        again = bert_score([candidates[i] for i in order], shuffled, model=encoder)
        assert again.value == expected.value
    text = "La città è grande, perché l'uomo corre"
    apart = unicodedata.normalize("NFD", text)
    assert apart != text
    assert one(encoder, apart, REFERENCES[2][0]) == one(encoder, text, REFERENCES[2][0])
    assert one(encoder, CANDIDATES[2], apart) == one(encoder, CANDIDATES[2], text)


# --- empty and long texts ---------------------------------------------------------------------


@table("blank", ["", "  \n\t", "...", "\u200b", "👍"])
def test_texts_without_a_word(encoder: str, blank: str) -> None:
    """A candidate scores 0; a reference is left out."""
    assert one(encoder, blank, "Il gatto dorme.", "...") == 0.0
    with_blank = bert_score([CANDIDATES[0], blank], [REFERENCES[0]] * 2, model=encoder)
    assert value(with_blank) == one(encoder, CANDIDATES[0], *REFERENCES[0]) / 2
    alone = one(encoder, CANDIDATES[0], REFERENCES[0][0])
    assert one(encoder, CANDIDATES[0], blank, REFERENCES[0][0], " - ") == alone
    assert one(encoder, CANDIDATES[0], blank, " ") == one(encoder, blank, "") == 0.0


LONG = " ".join(["un uomo corre nel parco"] * 120)


@table("architecture, positions, max_length, expected")
def test_long_texts_are_cut_and_counted(architecture, positions, max_length, expected, tmp_path):
    options = {"architecture": architecture, "positions": positions, "max_length": max_length}
    model = str(tiny_bert.build(tmp_path / "long", **options))
    references = [["un uomo"], ["un gatto", LONG + " verde", LONG + " verde"], [LONG]]
    score = bert_score([LONG, "un uomo corre", LONG], references, model=model)
    assert score.max_tokens == expected
    # Two candidates, and two references: the repeated one counts once.
    assert score.n_truncated == 4
    assert f"4 texts cut to {expected} tokens" in score.describe()
    # What is cut is the end: beyond the limit texts may differ.
    assert one(model, LONG, LONG + " verde") == pytest.approx(1.0, abs=1e-6)
