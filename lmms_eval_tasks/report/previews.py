"""Previews of the media in prompts: a strip of frames, and a waveform."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lmms_eval_tasks import registry
from lmms_eval_tasks.benchmark import Benchmark, Doc, Part, Task
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.media.clip_specs import uniform_indices
from lmms_eval_tasks.report.compared_runs import Side

if TYPE_CHECKING:
    from PIL.Image import Image

FRAMES, HEIGHT = 8, 90  # most frames of a strip, and their height in pixels
QUALITY = 55  # WebP quality of a strip
POINTS = 240  # points of a waveform


class MediaPreview(NamedTuple):
    """The preview of one clip, set of pictures, or sound."""

    strip: str  # a picture as data: URI; "" for sound alone
    frames: int  # number of frames in the clip, or of pictures
    wave: list[int]  # peaks, 0 to 99; empty without sound
    file: str  # a file that can be played; "" for pictures


def find_previews(sides: Sequence[Side]) -> tuple[dict[tuple[str, str], MediaPreview], list[str]]:
    """Return the preview of each item's media, by task and id, and lines on missing data.

    Items with the same media share a preview.
    """
    previews: dict[tuple[str, str], MediaPreview] = {}
    lines = []
    names = list(dict.fromkeys(name for side in sides for name in side.runs))
    for benchmark, benchmark_tasks in registry.benchmarks_of(names):
        try:
            previews |= _of_benchmark(benchmark, benchmark_tasks, sides)
        except TasksError as error:
            lines.append(f"{benchmark.title}: no preview pictures of the videos: {error}")
    return previews, lines


def _of_benchmark(
    benchmark: Benchmark, names: Sequence[str], sides: Sequence[Side]
) -> Iterator[tuple[tuple[str, str], MediaPreview]]:
    loaded = benchmark.load(names, only=())
    docs: dict[Any, tuple[Task, Doc]] = {}
    items: dict[tuple[str, str], Any] = {}
    for name in names:
        task = benchmark.tasks[name]
        ids = {item["id"] for side in sides for item in side.items.get(name, ())}
        for doc in benchmark.docs(loaded, name):
            if doc["id"] not in ids:
                continue
            cut = benchmark.media_job(doc)
            window = (name, doc["id"]) if cut is None else cut.key
            items[name, doc["id"]] = window
            docs.setdefault(window, (task, {**doc, "task": name}))
    with ThreadPoolExecutor() as pool:
        thumbs = dict(zip(docs, pool.map(lambda pair: _look(*pair), docs.values()), strict=True))
    return ((item, thumbs[window]) for item, window in items.items() if thumbs[window] is not None)


def _look(task: Task, doc: Doc) -> MediaPreview | None:
    """Return the preview of a doc's media.

    None if the doc has no media, or if its file cannot be read any more.
    """
    try:
        return _seen([part for part in task.prompt(doc) if part.kind != "text"])
    except (TasksError, OSError):
        return None


def _seen(parts: Sequence[Part]) -> MediaPreview | None:
    pictures: list[Image] = []
    wave: list[int] = []
    count, file = 0, ""
    for part in parts:
        given = part.content() if callable(part.content) else part.content
        if part.kind in ("image", "images"):
            own = given if part.kind == "images" else [given]
            count += len(own)
            pictures += own
            continue
        file = file or str(given)
        if part.kind == "video":
            frames, total = _frames(Path(given))
            pictures += frames
            count += total
        wave = wave or _wave(Path(given))
    if not pictures and not wave:
        return None
    return MediaPreview(_strip(pictures) if pictures else "", count, wave, file)


def _frames(path: Path) -> tuple[list[Image], int]:
    """Return some frames of a file that this package made, reduced, and its number of frames."""
    import av

    with av.open(str(path)) as file:
        stream = file.streams.video[0]
        total = stream.frames or sum(1 for _ in file.demux(stream))
        wanted = set(uniform_indices(max(total, 1), FRAMES))
        file.seek(0)
        taken = [
            frame.to_image(width=round(frame.width * HEIGHT / frame.height), height=HEIGHT)
            for place, frame in enumerate(file.decode(stream))
            if place in wanted
        ]
    return taken, total


def _strip(pictures: Sequence[Image]) -> str:
    from PIL import Image as pillow  # noqa: N813

    chosen = [pictures[place] for place in uniform_indices(len(pictures), FRAMES)]
    small = [one.resize((max(1, round(one.width * HEIGHT / one.height)), HEIGHT)) for one in chosen]
    strip = pillow.new("RGB", (sum(one.width + 2 for one in small) - 2, HEIGHT))
    left = 0
    for one in small:
        strip.paste(one, (left, 0))
        left += one.width + 2
    out = io.BytesIO()
    strip.save(out, "WEBP", quality=QUALITY)
    return f"data:image/webp;base64,{base64.b64encode(out.getvalue()).decode()}"


def _wave(path: Path) -> list[int]:
    """Return the peak of each part of a file's sound, 0 to 99; [] without sound."""
    import av
    import numpy as np

    with av.open(str(path)) as file:
        if not file.streams.audio:
            return []
        resampler = av.AudioResampler("s16", "mono", 8000)
        heard = [
            np.abs(block.to_ndarray()[0].astype(np.int32))
            for frame in file.decode(audio=0)
            for block in resampler.resample(frame)
        ]
    samples = np.concatenate(heard) if heard else np.zeros(1, np.int32)
    parts = np.array_split(samples, min(POINTS, len(samples)))
    return [int(99 * part.max() / 32768) for part in parts]


def listed(
    previews: Mapping[tuple[str, str], MediaPreview],
) -> tuple[list[MediaPreview], dict[tuple[str, str], int]]:
    """Return the different previews, and the index of each item's preview among them."""
    places: dict[int, int] = {}
    different: list[MediaPreview] = []
    for one in previews.values():
        if id(one) not in places:
            places[id(one)] = len(different)
            different.append(one)
    return different, {item: places[id(one)] for item, one in previews.items()}


def copy(previews: Iterable[MediaPreview], folder: Path) -> dict[str, str]:
    """Copy the files that can be played into a folder; return their names there, by path."""
    import shutil

    folder.mkdir(parents=True, exist_ok=True)
    names: dict[str, str] = {}
    for one in previews:
        if one.file and one.file not in names:
            names[one.file] = f"{len(names):04}{Path(one.file).suffix}"
            shutil.copyfile(one.file, folder / names[one.file])
    return names
