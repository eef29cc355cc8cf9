"""MAVERIX's packaged sample in our schema: four videos with sound, 20 items.

    maverix/data.json            20 items (release.py), with all answers and references
    maverix/videos/lights-N.mp4  N = 1 to 3 of half a minute, 4 of 64 s; 320 x 240, 10 frames a
                                 second, a key frame every 12 s; stereo, 44.1 kHz
    maverix/subtitles/           lights-1.srt, lights-2.srt, lights-4.srt; none for lights-3

Every second of every video has its own colours, its own tone (second_code.py) and its own word, so
that all that reaches a model identifies the video and the second. Nobody speaks: the words exist in
subtitles only. Each question (sample_texts_yaml) is made from this code, so it is true. The thing
that a question names occurs once in its video, so that the answer is the same for the segment and
for the whole video. Labels are arbitrary, so that every split has items.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from lmms_eval_tasks.maverix.labels import LETTERS, MODES, N_OPTIONS, SPLITS
from lmms_eval_tasks.models.fake_replies import Chance, Played
from lmms_eval_tasks.sample import scenes
from lmms_eval_tasks.sample.render import Clip
from lmms_eval_tasks.utils.media import second_code
from lmms_eval_tasks.utils.media.second_code import AAC, BAR, NAMES, PALETTE, TICKS, X264
from lmms_eval_tasks.utils.media.subtitles import clock

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VERSION = "packaged sample of lmms-eval-tasks"
VIDEOS = ("lights-1", "lights-2", "lights-3", "lights-4")  # names of the files; 4 is the long one
SECONDS = (30, 30, 32, 64)  # seconds of the videos 1 to 4: second_code.COUNT in all
SUBTITLED = (1, 2, 4)
WORD = (0.1, 0.9)  # start and end of a second's word, in seconds from the second's beginning
WIDTH, HEIGHT = 320, 240
RATE = 44_100  # samples a second
LEVELS = (0.5, 0.2)  # peaks of the left and the right channel; full scale is 1
RAMP = 0.005  # seconds of fading at both ends of a tone, against clicks

PLAYED = Played(
    # Without open answers, whose ratings from 0 to 5 need a language model.
    tasks=("maverix_table3", "maverix_a_circular"),
    expected={
        **{f"maverix_{mode}": {"acc": 1.0} for mode in MODES},
        "maverix_table3": {"best_uni": 1.0, "best_multi": 1.0},
        "maverix_a_circular": {"acc": 1.0, "circ_acc": 1.0},
    },
    # Over rotations, whose draws are independent; A, V and V+A have the same text.
    chances=(
        Chance(
            "rotations",
            ("maverix_a_circular",),
            lambda item: item["right"],
            lambda _: 1 / len(LETTERS),
        ),
    ),
    headline=("maverix_av", "acc"),
)
# The number of questions that a mode's input decides; most need picture and sound together.
DECIDED = {"maverix_s": 0, "maverix_a": 3, "maverix_v": 2, "maverix_vs": 5, "maverix_av": 17}


class SampleSecond(NamedTuple):
    """A second of a video of the sample, from `second` s to `second` + 1 s."""

    video: int  # number of the video, from 1
    second: int  # number of the second in the video, from 0

    @property
    def number(self) -> int:
        """The second's number among all seconds of the sample, from 0."""
        return sum(SECONDS[: self.video - 1]) + self.second

    @property
    def sides(self) -> str:
        """The colours of both halves of the picture, in words; they change every second."""
        left, right = second_code.colours(self.number)
        return f"{left} on the left and {right} on the right"

    @property
    def tone(self) -> str:
        """The second's tone, in words."""
        return f"{second_code.hertz(self.number)} Hz"

    @property
    def word(self) -> str:
        """The text of the subtitles: the second's number in words."""
        return in_words(self.number)


# fmt: off
_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
# fmt: on


def in_words(number: int) -> str:
    """Return a number of 0 to 199 in English words."""
    if number >= 100:
        rest = in_words(number - 100) if number > 100 else ""
        return f"one hundred {rest}".strip()
    if number < len(_ONES):
        return _ONES[number]
    tens, ones = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_ONES[ones]}" if ones else "")


# --- the files ------------------------------------------------------------------------------------


def sample_videos() -> dict[str, Clip]:
    """Return all videos, by path."""
    return {
        f"videos/{name}.mp4": Clip(
            functools.partial(video_frames, video),
            TICKS,
            functools.partial(sound, video),
            RATE,
            X264,
            AAC,
        )
        for video, name in enumerate(VIDEOS, 1)
    }


def sample_files() -> dict[str, object]:
    """Return all files except the videos, by path."""
    data = json.dumps({"version": VERSION, "items": items()}, ensure_ascii=False, indent=1)
    made = {f"subtitles/{VIDEOS[video - 1]}.srt": subtitles(video) for video in SUBTITLED}
    return {**made, "data.json": f"{data}\n"}


