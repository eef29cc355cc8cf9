"""BERTScore on tiny random-weight encoders: the rules are tested here, not the quality."""

from __future__ import annotations

import math
import random
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tiny_bert

from lmms_eval_tasks.utils import bertscore
from lmms_eval_tasks.utils.bertscore import BertScore, bert_score

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


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Threads cost tiny encoders more than they bring, and fight with whatever else runs."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_bert.build(tmp_path_factory.mktemp("encoder") / "tiny"))


def value(score: BertScore) -> float:
    assert score.value is not None, score.reason
    return score.value


def one(encoder: str, candidate: str, *references: str) -> float:
    return value(bert_score([candidate], [list(references)], model=encoder))


# --- which encoder ----------------------------------------------------------------------------


def test_absent_default_is_not_computed(hub_cache: Path, network: list[Any]) -> None:
    score = bert_score(CANDIDATES, REFERENCES)
    assert score.value is None
    assert score.model == "bert-base-multilingual-cased"
    assert (score.layer, score.hash, score.n_truncated, score.rescaled) == (None, None, 0, False)
    assert "not in the local Hugging Face cache" in (score.reason or "")
    assert score.describe() == f"BERTScore not computed: {score.reason}"
    assert network == []


@pytest.mark.parametrize(
    "cached", ["bert-base-multilingual-cased", "google-bert/bert-base-multilingual-cased"]
)
def test_default_from_the_cache(hub_cache: Path, network: list[Any], cached: str) -> None:
    # A vocabulary of the real one's size: over 100,000 words transformers asks the hub about it.
    tiny_bert.into_cache(hub_cache, cached, layers=12, extra_words=119_547)
    score = bert_score(CANDIDATES, REFERENCES)
    assert 0 < value(score) < 1
    assert (score.model, score.layer) == ("bert-base-multilingual-cased", 9)
    assert (score.hash or "").startswith("bert-base-multilingual-cased_L9_no-idf_version=")
    assert network == []


def test_a_cached_name_can_be_given(hub_cache: Path, network: list[Any]) -> None:
    tiny_bert.into_cache(hub_cache, "someone/italian-encoder")
    score = bert_score(CANDIDATES, REFERENCES, model="someone/italian-encoder")
    assert value(score) > 0
    assert (score.model, score.layer) == ("someone/italian-encoder", 3)
    assert network == []


