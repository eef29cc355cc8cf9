"""The wav of a segment as the track of an mp4 file.

The track is made from the wav, so both hold one signal: AAC at 48 kHz, whose packets are 21 ms
long, so that neither its delay (which the edit list takes away) nor the rest of its last packet is
long for a reader that ignores them.
"""

from __future__ import annotations

import wave
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.utils.media import segment_read
from lmms_eval_tasks.utils.media.segment_encoder import open_mp4
from lmms_eval_tasks.utils.media.segment_sound import Resampler
from lmms_eval_tasks.utils.media.sound_files import RATE
from lmms_eval_tasks.utils.media.video_source import frame_table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TRACK_RATE, TRACK_BITS = 48_000, 128_000  # Hz and bits a second of the mp4's track
_PACKET = 1024  # samples of an AAC packet


def add_track(muted: str, wav: str, out: str) -> None:
    """Write an mp4 file with the picture of `muted`, packet by packet, and `wav` as its sound.

    The last AAC packet is left out if less than half of it is sound: the track ends within 11 ms of
    the wav's end.
    """
    import av

    table = frame_table(muted, use_decord=False)
    with av.open(muted) as source, wave.open(wav) as sound, open_mp4(out) as file:
        picture = source.streams.video[0]
        # What the header says; the last packet does not tell its duration.
        table = replace(table, end=picture.start_time + picture.duration)
        video = file.add_stream_from_template(picture, opaque=True)  # as in copies
        video.time_base = picture.time_base
        track: Any = file.add_stream("aac", rate=TRACK_RATE, layout="mono")
        track.bit_rate = TRACK_BITS
        packets = _aac(track, sound)
        heard = next(packets, None)
        for packet in segment_read.packets(source, picture, table):
            while heard is not None and heard.pts * heard.time_base < packet.dts * packet.time_base:
                file.mux(heard)
                heard = next(packets, None)
            packet.stream = video
            file.mux(packet)
        while heard is not None:
            file.mux(heard)
            heard = next(packets, None)


def _aac(track: Any, sound: wave.Wave_read) -> Iterator[Any]:
    import av
    import numpy as np

    def samples() -> Iterator[NDArray[np.float32]]:
        resampler = Resampler(sound.getframerate(), TRACK_RATE, "fltp")
        while data := sound.readframes(RATE):
            yield from resampler.feed(np.frombuffer(data, "<i2").astype(np.int16))
        yield from resampler.feed(None)

    fed = 0
    base = Fraction(1, TRACK_RATE)
    total = sound.getnframes() * TRACK_RATE // sound.getframerate()
    for block in samples():
        frame = av.AudioFrame.from_ndarray(block[None], format="fltp", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = TRACK_RATE, fed, base
        fed += len(block)
        yield from (p for p in track.encode(frame) if _is_sound(p, total))
    yield from (p for p in track.encode(None) if _is_sound(p, total))


def _is_sound(packet: Any, total: int) -> bool:
    return bool(packet.pts <= 0 or total - packet.pts > _PACKET // 2)
