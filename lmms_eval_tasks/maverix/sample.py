"""MAVERIX's packaged sample in our schema: four videos with sound, 20 items, and a key.

    maverix/data.json            20 items (item.py); answers and references are all there
    maverix/videos/lights-N.mp4  N = 1 to 3 of half a minute, 4 of 64 s; 320 x 240, 10 frames a
                                 second, a key frame every 12 s; stereo, 44.1 kHz
    maverix/subtitles/           lights-1.srt, lights-2.vtt, lights-4.json; none for lights-3
    maverix/key.json             {"answers": {open question: reference},
                                  "lures": {open question: wrong answer that looks right},
                                  "choices": {question: text of the right option}}

Every second of every video has its own colours, its own tone (sample/second_code.py) and its own
word, so that whatever reaches a model tells which video and which second it was taken from. Nothing
is spoken: the subtitles' words are their only form. Each question is true because it is made of
that code; what it names occurs once in its video, so that the answer is the same for the segment
and for the whole video. Labels are made up: they are there so that every split has items. The key
is for the demo's oracle and for tests, by text: every question occurs once. No task reads it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lmms_eval_tasks.maverix.labels import LETTERS, N_OPTIONS, SPLITS
from lmms_eval_tasks.sample import render, second_code
from lmms_eval_tasks.sample.second_code import AAC, BAR, NAMES, PALETTE, TICKS, X264

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ALSO = ("labels.py",)  # decides the sample too
VERSION = "packaged sample of lmms-eval-tasks"
VIDEOS = ("lights-1", "lights-2", "lights-3", "lights-4")  # names of the files; 4 is the long one
SECONDS = (30, 30, 32, 64)  # of the videos, 1 to 4: second_code.COUNT in all
SUBTITLES = {1: "srt", 2: "vtt", 4: "json"}  # kind by video
WORD = (0.1, 0.9)  # when a second's word is shown, in seconds after the second began
WIDTH, HEIGHT = 320, 240
RATE = 44_100  # samples a second
LEVELS = (0.5, 0.2)  # peak of the left and of the right channel, full scale is 1
RAMP = 0.005  # seconds at both ends of a tone, so that it does not click


def write(folder: Path) -> None:
    """Write the sample into an existing empty folder.

    Raises:
        MediaError: a video cannot be encoded.
    """
    (folder / "videos").mkdir()
    (folder / "subtitles").mkdir()
    for video, name in enumerate(VIDEOS, 1):
        write_video(video, folder / "videos" / f"{name}.mp4")
        if video in SUBTITLES:
            kind = SUBTITLES[video]
            text = subtitles(video, kind)
            (folder / "subtitles" / f"{name}.{kind}").write_text(text, encoding="utf-8")
    _write_json(folder / "data.json", {"version": VERSION, "items": items()})
    _write_json(folder / "key.json", key())


def write_video(video: int, path: Path) -> None:
    """Draw and encode one video with its sound."""
    render.write_mp4(
        path,
        frames(video),
        TICKS,
        sound(video),
        RATE,
        picture_options=X264,
        sound_options=AAC,
    )


def subtitles(video: int, kind: str) -> str:
    """The subtitle file of a video: one word a second.

    Args:
        video: 1 to 4.
        kind: srt, vtt or json (Whisper's form).
    """
    seconds = range(SECONDS[video - 1])
    cues = [(s + WORD[0], s + WORD[1], f"Word {Moment(video, s).word}.") for s in seconds]
    if kind == "json":
        segments = [
            {"start": round(start, 3), "end": round(end, 3), "text": text}
            for start, end, text in cues
        ]
        return json.dumps({"segments": segments}, indent=1) + "\n"
    mark = "," if kind == "srt" else "."
    blocks = [
        f"{number}\n{_clock(start, mark)} --> {_clock(end, mark)}\n{text}\n"
        for number, (start, end, text) in enumerate(cues, 1)
    ]
    return "\n".join((["WEBVTT\n"] if kind == "vtt" else []) + blocks)


def _clock(seconds: float, mark: str) -> str:
    minutes, milliseconds = divmod(round(seconds * 1000), 60_000)
    whole, rest = divmod(milliseconds, 1000)
    return f"00:{minutes:02}:{whole:02}{mark}{rest:03}"


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


# --- the code of the videos --------------------------------------------------------------------

# fmt: off
_ONES = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
# fmt: on


class Moment(NamedTuple):
    """A second of a video of the sample: `second` s to `second` + 1 s."""

    video: int  # from 1 on
    second: int  # from 0 on

    @property
    def number(self) -> int:
        """Its place among all seconds of the sample, from 0 on."""
        return sum(SECONDS[: self.video - 1]) + self.second

    @property
    def colours(self) -> tuple[str, str]:
        """Names of the colours of the left and of the right half; both change every second."""
        return second_code.colours(self.number)

    @property
    def hertz(self) -> int:
        """Its tone."""
        return second_code.hertz(self.number)

    @property
    def word(self) -> str:
        """What the subtitles say: its number in words."""
        return in_words(self.number)


def in_words(number: int) -> str:
    """0 to 199 in English words."""
    if number >= 100:
        rest = in_words(number - 100) if number > 100 else ""
        return f"one hundred {rest}".strip()
    if number < 20:
        return _ONES[number]
    tens, ones = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_ONES[ones]}" if ones else "")


def frames(video: int) -> Iterator[NDArray[np.uint8]]:
    """Every frame of a video, (HEIGHT, WIDTH, 3): two halves in their colours, a bar below."""
    import numpy as np

    top = round(BAR * HEIGHT)
    for second in range(SECONDS[video - 1]):
        left, right = Moment(video, second).colours
        picture = np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8)
        picture[:top, : WIDTH // 2] = PALETTE[left]
        picture[:top, WIDTH // 2 :] = PALETTE[right]
        for tick in range(TICKS):
            frame = picture.copy()
            frame[top:, : (tick + 1) * WIDTH // TICKS] = 255
            yield frame


def sound(video: int) -> NDArray[np.float32]:
    """The tones of a video, (2, seconds * RATE), in [-1, 1]; the right channel is softer."""
    import numpy as np

    clock = np.arange(RATE) / RATE
    ramp = np.clip(np.minimum(clock, 1 - clock) / RAMP, 0, 1)
    tones = [
        np.sin(2 * np.pi * Moment(video, second).hertz * clock) * ramp
        for second in range(SECONDS[video - 1])
    ]
    return np.outer(LEVELS, np.concatenate(tones)).astype(np.float32)


# --- the items ----------------------------------------------------------------------------------


class Asked(NamedTuple):
    """What one kind of question says about a moment; the first option is right."""

    question: str
    paraphrase: str
    options: list[str]
    reference: str  # with the right option's value in place of {}
    values: tuple[str, str]  # right and wrong


class Plan(NamedTuple):
    """Which question is asked, about which second of which segment; None: of the whole video."""

    kind: str
    video: int
    second: int
    segment: tuple[float | str, float | str] | None


# Segments start and end at odd times, and hold whole all seconds that their question is about.
PLANS = (
    Plan("tone", 1, 5, (3.4, 9.7)),
    Plan("colours", 1, 14, (11.25, 18.6)),
    Plan("next_tone", 1, 21, ("00:19.37", "00:24.81")),
    Plan("word", 1, 26, (23.9, 29.45)),
    Plan("wait", 1, 8, None),
    Plan("pitch", 2, 7, (4.15, 10.85)),
    Plan("tone", 2, 16, ("00:12.65", "00:19.3")),
    Plan("next_colour", 2, 20, (17.45, 23.35)),
    Plan("word", 2, 11, (8.7, 14.2)),
    Plan("colours", 2, 3, (0.55, 6.4)),
    Plan("tone", 3, 9, (6.35, 12.75)),
    Plan("next_tone", 3, 18, (15.8, 22.25)),
    Plan("next_colour", 3, 27, ("00:24.6", "00:31.45")),
    Plan("wait", 3, 2, (1.3, 11.9)),
    Plan("pitch", 3, 23, (20.4, 26.15)),
    Plan("colours", 4, 45, ("00:00:41.37", "00:00:52.9")),
    Plan("word", 4, 33, (30.25, 37.6)),
    Plan("wait", 4, 53, (51.7, 62.35)),
    Plan("tone", 4, 60, ("00:57.45", "01:03.3")),
    Plan("next_tone", 4, 10, None),
)
SHUFFLED = (4, 13)  # items that keep the file's order of their options


def items() -> list[dict[str, Any]]:
    """All items in the form of the file (item.py), their answers in all the forms that it takes."""
    return [_item(number, plan) for number, plan in enumerate(PLANS)]


def key() -> dict[str, Any]:
    """What is right, by text: right options and references, and references that are wrong."""
    choices: dict[str, str] = {}
    answers: dict[str, str] = {}
    lures: dict[str, str] = {}
    for plan in PLANS:
        asked = KINDS[plan.kind](Moment(plan.video, plan.second))
        choices[asked.question] = asked.options[0]
        for text in (asked.question, asked.paraphrase):
            answers[text] = asked.reference.format(asked.values[0])
            lures[text] = asked.reference.format(asked.values[1])
    return {"answers": answers, "lures": lures, "choices": choices}


def _item(number: int, plan: Plan) -> dict[str, Any]:
    asked = KINDS[plan.kind](Moment(plan.video, plan.second))
    place = (3 * number + 2) % N_OPTIONS  # of the right option: every letter occurs in the file
    wrong = asked.options[1:]
    start, end = plan.segment or (None, None)
    return {
        "id": f"{VIDEOS[plan.video - 1]}-q{number + 1:02}",
        "video": VIDEOS[plan.video - 1],
        "start": start,
        "end": end,
        "question": asked.question,
        "paraphrase": asked.paraphrase,
        "options": [*wrong[:place], asked.options[0], *wrong[place:]],
        "answer": (LETTERS[place], place, asked.options[0])[number % 3],
        "reference": asked.reference.format(asked.values[0]),
        **_labels(number, plan),
        "shuffled": number in SHUFFLED,
    }


def _labels(number: int, plan: Plan) -> dict[str, str | None]:
    """Labels in turn, every second one as the paper's title; every other length is left to us."""
    labels: dict[str, str | None] = {}
    for split, known in SPLITS.items():
        if split == "duration":
            continue
        slug = list(known)[number % len(known)]
        labels[split] = known[slug] if number % 2 else slug
    length = "short" if SECONDS[plan.video - 1] < 60 else "middle"
    return {**labels, "duration": length if number % 2 else None}


# --- the kinds of questions -------------------------------------------------------------------


def _others(moment: Moment, count: int = N_OPTIONS - 1) -> list[Moment]:
    """The nearest other seconds of the video, those before and after it in turn."""
    far = sorted(
        (Moment(moment.video, second) for second in range(SECONDS[moment.video - 1])),
        key=lambda other: (abs(other.second - moment.second), other.second),
    )
    return far[1 : count + 1]


def _after(moment: Moment, seconds: int = 1) -> Moment:
    return moment._replace(second=moment.second + seconds)


def _hertz(moment: Moment) -> str:
    return f"{moment.hertz} Hz"


def _sides(moment: Moment) -> str:
    left, right = moment.colours
    return f"{left} on the left and {right} on the right"


def _tone(moment: Moment) -> Asked:
    options = [_hertz(each) for each in (moment, *_others(moment))]
    return Asked(
        f"Which tone sounds while the picture is {_sides(moment)}?",
        f"The picture turns {_sides(moment)}: how high is the tone that goes with it?",
        options,
        f"While the picture is {_sides(moment)}, a tone of {{}} sounds.",
        (options[0], options[1]),
    )


def _colours(moment: Moment) -> Asked:
    options = [_sides(each).capitalize() for each in (moment, *_others(moment))]
    return Asked(
        f"What does the picture look like while the tone of {_hertz(moment)} sounds?",
        f"There is a tone of {_hertz(moment)}. Name the colours that are seen with it.",
        options,
        f"While the tone of {_hertz(moment)} sounds, the picture is {{}}.",
        (_sides(moment), _sides(_others(moment)[0])),
    )


def _next_tone(moment: Moment) -> Asked:
    right = _after(moment)
    others = [each for each in _others(right, N_OPTIONS) if each != moment]
    options = [_hertz(each) for each in (right, *others[: N_OPTIONS - 1])]
    return Asked(
        f"Which tone follows directly after the tone of {_hertz(moment)}?",
        f"When the tone of {_hertz(moment)} is over, how high is the one that comes next?",
        options,
        f"The tone of {_hertz(moment)} is followed by a tone of {{}}.",
        (options[0], options[1]),
    )


def _next_colour(moment: Moment) -> Asked:
    right = _after(moment).colours[0]
    others = [name for name in NAMES if name not in (right, moment.colours[0])]
    options = [name.capitalize() for name in (right, *others[: N_OPTIONS - 1])]
    return Asked(
        f"Which colour does the left half take directly after it was {_sides(moment)}?",
        f"The picture is {_sides(moment)} and then changes. What colour is its left half now?",
        options,
        f"After the picture was {_sides(moment)}, its left half turns {{}}.",
        (right, others[0]),
    )


def _word(moment: Moment) -> Asked:
    options = [each.word.capitalize() for each in (moment, *_others(moment))]
    return Asked(
        f"Which number do the subtitles give while the picture is {_sides(moment)}?",
        f"Read the word that belongs to the picture that is {_sides(moment)}: what number is it?",
        options,
        f"While the picture is {_sides(moment)}, the word is the number {{}}.",
        (moment.word, _others(moment)[0].word),
    )


def _pitch(moment: Moment) -> Asked:
    step = _after(moment).hertz - moment.hertz
    sizes = [abs(step) + more for more in (0, -100, 100, 200)]
    ways = ("rises", "falls") if step > 0 else ("falls", "rises")
    options = [f"It {way} by {size} Hz" for size in sizes for way in ways]
    return Asked(
        f"What does the pitch do at the end of the picture that is {_sides(moment)}?",
        f"The picture is {_sides(moment)}. How does the tone change when the colours change?",
        options,
        f"When the picture that is {_sides(moment)} ends, the pitch {{}}.",
        (f"{ways[0]} by {sizes[0]} Hz", f"{ways[1]} by {sizes[0]} Hz"),
    )


def _wait(moment: Moment) -> Asked:
    right = 3 + moment.second % 5
    later = _after(moment, right)
    seconds = [right, *(n for n in range(1, N_OPTIONS + 1) if n != right)]
    options = [f"{n} second{'s' if n > 1 else ''}" for n in seconds]
    return Asked(
        f"How long after the picture has turned {_sides(moment)} does the tone of "
        f"{_hertz(later)} begin?",
        f"From the first sight of a picture that is {_sides(moment)}, how much time passes until "
        f"the tone of {_hertz(later)} sets in?",
        options,
        f"The tone of {_hertz(later)} begins {{}} after the picture turned {_sides(moment)}.",
        (options[0], options[1]),
    )


KINDS: dict[str, Callable[[Moment], Asked]] = {
    "tone": _tone,
    "colours": _colours,
    "next_tone": _next_tone,
    "next_colour": _next_colour,
    "word": _word,
    "pitch": _pitch,
    "wait": _wait,
}
