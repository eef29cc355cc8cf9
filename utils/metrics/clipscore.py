"""CLIPScore of sentences and pictures with a CLIP model on this machine (metrics.md, "Text").

Hessel et al., 2021: 2.5 * max(0, cosine) of the embeddings of a text and a picture. Here a text is
one sentence, since CLIP cuts texts at 77 tokens. The score is that of the mean of the sentences'
directions and the mean of the pictures', as the code of HAVEN's authors says of theirs; the mean
over all pairs of a sentence and a picture, which is lower, stands beside it. Their model, and
whether they take vectors to length 1 before the mean, as here, is not published (HAVEN's Table 4:
0.741 to 0.899).

No model means no number: the value is None with the reason, never 0, and nothing is downloaded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.utils.metrics import clip_encoder, local_models
from lmms_eval_tasks.utils.metrics.clip_encoder import Encoder, Picture
from lmms_eval_tasks.utils.metrics.text_metrics import tokenize

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

KIND = "CLIP model"
WEIGHT = 2.5  # Hessel et al., equation 1: stretches the usual cosines, about 0 to 0.4, to 0..1
# Hessel et al. put "A photo depicts" before every caption; a sentence of a summary is none.
RULE = (
    f"{WEIGHT} * max(0, cosine) of the mean direction of the sentences and that of the frames "
    "(clipscore_pairs: mean over all pairs of a sentence and a frame); sentences as they are, "
    "without a prompt"
)
# OpenAI's models. Their name and a commit of the Hugging Face cache say whose weights they are.
RELEASED = (
    "openai/clip-vit-base-patch32",
    "openai/clip-vit-base-patch16",
    "openai/clip-vit-large-patch14",
    "openai/clip-vit-large-patch14-336",
)


@dataclass(frozen=True)
class ClipScore:
    """The score of some sentences and pictures.

    Attributes:
        value: 0..2.5, of the means; None if there is no sentence with a word, or no picture, or
            `reason`.
        pairs: 0..2.5, the mean over pairs; None as `value`.
        n_sentences: sentences scored: those that have a word.
        n_cut: those of them that were cut to the model's length.
        reason: why nothing was computed, else None.
    """

    value: float | None
    pairs: float | None
    n_sentences: int
    n_cut: int
    reason: str | None


def of_means(
    text_embeddings: Sequence[ArrayLike], image_embeddings: Sequence[ArrayLike]
) -> float | None:
    """CLIPScore of the mean of texts and the mean of images, 0..2.5; 0 if one of them is no vector.

    Args and raises: as `of_pairs`.
    """
    if not len(text_embeddings) or not len(image_embeddings):
        return None
    sums = [
        [math.fsum(column) for column in _directions(vectors).T]
        for vectors in (text_embeddings, image_embeddings)
    ]
    if not all(math.hypot(*vector) for vector in sums):
        return 0.0
    text, image = _directions(sums)
    return WEIGHT * min(max(0.0, math.fsum(text * image)), 1.0)


def of_pairs(
    text_embeddings: Sequence[ArrayLike], image_embeddings: Sequence[ArrayLike]
) -> float | None:
    """CLIPScore of embeddings: the mean over all pairs of a text and an image, 0..2.5.

    Pairs at more than a right angle count 0, one by one, before the mean is taken. The order of
    texts or images changes no bit.

    Args:
        text_embeddings: n vectors, of any length but 0 each; None is the score if n is 0.
        image_embeddings: m vectors, likewise.

    Raises:
        ValueError: a number that is not finite, or a vector of zeros, which has no direction.
    """
    if not len(text_embeddings) or not len(image_embeddings):
        return None
    texts, images = _directions(text_embeddings), _directions(image_embeddings)
    # Row by row: a matrix product rounds a pair's cosine differently at another place. Of equal
    # directions it can exceed 1 by a rounding error.
    cosines = [min(float(cosine), 1.0) for text in texts for cosine in (images * text).sum(axis=1)]
    return WEIGHT * math.fsum(max(0.0, cosine) for cosine in cosines) / len(cosines)


def clip_score(sentences: Sequence[str], images: Sequence[Picture], model: str) -> ClipScore:
    """CLIPScore of the sentences of a summary and the frames selected with it.

    The model is loaded once for a process, and what it has embedded is kept: another call about the
    same texts or pictures opens and embeds nothing.

    Args:
        sentences: of one summary; those without a word are left out, a repeated one counts twice.
        images: a repeated one counts twice.
        model: folder of a CLIP model, or a name in the local Hugging Face cache.

    Raises:
        TasksError: a picture raised it when it was opened. A model that is absent, broken or of
            another kind raises nothing: there is no value, and the reason says why.
    """
    said = [sentence for sentence in sentences if tokenize(sentence)]
    folder = local_models.find(model, may_be_path=True)
    if folder is None:
        return ClipScore(None, None, len(said), 0, local_models.absent(KIND, model))
    encoder = _loaded(folder)
    if isinstance(encoder, str):
        return ClipScore(None, None, len(said), 0, encoder)
    if not said or not images:
        return ClipScore(None, None, len(said), 0, None)
    try:
        texts = encoder.texts(said)
        pictures = encoder.pictures(images)
        vectors = [text.vector for text in texts]
        value, pairs = of_means(vectors, pictures), of_pairs(vectors, pictures)
    except TasksError:
        raise  # a picture's file: the caller knows what it is of
    # As for BERTScore: models raise what they like, and an exception in an aggregation costs the
    # host's whole run (host.md).
    except Exception as error:
        return ClipScore(None, None, len(said), 0, local_models.told(folder, error))
    return ClipScore(value, pairs, len(said), sum(text.cut for text in texts), None)


def problem(model: str) -> str | None:
    """Why `model` cannot be used, in one line, or None (local_models.problem)."""
    return local_models.problem(KIND, model, lambda config: config.model_type == "clip")


def describe(model: str) -> str:
    """One line for the results: rule, model, revision, precision, and what was cut so far.

    The sentences are those of all scores of this process by this model, each counted once.
    """
    folder = local_models.find(model, may_be_path=True)
    encoder = local_models.absent(KIND, model) if folder is None else _loaded(folder)
    if folder is None or isinstance(encoder, str):
        return f"CLIPScore not computed: {encoder}"
    import transformers

    commit = local_models.revision(folder)
    origin = f"at {commit[:12]}" if commit else f"(SHA-256 of its weights {encoder.weights})"
    doubt = "" if is_comparable(model) else f"; {local_models.NOT_COMPARABLE}"
    return (
        f"CLIPScore: {RULE}; model {model} {origin}, transformers {transformers.__version__}, "
        f"float32; {encoder.n_cut} of {encoder.n_texts} sentences cut to {encoder.max_tokens} "
        f"tokens{doubt}"
    )


def is_comparable(model: str) -> bool:
    """Whether these are a released model's weights, as far as a name can tell (`RELEASED`)."""
    return local_models.is_released(model, RELEASED)


# Loaded once, and so is the reason why it cannot be: every item asks.
@lru_cache(maxsize=2)
def _loaded(folder: Path) -> Encoder | str:
    try:
        return clip_encoder.load(folder)
    except Exception as error:  # loaders raise what they like
        return local_models.told(folder, error)


def _directions(vectors: Sequence[ArrayLike]) -> NDArray[Any]:
    """Rows of length 1.

    Raises:
        ValueError: a number that is not finite, or a row of zeros.
    """
    import numpy as np

    table = np.asarray(vectors, dtype=np.float64)
    if not np.isfinite(table).all():
        raise ValueError("a number of an embedding is not finite")
    # By the largest number first, so that no square overflows or vanishes.
    largest = np.abs(table).max(axis=1, keepdims=True, initial=0.0)
    if not largest.all():
        raise ValueError("an embedding of zeros has no direction")
    scaled = table / largest
    return np.asarray(scaled / np.sqrt((scaled**2).sum(axis=1, keepdims=True)))
