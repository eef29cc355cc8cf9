"""Errors that pydantic finds in a user's file, in plain words."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, StringConstraints, ValidationError

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.json_files import Json, digest
from lmms_eval_tasks.utils.released_files import Release

_MAX_TOLD = 3  # problems of an entry in one message
_SHOWN = 60  # characters of a value in a message
_LONGEST_NAME = 240  # bytes; file systems allow 255 with the ending
# Plain words for pydantic's errors, by the error's type; with values of its context.
_IN_WORDS = {
    "missing": "the field is missing",
    "extra_forbidden": "no such field",
    "unexpected_keyword_argument": "no such name",
    "string_type": "expected a text",
    "string_too_short": "expected a text, found an empty one",
    "string_unicode": "holds half of a character (a lone surrogate)",
    "int_type": "expected a whole number",
    "bool_type": "expected true or false",
    "list_type": "expected a list",
    "tuple_type": "expected a list",
    "dict_type": "expected an object",
    "model_type": "expected an object",
    "model_attributes_type": "expected an object",
    "greater_than_equal": "expected {ge} or more",
    "too_short": "expected at least {min_length}, found {actual_length}",
    "too_long": "expected at most {max_length}, found {actual_length}",
}


def without_folder(name: str) -> str:
    """Return a file's name if it has no folder and fits on a disk; "" passes too.

    Raises:
        ValueError: it has a folder, a line end or too many bytes.
    """
    leads = "/" in name or "\\" in name or name in (".", "..")
    if leads or not name.isprintable() or len(name.encode()) > _LONGEST_NAME:
        raise ValueError("expected a name on one line, without a folder")
    return name


Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
FileName = Annotated[Text, AfterValidator(without_folder)]  # with or without an ending
M = TypeVar("M", bound=BaseModel)


def good_entries(
    file: Path, entries: Sequence[Json], model: type[M]
) -> tuple[tuple[M, ...], dict[str, str]]:
    """Return the valid entries of a file, in order, and the errors of the others, by id.

    Args:
        file: for messages.
        entries: the file's content.
        model: the model of an entry; its first field is `id`.

    Raises:
        DataError: an entry has no usable id or another entry's id, or no entry is valid; names the
            place.
    """
    good: list[M] = []
    problems: dict[str, str] = {}
    places: dict[str, int] = {}
    if not entries:
        raise DataError(f"{file}: no entries")
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict):
            raise DataError(f"{file}, entry {number}: expected an object, found {quoted(entry)}")
        try:
            good.append(model.model_validate(entry))
        except ValidationError as error:
            if error.errors()[0]["loc"] == ("id",):
                raise DataError(f"{file}, entry {number}: {validation_problems(error)}") from None
            problems[str(entry["id"]).strip()] = validation_problems(error, _MAX_TOLD)
        name = str(entry["id"]).strip()
        if name in places:
            raise DataError(
                f"{file}, entry {number}: id {quoted(name)} is also the id of entry {places[name]}"
            )
        places[name] = number
    if not good:
        first, why = next(iter(problems.items()))
        fits = f"none of {len(entries)} entries fits the schema"
        raise DataError(f"{file}: {fits}; {quoted(first)}: {why}")
    return tuple(good), problems


@dataclass(frozen=True, kw_only=True)
class Rows(Release, Generic[M]):
    """A data file that is a list of rows, each valid or invalid by itself."""

    rows: tuple[M, ...]  # the valid ones, in the file's order

    @property
    def n_records(self) -> int:
        """The number of valid rows."""
        return len(self.rows)

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of valid and invalid rows."""
        return {"rows": len(self.rows), "bad_rows": len(self.problems)}


def read_rows(place: Path, names: Sequence[str], model: type[M]) -> Rows[M]:
    """Read a list of rows (JSON, JSON Lines, CSV or parquet) and validate each.

    Args:
        place: a folder, or the data file itself.
        names: file names; the first one that exists in a folder is read.
        model: the model of a row; its first field is `id`.

    Raises:
        DataError: there is no such file, it is no list, or no row is valid; names the place.
    """
    file = released_files.find_file(place, names)
    entries = released_files.read_table(file)
    rows, problems = good_entries(file, entries, model)
    return Rows(
        place=file,
        data_files={file.name: file},
        digest=digest(entries),
        problems=problems,
        rows=rows,
    )


def validation_problems(error: ValidationError, most: int = 1) -> str:
    """Return the first `most` errors of a validation in one line, each with its place."""
    lines = []
    for one in error.errors(include_url=False)[:most]:
        # A union's error names the type that was tried last, which is no place in the file.
        steps = [step for step in one["loc"] if step not in ("int", "str")]
        place = ", ".join(f"entry {s + 1}" if isinstance(s, int) else str(s) for s in steps)
        what = one["msg"].removeprefix("Value error, ")  # prefix of errors of our validators
        if words := _IN_WORDS.get(one["type"]):
            what = words.format_map(one.get("ctx", {}))
        is_short = isinstance(one["input"], str | int | float)
        if (is_short or one["type"].endswith("_type")) and ", found " not in what:
            what += f", found {quoted(one['input'])}"
        lines.append(f"{place}: {what}" if place else what)
    return "; ".join(lines)


_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxlist, _SHORT.maxdict, _SHORT.maxstring = 3, _SHOWN, _SHOWN, 2 * _SHOWN


def quoted(value: object) -> str:
    """Return a value for a message, shortened: YAML aliases may stand for a billion words."""
    shown = _SHORT.repr(value) if isinstance(value, list | dict) else repr(value)
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 3]}..."
