"""Cutting from a long file costs as much as from a short one, and modes share one decoding.

    python benchmarks/segments.py

Two files of one kind are made (H.264 and AAC at 1.5 Mbit/s and more together, like 360p on the web,
with a key frame every 10 s and a tone for every second): 2 and 60 minutes. Windows of 60 s are then
cut from each in turn, from an empty cache and without the file's hash, so that a busy machine slows
down both. Both files are in the system's disk cache. Each frame carries its number: every cut is
decoded, and has exactly the window's frames and the right tones. Then the five modes of one item
need the same window: the first decodes it, the others find it in the cache.

Ends with status 1 if the ratio is above 1.5, a file is below 1.5 Mbit/s, a cut is wrong or a mode
decodes again.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.media import cache as media_cache
from lmms_eval_tasks.media.segments import CutSegment, segment
from lmms_eval_tasks.utils.media import worker

RATE, KEYS = 25, 10  # frames a second; seconds between two key frames
SOUND_RATE = 48_000
BITS, STRIPE = 20, 16  # a frame's number, in stripes 16 pixels wide over the top rows
SIZE = (426, 240)
LIMIT = 1.5
BIT_RATE = 1_500_000  # fewest bits a second of each file
GRAIN = 7  # levels of noise in each frame; a plain picture would take far fewer bits


def tone(second: int) -> int:
    """Return the tone of a second in Hz.

    Neighbours differ by 130 Hz or more, and a tone returns after 23 s.
    """
    return 400 + 130 * (second * 7 % 23)


def write(path: Path, minutes: float) -> None:
    """Write a moving texture with grain and frame numbers, and a tone for every second."""
    import av
    import numpy as np

    rng = np.random.default_rng(0)
    texture = rng.integers(40, 200, (SIZE[1] // 8, SIZE[0] // 8 * 2), np.uint8).repeat(8, 0)
    texture = texture.repeat(8, 1)
    grain = [rng.integers(-GRAIN, GRAIN, SIZE[::-1], np.int8) for _ in range(31)]
    grey = np.full((SIZE[1] // 2, SIZE[0]), 128, np.uint8)
    with av.open(str(path), "w") as file:
        video: Any = file.add_stream("libx264", rate=RATE)
        video.width, video.height, video.pix_fmt = *SIZE, "yuv420p"
        video.codec_context.gop_size = RATE * KEYS
        video.options = {"preset": "ultrafast", "crf": "23", "x264-params": "scenecut=0"}
        audio: Any = file.add_stream("aac", rate=SOUND_RATE, layout="mono")
        moments = np.arange(SOUND_RATE) / SOUND_RATE
        for number in range(round(minutes * 60 * RATE)):
            left = number % (SIZE[0] // 2)
            luma = texture[:, left : left + SIZE[0]] + grain[number % len(grain)].view(np.uint8)
            for bit in range(BITS):
                luma[:16, bit * STRIPE : (bit + 1) * STRIPE] = 235 if number >> bit & 1 else 16
            frame = av.VideoFrame.from_ndarray(np.concatenate([luma, grey]), format="yuv420p")
            frame.pts, frame.time_base = number, Fraction(1, RATE)
            file.mux(video.encode(frame))
            if number % RATE == 0:
                wave = (0.5 * np.sin(2 * np.pi * tone(number // RATE) * moments))[None]
                heard = av.AudioFrame.from_ndarray(wave.astype(np.float32), "fltp", "mono")
                heard.sample_rate, heard.pts = SOUND_RATE, number // RATE * SOUND_RATE
                file.mux(audio.encode(heard))
        file.mux(video.encode(None))
        file.mux(audio.encode(None))


def check(cut: CutSegment, start: float, length: float) -> None:
    """Check that every frame and every 20 ms of sound belongs to the window.

    Raises:
        SystemExit: a frame or a sound does not.
    """
    import wave

    import av
    import numpy as np

    first = math.ceil(Fraction(str(start)) * RATE)
    wanted = list(range(first, first + round(length * RATE)))
    for path in (cut.video, cut.video_with_sound):
        with av.open(str(path)) as file:
            numbers = [_number(frame.to_ndarray()) for frame in file.decode(video=0)]
        if numbers != wanted:
            sys.exit(f"{path}: frames {numbers[0]} to {numbers[-1]}, not {wanted[0]} and following")
    with wave.open(str(cut.sound)) as sound:
        samples = np.frombuffer(sound.readframes(sound.getnframes()), "<i2")
    if len(samples) != round(length * 16_000):
        sys.exit(f"{cut.sound}: {len(samples)} samples")
    for number, part in enumerate(samples[: len(samples) // 320 * 320].reshape(-1, 320)):
        pitch = np.argmax(np.abs(np.fft.rfft(part, 3200))) * 5
        seconds = {int(start + number * 0.02 + within) for within in (1e-6, 0.02 - 1e-6)}
        if min(abs(pitch - tone(second)) for second in seconds) > 40:
            sys.exit(f"{cut.sound}: {pitch} Hz at {number * 0.02:.2f} s")


def _number(planes: Any) -> int:
    middles = [bit * STRIPE + STRIPE // 2 for bit in range(BITS)]
    return sum(
        1 << bit for bit, at in enumerate(middles) if planes[8, at - 3 : at + 3].mean() > 128
    )


def timed(source: Path, start: float, length: float) -> tuple[float, float]:
    """Return wall and processor seconds of a cut into an empty cache, with the source's hash."""
    with (
        tempfile.TemporaryDirectory() as cache,
        patch.dict(os.environ, {settings.CACHE: cache}),
    ):
        media_cache._content_id.cache_clear()
        begin, work = time.perf_counter(), _processor()
        cut = segment(source, start, round(start + length, 2))
        spent = time.perf_counter() - begin, _processor() - work
        check(cut, start, length)
    return spent


