"""What a checkpoint's vision tower is given, request by request, as pictures again.

Seen where a model's `generate` is called, below whatever the host or we say of it. A processor's
normalisation and its cutting into patches are undone, so that a picture can be looked at.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

# Of `generate`: the tensor, and which part of the processor made it.
PIXELS = {
    "pixel_values": "image_processor",
    "pixel_values_images": "image_processor",
    "pixel_values_videos": "video_processor",
}


class Request(NamedTuple):
    """A call of `generate`.

    Attributes:
        task: of the doc that it is for.
        visuals: what the task handed over.
        tensors: that the class passes on.
    """

    task: str
    visuals: list[Any]
    tensors: Mapping[str, Any] = MappingProxyType({})


@contextmanager
def watched(*also: Any) -> Iterator[list[Request]]:
    """Within it, each call of a transformers model's `generate` that is not of another one's.

    Each task asks one doc, and all get as far as this.

    Args:
        also: model classes with a `generate` of their own.
    """
    import torch
    from transformers.generation.utils import GenerationMixin

    from lmms_eval_tasks.host import names

    given: dict[str, Request] = {}
    found: list[Request] = []
    inside: list[str] = []
    to_visual, to_messages = names.doc_to_visual, names.doc_to_messages

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

    def seeing(generate: Any) -> Any:
        @functools.wraps(generate)
        def seen(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not inside:
                tensors = {name: one for name, one in kwargs.items() if torch.is_tensor(one)}
                own = list(given.values())[len(found)]  # a class may ask for the next one's before
                found.append(own._replace(tensors=tensors))
            inside.append("generate")
            try:
                return generate(self, *args, **kwargs)
            finally:
                inside.pop()

        return seen

    with ExitStack() as patched:
        for kind in (GenerationMixin, *also):
            patched.enter_context(patch.object(kind, "generate", seeing(kind.generate)))
        for own in (doc_to_visual, doc_to_messages):
            patched.enter_context(patch.object(names, own.__name__, own))
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
        elif (places := tensors.get(f"{kind}_position_ids")) is not None:
            sizes = (places.flatten(0, -3).amax(1) + 1).flip(1).tolist()
            shown = from_rows(pixels.flatten(0, -3), sizes)
        elif (sizes := tensors.get("spatial_shapes")) is not None:
            shown = from_rows(pixels, sizes.tolist())
        elif "image_sizes" in tensors and pixels.dim() == 5:
            shown = pixels[:, 0]
        else:
            shown = pixels.reshape(-1, *pixels.shape[-3:])
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


def from_rows(pixels: Any, sizes: list[list[int]]) -> Iterator[Any]:
    """Undo SigLIP 2's patches, those of Gemma 4 and LFM2: (channels, height, width) each.

    Args:
        pixels: (pictures, patches, height of a patch * its width * channels), padded.
        sizes: of each picture, how many patches high and wide.
    """
    side = round((pixels.shape[-1] / 3) ** 0.5)
    for rows, (h, w) in zip(pixels, sizes, strict=True):
        blocks = rows[: h * w].reshape(h, w, side, side, 3).permute(4, 0, 2, 1, 3)
        yield blocks.reshape(3, h * side, w * side)


def as_seen(picture: Any, own: Any) -> NDArray[np.uint8]:
    import torch

    if own.do_normalize:
        mean, std = (torch.tensor(one)[:, None, None] for one in (own.image_mean, own.image_std))
        picture = picture * std + mean
    levels = picture.permute(1, 2, 0) / own.rescale_factor
    return levels.round().clamp(0, 255).to(torch.uint8).numpy()
