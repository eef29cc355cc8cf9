"""Whole files of replies: united, exported, loaded, counted."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges.cache import ABOUT, COMMON, NODE_FILE, Cache, connect, explained
from lmms_eval_tasks.judges.cache_form import reply_of, to_json, unpack

_COUNTED = ("paid_again", "prompt_tokens", "completion_tokens", "unreported")
# Ends of lines to some readers of JSON lines, and halves of characters, which UTF-8 lacks.
_UNSAFE = re.compile("[\x85\u2028\u2029\ud800-\udfff]")


def merge(folder: Path) -> dict[str, dict[str, int]]:
    """Put the replies of all nodes into `replies.sqlite3`: after the run, on one machine.

    May be repeated. Nodes' files stay: one still open somewhere would take its next replies with
    it. Closing also empties a WAL that a killed run left at `replies.sqlite3`, so that nodes can
    read it. Returns counts of `new` and `known` replies for each node's file.

    Raises:
        JudgeError: there is no cache in `folder`, or a file of it cannot be used.
    """
    found = ((NODE_FILE.fullmatch(path.name), path) for path in folder.glob("*.sqlite3"))
    nodes = sorted((int(match[1]), path) for match, path in found if match)
    if not nodes and not (folder / COMMON).exists():
        raise JudgeError(f"{folder}: there is no cache of judges' replies here")
    with closing(Cache(folder / COMMON)) as cache:
        return {path.name: cache.add(_lines(path)) for _, path in nodes}


def export(path: Path, out: TextIO) -> int:
    """Write all replies as JSON lines, in the order of keys, to UTF-8 text; returns their number.

    A line has `key`, `copy` (0: in use, more: paid for again), `reply`, `request` (images as
    `sha256:...`), `criterion`, `judge`, `task`, `stored` (UTC).

    Raises:
        JudgeError: the file cannot be used.
    """
    count = 0
    for line in _lines(path):
        out.write(_UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", to_json(line)) + "\n")
        count += 1
    return count


def load(path: Path, cache: Cache) -> dict[str, int]:
    """Put exported replies into a cache; may be repeated. Counts of `new` and `known` ones.

    Raises:
        JudgeError: a line is none of `export`'s; nothing is taken over then.
    """

    def lines() -> Iterator[dict[str, Any]]:
        number = 0
        try:
            with path.open(encoding="utf-8") as texts:
                for number, text in enumerate(texts, 1):  # noqa: B007 - for the message
                    line = json.loads(text)
                    reply_of(line["reply"])
                    datetime.fromisoformat(line["stored"])
                    if any(not isinstance(line[name], str) for name in ("key", *ABOUT)):
                        raise ValueError("a text is missing")
                    yield {**line, "request": dict(line["request"])}
        except OSError as error:
            raise JudgeError(f"{path}: the export cannot be read ({error.strerror})") from error
        except (ValueError, TypeError, KeyError) as error:
            raise JudgeError(
                f"{path}, line {number}: not an exported reply ({error!r}); nothing was loaded"
            ) from error

    return cache.add(lines())


def summary(path: Path) -> dict[str, Any]:
    """What a cache holds, as counts; a JudgeError if it cannot be used.

    `replies`, of them `paid_again`; `judges`: judge to criterion to replies; `prompt_tokens` and
    `completion_tokens`, and how many replies report none (`unreported`); `bytes` on disk; `first`
    and `last` time (UTC, None if empty).
    """
    counts: Counter[str] = Counter()
    judges: dict[str, Counter[str]] = {}
    times = []
    for line in _lines(path):
        prompt, completion = (
            line["reply"].get(f"{name}_tokens") for name in ("prompt", "completion")
        )
        counts["prompt_tokens"] += prompt or 0
        counts["completion_tokens"] += completion or 0
        counts["unreported"] += prompt is None or completion is None
        counts["paid_again"] += line["copy"] > 0
        judges.setdefault(line["judge"], Counter())[line["criterion"]] += 1
        times.append(line["stored"])
    parts = [file for file in (path, Path(f"{path}-wal")) if file.exists()]
    return {
        "replies": len(times),
        **{name: counts[name] for name in _COUNTED},
        "judges": {judge: dict(criteria) for judge, criteria in judges.items()},
        "bytes": sum(file.stat().st_size for file in parts),
        "first": min(times, default=None),
        "last": max(times, default=None),
    }


def mean_reply_tokens(path: Path, judge: str, criteria: set[str]) -> tuple[float, int] | None:
    """Mean tokens of a judge's replies to some criteria and their number; None if none is there.

    Raises:
        JudgeError: the file cannot be used.
    """
    counts = [
        line["reply"]["completion_tokens"]
        for line in _lines(path)
        if line["judge"] == judge and line["criterion"] in criteria
    ]
    known = [count for count in counts if count is not None]
    return (sum(known) / len(known), len(known)) if known else None


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """All replies of a file as `export` has them, in the order of keys and copies."""
    query = "SELECT key, copy, reply, rest FROM replies ORDER BY key, copy"
    with explained(path), closing(connect(path, "mode=rw")) as file:
        for key, copy, reply, rest in file.execute(query):
            yield {"key": key, "copy": copy, "reply": unpack(reply), **unpack(rest)}
