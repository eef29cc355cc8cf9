"""MAVERIX's data file, the authors' released lines or a form of our own, read into items.

    ROOT/maverix/data.jsonl       the released lines (`_from_released`); or ours:
    ROOT/maverix/data.json        {"version": "...", "items": [...]}, or the list alone (`Item`)
    ROOT/maverix/videos/NAME.mp4  or another known ending (released_files.VIDEO_ENDINGS)
    ROOT/maverix/subtitles/NAME.srt, .vtt or .json
    ROOT/maverix/videos_full, subtitles_full    beside released lines, whose videos are cut

An item is one of the paper's 852 unique questions: it is asked once with its eight options, and
twice openly, as it stands and as its paraphrase. A file of another form stops with the place of its
first error. What is wrong with single items is collected, so that the others can be run where the
user allows it.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator, model_validator

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maverix.labels import LETTERS, N_OPTIONS, SPLITS, duration_class
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.media import subtitles
from lmms_eval_tasks.utils.validation import FileName, Text, good_entries, quoted

# Ours, and the authors'; another one is accepted if it is the only JSON file.
FILE_NAMES = ("data.json", "data.jsonl", "test_full.jsonl")
_CLOCK = re.compile(r"(?:(\d{1,4}):)?(\d{1,4}):([0-5]\d(?:\.\d{1,9})?)")
_LETTERED = re.compile(r"\(?([A-H])[.):]\s*(\S.*)", re.DOTALL)
# Stand for missing options in the released lines, of first and of second questions.
_FILLERS = ("unsure", "nan")


class Item(BaseModel):
    """One unique question. Fields without a default have to be there, `null` where it is allowed.

    Attributes:
        start, end: seconds of the localized segment, from the video's first frame; or
            "MM:SS(.fff)" or "HH:MM:SS(.fff)". Both null: the whole video is the segment.
        question: as asked with the options, and as the first of the two open questions.
        opened: the first of the two open questions, where the file has a text of its own for it.
        borrowed: `opened` is the wording of the video's first question, and this is another one.
        options: in the file's order. Letters in front of most of them are taken off.
        answer: index of the right option in the file's order. A file may give its letter or its
            text instead. Null or absent: withheld.
        reference: answer to the open questions; null or absent: withheld. The right option never
            stands in for it.
        difficulty, agentic, audio, topic, ability, duration: slugs of labels.SPLITS; a file may
            give the paper's titles. Null: unlabelled, but for `duration`, which is measured then.
        more_agentic: further agentic categories.
        shuffled: the file's answers are uniformly spread over the letters already.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    id: Text
    video: FileName
    start: float | None
    end: float | None
    question: Text
    opened: Text | None = None
    borrowed: bool = False
    paraphrase: Text
    options: tuple[Text, ...]
    answer: int | None = None
    reference: Text | None = None
    difficulty: str | None = None
    agentic: str | None = None
    audio: str | None = None
    topic: str | None = None
    ability: str | None = None
    duration: str | None = None
    more_agentic: tuple[str, ...] = ()
    shuffled: bool = False

    @field_validator("id", mode="before")
    @classmethod
    def _id(cls, value: Any) -> Any:
        if isinstance(value, str) and not value.strip().isprintable():
            raise ValueError("holds a line end or another sign that cannot be printed")
        return str(value) if type(value) is int else value

    @field_validator("start", "end", mode="before")
    @classmethod
    def _seconds(cls, value: Any) -> float | None:
        return None if value is None else seconds(value)

    @field_validator("options", mode="before")
    @classmethod
    def _options(cls, value: Any) -> Any:
        if not isinstance(value, list) or len(value) != N_OPTIONS:
            found = f", found {len(value)}" if isinstance(value, list) else ""
            raise ValueError(f"expected a list of {N_OPTIONS} texts{found}")
        return tuple(_without_letters(value))

    @field_validator("options")
    @classmethod
    def _different(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        places: dict[str, str] = {}
        for letter, option in zip(LETTERS, value, strict=True):
            first = places.setdefault(folded(option), letter)
            if first != letter and folded(option) not in _FILLERS:
                raise ValueError(f"{first} and {letter} are the same text")
        return value

    @field_validator("answer", mode="before")
    @classmethod
    def _answer(cls, value: Any, info: ValidationInfo) -> int | None:
        if value is None or "options" not in info.data:  # options have an error of their own
            return None
        return index_of(value, info.data["options"])

    @field_validator(*SPLITS, mode="before")
    @classmethod
    def _label(cls, value: Any, info: ValidationInfo) -> str | None:
        return None if value is None else label(str(info.field_name), value)

    @field_validator("more_agentic", mode="before")
    @classmethod
    def _further(cls, value: Any) -> Any:
        return tuple(label("agentic", o) for o in value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _consistent(self) -> Item:
        if (self.start is None) != (self.end is None):
            raise ValueError("only one of start and end is given; null for both is the whole")
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise ValueError(f"start {self.start:g} is not before end {self.end:g}")
        # What the authors released is asked as it is.
        if self.opened is None and folded(self.question) == folded(self.paraphrase):
            raise ValueError("paraphrase is the question's own text")
        return self


def seconds(value: Any) -> float:
    """Seconds of a number, of "MM:SS(.fff)" or of "HH:MM:SS(.fff)".

    Raises:
        ValueError: another form, negative, infinite or not a number.
    """
    found = math.nan
    if isinstance(value, str) and (match := _CLOCK.fullmatch(value.strip())):
        hours, minutes, rest = match.groups()
        if hours is None or int(minutes) < 60:
            found = int(hours or 0) * 3600 + int(minutes) * 60 + float(rest)
    elif type(value) in (int, float) and abs(value) < 1e9:
        found = float(value)
    if not found >= 0:
        raise ValueError("expected seconds from 0 on, or MM:SS or HH:MM:SS")
    return found


def index_of(answer: Any, options: Sequence[str]) -> int:
    """Place of the right option, 0 to 7, from its index (a number), its letter or its text.

    A single letter is that of an option, also where another option's text is that letter.

    Raises:
        ValueError: none of the options.
    """
    found = answer if type(answer) is int else None
    if isinstance(answer, str):
        text = answer.strip()
        texts = {folded(text), folded(_LETTERED.sub(r"\2", text))}
        named = [place for place, option in enumerate(options) if folded(option) in texts]
        is_letter = len(text) == 1 and text.upper() in LETTERS
        found = LETTERS.index(text.upper()) if is_letter else next(iter(named), None)
    if found is None or not 0 <= found < N_OPTIONS:
        raise ValueError("is none of the options (a letter A to H, an index 0 to 7, a text)")
    return found


def label(split: str, value: Any) -> str:
    """Slug of a label that is given as slug or as the paper's title, in any case.

    Raises:
        ValueError: another label; names those that there are.
    """
    words = value.replace("_", " ").replace("&", "and") if isinstance(value, str) else ""
    slug = _LABELS[split].get(folded(words))
    if slug is None:
        raise ValueError(f"expected one of {', '.join(SPLITS[split])}")
    return slug


def folded(text: str) -> str:
    """`text` as it is compared here: composed, lower case, single blanks, no full stop at its end.

    Weaker than the parser's fold (utils/replies/answers.py), for which "C" and "C#" are one.
    """
    return " ".join(unicodedata.normalize("NFC", text).casefold().split()).removesuffix(".")


# Slug, title, and title without what stands in brackets -> slug.
_LABELS = {
    split: {
        folded(form): slug
        for slug, title in titles.items()
        for form in (slug, title, title.partition(" (")[0])
    }
    for split, titles in SPLITS.items()
}
# Where the released lines' words are not the paper's.
_LABELS["topic"] |= {
    "movies, tv, and animation": "movies",
    "low-quality and extended content": "extended",
}


def _without_letters(options: Sequence[Any]) -> list[Any]:
    """Options without the letters in front ("A. ", "(B) "), where more than half have their own.

    Fillers of missing options may have none.
    """
    bare: list[str | None] = []
    for letter, option in zip(LETTERS, options, strict=True):
        match = _LETTERED.fullmatch(option.strip()) if isinstance(option, str) else None
        bare.append(match[2] if match and match[1] == letter else None)
    expected = [option for option in options if folded(str(option)) not in _FILLERS]
    if 2 * (N_OPTIONS - bare.count(None)) <= len(expected):
        return list(options)
    return [option if own is None else own for option, own in zip(options, bare, strict=True)]


# --- a file of them -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Release:
    """A data file whose good items are validated, and the folder of its videos."""

    file: Path
    digest: str  # first 12 hex digits of the SHA-256 of the content, independent of formatting
    version: str  # the file's own, or ""
    items: tuple[Item, ...]  # the good ones, in the file's order
    problems: Mapping[str, str]  # id of a bad item -> what is wrong with it, in one line
    ignored: tuple[str, ...]  # names in the file that are no field of the schema, sorted
    # The authors' file: videos and subtitles are cut, the full ones have folders of their own.
    released: bool
    notes: tuple[str, ...]  # what else to tell of the file

    @property
    def lengths(self) -> tuple[str, ...]:
        """Of which there are files."""
        return ("localized", "long") if self.released else ("localized",)

    @property
    def videos(self) -> list[str]:
        """Names of the good items' videos, in the file's order."""
        return list(dict.fromkeys(item.video for item in self.items))

    @property
    def borrowed(self) -> list[str]:
        """Ids of good items whose first open wording is that of their video's first question."""
        return [item.id for item in self.items if item.borrowed]

    @property
    def withheld(self) -> dict[str, int]:
        """Good items without an answer, and without a reference: they carry no score."""
        return {
            "answers": sum(item.answer is None for item in self.items),
            "references": sum(item.reference is None for item in self.items),
        }

    def folder(self, name: str, length: str) -> Path:
        """Of videos or subtitles of one length."""
        full = self.released and length == "long"
        return self.file.parent / (f"{name}_full" if full else name)

    def path_of(self, video: str, length: str = "localized") -> Path:
        """Where the file of `video` is, or would be: videos/NAME with its own or a known ending."""
        return released_files.video_path([self.folder("videos", length)], video)

    def subtitles_of(self, video: str, length: str = "localized") -> Path | None:
        """The subtitle file of `video`, srt before vtt before json; None if there is none."""
        folder = self.folder("subtitles", length)
        return subtitles.find(folder, video) or subtitles.find(folder, released_files.stem(video))


def read(path: Path) -> Release:
    """Read and validate a data file, or the one of a folder; kept while the file does not change.

    Raises:
        DataError: not a file of the schema at all, an item without a usable id or with another
            item's id, or not one item that can be used; names the file and the place.
    """
    file = released_files.find_file(path, FILE_NAMES)
    return _read(file, released_files.state(file))


@lru_cache(maxsize=8)
def _read(file: Path, _state: object) -> Release:
    is_lines = file.suffix.lower() == ".jsonl"
    content = released_files.read_table(file) if is_lines else released_files.read_json(file)
    head = content if isinstance(content, dict) else {"items": content}
    entries = head.get("items")
    if not isinstance(entries, list):
        raise DataError(f'{file}: expected {{"version": "...", "items": [...]}} or a list of items')
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict):
            raise DataError(f"{file}, entry {number}: expected an object, found {quoted(entry)}")
    first = entries[0] if entries else {}
    released = "videoID" in first and bool(_LINE.fullmatch(str(first.get("question_id"))))
    ours, notes = _from_released(file, entries) if released else (entries, [])
    items, problems = good_entries(file, ours, Item)
    # Saved runs name this hash; the empty ones stand for a map of columns that there once was.
    canonical = json.dumps([content, {}, {}], sort_keys=True)
    known = _RELEASED_FIELDS if released else {*Item.model_fields}
    return Release(
        file=file,
        digest=hashlib.sha256(canonical.encode()).hexdigest()[:12],
        version=str(head.get("version", "")),
        items=items,
        problems=problems,
        ignored=tuple(sorted({name for entry in entries for name in entry} - known)),
        released=released,
        notes=tuple(notes),
    )


# --- the released lines -------------------------------------------------------------------------

# Question, and 1 the choice, 2 the open question, 3 its paraphrase.
_LINE = re.compile(r"((\d{4})_\d)-([123])")
_RELEASED_LABELS = {
    "agentic": "domain",
    "difficulty": "video_type",
    "audio": "audio_category",
    "topic": "sub_category",
    "ability": "task_type",
}
_RELEASED_FIELDS = {
    *("question_id", "videoID", "question", "options", "answer", "duration"),
    *_RELEASED_LABELS.values(),
}
Line = Mapping[str, Any]


def _from_released(file: Path, lines: Sequence[Line]) -> tuple[list[dict[str, Any]], list[str]]:
    """Entries of our schema from the authors' released lines, and what to tell of them.

    Three lines make an item, with the choice's labels. There are no times: the cut files are the
    segments. A label that is none of the paper's is no reason to lose an item: it has none then,
    which is told.

    Raises:
        DataError: a line's question_id has another form, or is another line's too.
    """
    questions: dict[str, dict[str, Line]] = {}
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(str(line.get("question_id")))
        known = questions.setdefault(match[1], {}) if match else {}
        if match is None or match[3] in known:
            what = "is another line's too" if match else "expected NNNN_q-k, with k from 1 to 3"
            given = str(line.get("question_id"))
            raise DataError(f"{file}, line {number}: question_id {given!r:.40}: {what}")
        known[match[3]] = line
    unknown: Counter[str] = Counter()
    entries = []
    for name, parts in questions.items():
        choice, opened, second = (parts.get(part, {}) for part in "123")
        first = questions.get(f"{name[:4]}_1", {})
        labels = {split: _known(split, choice, unknown) for split in _RELEASED_LABELS}
        # Of the full video: that of the cut file is another one.
        length: Any = choice.get("duration")
        entries.append(
            {
                "id": name,
                "video": choice.get("videoID"),
                "start": None,
                "end": None,
                "question": choice.get("question"),
                "opened": opened.get("question", ""),  # absent ones are errors of the item
                "borrowed": parts is not first
                and _asks(opened) == _asks(first.get("2", {}))
                and _asks(choice) != _asks(first.get("1", {})),
                "paraphrase": second.get("question"),
                "options": choice.get("options"),
                "answer": choice.get("answer"),
                "reference": opened.get("answer"),
                "duration": duration_class(length) if type(length) in (int, float) else None,
                "more_agentic": labels["agentic"][1:],
                "shuffled": True,
                **{split: next(iter(found), None) for split, found in labels.items()},
            }
        )
    return entries, [f"{n} items have the unknown label {what}" for what, n in unknown.items()]


def _asks(line: Line) -> str:
    return folded(str(line.get("question")))


def _known(split: str, line: Line, unknown: Counter[str]) -> list[str]:
    """The slugs of a line's labels of a split, each once; others are counted."""
    given, found = line.get(_RELEASED_LABELS[split]), []
    for word in given if isinstance(given, list) else [given]:
        try:
            found += [] if word in (None, "None") else [label(split, word)]
        except ValueError:
            unknown[f"{split} {word!r:.60}"] += 1
    return list(dict.fromkeys(found))
