"""The places where media are counted on their way to a model, shared by all classes of a kind.

- `sent`: in the body of a request to an endpoint;
- `engine`: in the messages of vLLM's `LLM.chat`;
- `processor`: where transformers' processors take pictures, frames and sound, until transformers'
  `generate`; an engine that calls a processor caches its results, and calls it for some alone;
- `reader`: the frames that decord returns, if a class has its own processor.

The same frames can arrive as 2,000 or as 4,000 tokens, depending on the size to which a class
scales them. So the width and height of pictures and the tokens of a prompt are counted, too: at
transformers' `generate`, and in requests. Counting never changes or ends a run.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import io
import json
import sys
import wave
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol, SupportsInt

from lmms_eval_tasks import context
from lmms_eval_tasks.host.requests.delivery import (
    DeliveredMedia,
    MediaEvent,
    PromptRow,
    Size,
    Watch,
    without_marks,
)
from lmms_eval_tasks.models.host_types import Function
from lmms_eval_tasks.utils.json_files import Json

if TYPE_CHECKING:
    from torch import Tensor

_PICTURES = ("image_url", "image", "input_image")
_VIDEOS = ("video_url", "video", "input_video")
_SOUNDS = ("input_audio", "audio_url", "audio")
_BEGINNING = 2**16  # characters of an encoded picture that hold its header, behind a long note, too


@contextmanager
def count_media() -> Iterator[None]:
    """Count media at the shared places while the context lasts; missing places do not count."""
    with ExitStack() as stack:
        for module, owner, method, see in _PLACES:
            target = getattr(sys.modules.get(module), owner, None)
            if target is not None and method in vars(target):
                original = vars(target)[method]
                setattr(target, method, _seeing(original, see))
                stack.callback(setattr, target, method, original)
        yield


def _seeing(original: Function, see: Callable[..., Iterable[MediaEvent]]) -> Function:
    def note(*args: object, **kwargs: object) -> None:
        if (watch := context.current().get(Watch)) is not None:
            with contextlib.suppress(Exception):  # the arguments are of another kind or version
                watch.note(see(*args, **kwargs))

    @functools.wraps(original)
    def method(self: object, *args: object, **kwargs: object) -> object:
        if see is not _videos:
            note(self, *args, **kwargs)
        made = original(self, *args, **kwargs)
        if see is _videos:
            note(made)
        return made

    return method


def _videos(groups: Sequence[Sized]) -> Iterable[MediaEvent]:
    return [MediaEvent("video", len(video)) for video in groups]


def _pictures(_: object, images: object = None, *__: object, **___: object) -> Iterable[MediaEvent]:
    def leaves(some: object) -> int:
        if isinstance(some, list | tuple):
            return sum(map(leaves, some))
        shape: Sequence[int] = getattr(some, "shape", ())
        return int(shape[0]) if len(shape) == 4 else int(some is not None)

    return [MediaEvent("pictures", leaves(images))]


class _Extractor(Protocol):
    """A `SequenceFeatureExtractor` of transformers."""

    model_input_names: Sequence[str]
    sampling_rate: int


def _sounds(
    extractor: _Extractor, features: Mapping[str, Sequence[Tensor]], *_: object, **__: object
) -> Iterable[MediaEvent]:
    signals = features[extractor.model_input_names[0]]
    if any(len(getattr(one, "shape", ())) > 1 and one.shape[-1] > 1 for one in signals):
        return []  # not raw samples, so their length is no time
    return [MediaEvent("sound", len(one) / extractor.sampling_rate) for one in signals]


def _read(_: object, indices: SupportsInt | Iterable[SupportsInt]) -> Iterable[MediaEvent]:
    several = indices if isinstance(indices, Iterable) else [indices]
    return [MediaEvent("read", int(one)) for one in several]


def _generating(
    model: object, inputs: object = None, *_: object, **kwargs: object
) -> Iterable[MediaEvent]:
    with contextlib.suppress(Exception):  # unknown arguments; the media are assigned in any case
        rows = _rows(getattr(model, "config", None), {"inputs": inputs} | kwargs)
        return [MediaEvent("generate", rows)]
    return [MediaEvent("generate", ())]


def _rows(config: object, inputs: Mapping[str, object]) -> list[PromptRow]:
    """Return the requests of a batch, without padding.

    Args:
        config: the model's config, which names the tokens that stand for pictures and the side of a
            patch.
        inputs: the arguments of `generate`.
    """
    present: dict[str, Tensor] = {name: v for name, v in inputs.items() if v is not None}
    ids = next((present[name] for name in ("input_ids", "inputs") if name in present), None)
    prompt = present["inputs_embeds"] if ids is None else ids
    number, length = prompt.shape[:2]
    mask: Tensor = present.get("attention_mask")
    tokens: list[int | None] = [int(length) if number == 1 else None] * number
    if getattr(mask, "shape", None) == (number, length):
        tokens = mask.sum(1).tolist()
    counts: dict[str, list[int]] = {}  # numbers of tokens that stand for pictures, by kind
    for kind in ("image", "video"):
        names = (f"{kind}_token_id", f"{kind}_token_index")
        token = next((t for name in names if (t := getattr(config, name, None)) is not None), None)
        if ids is not None and token is not None:
            counts[kind] = (ids == token).sum(1).tolist()
    sizes = _sizes_of_rows(config, present, counts, number)
    visual = [sum(row) for row in zip(*counts.values(), strict=True)] or [0] * number
    return [PromptRow(*row) for row in zip(tokens, [n or None for n in visual], sizes, strict=True)]


def _sizes_of_rows(
    config: object, inputs: Mapping[str, Tensor], counts: Mapping[str, list[int]], number: int
) -> list[tuple[Size, ...]]:
    """Return the different sizes of each row's pictures and frames, if `generate` gets them.

    Args:
        config: the model's config.
        inputs: the arguments of `generate`.
        counts: tokens of each kind of picture in each row, which assign a grid to its row.
        number: number of rows.
    """
    vision = getattr(config, "vision_config", None)
    patch, merge = (getattr(vision, name, None) for name in ("patch_size", "spatial_merge_size"))
    sizes: list[dict[Size, None]] = [{} for _ in range(number)]
    for kind, in_rows in counts.items():
        grids = inputs.get(
            f"{kind}_grid_thw"
        )  # for each picture: patches in time, height and width
        if grids is None or not isinstance(patch, int) or not isinstance(merge, int):
            continue
        ends, consumed = list(accumulate(in_rows)), 0
        for time, height, width in grids.tolist():
            if (row := bisect_right(ends, consumed)) == number:  # the counts do not match the grids
                break
            sizes[row][int(width) * patch, int(height) * patch] = None
            consumed += int(time * height * width) // merge**2
    frames: Sequence[int] = getattr(inputs.get("pixel_values_videos"), "shape", ())
    if len(frames) == 5 and frames[0] == number:  # videos, frames, colours, height, width
        sizes = [{(int(frames[4]), int(frames[3])): None}] * number
    return [tuple(row_sizes) for row_sizes in sizes]


def _sending(_: object, request: object, **__: object) -> Iterable[MediaEvent]:
    given = getattr(request, "content", None) or getattr(request, "body", None) or b""
    body = _shortened(given if isinstance(given, bytes) else str(given).encode())
    return [_sent("sent", json.loads(body), body)]


def _shortened(body: bytes) -> bytes:
    """Return the JSON of a body with only the beginnings of its pictures, which `_size` reads.

    32 frames are 9 MB for each question; parsing and hashing them costs as much as sending them.
    """
    kept, begin = [], 0
    while (start := body.find(b'"data:image/', begin)) >= 0:
        end = body.find(b'"', start + 1)
        kept += [body[begin : min(end, start + _BEGINNING)]]
        begin = end
    return b"".join([*kept, body[begin:]])


def _chatting(
    _: object, messages: Sequence[Json], *__: object, **___: object
) -> Iterable[MediaEvent]:
    several = bool(messages) and isinstance(messages[0], list)  # a list of conversations
    return [_sent("engine", one, b"") for one in (messages if several else [messages])]


def _sent(at: str, fields: Json, body: bytes) -> MediaEvent:
    texts: list[str] = []
    found = DeliveredMedia(at)
    _count(fields, texts, found)
    return MediaEvent("sent", (without_marks("".join(texts)), found, body))


def _count(node: Json, texts: list[str], delivered: DeliveredMedia) -> None:
    """Add the texts and media in the body of a request, for all APIs, to `texts` and `found`."""
    if isinstance(node, list):
        for one in node:
            _count(one, texts, delivered)
    if not isinstance(node, dict):
        return
    kind = node.get("type")
    inline = node.get("inlineData") or node.get("inline_data") or {}
    mime = str(inline.get("mimeType") or inline.get("mime_type") or "")
    if kind in _PICTURES or mime.startswith("image/") or isinstance(node.get("image"), str):
        delivered.pictures += 1
        delivered.sizes = tuple(dict.fromkeys((*delivered.sizes, *_size(node))))
    elif kind in _VIDEOS or mime.startswith("video/") or "fileData" in node or "file_data" in node:
        delivered.frames = None
    elif kind in _SOUNDS or mime.startswith("audio/"):
        given = node.get("input_audio")
        coded: Json = (given if isinstance(given, dict) else inline).get("data")
        try:
            sound = wave.open(io.BytesIO(base64.b64decode(coded)))  # noqa: SIM115 - a buffer
            delivered.seconds += sound.getnframes() / sound.getframerate()
        except (wave.Error, EOFError, ValueError, TypeError):
            delivered.seconds = None  # unknown from now on
    else:
        texts += [node[name] for name in ("text", "content") if isinstance(node.get(name), str)]
        for one in node.values():
            _count(one, texts, delivered)


def _size(part: Mapping[str, Json]) -> Iterable[Size]:
    """Return width and height of the encoded picture in a part of a body; () for an address."""

    def texts(some: Json) -> Iterator[str]:
        for one in some.values() if isinstance(some, dict) else ():
            yield from [one] if isinstance(one, str) else texts(one)

    from PIL import Image

    found = max(texts(part), key=len, default="")
    # Start of the data in a data address; else the text is the data.
    begin = found.find(",", 0, 100) + 1
    # The header suffices, for speed with 32 frames in each question; a long note may come first.
    for end in (begin + 2**8, begin + _BEGINNING, None):
        with contextlib.suppress(Exception):  # the endpoint will report the error
            coded = base64.b64decode(found[begin:end])
            with Image.open(io.BytesIO(coded)) as picture:
                return [picture.size]
    return []


_PLACES: list[tuple[str, str, str, Callable[..., Iterable[MediaEvent]]]] = [
    *((module, "Client", "send", _sending) for module in ("httpx", "httpx2")),
    *((module, "AsyncClient", "send", _sending) for module in ("httpx", "httpx2")),
    ("requests", "Session", "send", _sending),
    ("vllm", "LLM", "chat", _chatting),
    ("transformers.video_processing_utils", "BaseVideoProcessor", "_prepare_input_videos", _videos),
    ("transformers.image_processing_utils", "BaseImageProcessor", "__call__", _pictures),
    (
        *("transformers.feature_extraction_sequence_utils", "SequenceFeatureExtractor"),
        *("pad", _sounds),
    ),
    ("transformers.generation.utils", "GenerationMixin", "generate", _generating),
    ("decord", "VideoReader", "get_batch", _read),
    ("decord", "VideoReader", "__getitem__", _read),
]