def video_frames(video: int) -> Iterator[NDArray[np.uint8]]:
    """Yield every frame of a video, (HEIGHT, WIDTH, 3): two coloured halves above a bar."""
    import numpy as np

    top = round(BAR * HEIGHT)
    for second in range(SECONDS[video - 1]):
        left, right = second_code.colours(SampleSecond(video, second).number)
        picture = np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8)
        picture[:top, : WIDTH // 2] = PALETTE[left]
        picture[:top, WIDTH // 2 :] = PALETTE[right]
        for tick in range(TICKS):
            frame = picture.copy()
            frame[top:, : (tick + 1) * WIDTH // TICKS] = 255
            yield frame


def sound(video: int) -> NDArray[np.float32]:
    """Return the tones of a video, (2, seconds * RATE), in [-1, 1]; the right channel is softer."""
    import numpy as np

    clock = np.arange(RATE) / RATE
    ramp = np.clip(np.minimum(clock, 1 - clock) / RAMP, 0, 1)
    hertz = [second_code.hertz(SampleSecond(video, n).number) for n in range(SECONDS[video - 1])]
    tones = [np.sin(2 * np.pi * one * clock) * ramp for one in hertz]
    return np.outer(LEVELS, np.concatenate(tones)).astype(np.float32)


def subtitles(video: int) -> str:
    """Return the srt file of a video, 1 to 4, with one word a second."""
    return "\n".join(
        f"{second + 1}\n{clock(second + WORD[0])} --> {clock(second + WORD[1])}\n"
        f"Word {SampleSecond(video, second).word}.\n"
        for second in range(SECONDS[video - 1])
    )


# --- the items ------------------------------------------------------------------------------------

SHUFFLED = (4, 13)  # items that keep the file's order of their options


class ItemPlan(NamedTuple):
    """The kind of an item's question, with its second and segment; None: the whole video."""

    kind: str
    video: int
    second: int
    segment: tuple[float, float] | None


class SampleTexts(TypedDict):
    """The content of sample_texts_yaml."""

    kinds: Mapping[str, Mapping[str, str]]  # texts of each kind of question
    plans: Sequence[tuple[str, int, int, tuple[float, float] | None]]  # fields of ItemPlan


@functools.cache
def texts() -> SampleTexts:
    """Return the content of sample_texts_yaml."""
    content: SampleTexts = scenes.load_scenes(__file__, "sample_texts_yaml")
    return content


def plans() -> list[ItemPlan]:
    """Return the plan of each item, in their order."""
    return [ItemPlan(*plan) for plan in texts()["plans"]]


def items() -> list[dict[str, object]]:
    """Return all items in the form of the file (release.py)."""
    return [_item(number, plan) for number, plan in enumerate(plans())]


def _item(number: int, plan: ItemPlan) -> dict[str, object]:
    moment, kind = SampleSecond(plan.video, plan.second), texts()["kinds"][plan.kind]
    later = _after(moment, _wait(moment))
    shown = {"sides": moment.sides, "hertz": moment.tone, "later": later.tone}
    right, *wrong = values(plan.kind, moment)
    texts_of = [kind.get("option", "{}").format(value) for value in (right, *wrong)]
    right_option, *options = [option[0].upper() + option[1:] for option in texts_of]
    # Place of the right option, so that every letter occurs in the file.
    place = (3 * number + 2) % N_OPTIONS
    options.insert(place, right_option)
    start, end = plan.segment or (None, None)
    return {
        "id": f"{VIDEOS[plan.video - 1]}-q{number + 1:02}",
        "video": VIDEOS[plan.video - 1],
        "start": start,
        "end": end,
        "question": kind["question"].format(**shown),
        "paraphrase": kind["paraphrase"].format(**shown),
        "options": options,
        "answer": LETTERS[place],
        "reference": kind["reference"].format(right, **shown),
        # Labels in turn; every second duration is left to be measured.
        **{split: list(known)[number % len(known)] for split, known in SPLITS.items()},
        "duration": ("short" if SECONDS[plan.video - 1] < 60 else "middle") if number % 2 else None,
        "shuffled": number in SHUFFLED,
    }


def values(kind: str, moment: SampleSecond) -> list[str]:
    """Return eight values for a kind of question, the right one first."""
    if kind == "next_tone":
        right = _after(moment)
        others = [one for one in _around(right, N_OPTIONS + 1)[1:] if one != moment]
        return [one.tone for one in (right, *others[: N_OPTIONS - 1])]
    if kind == "next_colour":
        now, then = (second_code.colours(one.number)[0] for one in (moment, _after(moment)))
        return [then, *(name for name in NAMES if name not in (now, then))][:N_OPTIONS]
    if kind == "pitch":
        here, there = (second_code.hertz(one.number) for one in (moment, _after(moment)))
        ways = ("rises", "falls") if there > here else ("falls", "rises")
        sizes = [abs(there - here) + more for more in (0, -100, 100, 200)]
        return [f"{way} by {size} Hz" for size in sizes for way in ways]
    if kind == "wait":
        right_wait = _wait(moment)
        seconds = [right_wait, *(n for n in range(1, N_OPTIONS + 1) if n != right_wait)]
        return [f"{n} second{'s' if n > 1 else ''}" for n in seconds]
    asked = {"tone": "tone", "colours": "sides", "word": "word"}[kind]
    return [getattr(one, asked) for one in _around(moment, N_OPTIONS)]


def _around(moment: SampleSecond, count: int) -> list[SampleSecond]:
    """Return a moment and its nearest other seconds in the video, earlier and later in turn."""
    every = [SampleSecond(moment.video, second) for second in range(SECONDS[moment.video - 1])]
    return sorted(every, key=lambda one: (abs(one.second - moment.second), one.second))[:count]


def _after(moment: SampleSecond, seconds: int = 1) -> SampleSecond:
    return moment._replace(second=moment.second + seconds)


def _wait(moment: SampleSecond) -> int:
    """Return the seconds from a moment to the tone that the question `wait` is about."""
    return 3 + moment.second % 5
