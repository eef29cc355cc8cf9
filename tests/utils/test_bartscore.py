"""BARTScore on tiny models with random weights: the rules are tested here, not the quality.

No BART weights come with any package; what real ones would give was not checked.
"""

from __future__ import annotations

import json
import math
import random
import socket
import subprocess
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tiny_bert

from lmms_eval_tasks.utils import seq2seq
from lmms_eval_tasks.utils.bartscore import DIRECTIONS, bart_score, problem

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
ROUNDING = 1e-5  # of single precision, over batches of different shapes


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Threads cost tiny models more than they bring, and fight with whatever else runs."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Random-weight BART and T5, saved whole as released ones are."""
    return {
        kind: str(build(tmp_path_factory.mktemp("models") / kind, kind)) for kind in ("bart", "t5")
    }


@pytest.fixture(scope="module")
def bart(folders: dict[str, str]) -> str:
    return folders["bart"]


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every attempt to reach the network, as if it were allowed; none succeeds."""
    from huggingface_hub import constants

    attempts: list[Any] = []

    def refuse(*args: Any, **kwargs: Any) -> None:
        attempts.append(args)
        raise OSError("no network in tests")

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    return attempts


def build(folder: Path, kind: str, **options: Any) -> Path:
    """A sequence-to-sequence model with its head; BART's bias on the logits is not zero."""
    import torch
    from transformers import AutoModelForSeq2SeqLM

    tiny_bert.build(folder, architecture=kind, **options)
    model = AutoModelForSeq2SeqLM.from_pretrained(folder)
    if kind == "bart":
        torch.manual_seed(7)
        model.final_logits_bias.copy_(torch.randn_like(model.final_logits_bias))
    model.save_pretrained(folder)
    return folder


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
            logits = model(
                input_ids=torch.tensor([read]), decoder_input_ids=torch.tensor([before])
            ).logits
            total += torch.log_softmax(logits[0, -1].double(), -1)[token].item()
            before.append(token)
    return total / len(scored)


def values(
    folder: str, candidates: Sequence[str], references: Sequence[str], **options: Any
) -> list[float]:
    score = bart_score(candidates, references, model=folder, **options)
    assert score.reason is None, score.reason
    assert None not in score.values
    return [value for value in score.values if value is not None]


def one(folder: str, candidate: str, reference: str, **options: Any) -> float:
    (value,) = values(folder, [candidate], [reference], **options)
    return value


# --- the definition ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bart", "t5"])
def test_a_direct_forward_pass_gives_the_same(folders: dict[str, str], kind: str) -> None:
    folder = folders[kind]
    pairs = list(zip(CANDIDATES, REFERENCES, strict=True))
    given = values(folder, CANDIDATES, REFERENCES)
    assert given == pytest.approx([directly(folder, r, c) for c, r in pairs], abs=ROUNDING)
    reverse = values(folder, CANDIDATES, REFERENCES, direction="recall")
    assert reverse == pytest.approx([directly(folder, c, r) for c, r in pairs], abs=ROUNDING)
    assert all(value < 0 for value in given)
    # Mixed-up pairs, directions or positions would show.
    assert len({round(value, 2) for value in given + reverse}) == 8


def test_the_default_direction_is_the_candidate_given_the_reference(bart: str) -> None:
    candidate, reference = CANDIDATES[0], REFERENCES[0]
    forward = one(bart, candidate, reference)
    assert forward == one(bart, candidate, reference, direction="precision")
    assert forward == one(bart, reference, candidate, direction="recall")
    assert abs(forward - one(bart, reference, candidate)) > 0.01
    assert DIRECTIONS == {
        "precision": "P(candidate | reference)",
        "recall": "P(reference | candidate)",
    }


@pytest.mark.parametrize("kind", ["bart", "t5"])
@pytest.mark.parametrize("batch_size", [1, 2, 3, 16])
def test_a_list_and_item_by_item_agree(folders: dict[str, str], kind: str, batch_size: int) -> None:
    folder = folders[kind]
    together = values(folder, CANDIDATES, REFERENCES, batch_size=batch_size)
    alone = [one(folder, c, r) for c, r in zip(CANDIDATES, REFERENCES, strict=True)]
    assert together == pytest.approx(alone, abs=ROUNDING)


