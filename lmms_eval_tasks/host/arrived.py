"""What really reached the model: frames, pictures and seconds of sound of each request, counted.

A task hands over a video; what a class makes of it is the class's affair, and it tells nobody. So
it is counted at the last place that all classes of a kind share:

- `sent`: in the body of a request to an endpoint;
- `processor`: where transformers' processors take pictures, frames and sound, until `generate`;
- `reader`: what decord was asked for, where a class has a processor of its own.

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

_PICTURES = ("image_url", "image", "input_image")
_VIDEOS = ("video_url", "video", "input_video")
_SOUNDS = ("input_audio", "audio_url", "audio")


@dataclass
class Seen:
    """What reached the model of one request.

    Attributes:
        at: where it was counted: sent, processor or reader.
        frames: of its videos; None where a whole file was sent.
        distinct: of these the different ones; None where that is not known.
        pictures: beside the frames.
        seconds: of sound beside a file's own; None where there is some of a length not known.
    """

    at: str
    frames: int | None = 0
    distinct: int | None = None
    pictures: int = 0
    seconds: float | None = 0.0

    def as_dict(self) -> dict[str, Any]:
        """In plain types, for an item."""
        return asdict(self)


@dataclass(frozen=True)
class Expected:
    """A request that is asked now, its text, and how much it hands over."""

    name: str
    text: str
    videos: int
    pictures: int


@dataclass
class _Window:
    """What was counted since the last call of `generate`."""

    handed: list[str] = field(default_factory=list)
    videos: list[int] = field(default_factory=list)
    pictures: int = 0
    sounds: list[float] = field(default_factory=list)
    read: list[int] = field(default_factory=list)  # numbers of frames


class _Watch:
    """The requests that a class is asked at the moment, and what was seen of each."""

    def __init__(self, asked: Iterable[Expected], reads: bool) -> None:
        self._reads = reads
        self.asked = {one.name: replace(one, text=_bare(one.text)) for one in asked}
        self.seen: dict[str, Seen] = {}
        self._window = _Window()
        self._lock = threading.Lock()
        self._sent: dict[str, str] = {}  # of a body: whose it is, since it may be sent again

    def handed(self, name: str) -> None:
        with self._lock:
            if name in self.asked and name not in self._window.handed:
                self._window.handed.append(name)

    def note(self, change: Callable[[_Window], None]) -> None:
        with self._lock:
            change(self._window)

    def flush(self) -> None:
        """Deal out what was counted among the requests that were handed over meanwhile.

        Some classes prepare the next request while one is answered: what is not all there of it is
        dealt out the next time.
        """
        with self._lock:
            window, self._window = self._window, _Window()
            names = window.handed
            for number in range(len(names), 0, -1):
                asked = [self.asked[name] for name in names[:number]]
                found = _dealt(asked, window, self._reads, whole=number == len(names))
                if found:
                    for name, one in zip(names, found, strict=False):
                        self.seen.setdefault(name, one)
                    self._window.handed = names[number:]
                    return

    def sent(self, body: bytes) -> None:
        with contextlib.suppress(ValueError, TypeError):  # not of our kind
            told = json.loads(body)
            texts: list[str] = []
            found = Seen("sent")
            _count(told, texts, found)
            with self._lock:
                name = self._whose(body, _bare("".join(texts)))
                if name is not None:
                    self.seen[name] = _as_frames(found, self.asked[name])

    def _whose(self, body: bytes, text: str) -> str | None:
        digest = hashlib.sha256(body).hexdigest()
        if digest not in self._sent:
            fitting = [one for one in self.asked.values() if one.text and one.text in text]
            longest = max((len(one.text) for one in fitting), default=0)
            names = [one.name for one in fitting if len(one.text) == longest]
            names = [one for one in names if one not in self.seen] or names
            if not names:
                return None
            self._sent[digest] = names[0]
        return self._sent[digest]


def _bare(text: str) -> str:
    """Without white space and marks of pictures, which classes move and put in their own way."""
    return "".join(text.replace("<image>", "").split())


_watch: _Watch | None = None


@contextmanager
def watching(asked: Iterable[Expected], reads: bool = True) -> Iterator[Mapping[str, Seen]]:
    """While a class is asked: what reached the model, by the name of a request, when it is done.

    Args:
        asked: the requests.
        reads: whether what a reader was asked for goes to the model: not where a processor of
            transformers' takes it first, which may have no use for it.
    """
    global _watch  # noqa: PLW0603 - classes call our functions with a doc and nothing else
    before, _watch = _watch, _Watch(asked, reads)
    try:
        yield _watch.seen
        _watch.flush()
    finally:
        _watch = before


_remembered: dict[tuple[str, str], Mapping[str, Any]] = {}


def forget() -> None:
    """Before a run."""
    _remembered.clear()


def remember(task: str, doc: Mapping[str, Any], seen: Mapping[str, Any] | None) -> None:
    """Keep what reached the model until the doc's reply is scored."""
    if seen is not None:
        _remembered[task, str(doc["id"])] = seen


