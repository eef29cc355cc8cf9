"""CLIPScore: the formula by hand, and on tiny models with random weights.

No CLIP weights come with any package; what real ones would give was not checked. Which models are
found and what is said of bad ones: test_local_models.py.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tiny_clip
from tiny_clip import IMAGES, SENTENCES, given, scored

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.metrics import clipscore, local_models
from lmms_eval_tasks.utils.metrics.clipscore import (
    Picture,
    clip_score,
    of_vectors,
)
from tests.checks import refused, table

ROUNDING = 1e-5  # of single precision, over batches of different shapes
pytestmark = pytest.mark.usefixtures("one_thread", "none_kept")


@table("texts, images, expected")
def test_by_hand(texts: list[Any], images: list[Any], expected: float) -> None:
    assert of_vectors(texts, images) == pytest.approx(expected, abs=1e-12)


def test_of_means_and_of_nothing() -> None:
    """(1, 0) and (0, 1) have the mean direction (1, 1) / sqrt 2, however long they are."""
    for texts, images, expected in (
        ([[3, 0], [0, 9]], [[1, 1]], 2.5),
        ([[1, 0], [0, 1]], [[1, 0]], 2.5 / math.sqrt(2)),
        ([[1, 0]], [[-1, 0.1]], 0.0),
        ([[1, 0], [-1, 0]], [[1, 0]], 0.0),
    ):
        found = of_vectors(texts, images)
        assert found == pytest.approx(expected)
        assert of_vectors(texts[::-1], images) == found
    assert of_vectors([], [[1, 0]]) is of_vectors([[1, 0]], []) is None
    for vector in np.random.default_rng(5).normal(size=(200, 17)):
        one = of_vectors([vector], [vector * 3])
        assert one == pytest.approx(2.5)
        assert one <= 2.5
    for wrong, said in (([math.nan, 0], "not finite"), ([0, 0], "of zeros has no direction")):
        refused(ValueError, said, of_vectors, [[1, 0]], [[1, 0], wrong])
        refused(ValueError, said, of_vectors, [wrong], [[1, 0]])


# --- with a model -----------------------------------------------------------------------------


def directly(folder: str, sentences: Sequence[str], names: Sequence[str]) -> list[float]:
    """Cosines by CLIP's own forward pass: its logits without their scale, pair by pair."""
    import torch
    from transformers import AutoTokenizer, CLIPImageProcessor, CLIPModel

    model = CLIPModel.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    processor = CLIPImageProcessor.from_pretrained(folder)
    found = []
    for sentence in sentences:
        for name in names:
            words = tokenizer(sentence, return_tensors="pt")
            with torch.no_grad():
                pixels = processor(images=IMAGES[name], return_tensors="pt")
                logits = model(**words, **pixels).logits_per_text
            found.append((logits / model.logit_scale.exp()).item())
    return found


def test_the_models_own_cosines_give_the_same(clip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import CLIPModel

    names = list(IMAGES)
    cosines = directly(clip, SENTENCES, names)
    assert len({round(cosine, 3) for cosine in cosines}) == 9  # mixed-up pairs would show
    assert min(cosines) > 0  # so that none of the tests below compares 0 with 0
    for number, cosine in enumerate(cosines):
        text, name = divmod(number, 3)
        one = scored(clip, SENTENCES[text : text + 1], names[name : name + 1])
        assert one == pytest.approx(2.5 * cosine, abs=ROUNDING)
    first = scored(clip, SENTENCES, names)
    assert first > 2.5 * sum(cosines) / 9  # means are shorter than 1
    local_models.loaded.cache_clear()
    for name in ("get_text_features", "get_image_features"):  # older ones return vectors alone
        now = getattr(CLIPModel, name)
        old = lambda self, now=now, **given: now(self, **given).pooler_output  # noqa: E731
        monkeypatch.setattr(CLIPModel, name, old)
    assert scored(clip, SENTENCES, names) == first


def test_what_has_no_word_and_what_is_nothing(clip: str) -> None:
    for blank in ("", "  \n", "...", "\u200b"):
        score = clip_score([SENTENCES[0], blank], given(["sea"]), clip)
        assert score == clip_score(SENTENCES[:1], given(["sea"]), clip)
        assert clip_score([blank], given(["sea"]), clip) == (None, "")
    assert clip_score(SENTENCES, [], clip) == (None, "")


# --- what the model is given ------------------------------------------------------------------


LONG = "the man paints the boat and the dog sleeps by the river and a cat plays"  # 16 words


def test_sentences_that_are_cut_are_counted(clip: str) -> None:
    clip_score([LONG, SENTENCES[0], LONG], given(["sea"]), clip)
    assert "1 of 2 sentences cut to 16 tokens" in clipscore.describe_encoder(clip)
    # What is cut is the end, and the end token stays: what follows has no part in it.
    assert scored(clip, [LONG], ["sea"]) == scored(clip, [LONG + " in a boat"], ["sea"])
    words = LONG.split()
    kept = " ".join(words[: tiny_clip.POSITIONS - 2])
    assert scored(clip, [LONG], ["sea"]) == pytest.approx(scored(clip, [kept], ["sea"]), abs=1e-6)
    # Different texts so far: LONG, the longer one, SENTENCES[0], the one that just fits.
    assert "2 of 4 sentences cut to 16 tokens" in clipscore.describe_encoder(clip)
    text = "la città è in the boat"
    apart = unicodedata.normalize("NFD", text)
    assert scored(clip, [f"  {apart}\n"], ["sea"]) == scored(clip, [text], ["sea"])
    assert "of 5 sentences" in clipscore.describe_encoder(clip)


def test_a_picture_that_cannot_be_opened(clip: str) -> None:
    def failing(error: Exception) -> list[Picture]:
        def gone() -> Any:
            raise error

        return [Picture("gone", gone)]

    gone = failing(MediaError("frames.zip: gone"))
    refused(MediaError, r"frames\.zip: gone", clip_score, SENTENCES, gone, clip)
    assert clip_score(SENTENCES, failing(OSError("broken\nin two lines")), clip) == (
        None,
        f"{clip}: OSError: broken in two lines",
    )
    assert scored(clip, SENTENCES, ["sea"]) > 0  # neither is taken for known
