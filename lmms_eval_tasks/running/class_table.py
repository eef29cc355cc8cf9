"""What each of the host's model classes does with media and requests: the host does not say so.

The table (`classes.json`) was read from the sources of lmms-eval 0.7.3, and in part run; every
entry names lines that it rests on, and a test checks that they are still there. For another host an
entry holds as long as the code of those lines is found in the class's file. It says what a class
does with what our tasks hand over:

- to simple classes a list of one mp4 (with its track where there is sound), one picture or many, or
  a wav alone, as a path or as samples; to chat classes items of text, picture, mp4 and wav.
- Sound is "delivered" if it is given to the model's own processor or, by an API class, sent to the
  server: whether the model can hear is the model's affair.

`lmms-eval-tasks models` prints it, and docs/models.md is made of it (`--markdown`).
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from lmms_eval_tasks import running

Status = Literal["delivered", "not delivered", "raises", "unknown"]
Interface = Literal["simple", "chat"]
Way = Literal["audio", "video_and_audio"]
Text = Annotated[str, Field(min_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Delivery(_Strict):
    """What becomes of the sound, and why, in one sentence.

    `not delivered`: dropped, or replaced by text or frames, and the run goes on (an error that a
    class catches and answers with nothing is one of these). `raises`: the run ends.
    """

    status: Status
    why: Text


class Place(_Strict):
    """A line of a file below the folder of installed packages."""

    file: Annotated[str, Field(pattern=r"^lmms_eval(_tasks)?/.+\.py$")]
    line: Annotated[int, Field(ge=1)]
    code: Annotated[str, Field(min_length=6)]  # some tokens of that line

    @property
    def stands(self) -> bool:
        """Whether the code is still in the installed file, be it in another line."""
        return self.code in source(self.file)


class Evidence(Delivery, Place):
    """A delivery and where it was read."""


class Variant(Evidence):
    """What `--model_args` make of a cell: it holds if all of `args` are given so."""

    args: Annotated[dict[str, bool | int | str], Field(min_length=1)]


class Cell(Evidence):
    """One way of handing sound to one class; `when` has the exceptions, the first one that fits."""

    when: tuple[Variant, ...] = ()

    def with_args(self, model_args: Mapping[str, Any]) -> Evidence:
        """The cell under these model arguments."""
        for variant in self.when:
            expected = variant.args.items()
            if all(k in model_args and _same(model_args[k], value) for k, value in expected):
                return variant
        return self


class Line(Place):
    """A line that a fact was read from."""

    fact: Text


class Known(_Strict):
    """How something is known of a class.

    Attributes:
        how: `run` with tiny checkpoints or a local server, `called` its own code alone, or `read`.
    """

    how: Literal["run", "called", "read"]
    evidence: Annotated[tuple[Line, ...], Field(min_length=1)]

    @property
    def ours(self) -> bool:
        """Whether it is a class of this package, which whoever names it knows."""
        return self.evidence[0].file.startswith("lmms_eval_tasks/")


class Media(Known):
    """What a class does with pictures, videos and requests.

    Attributes:
        video: what reads a video; "" if it takes none.
        image, images: whether one picture, and several in one request, reach the model.
        interleaved: whether pictures stay where they stand between texts; None: not known.
        mixed: whether requests with pictures and with videos can follow each other in one run.
        frames_argument: of `--model_args`, which sets the number of frames.
        frames_default: how many frames of a long video; None if by `rate` alone.
        rate: how it samples by time, "" if it does not.
        fewer: what becomes of a video with fewer frames than asked.
        sampling: which frames of a video that has just as many as asked, "" if all.
        whole: further arguments with which a class that samples by time takes all frames.
        max_new_tokens, until: whether a task's are honoured.
        batches: the `--batch_size` that an engine needs, and why; "" if none.
        failed: what becomes of a request whose media or generation fails.
        batch: what a class takes of the first request for its whole batch, "" if nothing.
        mixes: how replies go astray if requests are asked together, "" if they do not.
        video_types: types of checkpoints (transformers' model_type) that are given videos; empty:
            all that it loads.
        modality: whether an argument of this name says what all requests of a run hold.
        needs: what has to be installed or passed. broken: why it cannot work as it is.
    """

    video: Literal[
        "decord",
        "qwen_vl_utils",
        "PyAV",
        "transformers",
        "torchvision",
        "opencv",
        "own package",
        "server",
        "",
    ]
    image: bool
    images: bool
    interleaved: bool | None
    mixed: bool | None
    frames_argument: Text | None
    frames_default: Annotated[int, Field(ge=1)] | None
    rate: str
    fewer: Literal["all", "repeats", "raises", "by rate", "unknown"]
    sampling: str
    whole: dict[str, bool | int] = {}
    max_new_tokens: Text
    until: Literal["honoured", "ignored"]
    batches: str = ""
    failed: Text
    batch: str
    mixes: str = ""
    video_types: tuple[str, ...] = ()
    modality: bool = False
    needs: str
    broken: str

    def frames(self, wanted: int) -> str:
        """What to pass so that a video of `wanted` frames arrives whole, in words."""
        if self.broken:
            return f"broken: {self.broken}"
        if not self.video:
            return "takes pictures alone" if self.image else "takes no pictures"
        if self.video == "server":
            return "the whole file is sent"
        if self.frames_argument is None:
            by = self.rate or f"{self.frames_default or 'not known how many'} frames"
            return f"cannot be set: {by}"
        by_rate = self.rate if self.fewer == "by rate" else ""
        told = f", {self.sampling or by_rate}" if self.sampling or by_rate else ""
        if self.whole:
            told = "".join(f",{name}={value}" for name, value in self.whole.items())
        if self.takes(wanted) and not self.rate:
            return f"as it is ({self.frames_argument}={self.frames_default}){told}"
        return f"{self.frames_argument}={wanted}{told}"

    def takes(self, wanted: int) -> bool:
        """Whether as many frames as a video of `wanted` has are the default, or no more come."""
        default = self.frames_default or 0
        return default == wanted or (self.fewer == "all" and default > wanted)


class Nothing(Known):
    """A class that takes none of our media."""

    none: Text


class Simple(_Strict):
    """A simple class: a wav as a path or as samples, and an mp4 with its track; and its media."""

    media: Media | Nothing
    path: Cell
    array: Cell
    mp4: Cell

    @property
    def wants_samples(self) -> bool:
        """Whether sound reaches the class as samples, or may, and as a path does not."""
        heard = ("delivered", "unknown")
        return self.array.status in heard and self.path.status not in heard

    @property
    def alone(self) -> Cell:
        """What becomes of sound without a picture, in the form that the class takes."""
        return self.array if self.wants_samples else self.path

    @property
    def beside(self) -> Cell:
        """What becomes of sound with its picture."""
        return self.mp4


class Chat(_Strict):
    """A chat class: an audio item alone, or after the item of a muted mp4; and its media.

    Attributes:
        mp4: where the class hears an mp4's own track, and no item beside it.
    """

    media: Media | Nothing
    wav: Cell
    muted_mp4_and_wav: Cell
    mp4: Cell | None = None

    @property
    def alone(self) -> Cell:
        """What becomes of sound without a picture."""
        return self.wav

    @property
    def beside(self) -> Cell:
        """What becomes of sound with its picture, in the form that the class takes."""
        return self.mp4 or self.muted_mp4_and_wav


class Model(_Strict):
    """A registered model: a class for one of the host's interfaces or for both."""

    aliases: tuple[str, ...] = ()
    papers: tuple[str, ...] = ()  # benchmarks whose papers evaluate a model that it loads
    simple: Simple | None = None
    chat: Chat | None = None

    def of(self, interface: Interface) -> Simple | Chat | None:
        """Its class for one of the host's interfaces."""
        return self.chat if interface == "chat" else self.simple


class Table(_Strict):
    """All models of one version of the host, and ours."""

    host: str
    models: dict[str, Model]

    def model(self, name: str) -> Model | None:
        """The entry of a model's name or alias."""
        entry = self.models.get(name)
        if entry is not None:
            return entry
        return next((entry for entry in self.models.values() if name in entry.aliases), None)


@functools.cache
def source(file: str) -> str:
    """A file of the host or of ours, wherever it is installed; "" if it is not there."""
    package, _, rest = file.partition("/")
    spec = importlib.util.find_spec(package)  # which imports nothing
    folders = (spec and spec.submodule_search_locations) or ()
    found = (path for folder in folders if (path := Path(folder, rest)).is_file())
    return next((path.read_text(encoding="utf-8") for path in found), "")


@functools.lru_cache(maxsize=1)
def table() -> Table:
    """The packaged table."""
    text = files(__package__).joinpath("classes.json").read_text(encoding="utf-8")
    return Table.model_validate_json(text)


def delivery(
    model: str, interface: Interface, way: Way, model_args: Mapping[str, Any] | None = None
) -> Delivery:
    """What a model class does with the sound of a request.

    Args:
        model: the name in `--model`, or an alias of it.
        interface: which of its classes runs (`interface_of`).
        way: `audio`, a wav alone (for a simple class in the form that `wants_samples` says), or
            `video_and_audio`, an mp4 with its track (simple) or a muted mp4 and a wav (chat).
        model_args: as in `--model_args`; true and false also as text.

    Returns:
        `unknown` for a model that is not in the table, one that lacks this interface, and one whose
        class has changed there: whatever version the host says it is.
    """
    entry = table().model(model)
    if entry is None:
        return Delivery(status="unknown", why=f"The table of models does not have {model}.")
    one = entry.of(interface)
    if one is None:
        return Delivery(status="unknown", why=f"{model} has no {interface} class.")
    cell = one.alone if way == "audio" else one.beside
    found = cell.with_args(model_args or {})
    if not found.stands:
        return Delivery(status="unknown", why=f"{_is_another(found)}.")
    return found


def warning(
    model: str, interface: Interface, way: Way, model_args: Mapping[str, Any] | None = None
) -> str | None:
    """The sentence that a result must carry; None where the sound is delivered."""
    found = delivery(model, interface, way, model_args)
    who = f"{model} ({interface})"
    if found.status == "delivered":
        return None
    if found.status == "unknown":
        return f"Whether the sound reached {who} is not known: {found.why}"
    if found.status == "raises":
        return f"{who} cannot take the sound: {found.why}"
    return f"The sound did not reach {who}: {found.why}"


def advice(
    model: str, interface: Interface, model_args: Mapping[str, Any], batch_size: int
) -> list[str]:
    """What to pass for speed and for a task's limit of tokens, a line each; empty if nothing."""
    media = media_of(model, interface)
    if not isinstance(media, Media) or media.broken:
        return []
    told, more = [], f"lmms-eval-tasks models {model}"
    if media.batches and batch_size == 1:
        told.append(f"{model} ({interface}): pass --batch_size {media.batches} ({more})")
    honoured = media.max_new_tokens.startswith("honoured")
    if not honoured and "max_new_tokens" not in model_args:
        said = f"{model} ({interface}) does not keep a task's max_new_tokens"
        told.append(f"{said}: {media.max_new_tokens} ({more})")
    return told


def _class(model: str, interface: Interface) -> Simple | Chat | None:
    return (table().model(model) or Model()).of(interface)


def media_of(model: str, interface: Interface) -> Media | Nothing | None:
    """What a class does with media; None where nothing is known, or the class has changed since."""
    one = _class(model, interface)
    return one.media if one and all(line.stands for line in one.media.evidence) else None


def changed(model: str, interface: Interface) -> str:
    """Why `media_of` has nothing of a class that the table knows; "" if it has, or it does not."""
    one = _class(model, interface)
    gone = [line for line in one.media.evidence if not line.stands] if one else []
    return _is_another(gone[0]) if gone else ""


def _is_another(place: Place) -> str:
    return (
        f"the table of models was made for lmms-eval {table().host}, and {place.file} of this "
        f"one ({running.host_version()}) is another"
    )


def wants_track(model: str, interface: Interface) -> bool:
    """Whether a model's chat class hears the track of an mp4, and no item beside it."""
    one = _class(model, interface)
    return isinstance(one, Chat) and one.mp4 is not None


def wants_samples(model: str) -> bool:
    """Whether a model's simple class takes sound alone as samples rather than as a wav's path."""
    entry = table().model(model)
    return entry is not None and entry.simple is not None and entry.simple.wants_samples


def _same(given: object, expected: bool | int | str) -> bool:
    """Whether an argument has this value; a switch is off for false, 0 and nothing, else on."""
    if isinstance(expected, bool):
        off = not given or str(given).strip().lower() in ("false", "0", "none")
        return off is not expected
    return str(given).strip().lower() == str(expected).lower()
