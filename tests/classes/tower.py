"""What a checkpoint's vision tower is given, request by request, as pictures again.

Seen where a model's `generate` is called, below whatever the host or we say of it. A processor's
normalisation and its cutting into patches are undone, so that a picture can be looked at.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

# Of `generate`: the tensor, and which part of the processor made it.
PIXELS = {"pixel_values": "image_processor", "pixel_values_videos": "video_processor"}


class Request(NamedTuple):
    """A call of `generate`: the task of its doc, what the task handed over, the class's tensors."""

    task: str
    visuals: list[Any]
    tensors: Mapping[str, Any] = MappingProxyType({})


@contextmanager
def watched() -> Iterator[list[Request]]:
    """Within it, each call of `generate`. Each task asks one doc, and all get as far as this."""
    import torch
    from transformers.generation.utils import GenerationMixin

    from lmms_eval_tasks.host import task_functions

    given: dict[str, Request] = {}
    found: list[Request] = []
    to_visual, to_messages = task_functions.doc_to_visual, task_functions.doc_to_messages
    generate = GenerationMixin.generate

    def doc_to_visual(doc: Any) -> Any:
        visuals = to_visual(doc)
        given[doc["task"]] = Request(doc["task"], list(visuals))
        return visuals

    def doc_to_messages(doc: Any, *args: Any, **kwargs: Any) -> Any:
        messages = to_messages(doc, *args, **kwargs)
        items = [item for message in messages for item in message["content"]]
        visuals = [item["url"] for item in items if "url" in item]
        given[doc["task"]] = Request(doc["task"], visuals)
        return messages

    @functools.wraps(generate)
    def seen(self: Any, *args: Any, **kwargs: Any) -> Any:
        tensors = {name: one for name, one in kwargs.items() if torch.is_tensor(one)}
        own = list(given.values())[len(found)]  # a class may ask for the next one's before
        found.append(own._replace(tensors=tensors))
        return generate(self, *args, **kwargs)

    with (
        patch.object(GenerationMixin, "generate", seen),
        patch.object(task_functions, "doc_to_visual", doc_to_visual),
        patch.object(task_functions, "doc_to_messages", doc_to_messages),
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
        kind = part.partition("_")[0]
        if (grid := tensors.get(f"{kind}_grid_thw")) is not None:
            shown = from_patches(pixels, grid.tolist(), own, still=kind == "image")
        elif "image_sizes" in tensors and pixels.dim() == 5:
            shown = pixels[:, 0]
        else:
            shown = pixels.reshape(-1, *pixels.shape[-3:])
        found += [as_seen(picture, own) for picture in shown]
    return found


def from_patches(pixels: Any, grids: list[list[int]], own: Any, still: bool) -> Iterator[Any]:
    """Undo Qwen's patches: (channels, height, width) of each frame.

    Args:
        pixels: (patches, channels * frames of a patch * its height * its width).
        grids: of each video or picture, how many patches long, high and wide.
        own: the processor's part.
        still: a picture stands in both frames of its patches, and is one.
    """
    side, merged, long, place = own.patch_size, own.merge_size, own.temporal_patch_size, 0
    for t, h, w in grids:
        cut = pixels[place : place + t * h * w]
        place += t * h * w
        blocks = cut.reshape(
            t, h // merged, w // merged, merged, merged, 3, long, side, side
        ).permute(0, 6, 5, 1, 3, 7, 2, 4, 8)
        frames = blocks.reshape(t * long, 3, h * side, w * side)
        yield from frames[:1] if still else frames


def as_seen(picture: Any, own: Any) -> NDArray[np.uint8]:
    import torch

    if own.do_normalize:
        mean, std = (torch.tensor(one)[:, None, None] for one in (own.image_mean, own.image_std))
        picture = picture * std + mean
    levels = picture.permute(1, 2, 0) / own.rescale_factor
    return levels.round().clamp(0, 255).to(torch.uint8).numpy()
