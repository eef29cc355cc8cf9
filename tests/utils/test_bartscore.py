"""BARTScore on tiny models with random weights: the rules are tested here, not the quality.

No BART weights come with any package; what real ones would give was not checked. Which models are
found and what is said of bad ones: test_local_models.py.
"""

from __future__ import annotations

import math
import random
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import tiny_bert

from lmms_eval_tasks.utils.bartscore import bart_score
from tests.checks import table

pytestmark = pytest.mark.usefixtures("one_thread")
CANDIDATES = [
    "Il gatto dorme.",
    "Un uomo dipinge la barca con un pennello, perché è vecchia e la città è grande",
    "chitarra",
    "la città è grande e verde, non so perché",
]
REFERENCES = [
    "Il gatto nero dorme sul letto.",
    "Un uomo corre nel parco",
    "Una donna suona la chitarra in una piazza, e un uomo corre nel parco verde",
    "La città è grande.",
]
PAIRS = list(zip(CANDIDATES, REFERENCES, strict=True))
ROUNDING = 1e-5  # of single precision, over batches of different shapes


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Random-weight BART and T5, saved whole as released ones are."""
    root = tmp_path_factory.mktemp("models")
    return {kind: build(root / kind, kind) for kind in ("bart", "t5")}


@pytest.fixture(scope="module")
def bart(folders: dict[str, str]) -> str:
    return folders["bart"]


def one(folder: str, candidate: str, reference: str) -> float:
    (value,) = values(folder, [candidate], [reference])
    return value


def build(folder: Path, kind: str, **options: Any) -> str:
    """A sequence-to-sequence model with its head; BART's bias on the logits is not zero."""
    import torch
    from transformers import AutoModelForSeq2SeqLM

    tiny_bert.build(folder, architecture=kind, **options)
    model = AutoModelForSeq2SeqLM.from_pretrained(folder)
    if kind == "bart":
        torch.manual_seed(7)
        model.final_logits_bias.copy_(torch.randn_like(model.final_logits_bias))
    model.save_pretrained(folder)
    return str(folder)


def directly(folder: str, source: str, target: str, limit: int | None = None) -> float:
    """The definition, for one pair without padding: every position by its own forward pass."""
    import torch
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    read, scored = (
        tokenizer(text, truncation=limit is not None, max_length=limit)["input_ids"]
        for text in (source, target)
    )
    before, total = [model.config.decoder_start_token_id], 0.0
    with torch.no_grad():
        for token in scored:
            inputs = {
                "input_ids": torch.tensor([read]),
                "decoder_input_ids": torch.tensor([before]),
            }
            logits = model(**inputs).logits
            total += torch.log_softmax(logits[0, -1].double(), -1)[token].item()
            before.append(token)
    return total / len(scored)


def values(folder: str, candidates: Sequence[str], references: Sequence[str], **options: Any):
    score = bart_score(candidates, references, model=folder, **options)
    assert score.reason is None, score.reason
    assert None not in score.values
    return list(score.values)


# --- the definition ---------------------------------------------------------------------------


@table("kind", ["bart", "t5"])
def test_a_direct_forward_pass_gives_the_same(folders: dict[str, str], kind: str) -> None:
    folder = folders[kind]
    given = values(folder, CANDIDATES, REFERENCES)
    assert given == values(folder, CANDIDATES, REFERENCES, direction="precision")
    assert given == pytest.approx([directly(folder, r, c) for c, r in PAIRS], abs=ROUNDING)
    reverse = values(folder, CANDIDATES, REFERENCES, direction="recall")
    assert reverse == pytest.approx([directly(folder, c, r) for c, r in PAIRS], abs=ROUNDING)
    assert all(value < 0 for value in given)
    # Mixed-up pairs, directions or positions would show.
    assert len({round(value, 2) for value in given + reverse}) == 8
    alone = [one(folder, candidate, reference) for candidate, reference in PAIRS]
    for size in (1, 2, 3, 16):
        together = values(folder, CANDIDATES, REFERENCES, batch_size=size)
        assert together == pytest.approx(alone, abs=ROUNDING)


def test_order_and_composed_accents_change_no_bit(bart: str) -> None:
    rng = random.Random(3)
    words = " ".join(tiny_bert.TEXTS).split()
    texts = [" ".join(rng.sample(words, rng.randint(1, 12))) for _ in range(40)]
    candidates, references = texts[:20] * 2, texts[20:] * 2
    expected = bart_score(candidates, references, model=bart, batch_size=4)
    order = rng.sample(range(40), 40)
    shuffled = [candidates[i] for i in order], [references[i] for i in order]
    again = bart_score(*shuffled, model=bart, batch_size=4)
    assert list(again.values) == [expected.values[i] for i in order]
    assert again.value == expected.value
    text = CANDIDATES[3]
    apart = unicodedata.normalize("NFD", text)
    assert apart != text
    assert one(bart, f"  {apart}\n", REFERENCES[0]) == one(bart, text, REFERENCES[0])
    assert one(bart, CANDIDATES[0], apart) == one(bart, CANDIDATES[0], text)


# --- empty and long texts ---------------------------------------------------------------------


@table("blank", ["", "  \n\t", "...", "\u200b", "👍"])
def test_a_text_without_a_word_has_no_likelihood(bart: str, blank: str) -> None:
    score = bart_score([CANDIDATES[0], blank, "un gatto"], [REFERENCES[0], "x", blank], model=bart)
    assert score.values == (one(bart, CANDIDATES[0], REFERENCES[0]), None, None)
    assert score.value == score.values[0]
    assert score.likelihoods == (math.exp(score.value or 0), None, None)
    assert "2 of 3 items left out for lack of words" in score.describe()
    score = bart_score([blank, "..."], ["un gatto", "un uomo"], model=bart)
    assert (score.values, score.value, score.reason) == ((None, None), None, None)
    assert score.describe().startswith("BARTScore of no item, ")


LONG = " ".join(["un uomo corre nel parco"] * 120)


@table("kind, positions, max_length, expected")
def test_long_texts_are_cut_and_counted(kind, positions, max_length, expected, tmp_path) -> None:
    folder = build(tmp_path / kind, kind, positions=positions, max_length=max_length)
    references = ["un uomo", LONG + " verde", LONG, LONG]
    score = bart_score([LONG, "un uomo corre", LONG, ""], references, model=folder)
    assert (score.max_source, score.max_target) == (expected, expected)
    # An item that is not scored has nothing to cut.
    assert score.n_truncated == 4
    assert f"4 texts cut (encoder {expected}, decoder {expected} tokens)" in score.describe()
    # What is cut is the end, and the end token stays.
    assert one(folder, LONG, "un uomo") == one(folder, LONG + " verde", "un uomo")
    if expected == 32:
        direct = directly(folder, LONG, LONG, limit=expected)
        assert one(folder, LONG, LONG) == pytest.approx(direct, abs=ROUNDING)
