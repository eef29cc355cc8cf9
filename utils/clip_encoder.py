"""Embeddings of texts and pictures by a CLIP model on this machine: what CLIPScore rests on.

Each text and each picture is embedded once for the life of an `Encoder`, whoever asks for it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from lmms_eval_tasks.utils import local_models

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

    Vector = NDArray[np.float32]

CPU = "cpu"

T = TypeVar("T")


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
        device: where the model is.
        weights: what local_models.weights says of a folder of the user's, else None.
    """

    model: Any
    tokenizer: Any
    processor: Any
    max_tokens: int
    device: str
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

    def texts(self, texts: Sequence[str], batch_size: int | None = None) -> list[Text]:
        """The embeddings of texts (in NFC, blanks around them dropped), in their order.

        Args:
            texts: any number.
            batch_size: texts of one forward pass; None: one on the CPU, 32 elsewhere.
        """
        keys = [unicodedata.normalize("NFC", text).strip() for text in texts]
        new = sorted({key for key in keys if key not in self._texts})
        for batch in _batches(new, batch_size or _size(self.device)):
            found = self._embed_texts(batch)
            self._texts.update(zip(batch, found, strict=True))
        return [self._texts[key] for key in keys]

    def pictures(self, pictures: Sequence[Picture], batch_size: int | None = None) -> list[Vector]:
        """The embeddings of pictures, in their order.

        Args:
            pictures: any number; of those with the same key one is opened.
            batch_size: pictures opened and embedded at a time; None: one on the CPU, 32 elsewhere.

        Raises:
            Exception: whatever opening a picture raises.
        """
        new = {one.key: one for one in pictures if one.key not in self._pictures}
        for batch in _batches((new[key] for key in sorted(new)), batch_size or _size(self.device)):
            found = self._embed_pictures([one.open() for one in batch])
            self._pictures.update(zip((one.key for one in batch), found, strict=True))
        return [self._pictures[one.key] for one in pictures]

    def _embed_texts(self, texts: Sequence[str]) -> list[Text]:
        import torch

        lengths = [len(self.tokenizer(text, verbose=False)["input_ids"]) for text in texts]
        # By the tokenizer, which keeps the end token: the text is read off its place. What is
        # padded comes after it, where no earlier token sees it.
        tokens = self.tokenizer(
            list(texts),
            truncation=True,
            max_length=self.max_tokens,
            padding=True,
            padding_side="right",
            return_tensors="pt",
        )
        with torch.inference_mode():
            found = self.model.get_text_features(
                input_ids=tokens["input_ids"].to(self.device),
                attention_mask=tokens["attention_mask"].to(self.device),
            )
        vectors = _rows(found)
        cuts = [length > self.max_tokens for length in lengths]
        return [Text(vector, cut) for vector, cut in zip(vectors, cuts, strict=True)]

    def _embed_pictures(self, images: Sequence[Image]) -> list[Vector]:
        import torch

        rgb = [image.convert("RGB") for image in images]
        pixels = self.processor(images=rgb, return_tensors="pt")["pixel_values"]
        with torch.inference_mode():
            return _rows(self.model.get_image_features(pixel_values=pixels.to(self.device)))


def load(folder: Path, device: str = CPU) -> Encoder:
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
    model = local_models.load(CLIPModel, folder).to(device)
    positions = model.config.text_config.max_position_embeddings
    return Encoder(
        model=model,
        tokenizer=tokenizer,
        processor=processor,
        max_tokens=local_models.least(positions, tokenizer.model_max_length),
        device=device,
        weights=None if local_models.revision(folder) else local_models.weights(folder),
    )


def _size(device: str) -> int:
    """Pictures or texts of one forward pass.

    On a CPU a pass of 16 pictures took as long as 16 passes of one (ViT-B/32, 2 threads), and one
    at a time no neighbour changes an embedding's last digits.
    """
    return 1 if device == CPU else 32


def _rows(found: Any) -> list[Vector]:
    """Vectors of a model's output: transformers 4 returns them alone, 5 with much else."""
    vectors = getattr(found, "pooler_output", found)
    return list(vectors.float().cpu().numpy())


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
