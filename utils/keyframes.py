"""Keyframes: which ones a reply selects (paper, C), what a selection is worth, and the knapsack.

Frames are numbered 1..F as they were sampled. A selection is scored against the one set of true
keyframes, index by index (metrics.md, "Keyframes and shots"): these are single-reference numbers,
never TVSum's or SumMe's F1.

A reply's selection is a JSON array. One counts if all it holds are whole numbers, with or without
"Frame" in front, in quotes or not, with or without a comma at the end. Of several the last counts:
models correct themselves. One that is announced as an example or as what was not chosen, or that
stands among other arrays in an array, does not. Without an array the whole reply may be a list of
such numbers. Nothing is ever evaluated, and ranges ("1-5") are not read: an exact number of frames
is asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from lmms_eval_tasks.utils import answers
from lmms_eval_tasks.utils.answers import Reply

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
    reply = answers.shape(text)
    if not reply.there:
        return Frames((), frozenset(), reply.status)
    visible = answers.normalise(reply.text)
    return _selected(reply, _array(visible, strict=True) or _bare(visible), n_frames, k)


def read_headed_frames(reply: Reply, n_frames: int, k: int) -> Frames:
    """The frames behind the last "IMPORTANT FRAMES:" of a joint reply (V2VT).

    Without such a header the last array counts, as other form.

    Args:
        reply: with a text (`answers.shape`).
        n_frames: as for `read_frames`.
        k: likewise.
    """
    visible = answers.normalise(reply.text)
    for header in reversed(list(_HEADER.finditer(visible))[-8:]):
        rest = visible[header.end() :].strip()
        found = _array(rest, strict=False) or _bare(rest) or _bare(rest.partition("\n")[0])
        if found is not None:
            # What stands before the header is the summary; only what follows is too much.
            return _selected(reply, found, n_frames, k)
    found = _array(visible, strict=False)
    return _selected(reply, found and _Given(found.numbers, False, False), n_frames, k)


def _selected(reply: Reply, given: _Given | None, n_frames: int, k: int) -> Frames:
    if given is None:
        # An empty array selects nothing, which must not pay: it is no reply that cannot be read.
        nothing = _EMPTY_ARRAY.search(reply.text)
        status = "empty" if nothing else answers.unread(reply)
        violations = {"nothing_read": 1} if status == "unparsed" else {}
        return Frames((), frozenset(), status, violations)
    known = [number for number in given.numbers if 1 <= number <= n_frames]
    violations = {
        "too_many": max(0, len(given.numbers) - k),
        "too_few": max(0, k - len(given.numbers)),
        "repeated": answers.repeats(given.numbers),
        "out_of_range": len(given.numbers) - len(known),
        "other_form": not given.formed,
        "extra_text": given.extra,
    }
    frames = tuple(dict.fromkeys(known))
    return Frames(frames, frozenset(given.numbers), "ok", answers.nonzero(violations))


def _array(text: str, strict: bool) -> _Given | None:
    """The last array of numbers that states a selection, or None."""
    for match in reversed(list(_ARRAY.finditer(text))):
        before = text[max(0, match.start() - answers.BEFORE) : match.start()]
        after = text[match.end() : match.end() + answers.BEFORE]
        numbers = _numbers(match[1].split(","))
        among = re.search(r"\] ?\n?, ?\n?\Z", before) or re.match(r"\n? ?, ?\n?\[", after)
        if not numbers or among or _NOT_CHOSEN.search(before) or _DENIED_AFTER.match(after):
            continue
        if answers.is_denied(before, after):
            continue
        outside = text[: match.start()] + text[match.end() :]
        formed = _is_json(match[0]) if strict else True
        return _Given(numbers, formed, answers.has_words(outside))
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
    return [answers.number(one["digits"]) * (-1 if one["minus"] else 1) for one in found if one]


def _is_json(array: str) -> bool:
    """Whether an array is JSON of whole numbers, as it was asked for."""
    try:
        values = json.loads(array)
    except ValueError:  # also for numbers of more digits than Python converts
        return False
    return all(type(value) is int for value in values)


# --- what a selection is worth --------------------------------------------------------------------

BUDGET_PERCENT = 15  # of the sampled frames (paper, 3.2, 4.1)


@dataclass(frozen=True)
class Scores:
    """Precision, recall and F1, all in 0..1."""

    precision: float
    recall: float
    f1: float


def precision_recall_f1(predicted: Collection[int], true: Collection[int]) -> Scores:
    """How well a selection meets the true keyframes, one to one by number.

    Args:
        predicted: distinct numbers given; one that no frame has is wrong like any other. Nothing
            selected is worth 0 in all three.
        true: distinct numbers of the true keyframes, at least one.

    Raises:
        ValueError: there is no true keyframe, or a number is repeated.
    """
    chosen, wanted = set(predicted), set(true)
    if not wanted:
        raise ValueError("no true keyframes: recall is undefined, leave the item out")
    if len(chosen) < len(predicted) or len(wanted) < len(true):
        raise ValueError("a frame is repeated; frames count once")
    return _scores(len(chosen & wanted), len(chosen), len(wanted))


def uniform(n_frames: int, k: int) -> list[int]:
    """The middle frames of k equal parts of a video, ascending: floor((2i + 1) F / 2k) + 1.

    Not the ends of the range, as when frames are sampled for a model: the first and last frame are
    often titles, and with k = 1 this would be the first frame again.

    Raises:
        ValueError: not 1 <= k <= F.
    """
    _check(n_frames, k)
    return [(2 * part + 1) * n_frames // (2 * k) + 1 for part in range(k)]


def first(n_frames: int, k: int) -> list[int]:
    """The first k frames.

    Raises:
        ValueError: not 1 <= k <= F.
    """
    _check(n_frames, k)
    return list(range(1, k + 1))


def chance(n_frames: int, n_true: int, k: int) -> Scores:
    """Expected scores of k frames drawn without replacement, with G true ones among F.

    The number of hits is hypergeometric with mean KG/F, and all three are linear in it:
    P = G/F, R = K/F, F1 = 2KG / (F (K + G)).

    Raises:
        ValueError: not 1 <= k <= F, or not 1 <= n_true <= F.
    """
    _check(n_frames, k)
    _check(n_frames, n_true)
    return _scores(k * n_true / n_frames, k, n_true)


def best(n_true: int, k: int) -> Scores:
    """The most that exactly k frames can reach with G true ones: min(K, G) hits.

    Raises:
        ValueError: a number is below 1.
    """
    if min(n_true, k) < 1:
        raise ValueError(f"{k} frames asked for, {n_true} true ones; expected 1 or more of both")
    return _scores(min(n_true, k), k, n_true)


def capacity(n_frames: int, percent: int = BUDGET_PERCENT) -> int:
    """floor(percent of F) in whole numbers: what the frames of key shots may add up to."""
    return n_frames * percent // 100


def knapsack(values: Sequence[int], weights: Sequence[int], capacity: int) -> list[int]:
    """The 0/1 knapsack: places of the items worth most together within the capacity, ascending.

    Exact, by dynamic programming over whole numbers: scale scores first, as with
    `round(score * 10**6)`, so that sums do not depend on rounding and equals are equal. Ties are
    resolved in this order: most value, least weight, the list of places that comes first (earlier
    items win). Items of value 0 are therefore never taken.

    Time and memory grow with items times capacity.

    Args:
        values: of each item, whole numbers, 0 or more.
        weights: of each item, whole numbers, 1 or more.
        capacity: 0 or more.

    Raises:
        ValueError: the lengths differ, or a number is not whole or out of its range.
    """
    if len(values) != len(weights):
        raise ValueError(f"{len(values)} values, {len(weights)} weights")
    given = ((values, 0, "value"), (weights, 1, "weight"), ([capacity], 0, "capacity"))
    for numbers, least, name in given:
        for number in numbers:
            if isinstance(number, bool) or not isinstance(number, int) or number < least:
                raise ValueError(f"{name} {number!r}: expected a whole number, {least} or more")
    # One number for both criteria: weights add up to less than capacity + 1, so value decides.
    gains = [value * (capacity + 1) - weight for value, weight in zip(values, weights, strict=True)]
    best_from = [[0] * (capacity + 1)]  # best_from[-1 - i][room]: most gain of items i, i+1, ...
    for gain, weight in zip(reversed(gains), reversed(weights), strict=True):
        later = best_from[-1]
        best_from.append(
            [
                max(later[room], gain + later[room - weight]) if weight <= room else later[room]
                for room in range(capacity + 1)
            ]
        )
    taken, room = [], capacity
    for place, (gain, weight) in enumerate(zip(gains, weights, strict=True)):
        here, later = best_from[-1 - place], best_from[-2 - place]
        if weight <= room and gain + later[room - weight] == here[room]:
            taken.append(place)
            room -= weight
    return taken


def _scores(hits: float, chosen: int, true: int) -> Scores:
    precision = hits / chosen if chosen else 0.0
    return Scores(precision, hits / true, 2 * hits / (chosen + true))


def _check(n_frames: int, number: int) -> None:
    if not 1 <= number <= n_frames:
        raise ValueError(f"{number} of {n_frames} frames; expected 1 to {n_frames}")
