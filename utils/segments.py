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

import math
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils import media_cache, worker_call

DOWNMIX = "mean of all channels"
# Raise when a made file can change for the same source and window.
_VERSION = 2
_SUFFIXES = {"video": ".mp4", "both": ".av.mp4", "sound": ".wav"}
# Seconds allowed for making a segment: at least, for each second of it, and at most.
_AT_LEAST, _EACH_SECOND, _AT_MOST = 300.0, 10.0, 7200.0


@dataclass(frozen=True)
class Segment:
    """A window of a video as files; seconds and pixels; seconds of the source but for first_frame.

    video: mp4 without an audio stream.
    video_with_sound, sound: mp4 with both, and the sound as a 16 kHz mono 16-bit wav (the same
        signal); None only if the source has no audio stream at all, or no sound was asked for.
    end: as asked for, or the end of the file: the later of its last frame's and its sound's, which
        probes.probe tells as `end`. A window may end beyond it by less than a frame or 20 ms, which
        `clamped` records. After the picture's end the last frame stays: both mp4 files last
        `duration` whatever ends first (segment_picture.py).
    encoded: False if a whole file's picture was copied without decoding it.
    width, height: upright.
    fps: n_frames / duration.
    first_frame: when the cut shows its first frame; less than a frame's duration in steady videos.
    vfr: the time from frame to frame changes within the window.
    rotation: degrees clockwise that the source asks players to turn it; the files are upright.
    has_audio: the source has an audio stream. `channels` and `sample_rate` are the source's; 0 if
        it has none.
    sound_duration: length of the wav, shorter than `duration` where the source's sound ends early.
    silence_filled: seconds of silence put in where the source's sound begins late or has a gap; the
        whole `duration` where the source has sound elsewhere, but none in this window.
    downmix: how the channels became one.
    """

    source: str
    video: str
    video_with_sound: str | None
    sound: str | None
    start: float
    end: float
    duration: float
    clamped: bool
    encoded: bool
    width: int
    height: int
    n_frames: int
    fps: float
    first_frame: float
    vfr: bool
    rotation: int
    has_audio: bool
    channels: int
    sample_rate: int
    sound_duration: float
    silence_filled: float
    downmix: str = DOWNMIX

    def as_dict(self) -> dict[str, Any]:
        """Plain types only, for result logs."""
        return asdict(self)


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
    folder = Path(cache or settings.cache_dir() / "media").absolute()
    limit = time_limit or _patience(window)
    try:
        name = media_cache.entry_name(media_cache.content_id(video), recipe, _VERSION)
        entry = media_cache.kept(
            folder,
            name,
            limit,
            lambda: _make(video, window, folder, name, limit, sound=sound),
            _load,
        )
    except OSError as error:
        raise MediaError(
            f"{video}: cannot be read, or its segment not be written: {error}"
        ) from error
    paths = {key: str(folder / f"{name}{_SUFFIXES[key]}") for key in entry["sizes"]}
    return Segment(
        source=str(video),
        video=paths["video"],
        video_with_sound=paths.get("both"),
        sound=paths.get("sound"),
        **entry["segment"],
    )


def sound_file(path: str | Path, cache: Path | None = None, time_limit: float = _AT_MOST) -> str:
    """The sound of a whole video alone, as a 16 kHz mono 16-bit wav file in the cache.

    Its seconds count from the first frame that the file shows, as a segment's do.

    Args:
        path: a video file.
        cache, time_limit: as in `segment`.

    Raises:
        MediaError: the video has no audio stream, or cannot be read, or the wav not be written; one
            line, which names the video.
    """
    video = worker_call.source_file(path)
    folder = Path(cache or settings.cache_dir() / "media").absolute()

    def make() -> dict[str, Any]:
        media_cache.remove_leftovers(folder, name, older_than=2 * time_limit)
        part = media_cache.temporary(folder, name, ".part")
        try:
            job = {"do": "sound", "source": str(video), "out": str(part)}
            facts = worker_call.call(job, time_limit)
            return media_cache.publish(folder, name, part, ".wav", facts)
        finally:
            part.unlink(missing_ok=True)

    try:
        name = media_cache.entry_name(media_cache.content_id(video), "sound", _VERSION)
        return str(folder / media_cache.kept(folder, name, time_limit, make)["file"])
    except OSError as error:
        raise MediaError(
            f"{video}: cannot be read, or its sound not be written: {error}"
        ) from error


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
    folder: Path,
    name: str,
    limit: float,
    *,
    sound: bool,
) -> dict[str, Any]:
    """Have the worker write the files, then put them into the cache, the note last."""
    media_cache.remove_leftovers(folder, name, older_than=2 * limit)
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
