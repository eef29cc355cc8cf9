"""BERTScore and BARTScore on tiny models with random weights: the rules, not the quality.

No BART weights come with any package; what real ones would give was not checked. Which models are
found and what is said of bad ones: test_local_models.py.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import tiny_bert

from lmms_eval_tasks.utils.metrics import model_scores
from lmms_eval_tasks.utils.metrics.model_scores import bart_score, bert_score
from tests.checks import table

pytestmark = pytest.mark.usefixtures("one_thread")
CANDIDATES = [
    "Il gatto dorme.",
    "Un uomo dipinge la barca con un pennello, perché è vecchia e la città è grande",
    "la città è grande e verde, non so perché",
    "chitarra",
]
REFERENCES = [
    ["Il gatto nero dorme sul letto.", "un gatto"],
    ["Un uomo corre nel parco", "la barca è vecchia", "Un uomo dipinge con un pennello"],
    ["La città è grande."],
    ["Una donna suona la chitarra in una piazza, e un uomo corre nel parco", "la chitarra"],
]
PAIRS = [(candidate, refs[0]) for candidate, refs in zip(CANDIDATES, REFERENCES, strict=True)]
LONG = " ".join(["un uomo corre nel parco"] * 120)
ROUNDING = 1e-5  # of single precision, over batches of different shapes


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Models with random weights, saved whole as released ones are."""
    root = tmp_path_factory.mktemp("models")
    build = tiny_bert.build
    return {
        kind: str(build(root / kind, architecture=kind, headed=kind != "bert"))
        for kind in ("bert", "bart", "t5")
    }


def bert(model: str, candidates: Sequence[str], references: Sequence[Sequence[str]]) -> Any:
    score = bert_score(candidates, references, model=model)
    assert score.computed, score.note
    return score


def bart(model: str, candidates: Sequence[str], references: Any) -> Any:
    """One reference of each candidate: BARTScore takes no more."""
    references = [one if isinstance(one, str) else one[0] for one in references]
    score = bart_score(candidates, references, model=model)
    assert score.computed, score.note
    return score


SCORES = {"bert": bert, "bart": bart}


def one(kind: str, model: str, candidate: str, *references: str) -> float:
    value: float = SCORES[kind](model, [candidate], [references]).value
    return value


# --- BERTScore: which layer, and the same numbers as bert-score ---------------------------------


@table(
    "name, layers, layer",
    # bert-score's layer where it knows the name, else the last.
    [
        ("bert-base-multilingual-cased", 12, 9),
        ("bert-base-multilingual-cased", 4, 4),
        ("distilroberta-base", 6, 5),
        ("x", 6, 6),
    ],
)
def test_agrees_with_bert_score_at_the_layer_that_is_named(name, layers, layer, tmp_path) -> None:
    from bert_score import BERTScorer

    model = str(tiny_bert.build(tmp_path / name, layers=layers))
    score = bert(model, CANDIDATES, REFERENCES)
    theirs = BERTScorer(model_type=model, num_layers=layer, device="cpu")
    _, _, best = theirs.score(CANDIDATES, REFERENCES)
    assert list(score.values) == pytest.approx(best.tolist(), abs=1e-5)
    assert (
        f"layer {layer}, hash {theirs.hash}; 0 texts of 4 different items cut to 64" in score.note
    )
    given = zip(CANDIDATES, REFERENCES, strict=True)
    alone = [one("bert", model, candidate, *refs) for candidate, refs in given]
    assert len(set(alone)) == len(alone)  # wrongly paired sentences would show
    assert score.value == math.fsum(alone) / len(alone)
    if name == "x":  # any path with t5 in it is a T5 to bert-score
        renamed = Path(model).rename(tmp_path / "no-t5")
        assert bert(str(renamed), CANDIDATES, REFERENCES).values == score.values


# --- BARTScore: the definition ------------------------------------------------------------------


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


