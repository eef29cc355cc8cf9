"""Media that reached the model: frames, pictures and seconds of sound of each request, counted.

A task passes a video to lmms-eval, and the model's class decides how many of its frames the model
gets. The class does not report the number. So media are counted at the last place that all classes
of a kind share (counting.py), and are assigned here to the open requests. A request whose media
cannot be distinguished from another's has no counts.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import NamedTuple

from lmms_eval_tasks import context
from lmms_eval_tasks.utils.json_files import Json

Size = tuple[int, int]  # width and height in pixels


class MediaEvent(NamedTuple):
    """An event at one of the places in counting.py: its kind, with a value.

    `handed`: the name of a request; `video`: its frames; `pictures`: their number; `sound`: its
    seconds; `read`: the number of a frame; `generate`: its rows; `sent`: a request's texts and
    media, with its body if it may be sent again.
    """

    kind: str
    value: Json


class Deliveries:
    """Facts about a run's requests by task and doc id, kept until their replies are scored."""

    def __init__(self) -> None:
        # The media that reached the model (DeliveredMedia, in plain types).
        self.delivered: dict[tuple[str, str], Mapping[str, object]] = {}
        # True if the reply is as long as its limit of tokens; missing if its length is unknown.
        self.at_limit: dict[tuple[str, str], bool] = {}


@dataclass
class DeliveredMedia:
    """The counts of one request's media that reached the model."""

    at: str  # place of the count: sent, processor, reader or engine
    frames: int | None = 0  # frames of videos; None if a whole file was sent
    distinct: int | None = None  # number of different frames; None if unknown
    pictures: int = 0  # pictures that are no frames
    seconds: float | None = 0.0  # seconds of sound outside of video files; None if some are unknown
    # The following are not always known, and missing in items of earlier versions.
    sizes: tuple[Size, ...] = ()  # different sizes of its frames and pictures
    visual_tokens: int | None = None  # tokens of the prompt that stand for pictures
    prompt_tokens: int | None = None

    def as_dict(self) -> dict[str, object]:
        """Return the counts in plain types, without unknown sizes and tokens."""
        known = asdict(self)
        known["sizes"] = [list(size) for size in self.sizes]
        optional = ("sizes", "visual_tokens", "prompt_tokens")
        return {name: value for name, value in known.items() if value or name not in optional}


class PromptRow(NamedTuple):
    """One request of a batch, in the form in which transformers' `generate` gets it."""

    prompt_tokens: int | None
    visual_tokens: int | None
    sizes: tuple[Size, ...]


class RequestContent(NamedTuple):
    """The text of a request, and its numbers of videos and pictures."""

    text: str
    videos: int
    pictures: int


class Expected:
    """An open request, whose media are expected.

    Args:
        name: name of the request.
        content: returns the request's content; called when the first of its media is seen, if ever.
    """

    def __init__(self, name: str, content: Callable[[], RequestContent]) -> None:
        self.name, self._shown = name, content

    @cached_property
    def content(self) -> RequestContent:
        """The content of the request; its text lacks the marks that classes move."""
        shown = self._shown()
        return shown._replace(text=without_marks(shown.text))

    def as_frames(self, delivered: DeliveredMedia) -> DeliveredMedia:
        """Return counts in which pictures that stand for a video are its frames."""
        if self.content.videos and not self.content.pictures and delivered.frames == 0:
            delivered.frames, delivered.pictures = delivered.pictures, 0
        return delivered


