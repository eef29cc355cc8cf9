"""The media and requests that lmms-eval's model classes can handle; lmms-eval has no such table.

The table (`classes.json`) was read from the sources of lmms-eval 0.7.3, and in part run. Every
entry names the source lines that show its facts, and a test checks that these lines are still
there. For each class it tells how the class handles the media of our tasks:

- Simple classes get a list of one mp4 (with a sound track if the task has sound), of one or more
  pictures, or of a wav alone, as a path or as samples. Chat classes get items of text, picture, mp4
  and wav.
- Sound is "delivered" if it is given to the model's processor or, by an API class, sent to the
  server: the table does not tell if the model can hear.

`lmms-eval-tasks models` prints the table as docs/models.md.
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
# Models on a server. The requests of the first four were examined (commands/uploads.py).
SERVED = (
    *("async_openai", "gemini", "litellm", "openai"),
    *("claude", "generation_api", "gpt4o_audio", "gpt4v", "qwen_vl_api", "reka"),
)


class Strict(BaseModel):
    """A record of a file of this package: no field beside those named, and none changes."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SourceLine(Strict):
    """A line of a file below the folder of installed packages, and a fact that it was read for."""

    fact: str = ""
    file: Annotated[str, Field(pattern=r"^lmms_eval(_tasks)?/.+\.py$")]
    # In the lmms-eval that was read; None in our files, where lines move.
    line: Annotated[int, Field(ge=1)] | None = None
    code: Annotated[str, Field(min_length=6)]  # some tokens of that line


class SoundDelivery(SourceLine):
    """What becomes of sound that is handed to a class in one way."""

    # `not delivered`: dropped, or replaced by text or frames, and the run goes on (also after an
    # error that a class catches and answers with nothing). `raises`: the run ends.
    status: Literal["delivered", "not delivered", "raises", "unknown"]
    why: Text  # the reason, in one sentence
    # The `--model_args` for which an exception holds, all together.
    args: dict[str, bool | int | str] = {}
    # Exceptions; the first that fits the model arguments counts.
    when: tuple[SoundDelivery, ...] = ()

    def with_args(self, args: Mapping[str, object]) -> SoundDelivery:
        """The exception in `when` that fits these model arguments, else the record itself."""
        for one in self.when:
            wanted = one.args.items()
            if all(name in args and _same(args[name], value) for name, value in wanted):
                return one
        return self


class MediaSupport(Strict):
    """What a class does with pictures, videos and requests."""

    # The evidence: `run` with tiny checkpoints or a local server, `called` (the class's code
    # alone), or `read`.
    how: Literal["run", "called", "read"]
    evidence: Annotated[tuple[SourceLine, ...], Field(min_length=1)]  # source lines
    none: str = ""  # the reason why a class takes none of our media; "" if it takes some
    video: Reader = ""  # the library that reads a video; "" if the class takes none
    image: bool = False  # True if one picture in a request reaches the model
    images: bool = False  # True if several pictures do
    interleaved: bool | None = None  # True if pictures stay between the texts; None: not known
    mixed: bool | None = None  # True if a run may mix requests with pictures and with videos
    frames_argument: Text | None = None  # the name in `--model_args` that sets the number of frames
    # The number of frames of a long video; None if only `rate` decides.
    frames_default: Annotated[int, Field(ge=1)] | None = None
    rate: str = ""  # how frames are sampled by time; "" if they are not
    # The fate of a video with fewer frames than the argument's value.
    fewer: Literal["all", "repeats", "raises", "by rate", "unknown"] = "unknown"
    sampling: str = ""  # the frames taken of a video with exactly the argument's value; "" if all
    # Arguments with which a class that samples by time takes all frames.
    whole: dict[str, bool | int] = {}
    # The `--model_args` that decide the size of a frame or picture, with their defaults.
    pixel_arguments: dict[str, bool | int | str | None] = {}
    pixels: str = ""  # the sizes that these bound; without them, the rule for sizes
    max_new_tokens: str = ""  # begins with "honoured" if the class keeps a task's max_new_tokens
    until: Literal["honoured", "ignored", ""] = ""
    batches: str = ""  # the `--batch_size` that an engine needs, and why; "" if none
    failed: str = ""  # the fate of a request whose media or generation fails
    batch: str = ""  # what the class takes from a batch's first request for the whole batch
    mixes: str = ""  # how replies go to wrong requests in concurrent calls; "" if they do not
    # Checkpoint types (transformers' model_type) that get videos; empty: all.
    video_types: tuple[str, ...] = ()
    modality: bool = False  # True if the argument `modality` says what all requests hold
    needs: str = ""  # what must be installed or passed
    broken: str = ""  # the reason why the class does not work as released; "" if it does

    @property
    def ours(self) -> bool:
        """True for a class of this package."""
        return self.evidence[0].file.startswith("lmms_eval_tasks/")

    def frames(self, n_frames: int) -> str:
        """The model arguments with which a video of `n_frames` frames arrives whole, in words."""
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
        if self.takes(n_frames) and not self.rate:
            return f"as it is ({self.frames_argument}={self.frames_default}){told}"
        return f"{self.frames_argument}={n_frames}{told}"

    def sizes(self) -> str:
        """The arguments that decide the size of frames and pictures, in words; else the rule."""
        given = self.pixel_arguments.items()
        shown = ", ".join(name if value is None else f"{name}={value}" for name, value in given)
        return f"{shown} ({self.pixels})" if shown and self.pixels else shown or self.pixels

    def takes(self, n_frames: int) -> bool:
        """True if a video of `n_frames` frames arrives whole with the default number of frames."""
        default = self.frames_default or 0
        return default == n_frames or (self.fewer == "all" and default > n_frames)


