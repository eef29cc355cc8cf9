"""Judges' own accuracy on the benchmark from a file: JSON, or CSV of judge,accuracy."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from lmms_eval_tasks.errors import DataError

_FORM = 'expected JSON like {"GPT-4o": 70.8} or CSV with the columns judge,accuracy'


def read(path: Path) -> dict[str, float]:
    """Judge -> accuracy, all in % or all as shares; who uses them checks their range.

    Raises:
        DataError: the file cannot be read, is neither form, or names a judge twice.
    """
    try:
        text = path.expanduser().read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text (byte {error.start})") from None
    pairs = _csv(path, text) if path.suffix.lower() == ".csv" else _json(path, text)
    if not pairs:
        raise DataError(f"{path}: no accuracies; {_FORM}")
    found: dict[str, float] = {}
    for judge, accuracy in pairs:
        if judge in found:
            raise DataError(f"{path}: {judge} is named twice: keep one")
        found[judge] = accuracy
    return found


def _json(path: Path, text: str) -> list[tuple[str, float]]:
    try:
        pairs = json.loads(text, object_pairs_hook=list)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not valid JSON ({error}); {_FORM}") from None
    if not isinstance(pairs, list) or not all(isinstance(pair, tuple) for pair in pairs):
        raise DataError(f"{path}: {_FORM}")
    for judge, accuracy in pairs:
        if isinstance(accuracy, bool) or not isinstance(accuracy, int | float):
            raise DataError(f"{path}: {judge}: {accuracy!r} is no number; {_FORM}")
    return [(judge, float(accuracy)) for judge, accuracy in pairs]


def _csv(path: Path, text: str) -> list[tuple[str, float]]:
    found = []
    for number, row in enumerate(csv.reader(text.splitlines()), 1):
        cells = [cell.strip() for cell in row]
        if not any(cells) or (number == 1 and cells[:2] == ["judge", "accuracy"]):
            continue
        try:
            judge, accuracy = cells
            found.append((judge, float(accuracy)))
        except ValueError:
            raise DataError(f"{path}, line {number}: {','.join(row)!r}; {_FORM}") from None
    return found
