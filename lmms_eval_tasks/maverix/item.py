"""One item of MAVERIX: a question in its two wordings, and how a file may say it in other words.

An item is one of the paper's 852 unique questions: it is asked once with its eight options, and
twice openly, as it stands and as its paraphrase. The schema is ours; the authors' released lines,
three to a question, become items of it (`from_released`).
"""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maverix.labels import LETTERS, N_OPTIONS, SPLITS, duration_class
from lmms_eval_tasks.utils.validation import FileName, Text, told

_CLOCK = re.compile(r"(?:(\d{1,4}):)?(\d{1,4}):([0-5]\d(?:\.\d{1,9})?)")
# Stand for missing options in the released lines, of first and of second questions.
_FILLERS = ("unsure", "nan")
_LETTERED = re.compile(r"\(?([A-H])[.):]\s*(\S.*)", re.DOTALL)


class Item(BaseModel):
    """One unique question. Fields without a default have to be there, `null` where it is allowed.

    Attributes:
        id: unique in the file; whole numbers are taken as text.
        video: name of the video's file, with or without its ending.
        start: seconds of the localized segment, from the video's first frame; or "MM:SS(.fff)" or
            "HH:MM:SS(.fff)". Both null: the whole video is the segment.
        end: likewise.
        question: as asked with the options, and as the first of the two open questions.
        opened: the first of the two open questions, where the file has a text of its own for it.
        borrowed: `opened` is the wording of the video's first question, and this is another one.
        paraphrase: the second open question. Null is an error that says so.
        options: eight texts in the file's order. Letters in front of all of them are taken off.
        answer: index of the right option in the file's order, 0 to 7. A file may give its letter or
            its text instead. Null or absent: withheld.
        reference: answer to the open questions; null or absent: withheld. The right option never
            stands in for it.
        difficulty, agentic, audio, topic, ability, duration: slugs of labels.SPLITS; a file may
            give the paper's titles instead. Null or absent: unlabelled, but for `duration`, which
            then follows from the video's length (data.py).
        more_agentic: slugs or titles of further agentic categories.
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
    more_agentic: tuple[str, ...] = ()
    audio: str | None = None
    topic: str | None = None
    ability: str | None = None
    duration: str | None = None
    shuffled: bool = False

    @field_validator("id", mode="before")
    @classmethod
    def _id(cls, value: Any) -> Any:
        return str(value) if type(value) is int else value

    @field_validator("id")
    @classmethod
    def _on_one_line(cls, value: str) -> str:
        if not value.isprintable():
            raise ValueError("holds a line end or another sign that cannot be printed")
        return value

    @field_validator("start", "end", mode="before")
    @classmethod
    def _seconds(cls, value: Any) -> float | None:
        return None if value is None else seconds(value)

    @field_validator("paraphrase", mode="before")
    @classmethod
    def _paraphrase(cls, value: Any) -> Any:
        if value is None:
            raise ValueError("is missing; each open question is asked in two wordings")
        return value

    @field_validator("options", mode="before")
    @classmethod
    def _options(cls, value: Any) -> Any:
        if not isinstance(value, list):
            raise ValueError(f"expected a list of {N_OPTIONS} texts")
        if len(value) != N_OPTIONS:
            raise ValueError(f"expected {N_OPTIONS} texts, found {len(value)}")
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
    def _further(cls, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise ValueError("expected a list of agentic categories")
        return tuple(label("agentic", one) for one in value)

    @model_validator(mode="after")
    def _consistent(self) -> Item:
        if (self.start is None) != (self.end is None):
            given, absent = ("end", "start") if self.start is None else ("start", "end")
            raise ValueError(f"{given} is given and {absent} is not; null for both is the whole")
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
    elif type(value) in (int, float):
        found = float(value) if abs(value) < 1e9 else math.inf
    if not 0 <= found < math.inf:
        raise ValueError("expected seconds from 0 on, or MM:SS or HH:MM:SS")
    return found


def index_of(answer: Any, options: tuple[str, ...]) -> int:
    """Place of the right option, 0 to 7, from its index (a number), its letter or its text.

    Raises:
        ValueError: none of the options, or two: as a letter and as another option's text.
    """
    if type(answer) is int and 0 <= answer < N_OPTIONS:
        return answer
    found: set[int] = set()
    if isinstance(answer, str):
        text = answer.strip()
        if len(text) == 1 and text.upper() in LETTERS:
            found.add(LETTERS.index(text.upper()))
        lettered = _LETTERED.fullmatch(text)
        texts = {folded(text), *([folded(lettered[2])] if lettered else [])}
        found |= {place for place, option in enumerate(options) if folded(option) in texts}
    if len(found) != 1:
        many = "is a letter and also another option's text: give the index" if found else ""
        raise ValueError(
            many or "is none of the options (a letter A to H, an index 0 to 7, a text)"
        )
    return found.pop()


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


def _labels(split: str) -> dict[str, str]:
    """Slug, title, and title without what stands in brackets -> slug."""
    forms: dict[str, str] = {}
    for slug, title in SPLITS[split].items():
        for form in (slug, title, title.partition(" (")[0]):
            forms[folded(form)] = slug
    return forms


_LABELS = {split: _labels(split) for split in SPLITS}
# Where the released lines' words are not the paper's.
_LABELS["topic"] |= {
    "movies, tv, and animation": "movies",
    "low-quality and extended content": "extended",
}


def _without_letters(options: list[Any], *, each: bool = False) -> list[Any]:
    """The options without the letters in front: of all eight or none, or of each that has its own.

    Args:
        options: eight.
        each: as in the released lines, where the filler of a missing one may have none.
    """
    found = [
        _LETTERED.fullmatch(text.strip()) if isinstance(text, str) else None for text in options
    ]
    own = [match and match[1] == letter for letter, match in zip(LETTERS, found, strict=True)]
    if not each and not all(own):
        return options
    return [
        match[2] if match and is_own else text
        for match, is_own, text in zip(found, own, options, strict=True)
    ]


# --- the released lines -------------------------------------------------------------------------

# Question, and 1 the choice, 2 the open question, 3 its paraphrase.
_LINE = re.compile(r"((\d{4})_\d)-([123])")
_RELEASED_LABELS = {
    "difficulty": "video_type",
    "audio": "audio_category",
    "topic": "sub_category",
    "ability": "task_type",
}
RELEASED_FIELDS = (
    *("question_id", "videoID", "question", "options", "answer", "domain", "duration"),
    *_RELEASED_LABELS.values(),
)


def is_released(entries: Sequence[Mapping[str, Any]]) -> bool:
    """Whether entries are the authors' released lines, by the first one's names and id."""
    first = entries[0] if entries else {}
    return "videoID" in first and bool(_LINE.fullmatch(str(first.get("question_id"))))


def from_released(
    file: Path, lines: Sequence[Mapping[str, Any]], words: Mapping[str, Mapping[str, Any]]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Entries of our schema from the authors' released lines, and what to tell of them.

    Three lines make an item, with the choice's labels. Options keep their order without their
    letters. There are no times: the cut files are the segments. A label that is none of the
    paper's is no reason to lose an item: it has none then, which is told.

    Args:
        file: for messages.
        lines: what it holds.
        words: of a column map: field -> their value -> ours.

    Raises:
        DataError: a line's question_id has another form, or is another line's too.
    """
    parts: dict[str, dict[str, Mapping[str, Any]]] = {}
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(str(line.get("question_id")))
        known = parts.setdefault(match[1], {}) if match else {}
        if match is None or match[3] in known:
            what = "is another line's too" if match else "expected NNNN_q-k, with k from 1 to 3"
            given = str(line.get("question_id"))
            raise DataError(f"{file}, line {number}: question_id {given!r:.40}: {what}")
        known[match[3]] = line
    unknown: Counter[str] = Counter()

    def labels(split: str, given: Any) -> list[str]:
        found = []
        for word in given if isinstance(given, list) else [given]:
            ours = words.get(split, {}).get(_key(word), word)
            try:
                found += [] if ours in (None, "None") else [label(split, ours)]
            except ValueError:
                unknown[f"{split} {word!r:.60}"] += 1
        return found

    entries, answered_twice = [], []
    for name, own in parts.items():
        choice, opened, second = (own.get(part, {}) for part in "123")
        options = choice.get("options")
        if isinstance(options, list) and len(options) == N_OPTIONS:
            options = _without_letters(options, each=True)
        first = parts.get(f"{name[:4]}_1", {})
        agentic = list(dict.fromkeys(labels("agentic", choice.get("domain"))))
        if _text(opened, "answer") != _text(second, "answer"):
            answered_twice.append(name)
        entries.append(
            {
                "id": name,
                "video": choice.get("videoID"),
                "start": None,
                "end": None,
                "question": choice.get("question"),
                # Absent ones are errors of the item.
                "opened": opened.get("question", ""),
                "borrowed": own is not first
                and _text(opened, "question") == _text(first.get("2", {}), "question")
                and _text(choice, "question") != _text(first.get("1", {}), "question"),
                "paraphrase": second.get("question"),
                "options": options,
                "answer": _place(choice.get("answer")),
                "reference": opened.get("answer"),
                "agentic": agentic[0] if agentic else None,
                "more_agentic": agentic[1:],
                "duration": _duration(choice.get("duration")),
                "shuffled": True,
                **{
                    split: next(iter(labels(split, choice.get(theirs))), None)
                    for split, theirs in _RELEASED_LABELS.items()
                },
            }
        )
    notes = [f"{count} items have the unknown label {what}" for what, count in unknown.items()]
    if answered_twice:
        notes.append(
            "questions whose two open wordings have different answers, of which the first one's is "
            f"the reference: {', '.join(answered_twice)}"
        )
    return entries, notes


