"""What each of the host's model classes does with media and requests: the host does not say so.

The table (`classes.json`) was read from the sources of lmms-eval 0.7.3, and in part run; every
entry names lines that it rests on, and a test checks that they are still there. It says what a
class does with what our tasks hand over:

- to simple classes a list of one mp4 (with its track where there is sound), one picture or many, or
  a wav alone, as a path or as samples; to chat classes items of text, picture, mp4 and wav.
- Sound is "delivered" if it is given to the model's own processor or, by an API class, sent to the
  server: whether the model can hear is the model's affair.

`lmms-eval-tasks models` prints it as docs/models.md.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from lmms_eval_tasks.context import Interface, RunModel

Text = Annotated[str, Field(min_length=1)]
Library = Literal["decord", "qwen_vl_utils", "PyAV", "transformers", "torchvision", "opencv"]
Reader = Library | Literal["own package", "server", ""]


class Strict(BaseModel):
    """A record of a file of this package: no field beside those named, and none changes."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SourceLine(Strict):
    """A line of a file below the folder of installed packages, and a fact that it was read for."""

    fact: str = ""
    file: Annotated[str, Field(pattern=r"^lmms_eval(_tasks)?/.+\.py$")]
    line: Annotated[int, Field(ge=1)] | None = None  # of the host that was read; of ours it moves
    code: Annotated[str, Field(min_length=6)]  # some tokens of that line


class SoundDelivery(SourceLine):
    """What becomes of sound that is handed to a class in one way."""

    # `not delivered` is dropped, or replaced by text or frames, and the run goes on (also after an
    # error that a class catches and answers with nothing); `raises` ends it.
    status: Literal["delivered", "not delivered", "raises", "unknown"]
    why: Text  # in one sentence
    args: dict[str, bool | int | str] = {}  # of `--model_args`, all of which have to be given so
    when: tuple[SoundDelivery, ...] = ()  # exceptions, the first one that fits

    def with_args(self, given: Mapping[str, object]) -> SoundDelivery:
        """The cell under these model arguments."""
        for one in self.when:
            wanted = one.args.items()
            if all(name in given and _same(given[name], value) for name, value in wanted):
                return one
        return self


class MediaSupport(Strict):
    """What a class does with pictures, videos and requests."""

    # `run` with tiny checkpoints or a local server, `called` its own code alone, or `read`.
    how: Literal["run", "called", "read"]
    evidence: Annotated[tuple[SourceLine, ...], Field(min_length=1)]  # lines that it was read from
    none: str = ""  # why the class takes none of our media, where it does not
    video: Reader = ""  # what reads a video; "" if it takes none
    image: bool = False  # whether one picture in a request reaches the model
    images: bool = False  # whether several do
    interleaved: bool | None = None  # whether they stay between the texts; None: not known
    mixed: bool | None = None  # whether pictures and videos can follow each other in one run
    frames_argument: Text | None = None  # of `--model_args`, which sets the number of frames
    # How many frames of a long video; None if by `rate` alone.
    frames_default: Annotated[int, Field(ge=1)] | None = None
    rate: str = ""  # how it samples by time, "" if it does not
    # What becomes of a video with fewer frames than asked.
    fewer: Literal["all", "repeats", "raises", "by rate", "unknown"] = "unknown"
    sampling: str = ""  # which frames of a video that has just as many as asked, "" if all
    whole: dict[str, bool | int] = {}  # with which one that samples by time takes all frames
    # Of `--model_args`, which decide on the size of a frame or picture, with their defaults.
    pixel_arguments: dict[str, bool | int | str | None] = {}
    pixels: str = ""  # what they bound, or what decides where there are none
    max_new_tokens: str = ""  # whether a task's is honoured
    until: Literal["honoured", "ignored", ""] = ""
    batches: str = ""  # the `--batch_size` that an engine needs, and why; "" if none
    failed: str = ""  # what becomes of a request whose media or generation fails
    batch: str = ""  # what it takes of the first request for its whole batch, "" if nothing
    mixes: str = ""  # how replies go astray if requests are asked together, "" if they do not
    # Types of checkpoints (transformers' model_type) that are given videos; empty: all.
    video_types: tuple[str, ...] = ()
    modality: bool = False  # whether an argument of this name says what all requests hold
    needs: str = ""  # what has to be installed or passed
    broken: str = ""  # why it cannot work as it is

    @property
    def ours(self) -> bool:
        """Whether it is a class of this package, which whoever names it knows."""
        return self.evidence[0].file.startswith("lmms_eval_tasks/")

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
        told = self.sampling or (self.rate if self.fewer == "by rate" else "")
        told = "".join(f",{k}={v}" for k, v in self.whole.items()) or (told and f", {told}")
        if self.takes(wanted) and not self.rate:
            return f"as it is ({self.frames_argument}={self.frames_default}){told}"
        return f"{self.frames_argument}={wanted}{told}"

    def sizes(self) -> str:
        """The arguments that decide on the size of frames and pictures, in words; or what does."""
        given = self.pixel_arguments.items()
        shown = ", ".join(name if value is None else f"{name}={value}" for name, value in given)
        return f"{shown} ({self.pixels})" if shown and self.pixels else shown or self.pixels

    def takes(self, wanted: int) -> bool:
        """Whether as many frames as a video of `wanted` has are the default, or no more come."""
        default = self.frames_default or 0
        return default == wanted or (self.fewer == "all" and default > wanted)


