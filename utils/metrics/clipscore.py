"""CLIPScore of sentences and pictures with a CLIP model on this machine (docs/metrics.md, "Text").

Hessel et al., 2021: 2.5 * max(0, cosine) of the embeddings of a text and a picture. Here, a text is
one sentence, since CLIP cuts texts at 77 tokens. The score is that of the mean direction of the
sentences and the mean direction of the pictures, like the score of HAVEN's authors by their code.
The mean over all pairs of a sentence and a picture would be lower. The authors' model is not
published, nor whether they normalise vectors before the mean, as is done here (HAVEN's Table 4:
0.741 to 0.899).
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lmms_eval_tasks.utils.metrics import local_models
from lmms_eval_tasks.utils.metrics.text_metrics import tokenize

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray
    from PIL.Image import Image
    from torch import Tensor
    from transformers import CLIPImageProcessor, CLIPModel, PreTrainedTokenizerBase

KIND = "CLIP model"
WEIGHT = 2.5  # Hessel et al., equation 1: stretches the usual cosines, about 0 to 0.4, to 0..1
# Hessel et al. put "A photo depicts" before every caption; a summary's sentence is no caption.
RULE = (
    f"{WEIGHT} * max(0, cosine) of the mean direction of the sentences and that of the frames; "
    "sentences as they are, without a prompt"
)


class Picture(NamedTuple):
    """A picture that is opened only if its embedding is not known yet.

    key: different for every picture of the run: another video, frame or size has another key.
    """

    key: str
    open: Callable[[], Image]


def clip_score(
    sentences: Sequence[str], images: Sequence[Picture], model: str
) -> tuple[float | None, str]:
    """Return the CLIPScore, 0..2.5, of a summary's sentences and the frames selected with it.

    The model is loaded once for a process, and embeddings are cached: another call about the same
    texts or pictures opens and embeds nothing.

    Args:
        sentences: sentences of one summary. Those without a word are left out; a repeated one
            counts twice.
        images: pictures; a repeated one counts twice.
        model: folder of a CLIP model, or a name in the local Hugging Face cache.

    Returns:
        The score, which is None if there is no sentence with a word or no picture, and "". If the
        model cannot be used, None and the reason.

    Raises:
        TasksError: opening a picture raised it.
    """
    said = [sentence for sentence in sentences if tokenize(sentence)]

    def score(encoder: _ClipEncoder) -> float | None:
        return of_vectors([encoder.text(one) for one in said], list(map(encoder.picture, images)))

    return local_models.scored(KIND, model, _load, score)


def of_vectors(
    text_embeddings: Sequence[ArrayLike], image_embeddings: Sequence[ArrayLike]
) -> float | None:
    """Return the CLIPScore of n and m embeddings of any length; None if n or m is 0.

    The score is 0 if the means are at more than a right angle, or if a mean is zero. The order of
    texts or images changes no bit.

    Raises:
        ValueError: a number is not finite, or a vector of zeros has no direction.
    """
    if not len(text_embeddings) or not len(image_embeddings):
        return None
    sides = _directions(text_embeddings), _directions(image_embeddings)
    sums = [[math.fsum(column) for column in vectors.T] for vectors in sides]
    if not all(map(any, sums)):
        return 0.0
    text, image = _directions(sums)
    # For equal directions, the cosine can exceed 1 by a rounding error.
    return WEIGHT * min(max(0.0, math.fsum(text * image)), 1.0)


def _directions(vectors: Sequence[ArrayLike]) -> NDArray[np.float64]:
    """Return the vectors as rows of length 1; raises the errors of `of_vectors`."""
    import numpy as np

    table = np.asarray(vectors, dtype=np.float64)
    if not np.isfinite(table).all():
        raise ValueError("a number of an embedding is not finite")
    # Divide by the largest number first, so that no square overflows or vanishes.
    largest = np.abs(table).max(axis=1, keepdims=True)
    if not largest.all():
        raise ValueError("an embedding of zeros has no direction")
    scaled = table / largest
    return np.asarray(scaled / np.sqrt((scaled**2).sum(axis=1, keepdims=True)))


def describe_encoder(model: str) -> str:
    """Return one line for the results: rule, model, revision, precision, and texts cut so far.

    The sentences are those of all scores in this process by this model, each counted once.
    """

    def line_of(encoder: _ClipEncoder) -> str:
        cut = f"{len(encoder.cut)} of {len(encoder.texts)} sentences cut"
        return (
            f"CLIPScore: {RULE}; {local_models.made_by(model, encoder.folder)}; {cut} to "
            f"{encoder.max_tokens} tokens"
        )

    made, why = local_models.scored(KIND, model, _load, line_of)
    return made or f"CLIPScore not computed: {why}"


@dataclass(frozen=True)
class _ClipEncoder:
    """A loaded model with its embeddings so far, each text and each picture once.

    It runs on the CPU, as the tested model may still fill the GPU. It embeds one text or picture at
    a time, so that no neighbour changes an embedding's last digits (a pass of 16 pictures took as
    long as 16 passes of one; ViT-B/32 with 2 threads).
    """

    folder: Path
    model: CLIPModel
    tokenizer: PreTrainedTokenizerBase
    processor: CLIPImageProcessor
    max_tokens: int  # most tokens of a text, special tokens included (CLIP: 77)
    texts: dict[str, NDArray[np.float32]] = field(default_factory=dict, repr=False)
    cut: list[str] = field(default_factory=list, repr=False)  # texts that were longer
    pictures: dict[str, NDArray[np.float32]] = field(default_factory=dict, repr=False)

    def text(self, text: str) -> NDArray[np.float32]:
        """Return a text's embedding (in NFC, without blanks around it)."""
        text = unicodedata.normalize("NFC", text).strip()
        if text not in self.texts:
            length = len(self.tokenizer(text, verbose=False)["input_ids"])
            # The tokenizer cuts and keeps the end token, at whose place the model reads the text's
            # vector.
            tokens = self.tokenizer(
                [text], truncation=True, max_length=self.max_tokens, return_tensors="pt"
            )
            given = {name: tokens[name] for name in ("input_ids", "attention_mask")}
            self.texts[text] = self._vector("text", given)
            self.cut.extend([text] * (length > self.max_tokens))
        return self.texts[text]

    def picture(self, picture: Picture) -> NDArray[np.float32]:
        """Return a picture's embedding; of pictures with the same key, only one is opened."""
        if picture.key not in self.pictures:
            image = picture.open().convert("RGB")
            pixels = self.processor(images=[image], return_tensors="pt")["pixel_values"]
            self.pictures[picture.key] = self._vector("image", {"pixel_values": pixels})
        return self.pictures[picture.key]

    def _vector(self, kind: str, inputs: Mapping[str, Tensor]) -> NDArray[np.float32]:
        import torch

        with torch.inference_mode():
            found = getattr(self.model, f"get_{kind}_features")(**inputs)
        # transformers 4 returns the vector alone, transformers 5 an object with it.
        vector: NDArray[np.float32] = getattr(found, "pooler_output", found)[0].float().numpy()
        return vector


def _load(_: str, folder: Path) -> _ClipEncoder:
    """Load the model with its tokenizer and its preparation of pictures."""
    from transformers import CLIPImageProcessor, CLIPModel

    tokenizer = local_models.tokenizer_of(folder)
    processor = CLIPImageProcessor.from_pretrained(folder, local_files_only=True)
    model = local_models.load_local_model(CLIPModel, folder)
    positions = model.config.text_config.max_position_embeddings
    most = local_models.least(positions, tokenizer.model_max_length)
    return _ClipEncoder(folder, model, tokenizer, processor, most)
