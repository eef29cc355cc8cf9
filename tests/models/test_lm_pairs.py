"""lm_pairs on tiny random GPT-2 and Llama checkpoints: scores by hand, models one at a time."""

from __future__ import annotations

import gc
import json
import weakref
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.models import lm_pairs, tiny
from lmms_eval_tasks.models.lm_pairs import LmPairs
from tests.checks import refused, table

STATEMENTS = [
    "L'uomo che dipinge la barca è tranquillo.",
    "L'uomo che dipinge la barca sembra molto agitato e distratto, perché piove.",
    "Ciao!",
    "Una donna cammina nella strada affollata e sorride.",
    "Una donna cammina nella strada deserta.",
    "Piove.",
]
DOCS = [{"options": STATEMENTS[i : i + 2]} for i in range(0, len(STATEMENTS), 2)]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("models")
    return {kind: str(tiny.build_checkpoint(kind, folder / kind)) for kind in ("gpt2", "llama")}


def requests(*doc_ids: int) -> list[Any]:
    return [
        SimpleNamespace(args=("", {"until": []}, lambda doc: None, doc_id, "pairs", "test"))
        for doc_id in doc_ids
    ]


def run(models: str, doc_ids: list[int], **kwargs: Any) -> list[str]:
    lm = LmPairs(models, **kwargs)
    lm.task_dict = {"pairs": {"test": DOCS}}
    return lm.generate_until(requests(*doc_ids))


def by_hand(folder: str, text: str) -> float:
    """One token after the other: log-probability of each token but the first, given all before."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    ids = AutoTokenizer.from_pretrained(folder)(text)["input_ids"]
    total = 0.0
    for place in range(1, len(ids)):
        with torch.no_grad():
            logits = model(torch.tensor([ids[:place]])).logits[0, -1].double()
        total += float(logits[ids[place]] - torch.logsumexp(logits, 0))
    return total / (len(ids) - 1)


@table("kind", ["gpt2", "llama"])
def test_scores_are_the_mean_log_probability_by_hand(kind: str, models: dict[str, str]) -> None:
    (reply,) = run(models[kind], [0])
    scores = json.loads(reply)["lm_pairs"]["scores"][models[kind]]
    expected = [by_hand(models[kind], text) for text in STATEMENTS[:2]]
    assert scores == pytest.approx(expected, abs=2e-6)
    assert abs(expected[0] - expected[1]) > 1e-3
    # Llama begins with a token that has no probability, GPT-2 with a word's; neither has a padding
    # token, as Llama-3.1, the checkpoint the paper used most closely.
    tokenizer = lm_pairs.load_pretrained("AutoTokenizer", models[kind])
    texts = [lm_pairs.tokenize(tokenizer, text, kind) for text in STATEMENTS]
    assert (tokenizer.convert_ids_to_tokens(texts[0])[0] == "<s>") == (kind == "llama")
    assert tokenizer.pad_token is None


def test_replies_are_in_order_whatever_the_batch(models: dict[str, str]) -> None:
    both = ",".join(models.values())
    single = [run(both, [i])[0] for i in range(3)]
    # A padding request of an idle rank repeats the last doc.
    assert run(both, [2, 0, 1, 1, 1]) == [single[i] for i in (2, 0, 1, 1, 1)]
    for reply, alone in zip(run(both, [2, 0, 1], batch_size="2"), (2, 0, 1), strict=True):
        read, expected = (json.loads(one)["lm_pairs"] for one in (reply, single[alone]))
        assert read["choice"] == expected["choice"]
        assert list(read["scores"]) == list(models.values())
        for name, scores in expected["scores"].items():
            assert read["scores"][name] == pytest.approx(scores, abs=5e-6)


def test_one_model_in_memory_at_a_time(
    models: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    alive: list[weakref.ref[Any]] = []
    real = lm_pairs.load_pretrained

    def load(loader: str, name: str, **kwargs: Any) -> Any:
        loaded = real(loader, name, **kwargs)
        if loader == "AutoModelForCausalLM":
            gc.collect()
            assert [ref for ref in alive if ref() is not None] == []
            alive.append(weakref.ref(loaded))
        return loaded

    monkeypatch.setattr(lm_pairs, "load_pretrained", load)
    run(",".join(models.values()), [0, 1])
    assert len(alive) == 2


@table(
    "text, message",
    [
        ("", "requires its models"),
        ("a,b", "unknown argument 'a,b'"),
        ("pretrained=a,speed=3", "unknown argument 'speed'"),
        ("pretrained=a,b,a", "each once: .* not a, b, a"),
        ("pretrained=a,dtype=int8", "dtype=int8"),
        ("pretrained=a,batch_size=auto", "batch_size=auto"),
        ("pretrained=./nowhere", r"\./nowhere cannot be loaded"),
    ],
)
def test_argument_errors(text: str, message: str) -> None:
    config = {"batch_size": 1, "device": None}
    refused(TasksError, message, LmPairs.create_from_arg_string, text, config)


def test_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commas of names belong to them; the model's own win over the command line's."""
    monkeypatch.setattr(lm_pairs, "load_pretrained", lambda loader, name: name)
    config = {"batch_size": 1, "max_batch_size": None, "device": "cpu"}
    for text, names, size in (
        ("dtype=auto, pretrained=a, b ,batch_size=3", ["a", "b"], 3),
        ("pretrained=/x/lr=3/a,/x/lr=4/b", ["/x/lr=3/a", "/x/lr=4/b"], 1),
    ):
        lm = LmPairs.create_from_arg_string(text, config)
        assert (lm.names, lm.batch_size) == (names, size)
        assert lm.compute_device == torch.device("cpu")


def test_what_cannot_be_scored(models: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    lm = LmPairs(models["gpt2"])
    for options in (None, ["one"], ["a", "b", "c"], ["a", None], ["x", "Piove."]):
        lm.task_dict = {"pairs": {"test": [{"options": options}]}}
        words = "pairs, doc 0: no two statements|'x' has 1 token under"
        refused(TasksError, words, lm.generate_until, requests(0))
    monkeypatch.setattr(lm_pairs, "mean_logprobs", lambda m, texts: [float("nan")] * len(texts))
    refused(TasksError, r"gives .nan, nan. for .*try dtype=float32", run, models["gpt2"], [0])