class Class(Strict):
    """A class: its media, and what becomes of sound in each way of handing it over."""

    media: MediaSupport
    path: SoundDelivery | None = None  # of a simple class: a wav alone, as its path
    array: SoundDelivery | None = None  # of a simple class: as samples
    wav: SoundDelivery | None = None  # of a chat class: an audio item alone
    muted_mp4_and_wav: SoundDelivery | None = None  # of a chat class: after a muted mp4
    # With its track; of a chat class only where it hears that and no item beside it.
    mp4: SoundDelivery | None = None

    @property
    def form(self) -> Literal["path", "samples", "track"]:
        """How it takes sound: as a file; as samples; or, a chat class, as an mp4's track alone."""
        if self.path is None or self.array is None:
            return "track" if self.mp4 else "path"
        heard = ("delivered", "unknown")
        samples = self.array.status in heard and self.path.status not in heard
        return "samples" if samples else "path"

    def sound(self, with_picture: bool) -> SoundDelivery:
        """What becomes of sound alone, or with its picture, in the form that the class takes."""
        alone = self.wav or (self.array if self.form == "samples" else self.path)
        cell = (self.mp4 or self.muted_mp4_and_wav) if with_picture else alone
        assert cell is not None
        return cell


class ModelEntry(Strict):
    """A registered model: a class for one of the host's interfaces or for both."""

    aliases: tuple[str, ...] = ()
    papers: tuple[str, ...] = ()  # benchmarks whose papers evaluate a model that it loads
    simple: Class | None = None
    chat: Class | None = None

    def classes(self) -> Iterator[tuple[Interface, Class]]:
        """The class that the host takes by default first."""
        if self.chat:
            yield "chat", self.chat
        if self.simple:
            yield "simple", self.simple


class Table(Strict):
    """All models of one version of the host, and ours."""

    host: str
    models: dict[str, ModelEntry]

    def model(self, name: str) -> ModelEntry | None:
        """The entry of a model's name or alias."""
        of_alias = (entry for entry in self.models.values() if name in entry.aliases)
        return self.models.get(name) or next(of_alias, None)


@functools.lru_cache(maxsize=1)
def table() -> Table:
    """The packaged table."""
    text = files(__package__).joinpath("classes.json").read_text(encoding="utf-8")
    return Table.model_validate_json(text)


def class_of(model: str, interface: Interface) -> Class | None:
    """A model's class for one of the host's interfaces; of a name or an alias."""
    return dict((table().model(model) or ModelEntry()).classes()).get(interface)


def media_of(model: str, interface: Interface) -> MediaSupport | None:
    """What a class does with media; None where nothing is known."""
    one = class_of(model, interface)
    return one.media if one else None


@functools.cache
def host_version() -> str | None:
    """Version of the installed lmms-eval, or None; asked of the disk once."""
    try:
        return version("lmms_eval")
    except PackageNotFoundError:
        return None


def of_another_host() -> str:
    """That the installed host is not the one that was read; "" if it is."""
    installed = host_version()
    read = (
        f"the table of model classes was made for lmms-eval {table().host}, but "
        f"{installed} is installed"
    )
    return "" if installed == table().host else read


def heard(model: RunModel | None, with_picture: bool) -> tuple[str, str | None]:
    """Whether sound reaches a model: its state, and the sentence that a result must carry.

    Returns:
        The state as in SoundDelivery, and None where it is `delivered`. `unknown` for a model that
        is not in the table, one that lacks this interface, and where the host is another version.
    """
    if model is None:
        why = "lmms-eval did not name the model."
        return "unknown", f"Whether the sound reached the model is not known: {why}"
    who, status = f"{model.name} ({model.interface})", "unknown"
    if (one := class_of(model.name, model.interface)) is not None:
        cell = one.sound(with_picture).with_args(model.arguments)
        other = of_another_host()
        status, why = (status, f"{other}.") if other else (cell.status, cell.why)
    elif table().model(model.name) is None:
        why = f"The table of model classes does not have {model.name}."
    else:
        why = f"{model.name} has no {model.interface} class."
    words = {
        "delivered": None,
        "not delivered": f"The sound did not reach {who}: {why}",
        "raises": f"{who} cannot take the sound: {why}",
        "unknown": f"Whether the sound reached {who} is not known: {why}",
    }
    return status, words[status]


def hears(model: RunModel | None) -> dict[str, str]:
    """The states of sound alone (`a`) and beside the picture (`av`) for a model."""
    return {"a": heard(model, with_picture=False)[0], "av": heard(model, with_picture=True)[0]}


def sound_form(model: RunModel | None) -> str:
    """How a model's class takes sound (Class.form)."""
    one = class_of(model.name, model.interface) if model else None
    return one.form if one else "path"


def advice(model: RunModel, batch_size: int) -> list[str]:
    """What to pass for speed and for a task's limit of tokens, a line each; empty if nothing."""
    media = media_of(model.name, model.interface)
    if media is None or media.none or media.broken:
        return []
    told, who = [], f"{model.name} ({model.interface})"
    if media.batches and batch_size == 1:
        told.append(f"{who}: pass --batch_size {media.batches}")
    honoured = media.max_new_tokens.startswith("honoured")
    if not honoured and "max_new_tokens" not in model.arguments:
        told.append(f"{who} ignores a task's max_new_tokens: {media.max_new_tokens}")
    return [f"{line} (lmms-eval-tasks models {model.name})" for line in told]


def _same(given: object, expected: bool | int | str) -> bool:
    """Whether an argument has this value; a switch is off for false, 0 and nothing, else on."""
    if isinstance(expected, bool):
        off = not given or str(given).strip().lower() in ("false", "0", "none")
        return off is not expected
    return str(given).strip().lower() == str(expected).lower()
