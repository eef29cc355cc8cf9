"""The bytes that a run uploads to its model's server, measured on some clips of each task.

lmms-eval's classes for servers encode all frames of a clip anew for each question (base64 in JSON),
which is gigabytes for a benchmark. Here, lmms-eval's own code makes what these classes would send.
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
from lmms_eval_tasks.models.plan import whole
from lmms_eval_tasks.runs import estimate, media, messages, prepare
from lmms_eval_tasks.runs.estimate import byte_size as size
from lmms_eval_tasks.utils.json_files import Json, JsonObject

SAMPLED = 5  # number of docs of a task whose media are encoded, spread over the task and its videos
CODED = 4 / 3  # bytes of base64 for each byte
# Without data: bytes of a frame in base64 and of a second of a clip's file, measured on five
# released videos of MAIA (docs/first_run.md), and those of a second of 16-bit sound at 16 kHz.
FRAME_BYTES = {"PNG": 337_500, "JPEG": 47_000}
FILE_BYTES, SOUND_BYTES = 113_000, 32_000 * CODED
TOKEN_BYTES = 4  # bytes of a token of text


class Sent(NamedTuple):
    """The bytes that are sent to the server for one doc."""

    request: float
    file: float = 0  # bytes of a file that is uploaded once for all its questions


class Upload(NamedTuple):
    """The bytes that are sent to the server for a task; None if they are unknown."""

    task: str
    requests: int
    each: float | None  # mean bytes of a request
    files: int = 0  # number of files that are uploaded separately, once each
    file: float = 0  # mean bytes of such a file
    how: str = ""  # the basis of the figures

    @property
    def total(self) -> float | None:
        """The bytes of all requests and files; None if they are unknown."""
        return None if self.each is None else self.requests * self.each + self.files * self.file

    def __str__(self) -> str:
        if self.total is None or self.each is None:
            return f"{self.task}: unknown ({self.how})"
        files = f", {self.files:,} files of {size(self.file)}, each once" if self.file else ""
        each = f"{self.requests:,} requests of {size(self.each)}{files}"
        return f"{self.task}: {size(self.total)}: {each} ({self.how})"


# A task of a benchmark with its data; None if there are none that can be used.
Asked = tuple[Benchmark, LoadedData | None, str]


def of_run(
    run: Mapping[str, Json], tasks: Sequence[str], limit: int | None = None
) -> list[Upload | str]:
    """Return the uploads of a run of these tasks, and lines on them, the last one with their sum.

    Without data, the published sizes are taken.

    Args:
        run: `model`, `model_args` and `force_simple`, as for `simple_evaluate`.
        tasks: names of the tasks.
        limit: lmms-eval's `--limit`.

    Raises:
        TasksError: there is no such model, or it cannot take the media of the tasks.
    """
    with context.begun(model_class.run_model(run)):
        model, asked = context.current().model, list[Asked]()
        for benchmark, name in [
            (b, name) for b, own in registry.benchmarks_of(tasks) for name in own
        ]:
            try:
                asked.append((benchmark, estimate.load_data(benchmark, [name]), name))
            except DataError:
                asked.append((benchmark, None, name))
        if model is not None:
            known = [(one, data, name) for one, data, name in asked if data is not None]
            prepare.go_by_plan(model, [prepare.needs_of(*one) for one in known])
        return list(upload_lines(asked, limit))


def upload_lines(tasks: Sequence[Asked], limit: int | None = None) -> Iterator[Upload | str]:
    """Yield the uploads of the running model, whose plan is made, for these tasks, and lines."""
    if (model := context.current().model) is None:
        return
    who, name = f"{model.name} ({model.interface})", model_capabilities.name_of(model.name)
    if name not in model_capabilities.SERVED:
        yield f"nothing: {who} runs on this machine"
        return
    if (measure := _measure(name, model)) is None:
        yield f"unknown: {who} sends requests to a server, and its code was not examined"
        return
    if model.arguments.get("pass_video_url"):
        yield f"{who} sends the address of a video, not the video: the server reads the file itself"
    with endpoints.right_media():
        each = [_of_task(*one, measure, limit) for one in tasks]
        yield from each
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
    """Return the format in which a class encodes pictures; "" if it sends whole files."""
    if not isinstance(measure, _Chat):  # only chat classes read lmms-eval's variables
        return "PNG" if isinstance(measure, _Simple) else ""
    name, quality = endpoints.picture_format()
    return f"{name} of quality {quality}" if quality else name


# --- a task ---------------------------------------------------------------------------------------

Measure = Callable[[Sequence[Part]], Sent]  # measures the parts of a doc's prompt


def _of_task(
    benchmark: Benchmark, loaded: LoadedData | None, name: str, measure: Measure, limit: int | None
) -> Upload:
    if loaded is None:
        return _of_published(name, measure, limit)
    docs = benchmark.docs(loaded, name)
    docs = docs[: media.docs_per_task([len(docs)], limit)[0]]
    shown = list({_window(benchmark, doc): doc for doc in docs}.values())
    # Prefer different files, which differ more than texts.
    among = shown if len(shown) >= SAMPLED else docs
    tried = [among[place] for place in uniform_indices(len(among), SAMPLED)] if docs else []
    task = benchmark.tasks[name]
    try:
        sent = [measure(task.prompt({**doc, "task": name})) for doc in tried]
    except Exception as error:  # an error of lmms-eval's code, which will occur in the run, too
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


def _of_published(name: str, measure: Measure, limit: int | None) -> Upload:
    model, work = context.current().model, estimate.published_work(name, limit)
    if work is None or model is None:
        return Upload(name, 0, None, how="no data, and no published size")
    each, files = work.text * TOKEN_BYTES, 0
    form = _format(measure)
    if not model.arguments.get("pass_video_url"):
        frames = estimate.frames_of(model, work) if work.video and form else 0
        frame = FRAME_BYTES[form.partition(" ")[0] or "PNG"]
        each += (frames + work.pictures) * frame + work.sound * SOUND_BYTES
        files = 0 if form or not work.video else work.clips or work.docs
    sized = f"{size(FILE_BYTES)} a second of video" if files else f"{size(frame)} a frame"
    how = f"the paper's sizes, {sized}{f' as {form}' if form else ''}"
    return Upload(name, work.docs, each, files, work.video * FILE_BYTES if files else 0, how)


def _window(benchmark: Benchmark, doc: Doc) -> tuple[object, ...]:
    """Return the key that distinguishes a doc's media from others."""
    cut = benchmark.media_job(doc)
    return cut.key if cut else (doc.get("video_path"),)


