"""Models of metrics, from this machine only: which are found, and what is said of bad ones.

BERTScore, BARTScore and CLIPScore find, load and refuse models in the same way: each case is tried
on all three. The models are tiny and their weights random.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tiny_bert
import tiny_clip
from tiny_clip import SENTENCES, given

from lmms_eval_tasks.utils.metrics import clipscore, local_models
from lmms_eval_tasks.utils.metrics.model_scores import bart_score, bert_score
from tests.checks import table

pytestmark = pytest.mark.usefixtures("one_thread", "none_kept")
TEXTS = tiny_bert.TEXTS[:2]


class Metric(NamedTuple):
    """A metric over models: how to build one, and what is found out about one."""

    build: Callable[..., Path]
    score: Callable[[str], tuple[float | None, str]]  # the number, or None; and a note
    needed: str  # a weight without which there is no number
    nan: str  # a weight that, not finite, spoils every number
    files: tuple[str, ...]  # each of them is needed


def told(scores: local_models.ModelScores) -> tuple[float | None, str]:
    return scores.value, scores.note


def described(kind: str, model: str) -> str:
    """The line below a table."""
    return clipscore.describe_encoder(model) if kind == "clip" else METRICS[kind].score(model)[1]


FILES = ("model.safetensors", "tokenizer.json", "config.json")
METRICS = {
    "bert": Metric(
        tiny_bert.build,
        lambda model: told(bert_score(TEXTS, [[text] for text in TEXTS[::-1]], model=model)),
        "encoder.layer.1.attention.self.query.weight",
        "embeddings.LayerNorm.weight",
        FILES,
    ),
    "bart": Metric(
        lambda folder: tiny_bert.build(folder, architecture="bart", headed=True),
        lambda model: told(bart_score(TEXTS, TEXTS[::-1], model=model)),
        "model.decoder.layers.0.encoder_attn.k_proj.weight",
        "final_logits_bias",
        FILES,
    ),
    "clip": Metric(
        tiny_clip.build,
        lambda model: clipscore.clip_score(SENTENCES, given(["sea"]), model),
        "text_projection.weight",
        "visual_projection.weight",
        (*FILES, "preprocessor_config.json"),
    ),
}
each = table("kind", METRICS)


def change(folder: Path, edit: Callable[[str, Any], Any]) -> None:
    """Other weights in the same file; those of which `edit` makes None are left out."""
    from safetensors.torch import load_file, save_file

    weights = {name: edit(name, one) for name, one in load_file(folder / FILES[0]).items()}
    kept = {name: one for name, one in weights.items() if one is not None}
    save_file(kept, folder / FILES[0], metadata={"format": "pt"})
    local_models.loaded.cache_clear()


def reason(kind: str, folder: Path) -> str:
    """Why there is no number: one line with the folder."""
    value, note = METRICS[kind].score(str(folder))
    assert value is None
    why = note if kind == "clip" else note.partition(" not computed: ")[2]
    assert why.startswith(str(folder))
    assert "\n" not in why
    return str(why)


@each
@table("name", ["/no/such/folder", "no-such/model", "a b/c:d//e"])
def test_an_absent_model(kind, name, hub_cache, network) -> None:
    assert METRICS[kind].score(name)[0] is None
    _, _, why = described(kind, name).partition(" not computed: ")
    assert why.endswith(f"{name!r} is neither a folder nor in the local Hugging Face cache")
    assert local_models.problem(why.partition(f" {name!r}")[0], name) == why
    assert network == []


@each
def test_a_cached_name_with_its_commit(kind, hub_cache, network, tmp_path) -> None:
    metric = METRICS[kind]
    built = metric.build(tmp_path / "built")
    commit = "0123456789abcdef0123456789abcdef01234567"
    name = f"someone/{kind}"
    repository = hub_cache / f"models--someone--{kind}"
    shutil.copytree(built, repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    assert metric.score(name)[0] is not None
    assert local_models.problem(kind, name) is None
    assert name in described(kind, name)
    assert kind == "bert" or f"model {name} at {commit[:12]}, " in described(kind, name)
    assert network == []


@each
def test_weights_that_are_missing_or_not_finite(kind, tmp_path) -> None:
    metric = METRICS[kind]
    folder = metric.build(tmp_path / "model")
    whole = (folder / "model.safetensors").read_bytes()
    change(folder, lambda name, one: one.fill_(math.nan) if name == metric.nan else one)
    assert "not finite" in reason(kind, folder)
    (folder / "model.safetensors").write_bytes(whole)
    change(folder, lambda name, one: None if name == metric.needed else one)
    assert f"1 weights are not in the folder, e.g. {metric.needed}" in reason(kind, folder)
    assert described(kind, str(folder)).endswith(f"Score not computed: {reason(kind, folder)}")
    assert local_models.problem(kind, str(folder)) is None  # they are not read before a run


@each
def test_an_incomplete_folder(kind, tmp_path, network) -> None:
    metric = METRICS[kind]
    folder = metric.build(tmp_path / "whole")
    for name in (*metric.files, "cut"):
        broken = shutil.copytree(folder, tmp_path / name)
        (broken / (FILES[0] if name == "cut" else name)).unlink()
        if name == "cut":
            (broken / FILES[0]).write_bytes((folder / FILES[0]).read_bytes()[:1000])
        assert reason(kind, broken)
        assert (local_models.problem(kind, str(broken)) is None) == (name != "config.json")
    assert network == []


@each
def test_half_precision_is_computed_in_single(kind, tmp_path) -> None:
    import torch

    metric = METRICS[kind]
    folder = metric.build(tmp_path / "half")
    change(folder, lambda _, one: one.half().float())
    single = metric.score(str(folder))[0]
    change(folder, lambda _, one: one.half())
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"float32"', '"float16"'))
    assert "float16" in config.read_text()
    # In half precision it would differ in the fourth digit.
    assert metric.score(str(folder))[0] == pytest.approx(single, abs=1e-6)
    assert torch.get_default_dtype() == torch.float32


@each
def test_code_of_a_folder_is_not_run(kind, tmp_path, network) -> None:
    metric = METRICS[kind]
    folder = metric.build(tmp_path / "code")
    config = json.loads((folder / "config.json").read_text())
    classes = ("AutoConfig", "AutoModel", "AutoModelForSeq2SeqLM")
    config |= {"model_type": "own", "auto_map": dict.fromkeys(classes, "own.Own")}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Own: pass\n")
    metric.score(str(folder))
    assert local_models.problem(kind, str(folder))
    assert not (tmp_path / "ran").exists()


def test_another_kind_of_model(tmp_path: Path) -> None:
    folder = tiny_bert.build(tmp_path / "bert")
    assert reason("bart", folder)
    assert reason("clip", folder)
