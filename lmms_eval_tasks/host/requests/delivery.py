"""What really reached the model: frames, pictures and seconds of sound of each request, counted.

A task hands over a video; what a class makes of it is the class's affair, and it tells nobody. So
it is counted at the last place that all classes of a kind share:

- `sent`: in the body of a request to an endpoint;
- `engine`: in the messages that vLLM's `LLM.chat` is given;
- `processor`: where transformers' processors take pictures, frames and sound, until transformers'
  `generate`: an engine that calls a processor keeps what it made, and calls it for some alone;
- `reader`: what decord was asked for, where a class has a processor of its own.

The same frames can arrive as 2,000 or as 4,000 tokens, by the size to which a class brings them.
So the width and height of pictures and the tokens of a prompt are counted too: at transformers'
`generate`, and in what was sent.

Elsewhere nothing is known, and nothing is said. Counting never changes or ends a run.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import io
import json
import sys
import threading
import wave
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, Protocol, SupportsInt

from lmms_eval_tasks import context
from lmms_eval_tasks.models.host_types import Function
from lmms_eval_tasks.utils.json_files import Json

if TYPE_CHECKING:
    from torch import Tensor

_PICTURES = ("image_url", "image", "input_image")
_VIDEOS = ("video_url", "video", "input_video")
_SOUNDS = ("input_audio", "audio_url", "audio")

# Something that was seen: `handed` the name of a request; `video` its frames, `pictures` how many,
# `sound` its seconds, `read` the number of a frame; `generate` its rows; `sent` a request's texts
# and media, with its body if it may be sent again.
Event = tuple[str, Json]
Size = tuple[int, int]  # width and height in pixels


class Deliveries:
    """What is known of a run's requests by task and id of a doc, until their replies are scored."""

    def __init__(self) -> None:
        # What reached the model (DeliveredMedia, in plain types).
        self.seen: dict[tuple[str, str], Mapping[str, object]] = {}
        # Whether the reply is as long as its limit of tokens, where its length is known.
        self.at_limit: dict[tuple[str, str], bool] = {}


@dataclass
class DeliveredMedia:
    """What reached the model of one request."""

    at: str  # where it was counted: sent, processor, reader or engine
    frames: int | None = 0  # of its videos; None where a whole file was sent
    distinct: int | None = None  # of these the different ones; None where that is not known
    pictures: int = 0  # beside the frames
    seconds: float | None = 0.0  # of sound beside a file's own; None if not known of some
    # Not known everywhere, and absent from items that were saved before they were counted.
    sizes: tuple[Size, ...] = ()  # the different ones of its frames and pictures
    visual_tokens: int | None = None  # of the prompt's tokens those that stand for pictures
    prompt_tokens: int | None = None

    def told(self) -> dict[str, object]:
        """The counts in plain types, without the sizes and tokens that are not known."""
        known = asdict(self)
        known["sizes"] = [list(size) for size in self.sizes]
        optional = ("sizes", "visual_tokens", "prompt_tokens")
        return {name: value for name, value in known.items() if value or name not in optional}


class PromptRow(NamedTuple):
    """One request of a batch, as transformers' `generate` gets it."""

    prompt_tokens: int | None
    visual_tokens: int | None
    sizes: tuple[Size, ...]


class RequestContent(NamedTuple):
    """What a request hands over."""

    text: str
    videos: int
    pictures: int


class Expected:
    """A request that is asked now.

    Args:
        name: of the request.
        shown: what it hands over; called once something of it is seen, if ever.
    """

    def __init__(self, name: str, shown: Callable[[], RequestContent]) -> None:
        self.name, self._shown = name, shown

    @cached_property
    def shown(self) -> RequestContent:
        """What it hands over, its text without what classes move."""
        shown = self._shown()
        return shown._replace(text=_bare(shown.text))

    def seen(self, made: DeliveredMedia) -> DeliveredMedia:
        """Pictures that were handed over as a video are its frames."""
        if self.shown.videos and not self.shown.pictures and made.frames == 0:
            made.frames, made.pictures = made.pictures, 0
        return made


