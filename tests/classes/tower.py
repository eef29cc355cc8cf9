"""What a checkpoint's vision tower is given, request by request, as pictures again.

Seen where a model's `generate` is called, below whatever the host or we say of it. A processor's
normalisation and its cutting into patches are undone, so that a picture can be looked at.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

# Of `generate`: the tensor, which part of the processor made it, and the sizes of its patches.
PIXELS = {
    "pixel_values": "image_processor",
    "pixel_values_images": "image_processor",
    "pixel_values_videos": "video_processor",
}
GRIDS = {"image_processor": "image_grid_thw", "video_processor": "video_grid_thw"}


@dataclass
class Request:
    """A call of `generate`: whose doc it is, what the task gave for it, and the tensors."""

    task: str
    visuals: list[Any]
    tensors: dict[str, Any] = field(default_factory=dict)


@contextmanager
def watched() -> Iterator[list[Request]]:
    """Within it, each call of a transformers model's `generate` that is not of another one's."""
    import torch
    from transformers.generation.utils import GenerationMixin

    from lmms_eval_tasks.host import names

    given: list[Request] = []
    found: list[Request] = []
    inside: list[str] = []
    generate, to_visual, to_messages = (
        GenerationMixin.generate,
        names.doc_to_visual,
        names.doc_to_messages,
    )

    def doc_to_visual(doc: Any) -> Any:
        visuals = to_visual(doc)
        given.append(Request(doc["task"], list(visuals)))
        return visuals

    def doc_to_messages(doc: Any, *args: Any, **kwargs: Any) -> Any:
        messages = to_messages(doc, *args, **kwargs)
        items = [item for message in messages for item in message["content"]]
        given.append(Request(doc["task"], [item["url"] for item in items if "url" in item]))
        return messages

    @functools.wraps(generate)
    def seen(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not inside:
            tensors = {name: one for name, one in kwargs.items() if torch.is_tensor(one)}
            found.append(Request(given[-1].task, given[-1].visuals, tensors))
        inside.append("generate")
        try:
            return generate(self, *args, **kwargs)
        finally:
            inside.pop()

    with (
        patch.object(GenerationMixin, "generate", seen),
        patch.object(names, "doc_to_visual", doc_to_visual),
        patch.object(names, "doc_to_messages", doc_to_messages),
    ):
        yield found


def pictures(tensors: Mapping[str, Any], processor: Any) -> list[NDArray[np.uint8]]:
    """Every picture and every frame, (height, width, 3), in order.

    Of a picture that was cut into tiles the first, which is all of it.
    """
    found = []
    for name, part in PIXELS.items():
        if name not in tensors:
            continue
        pixels, own = tensors[name].float(), getattr(processor, part, processor.image_processor)
        if GRIDS[part] in tensors:
            grid = tensors[GRIDS[part]].tolist()
            shown = from_patches(pixels, grid, own, still=part == "image_processor")
        else:
            shown = whole(pixels, tensors)
        found += [as_seen(picture, own) for picture in shown]
    return found


def from_patches(pixels: Any, grids: list[list[int]], own: Any, still: bool) -> Iterator[Any]:
    """Undo Qwen's and GLM's patches: (channels, height, width) of each frame.

    Args:
        pixels: (patches, channels * frames of a patch * its height * its width).
        grids: of each video or picture, how many patches long, high and wide.
        own: the processor's part.
        still: a picture stands in both frames of its patches, and is one.
    """
    side, merged = own.patch_size, own.merge_size
    long = getattr(own, "temporal_patch_size", 1)
    place = 0
    for t, h, w in grids:
        cut = pixels[place : place + t * h * w]
        place += t * h * w
        blocks = cut.reshape(
            t, h // merged, w // merged, merged, merged, 3, long, side, side
        ).permute(0, 6, 5, 1, 3, 7, 2, 4, 8)
        frames = blocks.reshape(t * long, 3, h * side, w * side)
        yield from frames[:1] if still else frames


def whole(pixels: Any, tensors: Mapping[str, Any]) -> Iterator[Any]:
    """Pictures that stand in the tensor as they are."""
    tiles = "image_sizes" in tensors and pixels.dim() == 5
    pictures = pixels[:, 0] if tiles else pixels.reshape(-1, *pixels.shape[-3:])
    yield from pictures


def as_seen(picture: Any, own: Any) -> NDArray[np.uint8]:
    import torch

    if own.do_normalize:
        mean, std = (torch.tensor(one)[:, None, None] for one in (own.image_mean, own.image_std))
        picture = picture * std + mean
    levels = picture.permute(1, 2, 0) / own.rescale_factor
    return levels.round().clamp(0, 255).to(torch.uint8).numpy()
