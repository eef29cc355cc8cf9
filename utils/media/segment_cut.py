"""Make a segment's files from one decoding of the source; runs in the child of media_worker.py."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media import (
    segment_head,
    segment_picture,
    segment_sound,
    segment_track,
    video_source,
)
from lmms_eval_tasks.utils.media.segment_head import Head
from lmms_eval_tasks.utils.media.segment_picture import Picture
from lmms_eval_tasks.utils.media.segment_sound import Sound

# Header and last frame disagree by less than this, even where the header counts other streams.
_SLACK = 10.0
_Times = tuple[Fraction, Fraction | None]


def make(
    source: str, *, start: str, end: str | None, video: str, sound: str, both: str | None
) -> dict[str, Any]:
    """Write up to three files and describe them (fields of segments.Segment).

    Args:
        source: a video file.
        start: decimal seconds after the first frame.
        end: the same; None for the end of the file.
        video: where to write the muted mp4.
        sound: where to write the wav; absent afterwards if the file has no audio stream.
        both: where to write the mp4 with both; absent if the file has no audio stream. None: not
            written.

    Raises:
        MediaError: what is wrong with the file or the window, without the file's name.
    """
    first = segment_head.head(source)
    window = Fraction(start), None if end is None else Fraction(end)
    if first.declared is not None and window[0] >= Fraction(first.declared + _SLACK):
        raise segment_picture.outside(*window, Fraction(first.declared), "starts")
    picture, heard = _write(source, first, window, video, sound)
    length = picture.end - window[0]
    if heard is not None:
        if not heard.samples:
            segment_sound.write_silence(sound, length)
        if both is not None:
            segment_track.add_track(video, sound, both)
    return {
        "start": float(window[0]),
        "end": float(picture.end),
        "duration": float(length),
        "width": picture.width,
        "height": picture.height,
        "n_frames": picture.n_frames,
    }


def sound(source: str, out: str) -> dict[str, Any]:
    """Write the sound of a whole file as a wav.

    Raises:
        MediaError: the file has no audio stream, or its sound cannot be decoded.
    """
    first = segment_head.head(source)
    if not first.has_audio:
        raise MediaError("has no audio stream")
    heard = segment_sound.write_wav(source, first.clock, Fraction(0), None, out)
    if not heard.samples:
        picture = video_source.frame_table(source, use_decord=False)
        segment_sound.write_silence(out, Fraction(picture.duration))
    return {"suffix": ".wav"}


def _write(
    source: str, first: Head, window: _Times, video: str, sound: str
) -> tuple[Picture, Sound | None]:
    """The muted mp4 and the wav; the sound first, since it may go on after the last frame."""
    (start, end), heard = window, None
    sound_end: Fraction | None = None
    if first.has_audio:
        heard = segment_sound.write_wav(source, first.clock, start, end, sound)
        sound_end = end if heard.end is None else heard.end
    if start == 0 and end is None:
        copied = segment_picture.copy(source, first, sound_end, video)
        if copied is not None:
            return copied, heard
    return segment_picture.cut(source, first, start, end, sound_end=sound_end, out=video), heard
