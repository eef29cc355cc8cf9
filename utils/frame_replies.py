"""Which frames a reply selects: a JSON array of frame numbers (paper, C; metrics.md, "Keyframes").

An array counts if all it holds are whole numbers, with or without "Frame" in front, in quotes or
not, with or without a comma at the end. Of several the last counts: models correct themselves. One
that is announced as an example or as what was not chosen, or that stands among other arrays in an
array, does not. Without an array the whole reply may be a list of such numbers. Nothing is ever
evaluated, and ranges ("1-5") are not read: an exact number of frames is asked for.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from lmms_eval_tasks.utils import answers, reply_shape
from lmms_eval_tasks.utils.reply_shape import Reply

_ARRAY = re.compile(r"\[([^\[\]]*)\]")
_EMPTY_ARRAY = re.compile(r"\[\s{0,20}\]")
_NUMBER = re.compile(
    r"""["']?(?:frames?[ #_-]{0,2})?(?P<minus>-?)(?P<digits>\d+)(?:\.0{1,3})?["']?""",
    re.IGNORECASE,
)
_NOT_CHOSEN = re.compile(
    r"(?:\b(?:examples?|e\.g\.|such as|for instance|excluded|excluding|rejected|discarded|skipped"
    r"|unimportant|less important|except|not(?: \w+)?)\b[^\[\]\n]{0,40}|\b(?:not|no)\b ?)\Z",
    re.IGNORECASE,
)
_DENIED_AFTER = re.compile(r" ?(?:are|is|were|was)(?: not|n't)\b", re.IGNORECASE)
_LABEL = re.compile(r"[^\d\n:]{1,60}:")
_HEADER = re.compile(
    r"\bimportant[ _]frames\b[*_\"' ]{0,6}(?::|$|(?=\[))", re.IGNORECASE | re.MULTILINE
)


@dataclass(frozen=True)
class Frames:
    """What a reply selects.

    Attributes:
        frames: distinct numbers of 1..F in the order given: the frames there are.
        selected: all distinct numbers given. Precision, recall and F1 are over these, as what was
            given is what is scored: a frame that does not exist is a wrong one.
        status: ok; unparsed; empty, refused, truncated or model_error without frames.
        violations: by kind, those that occurred. `too_many` or `too_few`: entries given beyond or
            below K; `repeated`; `out_of_range`; `other_form` (1: not written as asked);
            `extra_text` (1: more than the selection); `nothing_read` (1).
    """

    frames: tuple[int, ...]
    selected: frozenset[int]
    status: str
    violations: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Given:
    """Numbers as given, whether the form is the one asked for, and whether other words surround."""

    numbers: list[int]
    formed: bool
    extra: bool


def read_frames(text: str, n_frames: int, k: int) -> Frames:
    """The frames that a reply selects (V2V).

    Args:
        text: the model's reply, as the host hands it over. No text raises.
        n_frames: F, number of sampled frames, which are numbered 1..F.
        k: K, how many were asked for.
    """
    reply = reply_shape.shape(text)
    if not reply.there:
        return Frames((), frozenset(), reply.status)
    visible = answers.normalise(reply.text)
    return _frames(reply, _array(visible, strict=True) or _bare(visible), n_frames, k)


def read_headed_frames(reply: Reply, n_frames: int, k: int) -> Frames:
    """The frames behind the last "IMPORTANT FRAMES:" of a joint reply (V2VT).

    Without such a header the last array counts, as other form.

    Args:
        reply: with a text (`reply_shape.shape`).
        n_frames: as for `read_frames`.
        k: likewise.
    """
    visible = answers.normalise(reply.text)
    for header in reversed(list(_HEADER.finditer(visible))[-8:]):
        rest = visible[header.end() :].strip()
        found = _array(rest, strict=False) or _bare(rest) or _bare(rest.partition("\n")[0])
        if found is not None:
            # What stands before the header is the summary; only what follows is too much.
            return _frames(reply, found, n_frames, k)
    found = _array(visible, strict=False)
    return _frames(reply, found and _Given(found.numbers, False, False), n_frames, k)


def _frames(reply: Reply, given: _Given | None, n_frames: int, k: int) -> Frames:
    if given is None:
        # An empty array selects nothing, which must not pay: it is no reply that cannot be read.
        nothing = _EMPTY_ARRAY.search(reply.text)
        status = "empty" if nothing else reply_shape.unread(reply)
        violations = {"nothing_read": 1} if status == "unparsed" else {}
        return Frames((), frozenset(), status, violations)
    known = [number for number in given.numbers if 1 <= number <= n_frames]
    violations = {
        "too_many": max(0, len(given.numbers) - k),
        "too_few": max(0, k - len(given.numbers)),
        "repeated": reply_shape.repeats(given.numbers),
        "out_of_range": len(given.numbers) - len(known),
        "other_form": not given.formed,
        "extra_text": given.extra,
    }
    frames = tuple(dict.fromkeys(known))
    return Frames(frames, frozenset(given.numbers), "ok", reply_shape.nonzero(violations))


def _array(text: str, strict: bool) -> _Given | None:
    """The last array of numbers that states a selection, or None."""
    for match in reversed(list(_ARRAY.finditer(text))):
        before = text[max(0, match.start() - reply_shape.BEFORE) : match.start()]
        after = text[match.end() : match.end() + reply_shape.BEFORE]
        numbers = _numbers(match[1].split(","))
        among = re.search(r"\] ?\n?, ?\n?\Z", before) or re.match(r"\n? ?, ?\n?\[", after)
        if not numbers or among or _NOT_CHOSEN.search(before) or _DENIED_AFTER.match(after):
            continue
        if reply_shape.is_denied(before, after):
            continue
        outside = text[: match.start()] + text[match.end() :]
        formed = _is_json(match[0]) if strict else True
        return _Given(numbers, formed, reply_shape.has_words(outside))
    return None


def _bare(text: str) -> _Given | None:
    """A text that is a list of numbers and nothing else, after a label or not."""
    label = _LABEL.match(text)
    body = text[label.end() :] if label else text
    parts = re.split(r",? and |[,;\n]", body.strip().rstrip("."))
    numbers = _numbers([part.strip().removeprefix("- ").removeprefix("• ") for part in parts])
    return _Given(numbers, False, label is not None) if numbers else None


def _numbers(parts: list[str]) -> list[int]:
    """Values of all parts but an empty last one; empty if one is no whole number."""
    parts = [part.strip() for part in parts]
    if parts and not parts[-1]:
        parts.pop()
    found = [_NUMBER.fullmatch(part) for part in parts]
    if not all(found):
        return []
    return [reply_shape.number(one["digits"]) * (-1 if one["minus"] else 1) for one in found if one]


def _is_json(array: str) -> bool:
    """Whether an array is JSON of whole numbers, as it was asked for."""
    try:
        values = json.loads(array)
    except ValueError:  # also for numbers of more digits than Python converts
        return False
    return all(type(value) is int for value in values)
