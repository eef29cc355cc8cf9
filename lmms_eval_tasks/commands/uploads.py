"""Bytes that a run uploads to its model's server: by the first clips of each task, encoded.

The host's classes that ask a server encode all frames of a clip anew for each question (base64 in
JSON), which is gigabytes for a benchmark. What they would send is made here with their own code.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from PIL import Image

from lmms_eval_tasks import context, registry, settings
from lmms_eval_tasks.benchmark import Benchmark, Doc, LoadedData, Part
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.host import model_class
from lmms_eval_tasks.host.requests import endpoints
from lmms_eval_tasks.media.clip_specs import uniform_indices
from lmms_eval_tasks.models import model_capabilities
from lmms_eval_tasks.models.plan import FRAMES, whole
from lmms_eval_tasks.runs import media, messages, prepare
from lmms_eval_tasks.utils.json_files import Json, JsonObject

SAMPLED = 5  # docs of a task whose media are encoded, from all over it and of different videos
CODED = 4 / 3  # base64
# Classes that ask a server, of which it was not looked at what they send.
UNKNOWN = ("claude", "generation_api", "gpt4o_audio", "gpt4v", "qwen_vl_api", "reka")


class Sent(NamedTuple):
    """The bytes that go to the server for one doc."""

    request: float
    file: float = 0  # that is uploaded once for all questions on it


class Upload(NamedTuple):
    """The bytes that go to the server for a task; None where they are not known."""

    task: str
    requests: int
    each: float | None  # a request, on average
    files: int = 0  # that are uploaded by themselves, once
    file: float = 0  # one of them, on average
    how: str = ""  # what it rests on

    @property
    def total(self) -> float | None:
        """Bytes of all requests and files."""
        return None if self.each is None else self.requests * self.each + self.files * self.file

    def __str__(self) -> str:
        if self.total is None or self.each is None:
            return f"{self.task}: unknown ({self.how})"
        files = f", {self.files:,} files of {size(self.file)}, each once" if self.file else ""
        each = f"{self.requests:,} requests of {size(self.each)}{files}"
        return f"{self.task}: {size(self.total)}: {each} ({self.how})"


def size(number: float) -> str:
    """Bytes in words: `9.1 MB`."""
    for unit, least in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if number >= least:
            return f"{number / least:,.1f} {unit}"
    return f"{number / 1e3:,.1f} kB"


def of_run(run: Mapping[str, Json], tasks: Sequence[str], limit: int | None = None) -> list[str]:
    """Lines on what a run of these tasks uploads, a task each and their sum.

    Args:
        run: `model`, `model_args`, `force_simple` as `simple_evaluate` is told.
        tasks: their names.
        limit: as the host's `--limit`.

    Raises:
        TasksError: there is no such model, or it cannot take what the tasks hand over.
    """
    with context.begun(model_class.named(run)):
        model, asked = context.current().model, []
        for benchmark, names in registry.chosen(tasks):
            try:
                found = benchmark.load(names)
            except DataError:  # a video that is bad; without one some clips cannot be made
                found = benchmark.load(names, videos=False)
            asked += [(benchmark, found, name) for name in names]
        if model is not None:
            prepare.go_by_plan(model, [prepare.needs_of(*one) for one in asked])
        return list(lines(asked, limit))


def lines(
    asked: Sequence[tuple[Benchmark, LoadedData, str]], limit: int | None = None
) -> Iterator[str]:
    """Lines on what the running model, whose plan is made, uploads for these tasks."""
    if (model := context.current().model) is None:
        return
    who, name = f"{model.name} ({model.interface})", _name(model.name)
    if name in UNKNOWN:
        yield f"unknown: {who} sends requests to a server, and its code was not examined"
        return
    if (measure := _measure(name, model)) is None:
        yield f"nothing: {who} runs on this machine"
        return
    if model.arguments.get("pass_video_url"):
        yield f"{who} sends the address of a video, not the video: the server reads the file itself"
    with endpoints.right_media():
        each = [_of_task(*one, measure, limit) for one in asked]
        yield from map(str, each)
        known = [one.total for one in each if one.total is not None]
        if not known:
            return
        total, unknown = f"{size(sum(known))} in all", len(each) - len(known)
        told = f"{total}, without {unknown} tasks whose size is unknown" if unknown else total
        option = settings.MODEL_PICTURES.option
        by_address = model.arguments.get("pass_video_url")
        if isinstance(measure, _Chat) and _format(measure) == "PNG" and not by_address:
            told += (
                f"; frames and pictures as JPEG ({option} jpeg) are about a seventh of PNG's size"
            )
        yield told


def _format(measure: Measure) -> str:
    """The format in which a class encodes pictures; "" if it sends whole files."""
    if not isinstance(measure, _Chat):  # which alone asks the host's variables
        return "PNG" if isinstance(measure, _Simple) else ""
    name, quality = endpoints.picture_format()
    return f"{name} of quality {quality}" if quality else name


def _name(name: str) -> str:
    """The model's own name, of an alias too."""
    models = model_capabilities.table().models.items()
    return next((own for own, entry in models if name == own or name in entry.aliases), name)


# --- a task ---------------------------------------------------------------------------------------

Measure = Callable[[Sequence[Part]], Sent]  # of a doc's parts


