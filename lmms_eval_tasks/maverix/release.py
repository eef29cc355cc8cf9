"""MAVERIX's data file: the authors' released lines, or our own schema, read into items.

    ROOT/maverix/data.jsonl        the released lines (`_from_released`); or ours:
    ROOT/maverix/data.json         {"version": "...", "items": [...]}, or the list alone (`Item`)
    ROOT/maverix/videos/NAME.mp4   or another known ending (released_files.VIDEO_ENDINGS)
    ROOT/maverix/subtitles/NAME.srt
    ROOT/maverix/videos_full, subtitles_full  beside released lines, whose videos are cut

An item is one of the paper's 852 unique questions. It is asked once with its eight options and
twice openly, in its own words and as a paraphrase. A file of another form is an error whose message
names the first place. Errors in single items are collected, so that the other items can be run if
the user allows it.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maverix.labels import LETTERS, N_OPTIONS, SPLITS, duration_class
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.media import subtitles
from lmms_eval_tasks.utils.released_files import Release
from lmms_eval_tasks.utils.validation import FileName, Text, good_entries, quoted

# Our names, then the authors'.
FILE_NAMES = ("data.json", "data.jsonl", "test_full.jsonl")
# Our name beside the data file, then the released one.
FOLDERS = {"videos": ("videos", "vid"), "subtitles": ("subtitles", "subtitle")}
# Texts in place of missing options in the released lines, for first and for second questions.
_FILLERS = ("unsure", "nan")
# Counts of the full set (paper, Table 1 and Benchmark Design). Each question is asked once with
# eight options and twice openly.
PAPER_COUNTS = {"videos": 700, "questions": 852, "asked": 2556}
ASKED_EACH = 3
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Item(BaseModel):
    """One unique question. What has no default has to be there, `null` where it is allowed."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    id: Text
    video: FileName
    # Seconds of the localized segment, from the video's first frame; both null: the whole video.
    start: Seconds | None
    end: Seconds | None
    question: Text  # wording with the options, and of the first open question
    opened: Text | None = None  # wording of the first open question, if the file has a separate one
    borrowed: bool = False  # True if `opened` is the wording of the video's first question
    paraphrase: Text
    # In the file's order, without letters; `answer` is the right option's letter in this order.
    options: Annotated[list[Text], Field(min_length=N_OPTIONS, max_length=N_OPTIONS)]
    answer: Annotated[str, Field(pattern=f"^[{LETTERS}]$")]
    reference: Text  # reference answer to the open questions
    # Slugs of labels.SPLITS. Null means no label, except for `duration`, which is then measured.
    difficulty: str | None = None
    agentic: str | None = None
    audio: str | None = None
    topic: str | None = None
    ability: str | None = None
    duration: str | None = None
    shuffled: bool = False  # True if the file already spreads right options evenly over the letters

    @field_validator("options")
    @classmethod
    def _different(cls, value: list[str]) -> list[str]:
        places: dict[str, str] = {}
        for letter, option in zip(LETTERS, value, strict=True):
            first = places.setdefault(folded(option), letter)
            if first != letter and folded(option) not in _FILLERS:
                raise ValueError(f"{first} and {letter} are the same text")
        return value

    @field_validator(*SPLITS)
    @classmethod
    def _label(cls, value: str | None, info: ValidationInfo) -> str | None:
        known = SPLITS[str(info.field_name)]
        if value is not None and value not in known:
            raise ValueError(f"expected one of {', '.join(known)}")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Item:
        if (self.start is None) != (self.end is None):
            raise ValueError(
                "only one of start and end is given; null for both stands for the whole video"
            )
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise ValueError(f"start {self.start:g} is not before end {self.end:g}")
        # Released questions are used without this check.
        if self.opened is None and folded(self.question) == folded(self.paraphrase):
            raise ValueError("paraphrase equals the question")
        return self


def folded(text: str) -> str:
    """Return a text in the form in which texts are compared here.

    That is Unicode NFC in lower case, with single blanks and without a full stop at the end. This
    is weaker than `fold` in utils/replies/answers.py, for which "C" and "C#" are equal.
    """
    return " ".join(unicodedata.normalize("NFC", text).casefold().split()).removesuffix(".")


# --- a file of them -----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class MaverixRelease(Release):
    """A data file with its validated items, and the folder of its videos."""

    items: tuple[Item, ...]  # the valid items, in the file's order
    # True for the authors' file: its videos and subtitles are cut, and the full ones lie in folders
    # of their own.
    released: bool
    notes: tuple[str, ...]  # further facts about the file

    @property
    def n_records(self) -> int:
        """The number of valid items."""
        return len(self.items)

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of videos, of questions, of times they are asked, and of invalid items."""
        return {
            "videos": len(self.videos),
            "questions": len(self.items),
            "asked": len(self.items) * ASKED_EACH,
            "bad_items": len(self.problems),
        }

    @property
    def files(self) -> dict[str, Path]:
        """The data file and the existing subtitles, by their paths below the benchmark's folder."""
        there = dict(self.data_files)
        for length in self.lengths:
            folder = self.folder("subtitles", length).name
            found = (self.subtitles_of(video, length) for video in self.videos)
            there |= {f"{folder}/{path.name}": path for path in found if path is not None}
        return there

    @property
    def lengths(self) -> tuple[str, ...]:
        """The lengths of video that have their own files."""
        return ("localized", "long") if self.released else ("localized",)

    @property
    def videos(self) -> list[str]:
        """Names of the valid items' videos, in the file's order."""
        return list(dict.fromkeys(item.video for item in self.items))

    @property
    def borrowed(self) -> list[str]:
        """Ids of valid items whose first open wording is that of their video's first question."""
        return [item.id for item in self.items if item.borrowed]

    def folder(self, name: str, length: str, form: int = 0) -> Path:
        """Return the folder of videos or subtitles of a length.

        Args:
            name: a key of FOLDERS.
            length: `localized` or `long`.
            form: index of the folder's name in FOLDERS.
        """
        full = "_full" if self.released and length == "long" else ""
        return self.place.parent / f"{FOLDERS[name][form]}{full}"

    def path_of(self, video: str, length: str = "localized") -> Path:
        """Return the path of a video, which may be missing: videos/NAME with a known ending."""
        return released_files.video_path(
            [self.folder("videos", length, form) for form in (0, 1)], video
        )

    def subtitles_of(self, video: str, length: str = "localized") -> Path | None:
        """Return the subtitle file of a video; None if there is none."""
        folders = [self.folder("subtitles", length, form) for form in (0, 1)]
        names = (video, released_files.stem(video))
        found = (subtitles.find_subtitles(folder, name) for folder in folders for name in names)
        return next(filter(None, found), None)