class _Watch:
    """The requests that a class is asked at the moment, and what was seen of each."""

    def __init__(self, asked: Iterable[Expected], reads: bool) -> None:
        self._reads = reads
        self._asked = {one.name: one for one in asked}
        self.seen: dict[str, DeliveredMedia] = {}
        self._events: list[Event] = []  # since the last call of `generate`
        self._lock = threading.Lock()
        self._sent: dict[str, str] = {}  # of a body: whose it is, since it may be sent again

    def expect(self, one: Expected) -> None:
        with self._lock:
            self._asked[one.name] = one

    def settled(self, name: str) -> DeliveredMedia | None:
        with self._lock:
            self._asked.pop(name, None)
            self._events = [event for event in self._events if event != ("handed", name)]
            self._sent = {body: whose for body, whose in self._sent.items() if whose != name}
            return self.seen.pop(name, None)

    def note(self, events: Iterable[Event]) -> None:
        with self._lock:
            for kind, value in events:
                if kind == "sent":
                    self._note_sent(*value)
                elif kind == "generate":
                    self._deal_out(value)
                elif kind != "handed" or (
                    value in self._asked and (kind, value) not in self._events
                ):
                    self._events.append((kind, value))

    def end(self) -> None:
        """What is left after the last `generate`: what a reader was asked for, and no more."""
        with self._lock:
            self._events = [event for event in self._events if event[0] in ("handed", "read")]
        self.note([("generate", ())])

    def _note_sent(self, text: str, found: DeliveredMedia, body: bytes) -> None:
        name: str | None = ASKED.get()
        if name not in self._asked:
            digest = hashlib.sha256(body).hexdigest()
            name = self._sent.get(digest) or self._of_text(text)
            if name is None:
                return
            if body:
                self._sent[digest] = name
        self.seen[name] = self._asked[name].seen(found)

    def _of_text(self, text: str) -> str | None:
        """The request that asks this, if possible one of which nothing was seen."""
        shown = {name: one.shown.text for name, one in self._asked.items()}
        fitting = {name: own for name, own in shown.items() if own and own in text}
        longest = max(map(len, fitting.values()), default=0)
        names = [name for name, own in fitting.items() if len(own) == longest]
        return next((one for one in names if one not in self.seen), next(iter(names), None))

    def _deal_out(self, rows: Sequence[PromptRow]) -> None:
        """What was counted belongs to the requests that were handed over meanwhile.

        Some classes prepare the next request while one is answered: what is not all there of it is
        dealt out the next time.
        """
        events, self._events = self._events, []
        names = [value for kind, value in events if kind == "handed"]
        for number in range(len(names), 0, -1):
            asked = [self._asked[name] for name in names[:number]]
            if found := _dealt(asked, events, self._reads, whole=number == len(names)):
                if len(rows) == number:
                    for one, row in zip(found, rows, strict=True):
                        _add_row(one, row)
                for name, one in zip(names, found, strict=False):
                    self.seen.setdefault(name, one)
                self._events = [("handed", name) for name in names[number:]]
                return


def _bare(text: str) -> str:
    """Without white space and marks of pictures, which classes move and put in their own way."""
    return "".join(text.replace("<image>", "").split())


# The request that is asked in this thread, or in this task of an event loop; "" if not known.
ASKED: ContextVar[str] = ContextVar("ASKED", default="")


@contextmanager
def asking(name: str) -> Iterator[None]:
    """Within it, and in threads and tasks that it starts (endpoints.in_context), this is asked."""
    token = ASKED.set(name)
    try:
        yield
    finally:
        ASKED.reset(token)


@contextmanager
def watching(
    asked: Iterable[Expected], reads: bool = True
) -> Iterator[Mapping[str, DeliveredMedia]]:
    """While a class is asked: what reached the model, by the name of a request, when it is done.

    Args:
        asked: the requests.
        reads: whether what a reader was asked for goes to the model: not where a processor of
            transformers' takes it first, which may have no use for it.
    """
    run, watch = context.current(), _Watch(asked, reads)
    before = run.put(_Watch, watch)
    try:
        yield watch.seen
        watch.end()
    finally:
        run.put(_Watch, before)