def _of_task(
    benchmark: Benchmark, found: LoadedData, name: str, measure: Measure, limit: int | None
) -> Upload:
    docs = benchmark.docs(found, name)
    docs = docs[: media.asked([len(docs)], limit)[0]]
    shown = list({_window(benchmark, doc): doc for doc in docs}.values())
    among = shown if len(shown) >= SAMPLED else docs  # files differ more than texts
    tried = [among[place] for place in uniform_indices(len(among), SAMPLED)] if docs else []
    task = benchmark.tasks[name]
    try:
        sent = [measure(task.prompt({**doc, "task": name})) for doc in tried]
    except Exception as error:  # of the host's code, which fails so in the run, too
        why = " ".join(str(error).split()) or type(error).__name__
        return Upload(name, len(docs), None, how=why[:200])
    if not sent:
        return Upload(name, 0, 0.0, how="no docs")
    each, file = (sum(numbers) / len(sent) for numbers in zip(*sent, strict=True))
    least, most = (size(end(sum(one) for one in sent)) for end in (min, max))
    spread = "" if least == most else f", {least} to {most} each"
    coded = f", as {name_of}" if (name_of := _format(measure)) else ""
    how = f"estimated from {len(sent)} requests{spread}{coded}"
    return Upload(name, len(docs), each, len(shown) if file else 0, file, how)


def _window(benchmark: Benchmark, doc: Doc) -> tuple[object, ...]:
    """The key that tells a doc's media from others."""
    cut = benchmark.media_job(doc)
    return cut.key if cut else (doc.get("video_path"),)


# --- what the classes send ------------------------------------------------------------------------


def _measure(name: str, model: context.RunModel) -> Measure | None:
    """The function that measures what a class sends for a doc; None if it asks no server."""
    arguments = model.arguments
    if name == "gemini":
        return _gemini
    if name in ("openai", "litellm") and model.interface == "simple":
        return _Simple(model)
    frames: JsonObject
    if name in ("openai", "litellm"):
        rate = arguments.get("video_fps")
        frames = {"fps": float(rate)} if rate else {"nframes": int(_frames(model))}
        by_file = {"pass_video_url": True} if arguments.get("pass_video_url") else {}
        return _Chat("to_openai_messages", frames, by_file)
    if name == "async_openai":
        known = model_capabilities.media_of(model.name, model.interface)
        bounds = {**known.pixel_arguments, **arguments} if known else arguments
        frames = {one: whole(one, bounds[one]) for one in ("min_pixels", "max_pixels")}
        rate = arguments.get("fps")
        frames |= {"fps": float(rate)} if rate else {"nframes": int(_frames(model))}
        frames["max_frames"] = whole("max_frames", arguments.get("max_frames", 768))
        qwen3 = "to_qwen3_vl_openai_messages"
        return _Chat(qwen3 if arguments.get("is_qwen3_vl") else "to_openai_messages", frames, {})
    return None


def _frames(model: context.RunModel) -> int:
    media_ = model_capabilities.media_of(model.name, model.interface)
    assert media_ is not None
    assert media_.frames_argument
    name = media_.frames_argument
    return whole(name, model.arguments.get(name) or media_.frames_default or FRAMES)


class _Chat:
    """A chat class: the JSON of the messages that the host makes."""

    def __init__(self, form: str, frames: Mapping[str, Json], more: Mapping[str, Json]) -> None:
        self._form, self._frames, self._more = form, frames, more

    def __call__(self, parts: Sequence[Part]) -> Sent:
        from lmms_eval.protocol import ChatMessages

        chat = ChatMessages(messages=messages.messages_of(parts))
        made = getattr(chat, self._form)(dict(self._frames), **self._more)
        return Sent(len(json.dumps(made)))


class _Simple:
    """The simple class `openai`, and `litellm`'s, which is made of it: its own methods."""

    def __init__(self, model: context.RunModel) -> None:
        self._class: Any = model_class.built(model)
        rate = float(model.arguments.get("video_fps") or 0)
        most = int(model.arguments.get("max_size_in_mb") or 20)
        self._self = SimpleNamespace(video_fps=rate, max_size_in_mb=most)
        self._frames = _frames(model)

    def __call__(self, parts: Sequence[Part]) -> Sent:
        sent = len(json.dumps(messages.text_of(parts)))
        for visual in messages.visuals_of(parts):
            kind = Path(visual).suffix if isinstance(visual, str) else ""
            if kind == ".wav":
                sent += len(self._class.encode_audio_file(self._self, visual)[0])
            elif kind == ".mp4":
                sent += sum(map(len, self._class.encode_video(self._self, visual, self._frames)))
            elif not isinstance(visual, Mapping):  # samples are not sent
                sent += len(self._class.encode_image(self._self, visual))
        return Sent(sent)


def _gemini(parts: Sequence[Part]) -> Sent:
    """A video is a file that is uploaded; sound and pictures stand in the request."""
    request, file = 0.0, 0.0
    for content in messages.messages_of(parts)[0]["content"]:
        kind, held = content["type"], content.get("url", content.get("text"))
        if kind == "text":
            request += len(held.encode())
        elif kind == "video":
            file += Path(held).stat().st_size
        elif kind == "audio":
            request += Path(held).stat().st_size * CODED
        else:
            coded = io.BytesIO()
            (Image.open(held) if isinstance(held, str) else held).convert("RGB").save(coded, "PNG")
            request += len(coded.getvalue()) * CODED
    return Sent(request, file)