def read_maverix(path: Path) -> MaverixRelease:
    """Read and validate a data file, or the data file in a folder, cached while it does not change.

    Raises:
        DataError: the file does not follow the schema, an item has no usable id or another item's
            id, or no item is valid. The message names the file and the place.
    """
    file = released_files.find_file(path, FILE_NAMES)
    return _read(file, released_files.state(file))


@lru_cache(maxsize=8)
def _read(file: Path, _state: object) -> MaverixRelease:
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
    # Saved runs hold this hash; the empty values stand for a map of columns in earlier versions.
    canonical = json.dumps([content, {}, {}], sort_keys=True)
    digest = hashlib.sha256(canonical.encode()).hexdigest()[:12]
    return MaverixRelease(
        place=file,
        data_files={f"data{file.suffix.lower()}": file},
        digest=digest,
        problems=problems,
        items=items,
        released=released,
        notes=tuple(notes),
    )


# --- the released lines -------------------------------------------------------------------------

# The question's id, then 1 for the choice, 2 for the open question, 3 for its paraphrase.
_LINE = re.compile(r"((\d{4})_\d)-([123])")
_RELEASED_LABELS = {
    "agentic": "domain",
    "difficulty": "video_type",
    "audio": "audio_category",
    "topic": "sub_category",
    "ability": "task_type",
}
# The paper's title -> slug, and titles that the released lines write otherwise.
_SLUGS = {split: {folded(t): slug for slug, t in own.items()} for split, own in SPLITS.items()}
_SLUGS["topic"] |= {
    "movies, tv, and animation": "movies",
    "low-quality and extended content": "extended",
}
Line = Mapping[str, Any]


def _from_released(file: Path, lines: Sequence[Line]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return entries of our schema from the authors' released lines, and notes about them.

    Three lines form an item, which has the labels of its choice line. There are no times, because
    the cut files are the segments. A label that the paper does not have is dropped with a note; the
    item stays.

    Raises:
        DataError: a line's question_id has another form, or occurs twice.
    """
    questions: dict[str, dict[str, Line]] = {}
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(str(line.get("question_id")))
        known = questions.setdefault(match[1], {}) if match else {}
        if match is None or match[3] in known:
            what = (
                "occurs in another line too" if match else "expected NNNN_q-k, with k from 1 to 3"
            )
            given = str(line.get("question_id"))
            raise DataError(f"{file}, line {number}: question_id {given!r:.40}: {what}")
        known[match[3]] = line
    unknown: Counter[str] = Counter()
    entries = []
    for name, parts in questions.items():
        choice, opened, second = (parts.get(part, {}) for part in "123")
        first = questions.get(f"{name[:4]}_1", {})
        # The duration of the full video, which differs from the cut file's.
        length: Any = choice.get("duration")
        entries.append(
            {
                "id": name,
                "video": choice.get("videoID"),
                "start": None,
                "end": None,
                "question": choice.get("question"),
                "opened": opened.get("question", ""),  # an absent text becomes an error of the item
                "borrowed": parts is not first
                and _asks(opened) == _asks(first.get("2", {}))
                and _asks(choice) != _asks(first.get("1", {})),
                "paraphrase": second.get("question"),
                "options": _bare(choice.get("options")),
                "answer": choice.get("answer"),
                "reference": opened.get("answer"),
                "duration": duration_class(length) if type(length) in (int, float) else None,
                "shuffled": True,
                **{split: _label_of(split, choice, unknown) for split in _RELEASED_LABELS},
            }
        )
    return entries, [f"{n} items have the unknown label {what}" for what, n in unknown.items()]


def _asks(line: Line) -> str:
    return folded(str(line.get("question")))


def _bare(options: Any) -> Any:
    """Return options without the letters in front of them; a filler may have no letter."""
    if not isinstance(options, list) or len(options) != N_OPTIONS:
        return options  # the item's validation reports this
    return [
        option.removeprefix(f"{letter}. ") if isinstance(option, str) else option
        for letter, option in zip(LETTERS, options, strict=True)
    ]


def _label_of(split: str, line: Line, unknown: Counter[str]) -> str | None:
    """Return the slug of a line's label in a split; an unknown label gives None and is counted.

    Of several agentic categories the first one counts, as in the authors' code.
    """
    given = line.get(_RELEASED_LABELS[split])
    word = next(iter(given), None) if isinstance(given, list) else given
    if word in (None, "None"):
        return None
    slug = _SLUGS[split].get(folded(str(word).replace("_", " ").replace("&", "and")))
    if slug is None:
        unknown[f"{split} {word!r:.60}"] += 1
    return slug