class Class(Strict):
    """A class: its media, and what becomes of sound in each way of handing it over."""

    media: MediaSupport
    path: SoundDelivery | None = None  # simple class: a wav alone, as a path
    array: SoundDelivery | None = None  # simple class: a wav alone, as samples
    wav: SoundDelivery | None = None  # chat class: an audio item alone
    muted_mp4_and_wav: SoundDelivery | None = None  # chat class: an audio item after a muted mp4
    # An mp4 with a sound track; for a chat class only if it hears that and no audio item.
    mp4: SoundDelivery | None = None

    @property
    def form(self) -> Literal["path", "samples", "track"]:
        """The form in which the class takes sound: a file's path, samples, or an mp4's track.

        Only chat classes have the form "track".
        """
        if self.path is None or self.array is None:
            return "track" if self.mp4 else "path"
        heard = ("delivered", "unknown")
        samples = self.array.status in heard and self.path.status not in heard
        return "samples" if samples else "path"

    def sound(self, with_picture: bool) -> SoundDelivery:
        """The fate of sound alone, or with its picture, in the form that the class takes."""
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
        """The model's classes with their interfaces, lmms-eval's default class first."""
        if self.chat:
            yield "chat", self.chat
        if self.simple:
            yield "simple", self.simple


class Table(Strict):
    """All models of one version of the host, and ours."""

    host: str
    models: dict[str, ModelEntry]

    def model(self, name: str) -> ModelEntry | None:
        """The entry of a model's name or alias; None if there is none."""
        of_alias = (entry for entry in self.models.values() if name in entry.aliases)
        return self.models.get(name) or next(of_alias, None)


@functools.lru_cache(maxsize=1)
def capability_table() -> Table:
    """Return the packaged table of models."""
    text = files(__package__).joinpath("classes.json").read_text(encoding="utf-8")
    return Table.model_validate_json(text)


def class_of(model: str, interface: Interface) -> Class | None:
    """The class of a model (name or alias) for one of lmms-eval's interfaces; None if unknown."""
    return dict((capability_table().model(model) or ModelEntry()).classes()).get(interface)


def name_of(model: str) -> str:
    """The name of a model in the table; `model` may be an alias. Else `model` itself."""
    entries = capability_table().models.items()
    return next((name for name, entry in entries if model in (name, *entry.aliases)), model)


def engine_of(model: str) -> str:
    """The engine that computes a model's replies, in words."""
    name = name_of(model)
    if name in SERVED:
        return "on a server, which gets requests"
    engine = "vLLM" if "vllm" in name else "SGLang" if "sglang" in name else ""
    media = [one.media for _, one in (capability_table().model(name) or ModelEntry()).classes()]
    if engine:
        return f"by {engine}'s engine, started by lmms-eval"
    if all(one.ours for one in media):
        return "without an engine: a class of this package"
    return "in lmms-eval's process, by transformers or the checkpoint's own code"


def media_of(model: str, interface: Interface) -> MediaSupport | None:
    """The media that a model's class takes; None if the table does not have the class."""
    one = class_of(model, interface)
    return one.media if one else None


@functools.cache
def host_version() -> str | None:
    """The version of the installed lmms-eval, or None; read from disk once."""
    try:
        return version("lmms_eval")
    except PackageNotFoundError:
        return None


def of_another_host() -> str:
    """A sentence if the installed lmms-eval is another version than that of the table; else ""."""
    installed, expected = host_version(), capability_table().host
    line = (
        f"the table of model classes was made for lmms-eval {expected}, but "
        f"{installed} is installed"
    )
    return "" if installed == expected else line


def sound_state(model: RunModel | None, with_picture: bool) -> tuple[str, str | None]:
    """The fate of sound for a model, and a sentence on it for the results.

    Args:
        model: the run's model; None if it is not known.
        with_picture: True if the sound comes with its picture, not alone.

    Returns:
        The status as in SoundDelivery, and a sentence, None if the status is `delivered`. The
        status is `unknown` for a model that the table does not have or that lacks this interface,
        and if lmms-eval is of another version than the table.
    """
    if model is None:
        why = "lmms-eval did not name the model."
        return "unknown", f"Whether the sound reached the model is not known: {why}"
    who, status = f"{model.name} ({model.interface})", "unknown"
    if (one := class_of(model.name, model.interface)) is not None:
        cell = one.sound(with_picture).with_args(model.arguments)
        other = of_another_host()
        status, why = (status, f"{other}.") if other else (cell.status, cell.why)
    elif capability_table().model(model.name) is None:
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
    """The status of sound alone (`a`) and with the picture (`av`) for a model; see `signals`."""
    return {
        "a": sound_state(model, with_picture=False)[0],
        "av": sound_state(model, with_picture=True)[0],
    }


def sound_form(model: RunModel | None) -> str:
    """The form in which a model's class takes sound (Class.form); "path" if it is not known."""
    one = class_of(model.name, model.interface) if model else None
    return one.form if one else "path"


def advice(model: RunModel, batch_size: int) -> list[str]:
    """Lines on arguments to pass for speed and for a task's limit of tokens; empty if none."""
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


def _same(value: object, expected: bool | int | str) -> bool:
    """Return True if an argument has this value.

    A switch is off for false, none, 0 and "", else on. Other values are compared as text,
    regardless of case.
    """
    if isinstance(expected, bool):
        off = not value or str(value).strip().lower() in ("false", "0", "none")
        return off is not expected
    return str(value).strip().lower() == str(expected).lower()