@table("kind", ["bart", "t5"])
@table("batch", [1, 3, 16])
def test_a_direct_forward_pass_gives_the_same(models, kind, batch, monkeypatch) -> None:
    monkeypatch.setattr(model_scores, "_BATCH", batch)
    found = list(bart(models[kind], CANDIDATES, REFERENCES).values)
    direct = [directly(models[kind], *pair[::-1]) for pair in PAIRS]
    assert found == pytest.approx(direct, abs=ROUNDING)
    # Mixed-up pairs, directions or positions would show.
    reverse = [directly(models[kind], *pair) for pair in PAIRS]
    assert len({round(value, 2) for value in found + reverse}) == 8


# --- both: order, form, empty and long texts ----------------------------------------------------


@table("kind", SCORES)
def test_order_and_composed_accents_change_no_bit(models: dict[str, str], kind: str) -> None:
    score, model = SCORES[kind], models[kind]
    candidates = [" ".join(tiny_bert.TEXTS).lower()[start : 9 * start + 20] for start in range(20)]
    references = [[text[3:40], text[8:60]] for text in candidates[::-1]]
    expected = score(model, candidates, references)
    # BERTScore takes the best of the references, whatever their order.
    turned = [refs[:: -1 if kind == "bert" else 1] for refs in references[::-1]]
    again = score(model, candidates[::-1], turned)
    assert again.values == expected.values[::-1]
    assert again.value == expected.value
    text = CANDIDATES[2]
    apart = unicodedata.normalize("NFD", text)
    assert one(kind, model, f"  {apart}\n", text) == one(kind, model, text, text)
    assert one(kind, model, CANDIDATES[0], apart) == one(kind, model, CANDIDATES[0], text)


@table("blank", ["", "  \n\t", "...", "\u200b", "👍"])
def test_texts_without_a_word(models: dict[str, str], blank: str) -> None:
    """To BERTScore a candidate is worth 0, and a reference is left out."""
    model, text = models["bert"], CANDIDATES[0]
    with_blank = bert(model, [text, blank], [REFERENCES[0]] * 2)
    assert with_blank.value == one("bert", model, text, *REFERENCES[0]) / 2
    alone = one("bert", model, text, REFERENCES[0][0])
    assert one("bert", model, text, blank, REFERENCES[0][0], " - ") == alone
    assert one("bert", model, text, blank, " ") == 0.0
    # To BARTScore there is no likelihood.
    model = models["bart"]
    score = bart(model, [text, blank, "un gatto"], [PAIRS[0][1], "x", blank])
    assert score.values == (one("bart", model, *PAIRS[0]), None, None)
    assert score.value == score.values[0]
    score = bart(model, [blank], ["un gatto"])
    assert (score.values, score.value) == ((None,), None)


@table("kind, architecture, positions, max_length, expected")
def test_long_texts_are_cut_and_counted(
    kind, architecture, positions, max_length, expected, tmp_path
):
    options = {"positions": positions, "max_length": max_length, "headed": kind == "bart"}
    model = str(tiny_bert.build(tmp_path / "long", architecture=architecture, **options))
    if kind == "bert":
        references = [["un uomo"], ["un gatto", LONG + " verde", LONG + " verde"], [LONG]]
        score = bert(model, [LONG, "un uomo corre", LONG], references)
        said = f"4 texts of 3 different items cut to {expected} tokens"  # a repeated one once
    else:  # an item that is not scored has nothing to cut
        score = bart(model, [LONG, "un uomo", LONG, ""], ["un uomo", LONG + " verde", LONG, LONG])
        said = f"4 texts of 3 different pairs cut (encoder {expected}, decoder {expected} tokens)"
    assert said in score.note
    # What is cut is the end: beyond the limit texts may differ. The end token stays.
    same = one(kind, model, LONG, "un uomo")
    assert one(kind, model, LONG + " verde", "un uomo") == pytest.approx(same, abs=1e-6)
    if kind == "bart" and expected == 32:
        direct = directly(model, LONG, LONG, limit=expected)
        assert one(kind, model, LONG, LONG) == pytest.approx(direct, abs=ROUNDING)


def test_the_default_encoders_are_the_librarys() -> None:
    from bert_score.utils import lang2model

    assert {lang: lang2model[lang] for lang in model_scores.DEFAULTS} == model_scores.DEFAULTS