def _text(line: Mapping[str, Any], name: str) -> str:
    return folded(str(line.get(name)))


def _place(answer: Any) -> Any:
    """The index of a letter, which another option's text may be as well (notes of music)."""
    letter = answer.strip() if isinstance(answer, str) else ""
    return LETTERS.index(letter) if len(letter) == 1 and letter in LETTERS else answer


def _duration(length: Any) -> str | None:
    """The class of the full video's length: that of the cut file is another one."""
    return duration_class(float(length)) if type(length) in (int, float) else None


# --- the column map -----------------------------------------------------------------------------

COLUMNS_FILE = "columns.yml"
FIELDS = tuple(Item.model_fields)

_ABSENT = object()


class ColumnMap(BaseModel):
    """How a file with other names and other words becomes one of our schema.

        columns:                      # our field: their name, or a dotted path into their objects
          id: question_id
          start: span.0
          options: [option_a, option_b, ..., option_h]    # eight names also make a list
        values:                       # our field: their value -> ours
          difficulty: {E: easy, M: medium, H: hard}
          answer: {1: A, 2: B, 3: C, 4: D, 5: E, 6: F, 7: G, 8: H}

    Fields that it does not name keep their own names; the empty one changes nothing.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    columns: dict[str, Any] = Field(default_factory=dict)
    values: dict[str, dict[Any, Any]] = Field(default_factory=dict)

    @field_validator("columns", "values")
    @classmethod
    def _ours(cls, value: dict[str, Any]) -> dict[str, Any]:
        if other := value.keys() - set(FIELDS):
            known = ", ".join(FIELDS)
            raise ValueError(f"{min(other)!r:.60} is no field of ours, which are {known}")
        return value

    @field_validator("columns")
    @classmethod
    def _paths(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name, path in value.items():
            several = path if name == "options" and isinstance(path, list) else [path]
            if not several or not all(isinstance(one, str) and one for one in several):
                raise ValueError(f"{name}: expected their name or dotted path, a text")
        return value

    @field_validator("values")
    @classmethod
    def _keys(cls, value: dict[str, dict[Any, Any]]) -> dict[str, dict[str, Any]]:
        return {name: {_key(their): our for their, our in t.items()} for name, t in value.items()}

    def apply(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Our fields of one entry; those that it does not have are absent."""
        found: dict[str, Any] = {}
        for name in FIELDS:
            value = _value(entry, self.columns.get(name, name))
            if value is not _ABSENT:
                found[name] = self.values.get(name, {}).get(_key(value), value)
        return found

    def names(self) -> set[str]:
        """Top-level names that it reads."""
        own = ([path] if isinstance(path, str) else path for path in self.columns.values())
        paths = itertools.chain.from_iterable(own)
        return {part for path in paths for part in (path, path.partition(".")[0])}

    def unused(self, entries: Sequence[Mapping[str, Any]]) -> str | None:
        """The first mapped field whose name no entry has: a misspelt name, not a missing value."""
        for name, path in self.columns.items():
            if all(_value(entry, path) is _ABSENT for entry in entries):
                return name
        return None