# --- the classes' requests ------------------------------------------------------------------------


def _measure(name: str, model: context.RunModel) -> Measure | None:
    """Return the function that measures a class's request for a doc; None if it has no server."""
    arguments = model.arguments
    if name == "gemini":
        return _gemini
    if name in ("openai", "litellm") and model.interface == "simple":
        return _Simple(model)
    frames: JsonObject
    if name in ("openai", "litellm"):
        rate = arguments.get("video_fps")
        frames = {"fps": float(rate)} if rate else {"nframes": estimate.frames_of(model)}
        by_file = {"pass_video_url": True} if arguments.get("pass_video_url") else {}
        return _Chat("to_openai_messages", frames, by_file)
    if name == "async_openai":
        known = model_capabilities.media_of(model.name, model.interface)
        bounds = {**known.pixel_arguments, **arguments} if known else arguments
        frames = {one: whole(one, bounds[one]) for one in ("min_pixels", "max_pixels")}
        rate = arguments.get("fps")
        frames |= {"fps": float(rate)} if rate else {"nframes": estimate.frames_of(model)}
        frames["max_frames"] = whole("max_frames", arguments.get("max_frames", 768))
        qwen3 = "to_qwen3_vl_openai_messages"
        return _Chat(qwen3 if arguments.get("is_qwen3_vl") else "to_openai_messages", frames, {})
    return None


class _Chat:
    """The size of a chat class's request: the JSON of lmms-eval's messages."""

    def __init__(self, form: str, frames: Mapping[str, Json], more: Mapping[str, Json]) -> None:
        self._form, self._frames, self._more = form, frames, more

    def __call__(self, parts: Sequence[Part]) -> Sent:
        from lmms_eval.protocol import ChatMessages

        chat = ChatMessages(messages=messages.messages_of(parts))
        made = getattr(chat, self._form)(dict(self._frames), **self._more)
        return Sent(len(json.dumps(made)))


class _Simple:
    """The size of a request of the simple class `openai`, or of `litellm`, which is based on it."""

    def __init__(self, model: context.RunModel) -> None:
        self._class: Any = model_class.built(model)
        rate = float(model.arguments.get("video_fps") or 0)
        most = int(model.arguments.get("max_size_in_mb") or 20)
        self._self = SimpleNamespace(video_fps=rate, max_size_in_mb=most)
        self._frames = estimate.frames_of(model)

    def __call__(self, parts: Sequence[Part]) -> Sent:
        sent = len(json.dumps(messages.text_of(parts)))
        for visual in messages.visuals_of(parts):
            kind = Path(visual).suffix if isinstance(visual, str) else ""
            if kind == ".wav":
                sent += len(self._class.encode_audio_file(self._self, visual)[0])
            elif kind == ".mp4":
                sent += sum(map(len, self._class.encode_video(self._self, visual, self._frames)))
            elif not isinstance(visual, Mapping):  # samples of sound are not sent
                sent += len(self._class.encode_image(self._self, visual))
        return Sent(sent)


def _gemini(parts: Sequence[Part]) -> Sent:
    """Return the size of a request to Gemini: videos are uploaded files, other media are inline."""
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