def expect(one: Expected) -> None:
    """One more request is asked now, beside those that are watched."""
    if (watch := context.current().get(_Watch)) is not None:
        watch.expect(one)


def settled(name: str) -> DeliveredMedia | None:
    """What reached the model of a request whose reply has come; it is watched no more."""
    watch = context.current().get(_Watch)
    return None if watch is None else watch.settled(name)


def handed(name: str) -> None:
    """A request's media are asked for by the class, which is about to use them."""
    if (watch := context.current().get(_Watch)) is not None:
        watch.note([("handed", name)])


def request_name(task: str, doc: str) -> str:
    """What the request of a doc is called while it is asked."""
    return f"{task}/{doc}"


def _dealt(
    asked: Sequence[Expected], events: Iterable[Event], reads: bool, whole: bool
) -> list[DeliveredMedia] | None:
    """What each of the requests got; None where it cannot be told apart.

    `whole` says whether these are all that were handed over.
    """
    of: dict[str, list[Json]] = {kind: [] for kind in ("video", "pictures", "sound", "read")}
    for kind, value in events:
        of.setdefault(kind, []).append(value)
    frames, pictures, sounds, at = of["video"], sum(of["pictures"]), of["sound"], "processor"
    if not (frames or pictures or sounds):
        if not of["read"] or not reads or len(asked) > 1 or not whole:
            return None  # of several requests nobody knows which frame was read for which
        frames, at = [len(of["read"])], "reader"
    if len(asked) == 1 and whole:
        made = asked[0].seen(DeliveredMedia(at, sum(frames), None, pictures, sum(sounds)))
        if len(of["read"]) == made.frames:  # else it was asked for something else, such as a size
            made.distinct = len(set(of["read"])) or None
        return [made]
    number = len(asked)
    of_videos = pictures - sum(one.shown.pictures for one in asked)  # frames that go as pictures
    if len(frames) not in (0, number) or len(sounds) not in (0, number):
        return None
    if of_videos < 0 or of_videos % number or (of_videos and not whole):
        return None
    if not whole and not frames and any(one.shown.videos for one in asked):
        return None
    shares = zip(asked, frames or [0] * number, sounds or [0.0] * number, strict=True)
    return [
        DeliveredMedia(at, n + of_videos // number, None, one.shown.pictures, s)
        for one, n, s in shares
    ]


def _add_row(made: DeliveredMedia, row: PromptRow) -> None:
    made.prompt_tokens, made.sizes = row.prompt_tokens, row.sizes
    # Models that look at pictures from beside the prompt have one token in it for each.
    if row.visual_tokens and row.visual_tokens > made.pictures + (made.frames or 0):
        made.visual_tokens = row.visual_tokens


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
    for end in (begin + 2**8, begin + 2**16, None):
        with contextlib.suppress(Exception):  # whatever it is, the endpoint will say it
            coded = base64.b64decode(found[begin:end])
            with Image.open(io.BytesIO(coded)) as picture:
                return [picture.size]
    return []


# --- the places where it is counted ---------------------------------------------------------------


@contextmanager
def counted() -> Iterator[None]:
    """Within it the shared places count; what is not installed, or is otherwise, does not."""
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
        if (watch := context.current().get(_Watch)) is not None:
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
    """The different sizes of each row's pictures and frames, where `generate` is told them.

    Args:
        counts: tokens of each kind of picture in each row, which say whose a grid is.
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
    body = given if isinstance(given, bytes) else str(given).encode()
    return [_sent("sent", json.loads(body), body)]


def _chatting(_: object, messages: Sequence[Json], *__: object, **___: object) -> Iterable[Event]:
    several = bool(messages) and isinstance(messages[0], list)  # of conversations
    return [_sent("engine", one, b"") for one in (messages if several else [messages])]


def _sent(at: str, told: Json, body: bytes) -> Event:
    texts: list[str] = []
    found = DeliveredMedia(at)
    _count(told, texts, found)
    return "sent", (_bare("".join(texts)), found, body)


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
