"""What CLIP models are given: texts cut, pictures opened once, batches, older transformers."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import tiny_clip
from clip_scoring import IMAGES, SENTENCES, given, scored

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils import clip_encoder, clipscore
from lmms_eval_tasks.utils.clip_encoder import Picture
from lmms_eval_tasks.utils.clipscore import clip_score

pytestmark = pytest.mark.usefixtures("one_thread", "no_clip_kept")

LONG = "the man paints the boat and the dog sleeps by the river and a cat plays"  # 16 words


def test_each_text_and_picture_is_embedded_once(clip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As joint and separate scores of a video share both."""
    texts: list[str] = []
    original = clip_encoder.Encoder._embed_texts

    def counted(self: Any, batch: Sequence[str]) -> Any:
        texts.extend(batch)
        return original(self, batch)

    monkeypatch.setattr(clip_encoder.Encoder, "_embed_texts", counted)
    opened: list[str] = []
    joint = clip_score(SENTENCES[:2], given(["sea", "meadow", "sea"], opened), clip)
    assert sorted(opened) == ["meadow", "sea"]
    assert sorted(texts) == sorted(SENTENCES[:2])
    clip_score(SENTENCES[1:], given(["meadow", "sunset"], opened), clip)
    assert opened[2:] == ["sunset"]
    assert texts[2:] == SENTENCES[2:]
    assert clip_score(SENTENCES[:2], given(["sea", "meadow", "sea"], opened), clip) == joint
    assert (len(opened), len(texts)) == (3, 3)


def test_pictures_are_opened_batch_by_batch(clip: str) -> None:
    held, most = 0, 0

    class Held:
        """A picture that knows how many others are open."""

        def __init__(self, name: str) -> None:
            nonlocal held, most
            self.name, held = name, held + 1
            most = max(most, held)

        def convert(self, mode: str) -> Any:
            nonlocal held
            held -= 1
            return IMAGES[self.name].convert(mode)

    pictures = [Picture(name, lambda name=name: Held(name)) for name in IMAGES]  # type: ignore[misc]
    assert clip_score(SENTENCES, pictures, clip).value is not None
    assert most == 1


def test_pictures_of_any_mode(clip: str) -> None:
    colours = IMAGES["meadow"].convert("P", palette=1).convert("RGB")

    def of(mode: str, key: str) -> float:
        found = clip_score(SENTENCES, [Picture(key, lambda: colours.convert(mode))], clip)
        assert found.value is not None
        return found.value

    assert of("RGBA", "a") == of("RGB", "b") != scored(clip, SENTENCES, ["sea"])
    assert of("L", "c") is not None


def test_an_older_transformers_returns_vectors_alone(
    clip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import CLIPModel

    expected = scored(clip, SENTENCES, list(IMAGES))
    clipscore._loaded.cache_clear()
    for name in ("get_text_features", "get_image_features"):
        now = getattr(CLIPModel, name)
        old = lambda self, now=now, **given: now(self, **given).pooler_output  # noqa: E731
        monkeypatch.setattr(CLIPModel, name, old)
    assert scored(clip, SENTENCES, list(IMAGES)) == expected


def test_sentences_that_are_cut_are_counted(clip: str) -> None:
    score = clip_score([LONG, SENTENCES[0], LONG], given(["sea"]), clip)
    assert (score.n_sentences, score.n_cut) == (3, 2)
    # What is cut is the end, and the end token stays: what follows has no part in it.
    assert scored(clip, [LONG], ["sea"]) == scored(clip, [LONG + " in a boat"], ["sea"])
    words = LONG.split()
    kept = " ".join(words[: tiny_clip.POSITIONS - 2])
    assert clip_score([kept], given(["sea"]), clip).n_cut == 0
    assert scored(clip, [LONG], ["sea"]) == pytest.approx(scored(clip, [kept], ["sea"]), abs=1e-6)
    assert abs(scored(clip, [LONG], ["sea"]) - scored(clip, [" ".join(words[:9])], ["sea"])) > 1e-3
    # Different texts so far: LONG, the longer one, SENTENCES[0], the one that just fits, 9 words.
    assert "2 of 5 sentences cut to 16 tokens" in clipscore.describe(clip)


def test_the_smaller_limit_counts(tmp_path: Path) -> None:
    folder = tiny_clip.build(tmp_path / "short")
    config = folder / "tokenizer_config.json"
    settings = json.loads(config.read_text())
    assert settings["model_max_length"] == 16
    for limit, expected in ((8, 8), (77, 16), (10**30, 16)):
        config.write_text(json.dumps(settings | {"model_max_length": limit}))
        assert clip_encoder.load(folder).max_tokens == expected


def test_composed_and_decomposed_are_equal(clip: str) -> None:
    text = "la città è in the boat"
    apart = unicodedata.normalize("NFD", text)
    assert apart != text
    assert scored(clip, [f"  {apart}\n"], ["sea"]) == scored(clip, [text], ["sea"])
    assert "of 1 sentences" in clipscore.describe(clip)


def test_half_precision_is_computed_in_single(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = tiny_clip.build(tmp_path / "half")
    file = folder / "model.safetensors"
    rounded = {key: weight.half() for key, weight in load_file(file).items()}
    save_file({k: v.float() for k, v in rounded.items()}, file, metadata={"format": "pt"})
    single = scored(str(folder), SENTENCES, list(IMAGES))
    clipscore._loaded.cache_clear()
    save_file(rounded, file, metadata={"format": "pt"})
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"float32"', '"float16"'))
    assert "float16" in config.read_text()
    # In half precision it would differ in the fourth digit.
    again = scored(str(folder), SENTENCES, list(IMAGES))
    assert again == pytest.approx(single, abs=1e-6)


def test_a_picture_that_cannot_be_opened(clip: str) -> None:
    def gone() -> Any:
        raise MediaError("frames.zip: gone")

    with pytest.raises(MediaError, match=r"frames\.zip: gone"):
        clip_score(SENTENCES, [Picture("gone", gone)], clip)

    def broken() -> Any:
        raise OSError("broken\nin two lines")

    score = clip_score(SENTENCES, [Picture("broken", broken)], clip)
    assert (score.value, score.reason) == (None, f"{clip}: OSError: broken in two lines")
    assert scored(clip, SENTENCES, ["sea"]) > 0  # neither is taken for known
