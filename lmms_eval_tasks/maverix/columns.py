"""The column map: how a file with other names and other words becomes one of our schema.

    columns:                      # our field: their name, or a dotted path into their objects
      id: question_id
      start: span.0
      options: [option_a, option_b, ..., option_h]    # eight names also make a list
    values:                       # our field: their value -> ours
      difficulty: {E: easy, M: medium, H: hard}
      answer: {1: A, 2: B, 3: C, 4: D, 5: E, 6: F, 7: G, 8: H}

Fields that the map does not name keep their own names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maverix.item import Item

FILE_NAME = "columns.yml"
FIELDS = tuple(Item.model_fields)

_ABSENT = object()


@dataclass(frozen=True)
class ColumnMap:
    """A validated map; the empty one changes nothing."""

    columns: Mapping[str, str | list[str]] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def apply(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Our fields of one entry; those that it does not have are absent."""
        found: dict[str, Any] = {}
        for name in FIELDS:
            value = _value(entry, self.columns.get(name, name))
            if value is not _ABSENT:
                translated = self.values.get(name, {})
                found[name] = translated.get(_key(value), value)
        return found

    def unused(self, entries: Sequence[Mapping[str, Any]]) -> str | None:
        """The first mapped field whose name no entry has: a misspelt name, not a missing value."""
        return next(
            (
                name
                for name, path in self.columns.items()
                if all(_value(entry, path) is _ABSENT for entry in entries)
            ),
            None,
        )


def read(folder: Path) -> ColumnMap:
    """The map beside a data file; the empty map if there is none.

    Raises:
        DataError: it is not YAML or of another form; names the place.
    """
    import yaml

    file = folder / FILE_NAME
    if not file.is_file():
        if (folder / "columns.yaml").is_file():
            raise DataError(f"{folder}/columns.yaml: is not read; rename it to {FILE_NAME}")
        return ColumnMap()
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        told = " ".join(str(error).split())
        raise DataError(f"{file}: not YAML in UTF-8: {told:.200}") from None
    if not isinstance(content, dict) or set(content) - {"columns", "values"}:
        raise DataError(f"{file}: expected nothing but `columns` and `values`")
    columns, values = content.get("columns") or {}, content.get("values") or {}
    for part, given in (("columns", columns), ("values", values)):
        if not isinstance(given, dict):
            raise DataError(f"{file}, {part}: expected an object by our fields")
        for name in given:
            if name not in FIELDS:
                raise DataError(
                    f"{file}, {part}: {name!r:.60} is no field of ours, which are "
                    f"{', '.join(FIELDS)}"
                )
    for name, path in columns.items():
        if not _is_path(path) and not (name == "options" and _are_paths(path)):
            raise DataError(f"{file}, columns, {name}: expected their name or dotted path, a text")
    for name, table in values.items():
        if not isinstance(table, dict):
            raise DataError(f"{file}, values, {name}: expected an object, their value: ours")
    tables = {name: {_key(theirs): v for theirs, v in t.items()} for name, t in values.items()}
    return ColumnMap(columns, tables)


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


def _is_path(path: Any) -> bool:
    return isinstance(path, str) and bool(path)


def _are_paths(path: Any) -> bool:
    return isinstance(path, list) and bool(path) and all(map(_is_path, path))
