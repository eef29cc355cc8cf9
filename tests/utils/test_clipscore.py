"""CLIPScore: the formula by hand, and on tiny models with random weights.

No CLIP weights come with any package; what real ones would give was not checked.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clip_scoring import IMAGES, SENTENCES, given, scored

from lmms_eval_tasks.utils import clip_encoder, clipscore
from lmms_eval_tasks.utils.clipscore import ClipScore, clip_score, from_embeddings

ROUNDING = 1e-5  # of single precision, over batches of different shapes
pytestmark = pytest.mark.usefixtures("one_thread", "no_clip_kept")


@pytest.mark.parametrize(
    ("texts", "images", "expected"),
    [
        ([[1, 0]], [[1, 0]], 2.5),
        ([[1, 0]], [[0, 1]], 0.0),
        ([[1, 0]], [[-1, 0]], 0.0),
        ([[1, 0]], [[1, 1]], 2.5 / math.sqrt(2)),
        ([[3, 4]], [[1, 0]], 1.5),  # cosine 3/5
        ([[3, 4]], [[5, 12]], 2.5 * 63 / 65),
        ([[1, 0], [0, 1]], [[3, 4]], 1.75),  # (3/5 + 4/5) / 2
        ([[3, 4]], [[1, 0], [0, 1], [0, -1], [-1, 0]], 2.5 * 1.4 / 4),
        # Clipped pair by pair: the mean cosine of both pairs is 0.
        ([[1, 0]], [[1, 0], [-1, 0]], 1.25),
        ([[1, 0], [-1, 0]], [[1, 0], [-1, 0]], 1.25),
        # A mean of pairs: a mean of embeddings first would give 2.5 for both.
        ([[1, 1]], [[1, 0], [0, 1]], 2.5 / math.sqrt(2)),
        ([[1, 0], [0, 1]], [[1, 1]], 2.5 / math.sqrt(2)),
        # A repeated one counts twice.
        ([[1, 0], [1, 0], [0, 1]], [[1, 0]], 5 / 3),
        # Lengths do not matter, however great or small.
        ([[300, 400]], [[0.001, 0]], 1.5),
        ([[3e200, 4e200]], [[1e-300, 0]], 1.5),
    ],
)
def test_by_hand(texts: list[Any], images: list[Any], expected: float) -> None:
    assert from_embeddings(np.array(texts), np.array(images)) == pytest.approx(expected, abs=1e-12)
    assert from_embeddings(texts, images) == pytest.approx(expected, abs=1e-12)  # lists too


@pytest.mark.parametrize(
    ("texts", "images"),
    [([], [[1, 0]]), ([[1, 0]], []), ([], []), (np.zeros((0, 4)), np.ones((2, 4)))],
)
def test_nothing_has_no_score(texts: Any, images: Any) -> None:
    assert from_embeddings(texts, images) is None


@pytest.mark.parametrize(
    ("texts", "images", "said"),
    [
        ([[1, 0, 0]], [[1, 0]], "text embeddings of 3 numbers, image embeddings of 2"),
        ([1, 0], [[1, 0]], "text embeddings: expected a row for each, not 1 dim"),
        ([[1, 0]], [[[1, 0]]], "image embeddings: expected a row for each, not 3 dim"),
        ([[1, math.nan]], [[1, 0]], "text embeddings: a number is not finite"),
        ([[1, 0]], [[1, 0], [math.inf, 0]], "image embeddings: a number is not finite"),
        ([[1, 0]], [[1, 0], [0, 0]], "an embedding of zeros has no direction"),
        ([[]], [[]], "an embedding of zeros has no direction"),
    ],
)
def test_what_is_no_embedding(texts: Any, images: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        from_embeddings(texts, images)


def test_a_list_is_the_mean_of_its_pairs_in_any_order() -> None:
    rng = np.random.default_rng(5)
    texts, images = rng.normal(size=(7, 33)), rng.normal(size=(11, 33))
    whole = from_embeddings(texts, images)
    alone = [from_embeddings([text], [image]) for text in texts for image in images]
    assert whole == pytest.approx(math.fsum(v for v in alone if v is not None) / 77, abs=1e-12)
    for _ in range(10):
        assert from_embeddings(rng.permutation(texts), rng.permutation(images)) == whole


def test_never_above_its_maximum() -> None:
    rng = np.random.default_rng(6)
    for vector in rng.normal(size=(200, 17)):
        assert from_embeddings([vector], [vector * 3]) == pytest.approx(2.5)
        assert (from_embeddings([vector], [vector * 3]) or 0) <= 2.5


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
            with torch.no_grad():
                logits = model(
                    **tokenizer(sentence, return_tensors="pt"),
                    **processor(images=IMAGES[name], return_tensors="pt"),
                ).logits_per_text
                found.append((logits / model.logit_scale.exp()).item())
    return found


def test_the_models_own_cosines_give_the_same(clip: str) -> None:
    names = list(IMAGES)
    cosines = directly(clip, SENTENCES, names)
    assert len({round(cosine, 3) for cosine in cosines}) == 9  # mixed-up pairs would show
    assert min(cosines) > 0  # so that none of the tests below compares 0 with 0
    expected = [2.5 * max(0.0, cosine) for cosine in cosines]
    assert scored(clip, SENTENCES, names) == pytest.approx(sum(expected) / 9, abs=ROUNDING)
    for place, value in enumerate(expected):
        pair = [SENTENCES[place // 3]], [names[place % 3]]
        assert scored(clip, *pair) == pytest.approx(value, abs=ROUNDING)


@pytest.mark.parametrize("batch_size", [None, 1, 2, 16])
def test_a_list_and_item_by_item_agree(clip: str, batch_size: int | None) -> None:
    names = list(IMAGES)
    together = scored(clip, SENTENCES, names, batch_size=batch_size)
    clipscore._loaded.cache_clear()  # else nothing would be embedded again
    alone = [scored(clip, [sentence], [name]) for sentence in SENTENCES for name in names]
    assert together == pytest.approx(sum(alone) / 9, abs=ROUNDING)
    if batch_size in (None, 1):
        assert together == pytest.approx(sum(alone) / 9, abs=1e-15)


def test_texts_of_a_batch_have_different_lengths(clip: str) -> None:
    """What the test above rests on: some are padded."""
    encoder = clip_encoder.load(Path(clip))
    lengths = {len(encoder.tokenizer(sentence)["input_ids"]) for sentence in SENTENCES}
    assert len(lengths) == 3


def test_company_and_order_change_no_bit(clip: str) -> None:
    names = list(IMAGES)
    first = scored(clip, SENTENCES, names)
    clipscore._loaded.cache_clear()
    rng = random.Random(2)
    scored(clip, ["the cat plays", SENTENCES[2]], ["sunset"])  # what is known already
    for _ in range(5):
        assert scored(clip, rng.sample(SENTENCES, 3), rng.sample(names, 3)) == first


def test_repeated_ones_count_twice(clip: str) -> None:
    one, other = (scored(clip, [SENTENCES[0]], [name]) for name in ("sea", "meadow"))
    assert one != other
    twice = scored(clip, [SENTENCES[0]], ["sea", "meadow", "sea"])
    assert twice == pytest.approx((2 * one + other) / 3)


@pytest.mark.parametrize("blank", ["", "  \n", "...", "\u200b"])
def test_a_sentence_without_a_word_is_left_out(clip: str, blank: str) -> None:
    score = clip_score([SENTENCES[0], blank], given(["sea"]), clip)
    assert score == clip_score(SENTENCES[:1], given(["sea"]), clip)
    assert score.n_sentences == 1
    assert clip_score([blank], given(["sea"]), clip) == ClipScore(None, 0, 0, None)


def test_nothing_to_compare_has_no_score(clip: str) -> None:
    assert clip_score([], given(["sea"]), clip) == ClipScore(None, 0, 0, None)
    assert clip_score(SENTENCES, [], clip) == ClipScore(None, 3, 0, None)


@pytest.mark.parametrize("batch_size", [0, -1])
def test_a_batch_of_nothing(batch_size: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        clip_score(SENTENCES, given(["sea"]), "/no/such/folder", batch_size=batch_size)