def test_default_is_not_taken_from_the_working_directory(
    hub_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_bert.build(tmp_path / "bert-base-multilingual-cased")
    monkeypatch.chdir(tmp_path)
    assert bert_score(CANDIDATES, REFERENCES).value is None


@pytest.mark.parametrize("name", ["/no/such/folder", "no-such/model", "../x", "a b/c:d//e"])
def test_absent_model_of_the_user(hub_cache: Path, network: list[Any], name: str) -> None:
    score = bert_score(CANDIDATES, REFERENCES, model=name)
    assert score.value is None
    assert name in score.describe()
    assert "is no folder" in score.describe()
    assert network == []


def test_path_without_a_known_layer_takes_the_last(encoder: str, network: list[Any]) -> None:
    score = bert_score(CANDIDATES, REFERENCES, model=encoder)
    assert (score.model, score.layer, score.max_tokens) == (encoder, 3, 64)
    assert f"{encoder}_L3_no-idf_version=" in (score.hash or "")
    assert network == []


@pytest.mark.parametrize(("layers", "expected"), [(12, 9), (4, 4)])
def test_known_name_of_a_folder(tmp_path: Path, layers: int, expected: int) -> None:
    folder = tiny_bert.build(tmp_path / "bert-base-multilingual-cased", layers=layers)
    assert bert_score(CANDIDATES, REFERENCES, model=str(folder)).layer == expected


def test_layers_differ(tmp_path: Path, encoder: str) -> None:
    """The layer that is named is the layer that is used."""
    known = tiny_bert.build(tmp_path / "distilroberta-base", layers=6)  # bert-score's layer 5
    unknown = tiny_bert.build(tmp_path / "other", layers=6)
    fifth = bert_score(CANDIDATES, REFERENCES, model=str(known))
    last = bert_score(CANDIDATES, REFERENCES, model=str(unknown))
    assert (fifth.layer, last.layer) == (5, 6)
    assert abs(value(fifth) - value(last)) > 1e-4


def test_a_path_is_no_model_name(tmp_path: Path, encoder: str) -> None:
    """bert-score takes any path with t5 in it for a T5 model."""
    folder = tiny_bert.build(tmp_path / "not-t5" / "tiny")
    ours = bert_score(CANDIDATES, REFERENCES, model=str(folder))
    assert value(ours) == value(bert_score(CANDIDATES, REFERENCES, model=encoder))


# --- the same numbers as bert-score -----------------------------------------------------------


@pytest.mark.parametrize("layer", [3, 2])
def test_agrees_with_bert_score(encoder: str, monkeypatch: pytest.MonkeyPatch, layer: int) -> None:
    from bert_score import BERTScorer
    from bert_score import utils as library

    monkeypatch.setitem(library.model2layers, encoder, layer)
    theirs = BERTScorer(model_type=encoder, num_layers=layer, device="cpu")
    _, _, best = theirs.score(CANDIDATES, REFERENCES)
    ours = [
        one(encoder, candidate, *refs)
        for candidate, refs in zip(CANDIDATES, REFERENCES, strict=True)
    ]
    assert ours == pytest.approx(best.tolist(), abs=1e-5)
    score = bert_score(CANDIDATES, REFERENCES, model=encoder)
    assert value(score) == pytest.approx(best.mean().item(), abs=1e-5)
    assert score.hash == theirs.hash


def test_list_and_item_by_item_agree(encoder: str) -> None:
    together = value(bert_score(CANDIDATES, REFERENCES, model=encoder))
    alone = [
        one(encoder, candidate, *refs)
        for candidate, refs in zip(CANDIDATES, REFERENCES, strict=True)
    ]
    assert len(set(alone)) == len(alone)  # wrongly paired sentences would show
    assert together == math.fsum(alone) / len(alone)


def test_order_of_items_and_references_changes_no_bit(encoder: str) -> None:
    rng = random.Random(3)
    words = " ".join(tiny_bert.TEXTS).split()
    candidates = [" ".join(rng.sample(words, 4)) for _ in range(30)]
    references = [[" ".join(rng.sample(words, n)) for n in (2, 3, 5)] for _ in range(30)]
    expected = bert_score(candidates, references, model=encoder)
    assert 0 < value(expected) < 1
    for _ in range(4):
        order = rng.sample(range(30), 30)
        shuffled = [rng.sample(references[i], 3) for i in order]
        assert bert_score([candidates[i] for i in order], shuffled, model=encoder) == expected


def test_order_within_a_batch_is_fixed() -> None:
    """Neither the references' order nor the process's hash seed reaches the encoder."""
    texts = [f"parola {i}" for i in range(20)]
    assert bertscore._clean(texts[::-1] + texts) == sorted(texts)


def test_best_reference(encoder: str) -> None:
    near, far = "Un uomo dipinge con un pennello", "la piazza"
    scores = [one(encoder, CANDIDATES[1], reference) for reference in (near, far)]
    assert scores[0] > scores[1] + 0.01
    assert one(encoder, CANDIDATES[1], far, near) == pytest.approx(scores[0], abs=1e-6)
    assert one(encoder, CANDIDATES[1], near, near) == one(encoder, CANDIDATES[1], near)


def test_a_text_against_itself(encoder: str) -> None:
    identical = bert_score(CANDIDATES, [[text] for text in CANDIDATES], model=encoder)
    assert value(identical) == pytest.approx(1.0, abs=1e-6)
    assert value(identical) <= 1.0


def test_composed_and_decomposed_are_equal(encoder: str) -> None:
    text = "La città è grande, perché l'uomo corre"
    apart = unicodedata.normalize("NFD", text)
    assert apart != text
    assert one(encoder, apart, REFERENCES[2][0]) == one(encoder, text, REFERENCES[2][0])
    assert one(encoder, CANDIDATES[2], apart) == one(encoder, CANDIDATES[2], text)


# --- empty and long texts ---------------------------------------------------------------------


@pytest.mark.parametrize("blank", ["", "  \n\t", "...", "\u200b", "👍"])
def test_candidate_without_a_word_scores_0(encoder: str, blank: str) -> None:
    assert one(encoder, blank, "Il gatto dorme.", "...") == 0.0
    with_blank = bert_score([CANDIDATES[0], blank], [REFERENCES[0]] * 2, model=encoder)
    assert value(with_blank) == one(encoder, CANDIDATES[0], *REFERENCES[0]) / 2


def test_references_without_a_word(encoder: str) -> None:
    alone = one(encoder, CANDIDATES[0], REFERENCES[0][0])
    assert one(encoder, CANDIDATES[0], "", REFERENCES[0][0], " - ") == alone
    assert one(encoder, CANDIDATES[0], "", " ") == 0.0
    assert one(encoder, "", "") == 0.0


LONG = " ".join(["un uomo corre nel parco"] * 120)


@pytest.mark.parametrize(
    ("architecture", "positions", "max_length", "expected"),
    [
        ("bert", 64, None, 64),  # a tokenizer that says 10^30: OverflowError in bert-score
        ("bert", 64, 512, 64),  # more than the encoder has positions
        ("bert", 64, 32, 32),
        ("xlm-roberta", 66, None, 64),  # two positions are taken by the padding index
        ("bart", 64, None, 64),
        ("t5", 0, None, 512),  # no limit anywhere
    ],
)
def test_long_texts_are_cut_and_counted(
    tmp_path: Path, architecture: str, positions: int, max_length: int | None, expected: int
) -> None:
    folder = tiny_bert.build(
        tmp_path / "long", architecture=architecture, positions=positions, max_length=max_length
    )
    score = bert_score(
        [LONG, "un uomo corre", LONG],
        [["un uomo"], ["un gatto", LONG + " verde", LONG + " verde"], [LONG]],
        model=str(folder),
    )
    assert score.max_tokens == expected
    # Two candidates, and two references: the repeated one counts once.
    assert score.n_truncated == 4
    assert f"4 texts cut to {expected} tokens" in score.describe()
    # What is cut is the end: beyond the limit texts may differ.
    assert one(str(folder), LONG, LONG + " verde") == pytest.approx(1.0, abs=1e-6)


def test_text_of_exactly_the_limit_is_not_cut(tmp_path: Path) -> None:
    folder = tiny_bert.build(tmp_path / "exact", max_length=8)
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    exact, over = "un un un un un un", "un un un un un un un"
    assert len(tokenizer(exact)["input_ids"]) == 8
    assert bert_score([exact], [[exact]], model=str(folder)).n_truncated == 0
    assert bert_score([over], [[exact]], model=str(folder)).n_truncated == 1


def test_describe_names_everything(encoder: str) -> None:
    score = bert_score(CANDIDATES, REFERENCES, model=encoder)
    text = score.describe()
    for part in (f"{score.value:.4f}", encoder, "layer 3", "not rescaled", str(score.hash)):
        assert part in text
    assert "0 texts cut to 64 tokens" in text
    assert "\n" not in text


# --- encoders that cannot be used -------------------------------------------------------------


def tensors(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def save(folder: Path, weights: dict[str, Any]) -> None:
    from safetensors.torch import save_file

    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def not_computed(folder: Path) -> str:
    score = bert_score(CANDIDATES, REFERENCES, model=str(folder))
    assert score.value is None
    assert score.reason is not None
    return score.reason


def test_missing_weights_are_not_random(tmp_path: Path) -> None:
    folder = tiny_bert.build(tmp_path / "missing")
    weights = tensors(folder)
    del weights["encoder.layer.1.attention.self.query.weight"]
    save(folder, weights)
    assert "1 weights are not in the folder" in not_computed(folder)


def test_a_missing_pooler_is_no_loss(tmp_path: Path) -> None:
    folder = tiny_bert.build(tmp_path / "pooler")
    before = one(str(folder), CANDIDATES[0], *REFERENCES[0])
    save(folder, {key: w for key, w in tensors(folder).items() if "pooler" not in key})
    assert one(str(folder), CANDIDATES[0], *REFERENCES[0]) == before


def test_half_precision_is_computed_in_single(tmp_path: Path) -> None:
    import torch

    folder = tiny_bert.build(tmp_path / "half")
    rounded = {key: weight.half() for key, weight in tensors(folder).items()}
    save(folder, {key: weight.float() for key, weight in rounded.items()})
    single = one(str(folder), CANDIDATES[0], *REFERENCES[0])
    save(folder, rounded)
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"float32"', '"float16"'))
    assert "float16" in config.read_text()
    assert one(str(folder), CANDIDATES[0], *REFERENCES[0]) == single
    assert torch.get_default_dtype() == torch.float32


def test_output_that_is_not_finite(tmp_path: Path) -> None:
    folder = tiny_bert.build(tmp_path / "nan")
    weights = tensors(folder)
    from transformers import AutoTokenizer

    # One candidate has this word, and no reference; bert-score would count that item as 0.
    piece = AutoTokenizer.from_pretrained(folder)("verde")["input_ids"][1]
    weights["embeddings.word_embeddings.weight"][piece] = float("nan")
    save(folder, weights)
    assert "not finite" in not_computed(folder)


@pytest.mark.parametrize("broken", ["no weights", "cut weights", "no tokenizer", "no config"])
def test_incomplete_folder(tmp_path: Path, network: list[Any], broken: str) -> None:
    folder = tiny_bert.build(tmp_path / "broken")
    weights = folder / "model.safetensors"
    if broken == "no weights":
        weights.unlink()
    elif broken == "cut weights":
        weights.write_bytes(weights.read_bytes()[:1000])
    elif broken == "no config":
        (folder / "config.json").unlink()
    else:
        (folder / "tokenizer.json").unlink()
    assert str(folder) in not_computed(folder)
    assert network == []


@pytest.mark.parametrize(
    ("candidates", "references"),
    [([], []), (["a"], []), (["a"], [[]]), (["a", "b"], [["a"], []]), (["a"], ["a"])],
)
def test_malformed_corpus(encoder: str, candidates: list[str], references: list[Any]) -> None:
    with pytest.raises(ValueError, match=r"no items|candidates but|no references|not one text"):
        bert_score(candidates, references, model=encoder)