class Watch:
    """The open requests of a class, with the media that were seen for each."""

    def __init__(self, expected: Iterable[Expected], reads: bool) -> None:
        self._reads = reads
        self._asked = {one.name: one for one in expected}
        self.delivered: dict[str, DeliveredMedia] = {}
        self._events: list[MediaEvent] = []  # since the last call of `generate`
        self._lock = threading.Lock()
        # Hash of a body -> its request, since a body may be sent again.
        self._sent: dict[str, str] = {}

    def expect(self, expected: Expected) -> None:
        """Watch one more request."""
        with self._lock:
            self._asked[expected.name] = expected

    def settled(self, name: str) -> DeliveredMedia | None:
        """Stop watching a request; return the counts of its media, None if they are unknown."""
        with self._lock:
            self._asked.pop(name, None)
            self._events = [event for event in self._events if event != MediaEvent("handed", name)]
            self._sent = {body: whose for body, whose in self._sent.items() if whose != name}
            return self.delivered.pop(name, None)

    def note(self, events: Iterable[MediaEvent]) -> None:
        """Record the events of one of the places in counting.py."""
        with self._lock:
            for event in events:
                if event.kind == "sent":
                    self._note_sent(*event.value)
                elif event.kind == "generate":
                    self._deal_out(event.value)
                elif event.kind != "handed" or (
                    event.value in self._asked and event not in self._events
                ):
                    self._events.append(event)

    def end(self) -> None:
        """Assign the rest after the last `generate`, in which only frames from a reader count."""
        with self._lock:
            self._events = [event for event in self._events if event.kind in ("handed", "read")]
        self.note([MediaEvent("generate", ())])

    def _note_sent(self, text: str, delivered: DeliveredMedia, body: bytes) -> None:
        name: str | None = ASKED.get()
        if name not in self._asked:
            digest = hashlib.sha256(body).hexdigest()
            name = self._sent.get(digest) or self._of_text(text)
            if name is None:
                return
            if body:
                self._sent[digest] = name
        self.delivered[name] = self._asked[name].as_frames(delivered)

    def _of_text(self, text: str) -> str | None:
        """Return the request with this text; of several, one without media.

        None if no request has this text.
        """
        shown = {name: one.content.text for name, one in self._asked.items()}
        fitting = {name: own for name, own in shown.items() if own and own in text}
        longest = max(map(len, fitting.values()), default=0)
        names = [name for name, own in fitting.items() if len(own) == longest]
        return next((one for one in names if one not in self.delivered), next(iter(names), None))

    def _deal_out(self, rows: Sequence[PromptRow]) -> None:
        """Assign the counted media to the requests whose media the class has asked for.

        Some classes prepare the next request while the model answers one. A request with incomplete
        media waits for the next call.
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
                    self.delivered.setdefault(name, one)
                self._events = [MediaEvent("handed", name) for name in names[number:]]
                return


def without_marks(text: str) -> str:
    """Return a text without white space and without marks of pictures, which each class moves."""
    return "".join(text.replace("<image>", "").split())


# The open request of this thread, or of this task of an event loop; "" if unknown.
ASKED: ContextVar[str] = ContextVar("ASKED", default="")


@contextmanager
def asking(name: str) -> Iterator[None]:
    """Set ASKED to this name while the context lasts, also in threads and tasks started in it.

    Threads of a pool get the name by endpoints.in_context.
    """
    token = ASKED.set(name)
    try:
        yield
    finally:
        ASKED.reset(token)


@contextmanager
def watching(expected: Iterable[Expected], reads: bool = True) -> Iterator[Watch]:
    """Count the media that reach the model while the context lasts.

    The counts are complete at its end.

    Args:
        expected: the requests.
        reads: True if the frames that a reader returns go to the model; False if a processor of
            transformers gets them first, which may drop some.
    """
    run, watch = context.current(), Watch(expected, reads)
    before = run.put(Watch, watch)
    try:
        yield watch
        watch.end()
    finally:
        run.put(Watch, before)


def note_request(name: str) -> None:
    """Note that the class asks for a request's media, which it is about to use."""
    if (watch := context.current().get(Watch)) is not None:
        watch.note([MediaEvent("handed", name)])


def request_name(task: str, doc: str) -> str:
    """Return the name of a doc's request while it is open."""
    return f"{task}/{doc}"


def _dealt(
    expected: Sequence[Expected], events: Iterable[MediaEvent], reads: bool, whole: bool
) -> list[DeliveredMedia] | None:
    """Return the media of each request; None if they cannot be distinguished.

    Args:
        expected: the requests.
        events: the counted media, in order.
        reads: True if the frames that a reader returns go to the model.
        whole: True if these are all requests whose media the class has asked for.
    """
    of: dict[str, list[Json]] = {kind: [] for kind in ("video", "pictures", "sound", "read")}
    for kind, value in events:
        of.setdefault(kind, []).append(value)
    frames, pictures, sounds, at = of["video"], sum(of["pictures"]), of["sound"], "processor"
    if not (frames or pictures or sounds):
        if not of["read"] or not reads or len(expected) > 1 or not whole:
            return None  # with several requests, the request of a frame is unknown
        frames, at = [len(of["read"])], "reader"
    if len(expected) == 1 and whole:
        made = expected[0].as_frames(DeliveredMedia(at, sum(frames), None, pictures, sum(sounds)))
        # Otherwise the reader was used for something else, such as a size.
        if len(of["read"]) == made.frames:
            made.distinct = len(set(of["read"])) or None
        return [made]
    number = len(expected)
    # Frames that are sent as pictures.
    of_videos = pictures - sum(one.content.pictures for one in expected)
    if len(frames) not in (0, number) or len(sounds) not in (0, number):
        return None
    if of_videos < 0 or of_videos % number or (of_videos and not whole):
        return None
    if not whole and not frames and any(one.content.videos for one in expected):
        return None
    shares = zip(expected, frames or [0] * number, sounds or [0.0] * number, strict=True)
    return [
        DeliveredMedia(at, n + of_videos // number, None, one.content.pictures, s)
        for one, n, s in shares
    ]


def _add_row(delivered: DeliveredMedia, row: PromptRow) -> None:
    delivered.prompt_tokens, delivered.sizes = row.prompt_tokens, row.sizes
    # Models that get pictures outside of the prompt have one token in it for each picture.
    if row.visual_tokens and row.visual_tokens > delivered.pictures + (delivered.frames or 0):
        delivered.visual_tokens = row.visual_tokens
