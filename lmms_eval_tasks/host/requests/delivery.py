"""Media that reached the model: frames, pictures and seconds of sound of each request, counted.

A task hands over a video; its class decides how many frames of it the model gets, and does not
report that. So media are counted at the last place that all classes of a kind share (counting.py),
and assigned here to the requests that are asked at the moment. A request whose media cannot be told
from another's has no counts.
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

# Something that was seen: `handed` the name of a request; `video` its frames, `pictures` how many,
# `sound` its seconds, `read` the number of a frame; `generate` its rows; `sent` a request's texts
# and media, with its body if it may be sent again.
Event = tuple[str, Json]
Size = tuple[int, int]  # width and height in pixels


class Deliveries:
    """Facts of a run's requests by task and doc id, kept until their replies are scored."""

    def __init__(self) -> None:
        # The media that reached the model (DeliveredMedia, in plain types).
        self.delivered: dict[tuple[str, str], Mapping[str, object]] = {}
        # Whether the reply is as long as its limit of tokens, where its length is known.
        self.at_limit: dict[tuple[str, str], bool] = {}


@dataclass
class DeliveredMedia:
    """The counts of one request's media that reached the model."""

    at: str  # where it was counted: sent, processor, reader or engine
    frames: int | None = 0  # of its videos; None where a whole file was sent
    distinct: int | None = None  # of these the different ones; None where that is not known
    pictures: int = 0  # beside the frames
    seconds: float | None = 0.0  # of sound beside a file's own; None if not known of some
    # Not known everywhere, and absent from items that were saved before they were counted.
    sizes: tuple[Size, ...] = ()  # the different ones of its frames and pictures
    visual_tokens: int | None = None  # of the prompt's tokens those that stand for pictures
    prompt_tokens: int | None = None

    def as_dict(self) -> dict[str, object]:
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
    """The text of a request, and its numbers of videos and pictures."""

    text: str
    videos: int
    pictures: int


class Expected:
    """A request that is asked now.

    Args:
        name: of the request.
        shown: returns its content; called when the first of its media is seen, if ever.
    """

    def __init__(self, name: str, content: Callable[[], RequestContent]) -> None:
        self.name, self._shown = name, content

    @cached_property
    def content(self) -> RequestContent:
        """The content of the request; its text without the marks that classes move."""
        shown = self._shown()
        return shown._replace(text=without_marks(shown.text))

    def as_frames(self, delivered: DeliveredMedia) -> DeliveredMedia:
        """Counts in which pictures that stand for a video are frames of it."""
        if self.content.videos and not self.content.pictures and delivered.frames == 0:
            delivered.frames, delivered.pictures = delivered.pictures, 0
        return delivered


class Watch:
    """The requests that a class is asked at the moment, with the media that were seen of each."""

    def __init__(self, expected: Iterable[Expected], reads: bool) -> None:
        self._reads = reads
        self._asked = {one.name: one for one in expected}
        self.delivered: dict[str, DeliveredMedia] = {}
        self._events: list[Event] = []  # since the last call of `generate`
        self._lock = threading.Lock()
        self._sent: dict[str, str] = {}  # of a body: whose it is, since it may be sent again

    def expect(self, expected: Expected) -> None:
        """Watch one more request."""
        with self._lock:
            self._asked[expected.name] = expected

    def settled(self, name: str) -> DeliveredMedia | None:
        """Stop watching a request; return the counts of its media, None if they are not known."""
        with self._lock:
            self._asked.pop(name, None)
            self._events = [event for event in self._events if event != ("handed", name)]
            self._sent = {body: whose for body, whose in self._sent.items() if whose != name}
            return self.delivered.pop(name, None)

    def note(self, events: Iterable[Event]) -> None:
        """Take in the events of one of the places in counting.py."""
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
        """Assign the rest after the last `generate`: only frames asked of a reader count."""
        with self._lock:
            self._events = [event for event in self._events if event[0] in ("handed", "read")]
        self.note([("generate", ())])

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
        """The request with this text; of several, one without seen media. None if none fits."""
        shown = {name: one.content.text for name, one in self._asked.items()}
        fitting = {name: own for name, own in shown.items() if own and own in text}
        longest = max(map(len, fitting.values()), default=0)
        names = [name for name, own in fitting.items() if len(own) == longest]
        return next((one for one in names if one not in self.delivered), next(iter(names), None))

    def _deal_out(self, rows: Sequence[PromptRow]) -> None:
        """Assign the counted media to the requests that were handed over meanwhile.

        Some classes prepare the next request while the model answers one: a request whose media
        are not complete yet waits for the next call.
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
                self._events = [("handed", name) for name in names[number:]]
                return


def without_marks(text: str) -> str:
    """A text without white space and marks of pictures, which each class places differently."""
    return "".join(text.replace("<image>", "").split())


# The request that is asked in this thread, or in this task of an event loop; "" if not known.
ASKED: ContextVar[str] = ContextVar("ASKED", default="")


@contextmanager
def asking(name: str) -> Iterator[None]:
    """Context manager within which ASKED has this name, also in threads and tasks started there.

    See endpoints.in_context.
    """
    token = ASKED.set(name)
    try:
        yield
    finally:
        ASKED.reset(token)


@contextmanager
def watching(expected: Iterable[Expected], reads: bool = True) -> Iterator[Watch]:
    """Context manager that counts the media that reach the model; complete at its end.

    Args:
        asked: the requests.
        reads: True if frames that a reader was asked for go to the model; False if a processor
            of transformers takes them first, which may drop some.
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
        watch.note([("handed", name)])


def request_name(task: str, doc: str) -> str:
    """The name of a doc's request while it is asked."""
    return f"{task}/{doc}"


def _dealt(
    expected: Sequence[Expected], events: Iterable[Event], reads: bool, whole: bool
) -> list[DeliveredMedia] | None:
    """The media of each request; None if they cannot be told apart.

    Args:
        asked: the requests.
        events: the counted media, in order.
        reads: True if frames that a reader was asked for go to the model.
        whole: True if these are all requests that were handed over.
    """
    of: dict[str, list[Json]] = {kind: [] for kind in ("video", "pictures", "sound", "read")}
    for kind, value in events:
        of.setdefault(kind, []).append(value)
    frames, pictures, sounds, at = of["video"], sum(of["pictures"]), of["sound"], "processor"
    if not (frames or pictures or sounds):
        if not of["read"] or not reads or len(expected) > 1 or not whole:
            return None  # of several requests nobody knows which frame was read for which
        frames, at = [len(of["read"])], "reader"
    if len(expected) == 1 and whole:
        made = expected[0].as_frames(DeliveredMedia(at, sum(frames), None, pictures, sum(sounds)))
        if len(of["read"]) == made.frames:  # else it was asked for something else, such as a size
            made.distinct = len(set(of["read"])) or None
        return [made]
    number = len(expected)
    of_videos = pictures - sum(
        one.content.pictures for one in expected
    )  # frames that go as pictures
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
    # Models that look at pictures from beside the prompt have one token in it for each.
    if row.visual_tokens and row.visual_tokens > delivered.pictures + (delivered.frames or 0):
        delivered.visual_tokens = row.visual_tokens
