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

import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lmms_eval_tasks.maverix.labels import LETTERS, N_OPTIONS, SPLITS
from lmms_eval_tasks.sample import render, second_code
from lmms_eval_tasks.sample.second_code import AAC, BAR, NAMES, PALETTE, TICKS, X264
from lmms_eval_tasks.utils.media.subtitles import clock

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
        f"{number}\n{clock(start, mark)} --> {clock(end, mark)}\n{text}\n"
        for number, (start, end, text) in enumerate(cues, 1)
    ]
    return "\n".join((["WEBVTT\n"] if kind == "vtt" else []) + blocks)


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


class Plan(NamedTuple):
    """Which question is asked, about which second of which segment; None: of the whole video."""

    kind: str
    video: int
    second: int
    segment: tuple[float | str, float | str] | None


class Asked(NamedTuple):
    """One question in the words of sample_texts_yaml; the first option is right."""

    question: str
    paraphrase: str
    options: list[str]
    reference: str
    lure: str  # a reference that is wrong


SHUFFLED = (4, 13)  # items that keep the file's order of their options


@functools.cache
def texts() -> dict[str, Any]:
    """`kinds` of questions, and `plans` of the items, as in sample_texts_yaml."""
    import yaml

    file = Path(__file__).with_name("sample_texts_yaml")
    content: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return content


def plans() -> list[Plan]:
    """One for each item, in their order."""
    return [Plan(*plan) for plan in texts()["plans"]]


def items() -> list[dict[str, Any]]:
    """All items in the form of the file (item.py), their answers in all the forms that it takes."""
    return [_item(number, plan) for number, plan in enumerate(plans())]


def key() -> dict[str, Any]:
    """What is right, by text: right options and references, and references that are wrong."""
    found: dict[str, dict[str, str]] = {"answers": {}, "lures": {}, "choices": {}}
    for asked in map(_asked, plans()):
        found["choices"][asked.question] = asked.options[0]
        for text in (asked.question, asked.paraphrase):
            found["answers"][text] = asked.reference
            found["lures"][text] = asked.lure
    return found


def _item(number: int, plan: Plan) -> dict[str, Any]:
    asked = _asked(plan)
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
        "reference": asked.reference,
        **_labels(number, plan),
        "shuffled": number in SHUFFLED,
    }


def _labels(number: int, plan: Plan) -> dict[str, str | None]:
    """Labels in turn, every second one as the paper's title; every other length is left to us."""
    labels: dict[str, str | None] = {}
    for split, known in SPLITS.items():
        slug = list(known)[number % len(known)]
        labels[split] = known[slug] if number % 2 else slug
    length = "short" if SECONDS[plan.video - 1] < 60 else "middle"
    return {**labels, "duration": length if number % 2 else None}


def _asked(plan: Plan) -> Asked:
    moment, kind = Moment(plan.video, plan.second), texts()["kinds"][plan.kind]
    shown = {"sides": _sides(moment), "hertz": _hertz(moment)}
    shown["later"] = _hertz(_after(moment, _until(moment))) if plan.kind == "wait" else ""
    values = VALUES[plan.kind](moment)
    options = [kind.get("option", "{}").format(value) for value in values]
    return Asked(
        kind["question"].format(**shown),
        kind["paraphrase"].format(**shown),
        [option[0].upper() + option[1:] for option in options],
        *(kind["reference"].format(value, **shown) for value in values[:2]),
    )


# --- eight values for each kind of question, the right one first -------------------------------


def _others(moment: Moment, count: int = N_OPTIONS - 1) -> list[Moment]:
    """The nearest other seconds of the video, those before and after it in turn."""
    far = sorted(
        (Moment(moment.video, second) for second in range(SECONDS[moment.video - 1])),
        key=lambda other: (abs(other.second - moment.second), other.second),
    )
    return far[1 : count + 1]


def _after(moment: Moment, seconds: int = 1) -> Moment:
    return moment._replace(second=moment.second + seconds)


def _until(moment: Moment) -> int:
    """Seconds from a moment to the tone that `wait` asks for."""
    return 3 + moment.second % 5


def _hertz(moment: Moment) -> str:
    return f"{moment.hertz} Hz"


def _sides(moment: Moment) -> str:
    left, right = moment.colours
    return f"{left} on the left and {right} on the right"


def _around(what: Callable[[Moment], str]) -> Callable[[Moment], list[str]]:
    """What the moment has, and what the seconds around it have."""
    return lambda moment: [what(each) for each in (moment, *_others(moment))]


def _next_tones(moment: Moment) -> list[str]:
    right = _after(moment)
    others = [each for each in _others(right, N_OPTIONS) if each != moment]
    return [_hertz(each) for each in (right, *others[: N_OPTIONS - 1])]


def _next_colours(moment: Moment) -> list[str]:
    right = _after(moment).colours[0]
    others = [name for name in NAMES if name not in (right, moment.colours[0])]
    return [right, *others[: N_OPTIONS - 1]]


def _steps(moment: Moment) -> list[str]:
    step = _after(moment).hertz - moment.hertz
    sizes = [abs(step) + more for more in (0, -100, 100, 200)]
    ways = ("rises", "falls") if step > 0 else ("falls", "rises")
    return [f"{way} by {size} Hz" for size in sizes for way in ways]


def _waits(moment: Moment) -> list[str]:
    right = _until(moment)
    seconds = [right, *(n for n in range(1, N_OPTIONS + 1) if n != right)]
    return [f"{n} second{'s' if n > 1 else ''}" for n in seconds]


VALUES: dict[str, Callable[[Moment], list[str]]] = {
    "tone": _around(_hertz),
    "colours": _around(_sides),
    "next_tone": _next_tones,
    "next_colour": _next_colours,
    "word": _around(lambda moment: moment.word),
    "pitch": _steps,
    "wait": _waits,
}