def read_columns(folder: Path) -> ColumnMap:
    """The map beside a data file; the empty map if there is none.

    Raises:
        DataError: it is not YAML or of another form; names the place.
    """
    import yaml

    file = folder / COLUMNS_FILE
    if not file.is_file():
        if (folder / "columns.yaml").is_file():
            raise DataError(f"{folder}/columns.yaml: is not read; rename it to {COLUMNS_FILE}")
        return ColumnMap()
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        why = " ".join(str(error).split())
        raise DataError(f"{file}: not YAML in UTF-8: {why:.200}") from None
    if not isinstance(content, dict) or set(content) - {"columns", "values"}:
        raise DataError(f"{file}: expected nothing but `columns` and `values`")
    try:
        return ColumnMap.model_validate({name: part or {} for name, part in content.items()})
    except ValidationError as error:
        raise DataError(f"{file}, {told(error)}") from None


def _value(entry: Mapping[str, Any], path: str | list[str]) -> Any:
    if isinstance(path, list):
        values = [_value(entry, part) for part in path]
        # Absent ones are left out, so that the item's error says how many options there are.
        kept = [value for value in values if value is not _ABSENT]
        return kept or _ABSENT
    if path in entry:  # a name that holds dots itself
        return entry[path]
    here: Any = entry
    for step in path.split("."):
        if isinstance(here, dict) and step in here:
            here = here[step]
        elif isinstance(here, list) and step.isascii() and step.isdigit() and int(step) < len(here):
            here = here[int(step)]
        else:
            return _ABSENT
    return here


def _key(value: Any) -> str:
    """YAML reads `1` as a number and JSON may have it as text: one key for both."""
    return str(value).strip()
