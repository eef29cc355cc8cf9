"""Segments of a video with its sound: what each input mode needs of [start, end), made at once.

    >>> cut = segment("videos/5.mp4", 61.37, 64.81)
    >>> cut.video, cut.video_with_sound, cut.sound
    ('.../segment-61.37-64.81-3f....mp4', '.../...-3f....av.mp4', '.../...-3f....wav')

One decoding makes a muted mp4 (no audio stream), an mp4 with its sound, and a 16 kHz mono wav, and
keeps them as one entry of the cache: the second mode of an item finds what the first has made.
Files hold exactly the window: the frames with start <= time < end, each at its time minus `start`,
and the samples of [start, end). Seconds count from the first frame that the file shows, for picture
and sound alike, whatever its time stamps begin with. Details: segment_picture.py (codec, sizes),
segment_sound.py (downmix, gaps, resampling).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media import media_cache, worker_call

# Raise when a made file can change for the same source and window.
_VERSION = 3
_SUFFIXES = {"video": ".mp4", "both": ".av.mp4", "sound": ".wav"}
# Seconds allowed for making a segment: at least, for each second of it, and at most.
_AT_LEAST, _EACH_SECOND, _AT_MOST = 300.0, 10.0, 7200.0


@dataclass(frozen=True)
class Segment:
    """A window of a video as files; in seconds of the source, and pixels.

    video: mp4 without an audio stream.
    video_with_sound, sound: mp4 with both, and the sound as a 16 kHz mono 16-bit wav (the same
        signal); None only if the source has no audio stream at all, or no sound was asked for.
    end: as asked for, or the end of the file: the later of its last frame's and its sound's, which
        probes.probe tells as `end`. A window may end beyond it by less than a frame or 20 ms. After
        the picture's end the last frame stays: both mp4 files last `duration` whatever ends first
        (segment_picture.py).
    width, height: upright.
    """

    video: str
    video_with_sound: str | None
    sound: str | None
    start: float
    end: float
    duration: float
    width: int
    height: int
    n_frames: int


def segment(
    source: str | Path,
    start: float | None = None,
    end: float | None = None,
    cache: Path | None = None,
    time_limit: float | None = None,
    *,
    sound: bool = True,
) -> Segment:
    """The files of a window of `source`, from the cache if they are there.

    Args:
        source: a video file.
        start: seconds after the first frame, read as the decimal number that Python shows (0.1 is
            a tenth); None is the beginning.
        end: seconds; not included; None is the end of the file. With neither, the whole file: its
            picture is copied where mp4 can hold it, so that only the sound is decoded.
        cache: folder for results, created if absent; default `media` in the user's cache folder.
        time_limit: seconds for making it, and again at most for waiting until another process that
            makes the same segment is done. Default: 300 and 10 more for each second of the window,
            at most 7200, which is also for a window to the end of the file.
        sound: False keeps the muted video alone, the same file; of a whole movie the others would
            be a second copy and an hour of wav for nothing.

    Raises:
        MediaError: the window is not inside the file or is none, the source cannot be read or holds
            no video, or the files cannot be written; one line, which names the source.
    """
    video = worker_call.source_file(source)
    window = _window(video, start, end)
    recipe = ("segment-" if sound else "muted-") + "-".join(text or "end" for text in window)
    limit = time_limit or _patience(window)
    folder, name, entry = media_cache.kept(
        video,
        cache,
        recipe=recipe,
        version=_VERSION,
        patience=limit,
        make=lambda *at: _make(video, window, at, limit, sound=sound),
        find=_load,
    )
    paths = {key: str(folder / f"{name}{_SUFFIXES[key]}") for key in entry["sizes"]}
    facts = ("start", "end", "duration", "width", "height", "n_frames")
    return Segment(
        video=paths["video"],
        video_with_sound=paths.get("both"),
        sound=paths.get("sound"),
        **{fact: entry["segment"][fact] for fact in facts},
    )


def sound_file(path: str | Path, cache: Path | None = None) -> str:
    """The sound of a whole video alone, as a 16 kHz mono 16-bit wav file in the cache.

    Its seconds count from the first frame that the file shows, as a segment's do.

    Args:
        path: a video file.
        cache: as in `segment`.

    Raises:
        MediaError: the video has no audio stream, or cannot be read, or the wav not be written; one
            line, which names the video.
    """
    video = worker_call.source_file(path)
    job = {"do": "sound", "source": str(video)}
    folder, _, entry = media_cache.kept(
        video,
        cache,
        recipe="sound",
        version=_VERSION,
        patience=_AT_MOST,
        make=lambda *at: media_cache.write_one(job, at, _AT_MOST),
    )
    return str(folder / entry["file"])


def join(picture: Path, sound: Path, out: Path) -> None:
    """Write one file of the picture of one and the sound of another, packet by packet.

    Args:
        picture: a video file; sound of its own is left out.
        sound: a file with sound, such as an mp3.
        out: the file, of the picture's container; written as a whole or not at all.

    Raises:
        MediaError: one of them cannot be read, or the container cannot hold both; names them.
    """
    import av

    def packets(source: Any, stream: Any, track: Any) -> Iterator[Any]:
        for packet in source.demux(stream):
            if packet.dts is not None:
                packet.stream = track
                yield packet

    part = out.with_name(f".part-{out.name}")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with (
            av.open(str(picture)) as one,
            av.open(str(sound)) as other,
            av.open(str(part), "w") as file,
        ):
            found = [(one, one.streams.video[0]), (other, other.streams.audio[0])]
            tracks = [packets(*pair, file.add_stream_from_template(pair[1])) for pair in found]
            for packet in heapq.merge(*tracks, key=lambda packet: packet.dts * packet.time_base):
                file.mux(packet)
        part.replace(out)
    except (av.error.FFmpegError, IndexError, ValueError) as error:
        raise MediaError(
            f"{picture} and {sound}: cannot be joined ({error}); take the broken one away"
        ) from None
    finally:
        part.unlink(missing_ok=True)


def _window(video: Path, start: float | None, end: float | None) -> tuple[str, str | None]:
    """Start and end as decimal numbers; checks what can be checked without the file.

    Raises:
        MediaError: not two times in order.
    """
    shown = f"the segment from {start} to {end}"
    times = []
    for time in (0.0 if start is None else start, end):
        try:
            seconds = None if time is None else float(time)
        except (TypeError, ValueError) as error:
            raise MediaError(f"{video}: {shown}: {time!r} is not a number of seconds") from error
        if seconds is not None and not math.isfinite(seconds):
            raise MediaError(f"{video}: {shown}: its times must be finite numbers of seconds")
        if seconds is not None and seconds < 0:
            raise MediaError(f"{video}: {shown}: its times must not be negative")
        times.append(seconds)
    first, last = times
    if first is not None and last is not None and last <= first:
        what = "is empty" if last == first else "ends before it starts"
        raise MediaError(f"{video}: {shown} s {what}; give start and end in seconds, start first")
    return str(first or 0.0), None if last is None else str(last)


def _patience(window: tuple[str, str | None]) -> float:
    start, end = window
    if end is None:
        return _AT_MOST
    return min(_AT_MOST, _AT_LEAST + _EACH_SECOND * (float(end) - float(start)))


def _load(folder: Path, name: str) -> dict[str, Any] | None:
    """A complete entry, or None; each of its files must have the size that was noted."""
    entry = media_cache.load(folder, name)
    try:
        if entry is not None and all(
            (folder / f"{name}{_SUFFIXES[key]}").stat().st_size == size
            for key, size in entry["sizes"].items()
        ):
            return entry
    except (OSError, KeyError, AttributeError):
        pass  # one of the files is gone, or the note is not ours: the caller makes it
    return None


def _make(
    video: Path,
    window: tuple[str, str | None],
    at: tuple[Path, str],
    limit: float,
    *,
    sound: bool,
) -> dict[str, Any]:
    """Have the worker write the files, then put them into the cache, the note last."""
    folder, name = at
    parts = {key: media_cache.temporary(folder, name, f".{key}.part") for key in _SUFFIXES}
    paths = {key: str(part) for key, part in parts.items()}
    # The wav is written in any case: a file may end with its sound.
    job = {"start": window[0], "end": window[1], **paths, "both": paths["both"] if sound else None}
    with ExitStack() as leftovers:
        for part in parts.values():
            leftovers.callback(part.unlink, missing_ok=True)
        facts = worker_call.call({"do": "segment", "source": str(video), "segment": job}, limit)
        kept = {key: part for key, part in parts.items() if sound or key == "video"}
        sizes = {key: part.stat().st_size for key, part in kept.items() if part.exists()}
        for key in sizes:
            if key != "video":
                parts[key].replace(folder / f"{name}{_SUFFIXES[key]}")
        made = {"segment": facts, "sizes": sizes}
        return media_cache.publish(folder, name, parts["video"], _SUFFIXES["video"], made)