def test_padding_would_show_without_its_masks(bart: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test above rests on: with every padded place counted, items change visibly."""
    import torch

    alone = [one(bart, c, r) for c, r in zip(CANDIDATES, REFERENCES, strict=True)]
    padded = seq2seq._padded

    def unmasked(*arguments: Any) -> tuple[Any, Any]:
        ids, mask = padded(*arguments)
        return ids, torch.ones_like(mask)

    monkeypatch.setattr(seq2seq, "_padded", unmasked)
    wrong = values(bart, CANDIDATES, REFERENCES)
    assert max(abs(a - b) for a, b in zip(alone, wrong, strict=True)) > 0.05


def test_the_order_of_items_changes_no_bit(bart: str) -> None:
    rng = random.Random(3)
    words = " ".join(tiny_bert.TEXTS).split()
    texts = [" ".join(rng.sample(words, rng.randint(1, 12))) for _ in range(40)]
    candidates, references = texts[:20] * 2, texts[20:] * 2
    expected = bart_score(candidates, references, model=bart, batch_size=4)
    assert expected.values[:20] == expected.values[20:]
    order = rng.sample(range(40), 40)
    again = bart_score(
        [candidates[i] for i in order], [references[i] for i in order], model=bart, batch_size=4
    )
    assert list(again.values) == [expected.values[i] for i in order]
    assert again.value == expected.value


def test_batches_stay_below_a_number_of_tokens(bart: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: list[tuple[int, int]] = []
    padded = seq2seq._padded

    def noted(*arguments: Any) -> tuple[Any, Any]:
        ids, mask = padded(*arguments)
        shapes.append(tuple(ids.shape))
        return ids, mask

    expected = values(bart, CANDIDATES, REFERENCES)
    monkeypatch.setattr(seq2seq, "_padded", noted)
    monkeypatch.setattr(seq2seq, "_MAX_BATCH_TOKENS", 24)
    assert values(bart, CANDIDATES, REFERENCES) == pytest.approx(expected, abs=ROUNDING)
    targets = shapes[1::2]
    assert len(targets) > 1
    assert sum(rows for rows, _ in targets) == len(CANDIDATES)
    assert all(rows == 1 or rows * longest <= 24 for rows, longest in targets)


def test_mean_and_exponentiated_values(bart: str) -> None:
    score = bart_score([*CANDIDATES, ""], [*REFERENCES, "un gatto"], model=bart)
    known = values(bart, CANDIDATES, REFERENCES)
    assert score.values == (*known, None)
    assert score.value == pytest.approx(math.fsum(known) / 4)
    assert score.likelihoods[4] is None
    assert score.likelihoods[:4] == tuple(math.exp(value) for value in known)
    assert all(0 < p < 1 for p in score.likelihoods[:4] if p is not None)


def test_composed_and_decomposed_are_equal(bart: str) -> None:
    text = CANDIDATES[3]
    apart = unicodedata.normalize("NFD", text)
    assert apart != text
    assert one(bart, f"  {apart}\n", REFERENCES[0]) == one(bart, text, REFERENCES[0])
    assert one(bart, CANDIDATES[0], apart) == one(bart, CANDIDATES[0], text)


# --- empty and long texts ---------------------------------------------------------------------


@pytest.mark.parametrize("blank", ["", "  \n\t", "...", "\u200b", "👍"])
def test_a_text_without_a_word_has_no_likelihood(bart: str, blank: str) -> None:
    score = bart_score([CANDIDATES[0], blank, "un gatto"], [REFERENCES[0], "x", blank], model=bart)
    assert score.values == (one(bart, CANDIDATES[0], REFERENCES[0]), None, None)
    assert score.value == score.values[0]
    assert "2 of 3 items left out for lack of words" in score.describe()


def test_nothing_but_texts_without_a_word(bart: str) -> None:
    score = bart_score(["", "..."], ["un gatto", "un uomo"], model=bart)
    assert (score.values, score.value, score.reason) == ((None, None), None, None)
    assert score.describe().startswith("BARTScore of no item, ")


LONG = " ".join(["un uomo corre nel parco"] * 120)


@pytest.mark.parametrize(
    ("kind", "positions", "max_length", "expected"),
    [
        ("bart", 64, None, 64),  # a tokenizer that says 10^30
        ("bart", 64, 512, 64),  # more than the model has positions
        ("bart", 64, 32, 32),
        ("t5", 0, None, 512),  # no limit anywhere
    ],
)
def test_long_texts_are_cut_and_counted(
    tmp_path: Path, kind: str, positions: int, max_length: int | None, expected: int
) -> None:
    folder = str(build(tmp_path / kind, kind, positions=positions, max_length=max_length))
    score = bart_score(
        [LONG, "un uomo corre", LONG, ""],
        ["un uomo", LONG + " verde", LONG, LONG],
        model=folder,
    )
    assert (score.max_source, score.max_target) == (expected, expected)
    # An item that is not scored has nothing to cut.
    assert score.n_truncated == 4
    assert f"4 texts cut (encoder {expected}, decoder {expected} tokens)" in score.describe()
    # What is cut is the end, and the end token stays.
    assert one(folder, LONG, "un uomo") == one(folder, LONG + " verde", "un uomo")
    if expected == 32:
        direct = directly(folder, LONG, LONG, limit=expected)
        assert one(folder, LONG, LONG) == pytest.approx(direct, abs=ROUNDING)


def test_a_text_of_exactly_the_limit_is_not_cut(tmp_path: Path) -> None:
    folder = str(build(tmp_path / "exact", "bart", max_length=8))
    exact, over = "un un un un un un", "un un un un un un un"
    assert bart_score([exact], [exact], model=folder).n_truncated == 0
    assert bart_score([over], [exact], model=folder).n_truncated == 1
    assert bart_score([over], [over], model=folder).n_truncated == 2


@pytest.mark.parametrize(
    ("config", "encoder", "decoder"),
    [
        ({"max_position_embeddings": 1024}, 1024, 1024),  # BART
        (
            {"max_encoder_position_embeddings": 16384, "max_decoder_position_embeddings": 1024},
            16384,
            1024,
        ),  # LED
        ({}, None, None),  # T5
        (
            {
                "encoder": SimpleNamespace(max_position_embeddings=512),
                "decoder": SimpleNamespace(max_position_embeddings=128),
            },
            512,
            128,
        ),  # put together from two models
    ],
)
def test_limits_of_both_sides(config: dict[str, Any], encoder: int, decoder: int) -> None:
    made = SimpleNamespace(**config)
    assert seq2seq._positions(made, "encoder") == encoder
    assert seq2seq._positions(made, "decoder") == decoder


# --- which model ------------------------------------------------------------------------------


def test_a_cached_name_with_its_commit(hub_cache: Path, network: list[Any]) -> None:
    folder = tiny_bert.into_cache(hub_cache, "someone/tiny-bart", architecture="bart")
    assert problem("someone/tiny-bart") is None
    score = bart_score(CANDIDATES, REFERENCES, model="someone/tiny-bart")
    assert score.reason is None
    assert (score.model, score.revision) == ("someone/tiny-bart", folder.name)
    assert f"model someone/tiny-bart at {folder.name[:12]}, transformers " in score.describe()
    assert network == []


@pytest.mark.parametrize("name", ["/no/such/folder", "no-such/model", "../x", "a b/c:d//e"])
def test_an_absent_model(hub_cache: Path, network: list[Any], name: str) -> None:
    score = bart_score(CANDIDATES, REFERENCES, model=name)
    said = (
        f"sequence-to-sequence model {name!r} is not in the local Hugging Face cache and is no "
        "folder"
    )
    assert (score.value, score.values) == (None, (None,) * 4)
    assert score.reason == problem(name) == said
    assert score.describe() == f"BARTScore not computed: {said}"
    assert network == []


def test_describe_names_everything(bart: str) -> None:
    import transformers

    score = bart_score(CANDIDATES, REFERENCES, model=bart, direction="recall")
    assert score.value is not None
    shown = math.fsum(p for p in score.likelihoods if p is not None) / 4
    assert score.describe() == (
        f"BARTScore {score.value:.4f} (exponentiated per item {shown:.4f}), mean token "
        f"log-likelihood P(reference | candidate) (recall); model {bart}, transformers "
        f"{transformers.__version__}, float32; 0 texts cut (encoder 64, decoder 64 tokens); "
        "0 of 4 items left out for lack of words"
    )


# --- models that cannot be used ---------------------------------------------------------------


def tensors(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def save(folder: Path, weights: dict[str, Any]) -> None:
    from safetensors.torch import save_file

    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def reason(folder: Path) -> str:
    score = bart_score(CANDIDATES, REFERENCES, model=str(folder))
    assert score.value is None
    assert score.values == (None,) * 4
    assert score.reason is not None
    assert score.reason.startswith(str(folder))
    assert "\n" not in score.reason
    return score.reason


def test_an_encoder_alone_is_none(tmp_path: Path) -> None:
    folder = tiny_bert.build(tmp_path / "bert")
    assert problem(str(folder)) == (
        f"{folder}: bert is no sequence-to-sequence model such as BART or T5"
    )
    assert "BertConfig" in reason(folder)


def test_missing_weights_are_not_random(tmp_path: Path) -> None:
    folder = build(tmp_path / "missing", "bart")
    weights = tensors(folder)
    del weights["model.decoder.layers.0.encoder_attn.k_proj.weight"]
    save(folder, weights)
    assert problem(str(folder)) is None  # weights are not read before a run
    assert "1 weights are not in the folder" in reason(folder)


def test_half_precision_is_computed_in_single(tmp_path: Path) -> None:
    folder = build(tmp_path / "half", "bart")
    rounded = {key: weight.half() for key, weight in tensors(folder).items()}
    save(folder, {key: weight.float() for key, weight in rounded.items()})
    single = values(str(folder), CANDIDATES, REFERENCES)
    save(folder, rounded)
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"float32"', '"float16"'))
    assert "float16" in config.read_text()
    assert values(str(folder), CANDIDATES, REFERENCES) == single


def test_output_that_is_not_finite(tmp_path: Path) -> None:
    folder = build(tmp_path / "nan", "bart")
    weights = tensors(folder)
    weights["final_logits_bias"][0, 5] = float("nan")
    save(folder, weights)
    assert "not finite" in reason(folder)


@pytest.mark.parametrize("broken", ["no weights", "cut weights", "no tokenizer", "no config"])
def test_an_incomplete_folder(tmp_path: Path, network: list[Any], broken: str) -> None:
    folder = build(tmp_path / "broken", "bart")
    weights = folder / "model.safetensors"
    if broken == "no weights":
        weights.unlink()
    elif broken == "cut weights":
        weights.write_bytes(weights.read_bytes()[:1000])
    elif broken == "no config":
        (folder / "config.json").unlink()
    else:
        (folder / "tokenizer.json").unlink()
    assert reason(folder)
    assert (problem(str(folder)) is not None) == (broken == "no config")
    assert "\n" not in (problem(str(folder)) or "")
    assert network == []


def test_code_of_a_folder_is_not_run(tmp_path: Path, network: list[Any]) -> None:
    folder = build(tmp_path / "code", "bart")
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "own",
        "auto_map": {"AutoConfig": "own.Own", "AutoModelForSeq2SeqLM": "own.Own"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Own: pass\n")
    assert reason(folder)
    assert problem(str(folder))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("candidates", "references", "options", "said"),
    [
        ([], [], {}, "no items"),
        (["a"], [], {}, "1 candidates but 0 references"),
        (["a"], ["a", "b"], {}, "1 candidates but 2 references"),
        (["a"], ["a"], {"direction": "f1"}, "no direction 'f1': choose one of precision, recall"),
        (["a"], ["a"], {"batch_size": 0}, "at least 1"),
    ],
)
def test_malformed_calls(
    candidates: list[str], references: list[str], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        bart_score(candidates, references, model="/no/such/folder", **options)


def test_importing_brings_neither_torch_nor_transformers() -> None:
    modules = "lmms_eval_tasks.utils.bartscore, lmms_eval_tasks.movierecapsqa.metrics"
    code = f"import sys, {modules}; print({{'torch', 'transformers'}} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "set()"
