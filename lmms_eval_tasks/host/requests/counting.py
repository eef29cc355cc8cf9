"""The places where media are counted on their way to a model, shared by all classes of a kind.

- `sent`: in the body of a request to an endpoint;
- `engine`: in the messages that vLLM's `LLM.chat` is given;
- `processor`: where transformers' processors take pictures, frames and sound, until transformers'
  `generate`: an engine that calls a processor keeps what it made, and calls it for some alone;
- `reader`: the frames that decord was asked for, if a class has a processor of its own.

The same frames can arrive as 2,000 or as 4,000 tokens, by the size to which a class brings them.
So the width and height of pictures and the tokens of a prompt are counted too: at transformers'
`generate`, and in what was sent. Counting never changes or ends a run.
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
    Event,
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
def counted() -> Iterator[None]:
    """Context manager within which the shared places count, but for missing or changed ones."""
    with ExitStack() as stack:
        for module, owner, method, see in _PLACES:
            found = getattr(sys.modules.get(module), owner, None)
            if found is not None and method in vars(found):
                original = vars(found)[method]
                setattr(found, method, _seeing(original, see))
                stack.callback(setattr, found, method, original)
        yield


def _seeing(original: Function, see: Callable[..., Iterable[Event]]) -> Function:
    def note(*args: object, **kwargs: object) -> None:
        if (watch := context.current().get(Watch)) is not None:
            with contextlib.suppress(Exception):  # of another kind, or version
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


def _videos(made: Sequence[Sized]) -> Iterable[Event]:
    return [("video", len(video)) for video in made]


def _pictures(_: object, images: object = None, *__: object, **___: object) -> Iterable[Event]:
    def leaves(some: object) -> int:
        if isinstance(some, list | tuple):
            return sum(map(leaves, some))
        shape: Sequence[int] = getattr(some, "shape", ())
        return int(shape[0]) if len(shape) == 4 else int(some is not None)

    return [("pictures", leaves(images))]


class _Extractor(Protocol):
    """A `SequenceFeatureExtractor` of transformers."""

    model_input_names: Sequence[str]
    sampling_rate: int


def _sounds(
    extractor: _Extractor, features: Mapping[str, Sequence[Tensor]], *_: object, **__: object
) -> Iterable[Event]:
    signals = features[extractor.model_input_names[0]]
    if any(len(getattr(one, "shape", ())) > 1 and one.shape[-1] > 1 for one in signals):
        return []  # not the samples themselves
    return [("sound", len(one) / extractor.sampling_rate) for one in signals]


def _read(_: object, indices: SupportsInt | Iterable[SupportsInt]) -> Iterable[Event]:
    several = indices if isinstance(indices, Iterable) else [indices]
    return [("read", int(one)) for one in several]


def _generating(
    model: object, inputs: object = None, *_: object, **given: object
) -> Iterable[Event]:
    with contextlib.suppress(Exception):  # of another form: the requests are dealt out all the same
        return [("generate", _rows(getattr(model, "config", None), {"inputs": inputs} | given))]
    return [("generate", ())]


def _rows(config: object, given: Mapping[str, object]) -> list[PromptRow]:
    """The requests of a batch, without padding.

    Args:
        config: of the model; says which tokens stand for pictures, and the side of a patch.
        given: the arguments of `generate`.
    """
    known: dict[str, Tensor] = {name: v for name, v in given.items() if v is not None}
    ids = next((known[name] for name in ("input_ids", "inputs") if name in known), None)
    prompt = known["inputs_embeds"] if ids is None else ids
    number, length = prompt.shape[:2]
    mask: Tensor = known.get("attention_mask")
    tokens: list[int | None] = [int(length) if number == 1 else None] * number
    if getattr(mask, "shape", None) == (number, length):
        tokens = mask.sum(1).tolist()
    counts: dict[str, list[int]] = {}  # of tokens that stand for pictures, by kind
    for kind in ("image", "video"):
        names = (f"{kind}_token_id", f"{kind}_token_index")
        token = next((t for name in names if (t := getattr(config, name, None)) is not None), None)
        if ids is not None and token is not None:
            counts[kind] = (ids == token).sum(1).tolist()
    sizes = _sizes_of_rows(config, known, counts, number)
    visual = [sum(row) for row in zip(*counts.values(), strict=True)] or [0] * number
    return [PromptRow(*row) for row in zip(tokens, [n or None for n in visual], sizes, strict=True)]


def _sizes_of_rows(
    config: object, given: Mapping[str, Tensor], counts: Mapping[str, list[int]], number: int
) -> list[tuple[Size, ...]]:
    """The different sizes of each row's pictures and frames, if `generate` is given them.

    Args:
        counts: tokens of each kind of picture in each row, which decide the row of a grid.
        number: of rows.
    """
    vision = getattr(config, "vision_config", None)
    patch, merge = (getattr(vision, name, None) for name in ("patch_size", "spatial_merge_size"))
    found: list[dict[Size, None]] = [{} for _ in range(number)]
    for kind, in_rows in counts.items():
        grids = given.get(f"{kind}_grid_thw")  # of each: patches in time, height and width
        if grids is None or not isinstance(patch, int) or not isinstance(merge, int):
            continue
        ends, done = list(accumulate(in_rows)), 0
        for time, height, width in grids.tolist():
            if (row := bisect_right(ends, done)) == number:  # counted otherwise
                break
            found[row][int(width) * patch, int(height) * patch] = None
            done += int(time * height * width) // merge**2
    frames: Sequence[int] = getattr(given.get("pixel_values_videos"), "shape", ())
    if len(frames) == 5 and frames[0] == number:  # videos, frames, colours, height, width
        found = [{(int(frames[4]), int(frames[3])): None}] * number
    return [tuple(one) for one in found]


def _sending(_: object, request: object, **__: object) -> Iterable[Event]:
    given = getattr(request, "content", None) or getattr(request, "body", None) or b""
    body = _shortened(given if isinstance(given, bytes) else str(given).encode())
    return [_sent("sent", json.loads(body), body)]


def _shortened(body: bytes) -> bytes:
    """The JSON of a body with the beginnings of its pictures: `_size` needs no more.

    32 frames are 9 MB for each question; to parse and to hash them costs as much as to send them.
    """
    kept, begin = [], 0
    while (start := body.find(b'"data:image/', begin)) >= 0:
        end = body.find(b'"', start + 1)
        kept += [body[begin : min(end, start + _BEGINNING)]]
        begin = end
    return b"".join([*kept, body[begin:]])


def _chatting(_: object, messages: Sequence[Json], *__: object, **___: object) -> Iterable[Event]:
    several = bool(messages) and isinstance(messages[0], list)  # of conversations
    return [_sent("engine", one, b"") for one in (messages if several else [messages])]


def _sent(at: str, told: Json, body: bytes) -> Event:
    texts: list[str] = []
    found = DeliveredMedia(at)
    _count(told, texts, found)
    return "sent", (without_marks("".join(texts)), found, body)


def _count(told: Json, texts: list[str], found: DeliveredMedia) -> None:
    """Texts and media in the body of a request, in whatever form of API."""
    if isinstance(told, list):
        for one in told:
            _count(one, texts, found)
    if not isinstance(told, dict):
        return
    kind = told.get("type")
    inline = told.get("inlineData") or told.get("inline_data") or {}
    mime = str(inline.get("mimeType") or inline.get("mime_type") or "")
    if kind in _PICTURES or mime.startswith("image/") or isinstance(told.get("image"), str):
        found.pictures += 1
        found.sizes = tuple(dict.fromkeys((*found.sizes, *_size(told))))
    elif kind in _VIDEOS or mime.startswith("video/") or "fileData" in told or "file_data" in told:
        found.frames = None
    elif kind in _SOUNDS or mime.startswith("audio/"):
        given = told.get("input_audio")
        coded: Json = (given if isinstance(given, dict) else inline).get("data")
        try:
            sound = wave.open(io.BytesIO(base64.b64decode(coded)))  # noqa: SIM115 - a buffer
            found.seconds += sound.getnframes() / sound.getframerate()
        except (wave.Error, EOFError, ValueError, TypeError):
            found.seconds = None  # and stays so: nothing can be added to it
    else:
        texts += [told[name] for name in ("text", "content") if isinstance(told.get(name), str)]
        for one in told.values():
            _count(one, texts, found)


def _size(part: Mapping[str, Json]) -> Iterable[Size]:
    """Width and height of the encoded picture in a part of a body; none if it is an address."""

    def texts(some: Json) -> Iterator[str]:
        for one in some.values() if isinstance(some, dict) else ():
            yield from [one] if isinstance(one, str) else texts(one)

    from PIL import Image

    found = max(texts(part), key=len, default="")
    begin = found.find(",", 0, 100) + 1  # of a data address; else it stands alone
    # The header alone, for each of 32 frames and question; it may stand behind a long note.
    for end in (begin + 2**8, begin + _BEGINNING, None):
        with contextlib.suppress(Exception):  # whatever it is, the endpoint will say it
            coded = base64.b64decode(found[begin:end])
            with Image.open(io.BytesIO(coded)) as picture:
                return [picture.size]
    return []


_PLACES: list[tuple[str, str, str, Callable[..., Iterable[Event]]]] = [
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
