"""Tiny checkpoints: the same bytes from the same seed, finished or not there at all."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.sample import tiny


def digest(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}


@pytest.mark.parametrize("kind", list(tiny.KINDS))
def test_same_seed_same_bytes(kind: str, tmp_path: Path) -> None:
    first = digest(tiny.build(kind, tmp_path / "a"))
    assert digest(tiny.build(kind, tmp_path / "deep" / "b")) == first
    other = digest(tiny.build(kind, tmp_path / "c", seed=1))
    assert other["model.safetensors"] != first["model.safetensors"]
    assert other["tokenizer.json"] == first["tokenizer.json"]
    # Nothing is left of the temporary folders.
    assert {p.name for p in tmp_path.iterdir()} == {"a", "c", "deep"}
    assert sum(f.stat().st_size for f in (tmp_path / "a").iterdir()) < 2_000_000


def test_the_seed_outside_is_left_alone(tmp_path: Path) -> None:
    import torch

    torch.manual_seed(3)
    expected = torch.rand(2).tolist()
    torch.manual_seed(3)
    tiny.build("gpt2", tmp_path / "a")
    assert torch.rand(2).tolist() == expected


def test_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tiny.build("gpt2", tmp_path / "a")
    monkeypatch.setattr(tiny, "_save", lambda *a: pytest.fail("built again"))
    assert tiny.build("gpt2", tmp_path / "a") == folder


def test_a_broken_build_leaves_nothing_and_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(kind: str, folder: Path, seed: int) -> None:
        (folder / "config.json").write_text("{", encoding="utf-8")
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(tiny, "_save", half)
        with pytest.raises(OSError, match="no space"):
            tiny.build("gpt2", tmp_path / "a")
    assert list(tmp_path.iterdir()) == []
    assert (tiny.build("gpt2", tmp_path / "a") / tiny.MARKER).is_file()


def test_another_seed_replaces_what_was_built_here(tmp_path: Path) -> None:
    first = digest(tiny.build("gpt2", tmp_path / "a"))
    assert digest(tiny.build("gpt2", tmp_path / "a", seed=1)) != first
    assert {p.name for p in tmp_path.iterdir()} == {"a"}


def test_a_folder_of_the_users_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x", encoding="utf-8")
    with pytest.raises(TasksError, match="left alone"):
        tiny.build("gpt2", tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]
    (tmp_path / "empty").mkdir()
    assert (tiny.build("gpt2", tmp_path / "empty") / tiny.MARKER).is_file()


def test_another_process_that_was_faster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = tiny._save

    def slow(kind: str, folder: Path, seed: int) -> None:
        real(kind, folder, seed)
        monkeypatch.setattr(tiny, "_save", real)
        tiny.build(kind, tmp_path / "a", seed)
        (tmp_path / "a" / "theirs").touch()

    monkeypatch.setattr(tiny, "_save", slow)
    assert (tiny.build("gpt2", tmp_path / "a") / "theirs").is_file()
    assert {p.name for p in tmp_path.iterdir()} == {"a"}


def test_unknown_kind(tmp_path: Path) -> None:
    with pytest.raises(TasksError, match="no tiny checkpoint 'bert': qwen2_5_vl, gpt2, llama"):
        tiny.build("bert", tmp_path / "a")


def test_the_tokenizer_reads_any_text_and_qwens_tokens(tmp_path: Path) -> None:
    from transformers import AutoProcessor

    processor = AutoProcessor.from_pretrained(tiny.build("qwen2_5_vl", tmp_path / "a"))
    assert type(processor).__name__ == "Qwen2_5_VLProcessor"
    text = "Perché? 中文 🙂"
    ids = processor.tokenizer(text)["input_ids"]
    assert processor.tokenizer.decode(ids) == text
    for token in ("<|im_start|>", "<|vision_start|>", "<|video_pad|>", "<|image_pad|>"):
        assert len(processor.tokenizer(token)["input_ids"]) == 1
    parts = [{"type": "video", "video": "x.mp4"}, {"type": "text", "text": "Chi?"}]
    messages = [{"role": "system", "content": "S"}, {"role": "user", "content": parts}]
    assert processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True) == (
        "<|im_start|>system\nS<|im_end|>\n"
        "<|im_start|>user\n<|vision_start|><|video_pad|><|vision_end|>Chi?<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
