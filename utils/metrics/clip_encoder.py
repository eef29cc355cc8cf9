"""Embeddings of texts and pictures by a CLIP model on this machine: what CLIPScore rests on.

Each text and each picture is embedded once for the life of an `Encoder`, whoever asks for it: on
the CPU, as the model under test may still fill the GPU, and one at a time, so that no neighbour
changes an embedding's last digits (a pass of 16 pictures took as long as 16 passes of one; ViT-B/32
with 2 threads).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lmms_eval_tasks.utils.metrics import local_models

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

    Vector = NDArray[np.float32]


class Picture(NamedTuple):
    """A picture that is opened only if its embedding is not known yet.

    key: tells it from every other picture of the run: another video, frame or size, another key.
    """

    key: str
    open: Callable[[], Image]


class Text(NamedTuple):
    """A text's embedding, and whether the text had more tokens than the model takes."""

    vector: Vector
    cut: bool


@dataclass(frozen=True)
class Encoder:
    """A loaded model and what it has embedded so far.

    Attributes:
        model, tokenizer, processor: transformers' own.
        max_tokens: tokens of a text that are read at most, special tokens included (CLIP: 77).
        weights: what local_models.weights says of a folder of the user's, else None.
    """

    model: Any
    tokenizer: Any
    processor: Any
    max_tokens: int
    weights: str | None = None
    _texts: dict[str, Text] = field(default_factory=dict, repr=False)
    _pictures: dict[str, Vector] = field(default_factory=dict, repr=False)

    @property
    def n_texts(self) -> int:
        """Different texts embedded so far."""
        return len(self._texts)

    @property
    def n_cut(self) -> int:
        """Those of them that were cut to `max_tokens`."""
        return sum(text.cut for text in self._texts.values())

    def texts(self, texts: Sequence[str]) -> list[Text]:
        """The embeddings of texts (in NFC, blanks around them dropped), in their order."""
        keys = [unicodedata.normalize("NFC", text).strip() for text in texts]
        for key in keys:
            if key not in self._texts:
                self._texts[key] = self._text(key)
        return [self._texts[key] for key in keys]

    def pictures(self, pictures: Sequence[Picture]) -> list[Vector]:
        """The embeddings of pictures, in their order; of those with the same key one is opened.

        Raises:
            Exception: whatever opening a picture raises.
        """
        for one in pictures:
            if one.key not in self._pictures:
                self._pictures[one.key] = self._picture(one.open())
        return [self._pictures[one.key] for one in pictures]

    def _text(self, text: str) -> Text:
        import torch

        length = len(self.tokenizer(text, verbose=False)["input_ids"])
        # Cut by the tokenizer, which keeps the end token: the text is read off its place.
        tokens = self.tokenizer(
            [text], truncation=True, max_length=self.max_tokens, return_tensors="pt"
        )
        with torch.inference_mode():
            found = self.model.get_text_features(
                input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"]
            )
        return Text(_vector(found), length > self.max_tokens)

    def _picture(self, image: Image) -> Vector:
        import torch

        pixels = self.processor(images=[image.convert("RGB")], return_tensors="pt")["pixel_values"]
        with torch.inference_mode():
            return _vector(self.model.get_image_features(pixel_values=pixels))


def load(folder: Path) -> Encoder:
    """The model with its tokenizer and the preparation of pictures that comes with it.

    Raises:
        ValueError: weights are missing (they would be random).
        Exception: whatever transformers raises for a folder that it cannot read.
    """
    from transformers import AutoTokenizer, CLIPImageProcessor, CLIPModel

    tokenizer = AutoTokenizer.from_pretrained(
        folder, local_files_only=True, trust_remote_code=False
    )
    processor = CLIPImageProcessor.from_pretrained(folder, local_files_only=True)
    model = local_models.load(CLIPModel, folder)
    positions = model.config.text_config.max_position_embeddings
    return Encoder(
        model=model,
        tokenizer=tokenizer,
        processor=processor,
        max_tokens=local_models.least(positions, tokenizer.model_max_length),
        weights=None if local_models.revision(folder) else local_models.weights(folder),
    )


def _vector(found: Any) -> Vector:
    """The vector of a model's output: transformers 4 returns it alone, 5 with much else."""
    vector: Vector = getattr(found, "pooler_output", found)[0].float().numpy()
    return vector
