"""A small model that perceives MAVERIX's packaged sample: pictures, sound and subtitles.

It gets a request's texts and media, as any model does, and neither doc nor key. It perceives the
two colours that the pictures show, the pitch of the sound and the word of the subtitles of every
tenth of a second, each from its own medium: a picture tells it nothing of a tone. Then it reads the
question: if the perceived moments decide between the options, it takes the right one; if not, as
without sound for a question about a tone, it guesses. So its score shows which media reached it.
"""

from __future__ import annotations

import functools
import hashlib
import math
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lmms_eval_tasks.models.host_types import Medium
from lmms_eval_tasks.utils.media import second_code

_OPTION = re.compile(r"^([A-H])\. (.+)$", re.MULTILINE)
_SIDES = re.compile(r"(\w+) on the left and (\w+) on the right")
_TONE = re.compile(r"(\d+) Hz")
_CUE = re.compile(r"\[(\d+):([\d.]+) - (\d+):([\d.]+)\] Word (.+)\.")
_STEP = 0.1  # seconds between two perceived moments
_NEXT = 8  # number of steps that "directly after" a moment covers
_NEAR = 4.0  # hertz by which a perceived pitch may differ


@dataclass
class PerceivedMoment:
    """The colours, pitch (hertz) and word at a time; None or "" if that medium was not there."""

    colours: tuple[str, str] | None = None
    hertz: float | None = None
    word: str = ""

    def near(self, match: re.Match[str] | None) -> bool:
        """Return True if the moment's pitch is the one that a text names ("440 Hz")."""
        return (
            self.hertz is not None and match is not None and abs(self.hertz - int(match[1])) < _NEAR
        )

    def shows(self, option: str) -> bool:
        """Return True if an option describes the moment: its colours, its pitch, or its word."""
        if sides := _SIDES.search(option.lower()):
            return self.colours == sides.groups()
        if tone := _TONE.search(option):
            return self.near(tone)
        return option.lower() in (self.word, *(self.colours or ())[:1])


def reply(parts: Iterable[Medium]) -> str:
    """Return the letter of the option that most perceived moments support; without any, a guess."""
    given = list(parts)
    text = "\n".join(part for part in given if isinstance(part, str))
    options: list[tuple[str, str]] = _OPTION.findall(text)
    question = text.partition("\nA. ")[0].rpartition("\n")[2]
    moments = noticed(text, [part for part in given if isinstance(part, Path)])
    worth = {letter: _worth(question, option, moments) for letter, option in options}
    if any(worth.values()):
        return max(worth, key=lambda letter: worth[letter])
    guess = hashlib.sha256(text.encode()).digest()[0]
    return options[guess % len(options)][0] if options else "A"


def noticed(text: str, media: Sequence[Path]) -> list[PerceivedMoment]:
    """The perceived moments of the texts and media, one for a tenth of a second, in order."""
    moments: dict[int, PerceivedMoment] = defaultdict(PerceivedMoment)
    for path in media:
        for second, colours in read_colours(path):
            moments[round(second / _STEP)].colours = colours
        for second, hertz in read_pitches(path):
            moments[round(second / _STEP)].hertz = hertz
    for *times, word in _CUE.findall(text):
        start, end = (60 * int(times[n]) + float(times[n + 1]) for n in (0, 2))
        for step in range(round((end - start) / _STEP)):
            moments[round(start / _STEP + step)].word = word
    return [moments[place] for place in sorted(moments)]


@functools.lru_cache(maxsize=256)
def read_colours(path: Path) -> list[tuple[float, tuple[str, str]]]:
    """The time in seconds and the two colours of every frame of a file; empty without a picture."""
    import av
    import numpy as np

    with av.open(str(path)) as file:
        if not file.streams.video:
            return []
        frames = [(f.time or 0.0, f.to_ndarray(format="rgb24")) for f in file.decode(video=0)]
    small = [(time, np.asarray(frame, np.uint8)[::4, ::4]) for time, frame in frames]
    return [(time, second_code.colours_of(frame)) for time, frame in small]


@functools.lru_cache(maxsize=256)
def read_pitches(path: Path) -> list[tuple[float, float | None]]:
    """The time in seconds and the pitch of every tenth of a second; empty without sound."""
    import av
    import numpy as np

    with av.open(str(path)) as file:
        if not file.streams.audio:
            return []
        rate = file.streams.audio[0].rate
        take = av.AudioResampler(format="flt", layout="mono", rate=rate)
        blocks = [part.to_ndarray()[0] for f in file.decode(audio=0) for part in take.resample(f)]
    sound, size = np.concatenate(blocks), round(rate * _STEP)
    starts = range(0, len(sound) - size + 1, size)
    return [(n / rate, second_code.hertz_of(sound[n : n + size], rate)) for n in starts]


def _worth(question: str, option: str, moments: Sequence[PerceivedMoment]) -> int:
    """Return the number of moments that support an option; 0 if no moment fits the question."""
    sides, tone = _SIDES.search(question), _TONE.search(question)
    sounds = [n for n, one in enumerate(moments) if one.near(tone)]
    here = sounds
    if sides:
        here = [n for n, one in enumerate(moments) if one.colours == sides.groups()]
    if not here:
        return 0
    after = moments[here[-1] + 1 : here[-1] + 1 + _NEXT]
    if question.startswith("How long after"):
        gone = f"{(sounds[0] - here[0]) * _STEP:.0f} second" if sounds else None
        return int(gone is not None and option.startswith(gone))
    if question.startswith("What does the pitch do"):
        change = _pitch(after) - _pitch([moments[n] for n in here])
        told = PerceivedMoment(hertz=abs(change)).near(_TONE.search(option))
        return int(("rises" in option) == (change > 0) and told)
    shown = after if "directly after" in question else [moments[n] for n in here]
    return sum(one.shows(option) for one in shown)


def _pitch(moments: Iterable[PerceivedMoment]) -> float:
    """The median pitch of moments in hertz; NaN if none has a pitch."""
    found = [one.hertz for one in moments if one.hertz is not None]
    return statistics.median(found) if found else math.nan