def of(task: str, doc: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What reached the model of a doc; None where nobody could tell."""
    return _remembered.get((task, str(doc["id"])))


def handed(name: str) -> None:
    """A request's media are asked for by the class, which is about to use them."""
    if _watch is not None:
        _watch.handed(name)


def _dealt(
    asked: Sequence[Expected], window: _Window, reads: bool, whole: bool
) -> list[Seen] | None:
    """What each of the requests got; None where it cannot be told apart.

    Args:
        asked: requests that were handed over.
        window: what was counted.
        reads: as of `watching`.
        whole: whether these are all that were.
    """
    frames, at = window.videos, "processor"
    if not (frames or window.pictures or window.sounds):
        if not window.read or not reads:
            return None
        frames, at = [len(window.read)], "reader"
    if len(asked) == 1 and whole:
        made = Seen(at, sum(frames), None, window.pictures, sum(window.sounds))
        made = _as_frames(made, asked[0])
        if len(window.read) == made.frames:  # else it was asked for something else, such as a size
            made.distinct = len(set(window.read)) or None
        return [made]
    number, shown = len(asked), sum(one.pictures for one in asked)
    of_videos = window.pictures - shown  # frames that go as pictures
    if len(frames) not in (0, number) or len(window.sounds) not in (0, number):
        return None
    if of_videos < 0 or of_videos % number or (of_videos and not whole):
        return None
    if not whole and not frames and any(one.videos for one in asked):
        return None
    return [
        Seen(
            at,
            (frames[place] if frames else 0) + of_videos // number,
            None,
            one.pictures,
            window.sounds[place] if window.sounds else 0.0,
        )
        for place, one in enumerate(asked)
    ]


def _as_frames(found: Seen, asked: Expected) -> Seen:
    """Pictures that were handed over as a video are its frames."""
    if asked.videos and not asked.pictures and found.frames == 0:
        found.frames, found.pictures = found.pictures, 0
    return found


def _count(told: Any, texts: list[str], found: Seen) -> None:
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
    elif kind in _VIDEOS or mime.startswith("video/") or "fileData" in told or "file_data" in told:
        found.frames = None
    elif kind in _SOUNDS or mime.startswith("audio/"):
        sound = told.get("input_audio")
        seconds = _seconds(sound.get("data") if isinstance(sound, dict) else inline.get("data"))
        known = None not in (seconds, found.seconds)
        found.seconds = (found.seconds or 0) + (seconds or 0) if known else None
    else:
        texts += [told[name] for name in ("text", "content") if isinstance(told.get(name), str)]
        for one in told.values():
            _count(one, texts, found)


def _seconds(data: Any) -> float | None:
    try:
        sound = wave.open(io.BytesIO(base64.b64decode(data)))  # noqa: SIM115 - a buffer
    except (wave.Error, EOFError, ValueError, TypeError):
        return None
    return float(sound.getnframes() / sound.getframerate())


# --- the places where it is counted ---------------------------------------------------------------


@contextmanager
def counted() -> Iterator[None]:
    """Within it the shared places count; what is not installed, or is otherwise, does not."""
    with ExitStack() as stack:
        for module, owner, method, see in _PLACES:
            found = getattr(sys.modules.get(module), owner, None)
            if found is not None and method in vars(found):
                stack.enter_context(_wrapped(found, method, see))
        yield


@contextmanager
def _wrapped(owner: Any, method: str, see: Callable[..., None]) -> Iterator[None]:
    original = vars(owner)[method]

    def noted(watch: _Watch, *args: Any, **kwargs: Any) -> None:
        with contextlib.suppress(Exception):  # a version that does otherwise
            see(watch, *args, **kwargs)

    @functools.wraps(original)
    def method_of(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _watch is None:
            return original(self, *args, **kwargs)
        if see in _AFTER:
            made = original(self, *args, **kwargs)
            noted(_watch, self, made)
            return made
        noted(_watch, self, *args, **kwargs)
        return original(self, *args, **kwargs)

    setattr(owner, method, method_of)
    try:
        yield
    finally:
        setattr(owner, method, original)


def _videos(watch: _Watch, _: Any, made: Sequence[Any]) -> None:
    watch.note(lambda window: window.videos.extend(len(video) for video in made))


def _pictures(watch: _Watch, _: Any, images: Any = None, *__: Any, **___: Any) -> None:
    number = _leaves(images)

    def add(window: _Window) -> None:
        window.pictures += number

    watch.note(add)


def _leaves(images: Any) -> int:
    if images is None:
        return 0
    if isinstance(images, list | tuple):
        return sum(map(_leaves, images))
    return int(images.shape[0]) if len(getattr(images, "shape", ())) == 4 else 1


def _sounds(watch: _Watch, extractor: Any, features: Any, *_: Any, **__: Any) -> None:
    signals = features[extractor.model_input_names[0]]
    if any(len(getattr(one, "shape", ())) > 1 and one.shape[-1] > 1 for one in signals):
        return  # not the samples themselves
    lengths = [len(one) / extractor.sampling_rate for one in signals]
    watch.note(lambda window: window.sounds.extend(lengths))


def _read(watch: _Watch, _: Any, indices: Any) -> None:
    taken = [int(one) for one in (indices if hasattr(indices, "__len__") else [indices])]
    watch.note(lambda window: window.read.extend(taken))


def _generating(watch: _Watch, *_: Any, **__: Any) -> None:
    watch.flush()


def _sending(watch: _Watch, _: Any, request: Any, **__: Any) -> None:
    body = getattr(request, "content", None) or getattr(request, "body", None)
    if body:
        watch.sent(body if isinstance(body, bytes) else str(body).encode())


_AFTER = (_videos,)
_HTTP = [
    (module, owner, "send", _sending)
    for module in ("httpx", "httpx2")
    for owner in ("Client", "AsyncClient")
]
_PLACES: list[tuple[str, str, str, Callable[..., None]]] = [
    *_HTTP,
    ("requests", "Session", "send", _sending),
    (
        "transformers.video_processing_utils",
        "BaseVideoProcessor",
        "_prepare_input_videos",
        _videos,
    ),
    ("transformers.image_processing_utils", "BaseImageProcessor", "__call__", _pictures),
    (
        "transformers.feature_extraction_sequence_utils",
        "SequenceFeatureExtractor",
        "pad",
        _sounds,
    ),
    ("transformers.generation.utils", "GenerationMixin", "generate", _generating),
    ("decord", "VideoReader", "get_batch", _read),
    ("decord", "VideoReader", "__getitem__", _read),
]