def _processor() -> float:
    """Return the processor time of this process and of its finished workers."""
    return sum(os.times()[:4])


def modes(source: Path, start: float, length: float) -> bool:
    """Run one item in MAVERIX's five modes, as a chat model and as a simple model of lmms-eval.

    The caches in memory are cleared before each mode, which may run in another process. Prints the
    costs. Returns False if a mode decoded again, or if modes have other files than the cut's.
    """
    from lmms_eval_tasks.maverix import tasks
    from lmms_eval_tasks.maverix.labels import LETTERS, MODES
    from lmms_eval_tasks.runs import messages

    decodings: list[object] = []
    work = worker.call

    def counted(*job: Any, **arguments: Any) -> dict[str, Any]:
        decodings.append(job)
        return work(*job, **arguments)

    doc = {
        **{"id": "item", "video_path": str(source), "subtitle_path": ""},
        **{"start": start, "end": round(start + length, 2)},
        **{"question": "Which frame is the first?", "options": list(LETTERS)},
    }
    spent, handed = {}, {}
    with (
        tempfile.TemporaryDirectory() as cache,
        patch.dict(os.environ, {settings.CACHE: cache}),
        patch.object(worker, "call", counted),
    ):
        for mode in MODES:
            tasks.cut.cache_clear()
            begin = time.perf_counter()
            asked = {**doc, "mode": mode}
            parts = tasks.choice_prompt(asked)
            content = messages.messages_of(parts)[0]["content"]
            visuals = messages.visuals_of(parts)
            spent[mode] = time.perf_counter() - begin
            handed[mode] = [part["url"] for part in content if part["type"] != "text"], visuals
        made = tasks.media_of(doc)
        check(made, start, length)
    tasks.cut.cache_clear()  # the cached files were deleted
    muted, both, sound = made.video, made.video_with_sound, made.sound
    expected = {
        "a": ([sound], [sound]),
        "s": ([], []),
        "v": ([muted], [muted]),
        "vs": ([muted], [muted]),
        "av": ([muted, sound], [both]),
    }
    first, *rest = spent.values()
    print(
        f"modes of one item ({', '.join(spent)}): the first {first:.2f} s, the other {len(rest)} "
        f"together {sum(rest) * 1000:.1f} ms; decodings: {len(decodings)}; files of that one cut "
        f"{'alone' if handed == expected else 'AND OTHERS'} handed over"
    )
    return len(decodings) == 1 and handed == expected


def main() -> None:
    """Make the files, measure in turn, and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=5, help="cuts from each file")
    parser.add_argument("--keep", type=Path, help="folder to keep the two files in (800 MB)")
    parser.add_argument("--quick", action="store_true", help="a smoke test: 10 s of 1 and 4 min")
    arguments = parser.parse_args()
    short, long, length = (1, 4, 10.0) if arguments.quick else (2, 60, 60.0)
    rounds = 2 if arguments.quick else arguments.rounds
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        files = {minutes: folder / f"{minutes}-minutes.mp4" for minutes in (short, long)}
        for minutes, file in files.items():
            if not file.exists():
                part = file.with_suffix(".part.mp4")
                write(part, minutes)
                part.rename(file)
        spent: dict[int, list[tuple[float, float]]] = {short: [], long: []}
        for number in range(rounds):
            for minutes, file in files.items():
                # Windows from all over the file; those of a pair are equally far from a key frame.
                last_key = int((minutes * 60 - length) // KEYS) - 1
                key = last_key * number // max(1, rounds - 1)
                within = round(KEYS * (number + 0.5) / rounds + 0.03, 2)
                spent[minutes].append(timed(file, round(key * KEYS + within, 2), length))
        print(f"{length:g} s of {SIZE[0]} x {SIZE[1]}, key frames every {KEYS} s")
        walls = {minutes: [wall for wall, _ in pairs] for minutes, pairs in spent.items()}
        work = {minutes: sum(cpu for _, cpu in pairs) for minutes, pairs in spent.items()}
        rates = {minutes: files[minutes].stat().st_size * 8 / (minutes * 60) for minutes in walls}
        for minutes, times in walls.items():
            size, rate = files[minutes].stat().st_size / 1e6, rates[minutes] / 1e6
            print(
                f"from {minutes:2} min ({size:5.1f} MB, {rate:.2f} Mbit/s): "
                f"{sum(times):6.2f} s for {rounds} cuts, median {median(times):.2f} s; "
                f"{work[minutes]:.2f} s of processor time"
            )
        ratio = sum(walls[long]) / sum(walls[short])
        print(
            f"ratio {ratio:.2f} (limit {LIMIT}); of the medians "
            f"{median(walls[long]) / median(walls[short]):.2f}; of processor time "
            f"{work[long] / work[short]:.2f}"
        )
        shared = modes(files[long], long * 30 + 0.37, length)
    if ratio > LIMIT or min(rates.values()) < BIT_RATE or not shared:
        sys.exit(1)


if __name__ == "__main__":
    try:
        main()
    except MediaError as error:
        sys.exit(str(error))
