"""Which CLIP models are found and comparable, and what is told of those that cannot be used."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tiny_clip
from clip_scoring import SENTENCES, given

from lmms_eval_tasks.utils import clip_encoder, clipscore, local_models
from lmms_eval_tasks.utils.clipscore import ClipScore, clip_score, problem

pytestmark = pytest.mark.usefixtures("one_thread", "no_clip_kept")


@pytest.mark.parametrize(
    ("name", "comparable"),
    [("openai/clip-vit-base-patch32", True), ("someone/clip-vit-base-patch32", False)],
)
def test_a_cached_name_with_its_commit(
    hub_cache: Path, network: list[Any], name: str, comparable: bool
) -> None:
    import transformers

    folder = tiny_clip.into_cache(hub_cache, name)
    assert problem(name) is None
    assert clip_score(SENTENCES, given(["sea"]), name).value is not None
    assert clipscore.is_comparable(name) is comparable
    said = (
        "CLIPScore: 2.5 * max(0, cosine), mean over all pairs of a sentence and a frame; sentences "
        f"as they are, without a prompt; model {name} at {folder.name[:12]}, transformers "
        f"{transformers.__version__}, float32; 0 of 3 sentences cut to 16 tokens"
    )
    doubt = "" if comparable else f"; {local_models.NOT_COMPARABLE}"
    assert clipscore.describe(name) == said + doubt
    assert network == []


def test_a_folder_is_not_comparable_and_has_a_hash(clip: str, tmp_path: Path) -> None:
    """Whose weights it holds nobody can tell; whether two folders hold the same, the hash does."""
    described = clipscore.describe(clip)
    assert described.endswith(local_models.NOT_COMPARABLE)
    assert "NOT COMPARABLE" in described
    digest = local_models.weights(Path(clip))
    assert f"model {clip} (SHA-256 of its weights {digest}), transformers" in described
    copy = shutil.copytree(clip, tmp_path / "copy")
    assert local_models.weights(copy) == digest
    other = tiny_clip.build(tmp_path / "other", seed=1)
    assert local_models.weights(other) != digest
    # Its name does not make it one of OpenAI's.
    disguised = shutil.copytree(clip, tmp_path / "openai" / "clip-vit-base-patch32")
    assert not clipscore.is_comparable(str(disguised))


@pytest.mark.parametrize(
    "name", ["/no/such/folder", "no-such/model", "../no-such-folder", "a b/c:d//e"]
)
def test_an_absent_model(hub_cache: Path, network: list[Any], name: str) -> None:
    said = f"CLIP model {name!r} is not in the local Hugging Face cache and is no folder"
    assert clip_score(SENTENCES, given(["sea"]), name) == ClipScore(None, 3, 0, said)
    assert problem(name) == said
    assert clipscore.describe(name) == f"CLIPScore not computed: {said}"
    assert not clipscore.is_comparable(name)
    assert network == []


def reason(folder: Path) -> str:
    score = clip_score(SENTENCES, given(["sea"]), str(folder))
    assert score.value is None
    assert score.reason is not None
    assert score.reason.startswith(str(folder))
    assert "\n" not in score.reason
    return score.reason


def change_weights(folder: Path, name: str, value: float | None) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    if value is None:
        del weights[name]
    else:
        weights[name].fill_(value)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def test_another_kind_of_model(tmp_path: Path) -> None:
    import tiny_bert

    folder = tiny_bert.build(tmp_path / "bert")
    assert problem(str(folder)) == f"{folder}: bert is no CLIP model"
    assert reason(folder)


def test_missing_weights_are_not_random(tmp_path: Path) -> None:
    folder = tiny_clip.build(tmp_path / "missing")
    change_weights(folder, "text_projection.weight", None)
    assert problem(str(folder)) is None  # weights are not read before a run
    assert "1 weights are not in the folder, e.g. text_projection.weight" in reason(folder)
    assert clipscore.describe(str(folder)) == f"CLIPScore not computed: {reason(folder)}"


@pytest.mark.parametrize("name", ["text_projection.weight", "visual_projection.weight"])
def test_output_that_is_not_finite(tmp_path: Path, name: str) -> None:
    folder = tiny_clip.build(tmp_path / "nan")
    change_weights(folder, name, math.nan)
    assert "not finite" in reason(folder)


@pytest.mark.parametrize(
    "broken", ["no weights", "cut weights", "no tokenizer", "no processor", "no config"]
)
def test_an_incomplete_folder(tmp_path: Path, network: list[Any], broken: str) -> None:
    folder = tiny_clip.build(tmp_path / "broken")
    weights = folder / "model.safetensors"
    if broken == "cut weights":
        weights.write_bytes(weights.read_bytes()[:1000])
    else:
        files = {
            "no weights": "model.safetensors",
            "no config": "config.json",
            "no tokenizer": "tokenizer.json",
            "no processor": "preprocessor_config.json",
        }
        (folder / files[broken]).unlink()
    assert reason(folder)
    assert (problem(str(folder)) is not None) == (broken == "no config")
    assert "\n" not in (problem(str(folder)) or "")
    assert network == []


def test_a_broken_model_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tiny_clip.build(tmp_path / "broken")
    change_weights(folder, "text_projection.weight", None)
    calls = []
    original = clip_encoder.load
    monkeypatch.setattr(clip_encoder, "load", lambda *a: (calls.append(a), original(*a))[1])
    assert reason(folder) == reason(folder)
    assert len(calls) == 1


def test_code_of_a_folder_is_not_run(tmp_path: Path, network: list[Any]) -> None:
    folder = tiny_clip.build(tmp_path / "code")
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Own", "AutoModel": "own.Own"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Own: pass\n")
    assert problem(str(folder))
    clip_score(SENTENCES, given(["sea"]), str(folder))
    assert not (tmp_path / "ran").exists()


def test_importing_brings_neither_torch_nor_transformers() -> None:
    modules = "lmms_eval_tasks.utils.clipscore, lmms_eval_tasks.haven.text_scores"
    heavy = "{'torch', 'transformers', 'bert_score', 'PIL'}"
    code = f"import sys, {modules}; print({heavy} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "set()"
