"""Which clips a reply grounds each sentence to (paper, C), and what these sets are worth.

Numbers are per sentence, then averaged over the sentences of a video (metrics.md, "Keyframes and
shots"). n is the number of clips, g the number of true ones.

A reply's statements ("Summary 2: Clip 1, Clip 4") are read strictly in meaning, not in typography:

- A sentence's statement is what follows its name on the line, or on the lines below if nothing
  does. It may hold one list of clips, with words around it that name no other clip. "Clip 1-3" is
  clips 1, 2 and 3, and counted. "None" grounds the sentence to nothing, and is counted.
- Numbers without "Clip" count if they are all that the statement holds.
- Of several statements on a sentence the last that can be read counts; the others are counted.
- A list that is denied or asked about is not read.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from lmms_eval_tasks.utils.replies import answers

_SENTENCE = r"(?:summary sentence|summary|sentence|summaries)[ _#-]{0,2}"
_PLACE = r"\d+(?!\w|[.,]\d)"
_CLOSED = r"[\"')\]]{0,2} ?"
# At the head of a line, or inside one if a colon or arrow follows.
_HEAD = re.compile(
    rf"(?:^[^\w\n]{{0,6}}(?:\d{{1,3}}[.)] ?)?{_SENTENCE}(?P<id>{_PLACE}){_CLOSED}(?::|=?-?>|=)?"
    rf"|(?<!\w){_SENTENCE}(?P<inner>{_PLACE}){_CLOSED}(?::|=?-?>|=))",
    re.IGNORECASE | re.MULTILINE,
)
_CLIP = r"clips?[ _#-]{0,2}"
_TO = r"(?: ?-{1,2} ?| (?:to|through) )"
# A bare number that a word follows counts something else: "Clip 1, 2 people".
_ENDED = r"(?= ?(?:[,;&+/\n.:!?(-]|and\b|\Z))"
_NUMBERS = rf"\d+(?:{_TO}(?:{_CLIP}\d+|\d+{_ENDED}))?(?!\w|[.,:]\d)"
_ENTRY = rf"(?:{_CLIP})?{_NUMBERS}"
_MORE = rf"(?:(?: ?[,;&+/\n] ?(?:and )?| and )(?:{_CLIP}{_NUMBERS}|{_NUMBERS}{_ENDED}))*"
_NAMED = re.compile(rf"(?<!\w)(?={_CLIP}\d){_ENTRY}{_MORE}", re.IGNORECASE)
_BARE = re.compile(rf"{_ENTRY}{_MORE}", re.IGNORECASE)
_CLIP_NUMBER = re.compile(rf"(?<!\w){_CLIP}\d", re.IGNORECASE)
_RANGE = re.compile(rf"(\d+)(?:{_TO}(?:{_CLIP})?(\d+))?", re.IGNORECASE)
_NONE = re.compile(r"(?:none|no clips?|n/a|no match(?:ing clips?)?|-)", re.IGNORECASE)
_FORM = re.compile(r"^Summary \d+: Clip \d+(?:, Clip \d+)*[ \t\r]*$", re.MULTILINE)


@dataclass(frozen=True)
class Alignment:
    """What a reply grounds.

    Attributes:
        sets: of each sentence 1..m in order, the numbers of the clips given: empty if it has no
            statement. A number that no clip has stays in the set: what was given is scored.
        status: ok (every sentence has a statement); unparsed; empty, refused, truncated or
            model_error with empty sets.
        violations: by kind, those that occurred: `missing` and `unknown` sentences, `repeated`
            statements, `unknown_clips`, `repeated_clips`, `ranges`, `none` statements;
            `other_form` (1: a statement is not written as asked), `extra_text` (1: more than the
            statements), `nothing_read` (1: no statement at all, though it does not refuse).
    """

    sets: tuple[frozenset[int], ...]
    status: str
    violations: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Statement:
    """Clips as given, how many ranges they were written in, and whether other words surround."""

    clips: list[int]
    ranges: int
    extra: bool


def read_alignment(text: str, n_sentences: int, n_clips: int) -> Alignment:
    """The clips that a reply grounds each sentence to.

    Args:
        text: the model's reply, as the host hands it over. No text raises.
        n_sentences: number of sentences asked about, which are numbered 1..m as shown.
        n_clips: number of clips, which are numbered 1..n.
    """
    none = (frozenset[int](),) * n_sentences
    reply = answers.shape(text)
    if not reply.there:
        return Alignment(none, reply.status)
    visible = answers.normalise(reply.text)
    heads = list(_HEAD.finditer(visible))
    ends = [*(head.start() for head in heads), len(visible)][1:]
    counts: Counter[str] = Counter()
    found: dict[int, _Statement] = {}
    extra = answers.has_words(visible[: heads[0].start()] if heads else visible)
    for head, end in zip(heads, ends, strict=True):
        statement, rest = _statement(visible[head.end() : end], n_clips)
        extra = extra or answers.has_words(rest)
        sentence = answers.number(head["id"] or head["inner"])
        if statement is None:
            extra = True
        elif not 1 <= sentence <= n_sentences:
            counts["unknown"] += 1
        else:
            counts["repeated"] += sentence in found
            found[sentence] = statement
    if not found:
        status = answers.unread(reply)
        counts["nothing_read"] = status == "unparsed"
        return Alignment(none, status, answers.nonzero(counts))
    for one in found.values():
        counts["unknown_clips"] += sum(not 1 <= clip <= n_clips for clip in set(one.clips))
        counts["repeated_clips"] += answers.repeats(one.clips)
        counts["ranges"] += one.ranges
        counts["none"] += not one.clips
    counts["missing"] = n_sentences - len(found)
    counts["other_form"] = len(_FORM.findall(reply.text)) < len(found)
    counts["extra_text"] = extra or any(one.extra for one in found.values())
    sets = tuple(
        frozenset(found[sentence].clips) if sentence in found else frozenset()
        for sentence in range(1, n_sentences + 1)
    )
    status = "unparsed" if counts["missing"] else "ok"
    return Alignment(sets, status, answers.nonzero(counts))


def _statement(text: str, n_clips: int) -> tuple[_Statement | None, str]:
    """What follows a sentence's name, and the lines after it that are no part of it."""
    first, _, below = text.lstrip(" ,").partition("\n")
    if answers.has_words(first):
        return _clips(first, n_clips), below
    if first.strip(" \"'[({") == "-":
        return _clips("-", n_clips), below
    lines = below.split("\n")
    own = 0
    while own < len(lines) and _BARE.fullmatch(lines[own].lstrip(" -•").rstrip(" .,;")):
        own += 1
    own = max(own, 1)
    listed = ", ".join(line.lstrip(" -•").rstrip(" .,;") for line in lines[:own])
    return _clips(listed, n_clips), "\n".join(lines[own:])


def _clips(text: str, n_clips: int) -> _Statement | None:
    body = " ".join(re.sub(r"[\"'\[\]{}|]", " ", text).split()).strip("() ")
    bare = body.rstrip(" .,;")
    if _NONE.fullmatch(bare):
        return _Statement([], 0, False)
    match = _BARE.fullmatch(bare) or _NAMED.search(body)
    if match is None:
        return None
    before, after = body[: match.start()], body[match.end() :]
    if _CLIP_NUMBER.search(before) or _CLIP_NUMBER.search(after):
        return None
    if answers.is_denied(before, after):
        return None
    clips: list[int] = []
    ranges = 0
    for start, end in _RANGE.findall(match[0]):
        low = answers.number(start)
        high = answers.number(end) if end else low
        if high < low:
            return None
        # One number stands for all of a range that lie beyond the last clip.
        last = high if not end else min(high, max(low, n_clips + 1))
        clips.extend(range(low, last + 1))
        ranges += bool(end)
    return _Statement(clips, ranges, answers.has_words(before + after))


# --- what the sets are worth ----------------------------------------------------------------------


@dataclass(frozen=True)
class SetScores:
    """F1, intersection over union and Hit@1 (any predicted clip is a true one), all in 0..1."""

    f1: float
    iou: float
    hit: float


def set_scores(predicted: Collection[int], true: Collection[int]) -> SetScores:
    """How well the clips of one sentence are met; nothing predicted is worth 0.

    Args:
        predicted: numbers given; one that no clip has is wrong like any other.
        true: numbers of the true clips. Without one F1 and Hit are 0, and IoU is 1 where nothing is
            predicted either, as in the benchmark's own code.
    """
    given, wanted = set(predicted), set(true)
    return _scores(len(given & wanted), len(given), len(wanted))


def score(predicted: Sequence[Collection[int]], true: Sequence[Collection[int]]) -> SetScores:
    """`set_scores` of each sentence of a video, averaged, each weighing the same."""
    return _mean([set_scores(one, other) for one, other in zip(predicted, true, strict=True)])


def clips_predicted(predicted: Sequence[Collection[int]]) -> float:
    """Mean number of clips given for a sentence: Hit@1 rises with it, whatever they are."""
    return sum(map(len, predicted)) / len(predicted)


def baseline(
    of_sentence: Callable[[int, int], SetScores], true: Sequence[Collection[int]], n_clips: int
) -> SetScores:
    """A baseline of a video: `all_clips`, `one_at_random` or `best`, averaged."""
    return _mean([of_sentence(n_clips, len(set(clips))) for clips in true])


def _mean(scores: Sequence[SetScores]) -> SetScores:
    f1, iou, hit = (
        math.fsum(values) / len(scores)
        for values in zip(*((one.f1, one.iou, one.hit) for one in scores), strict=True)
    )
    return SetScores(f1, iou, hit)


def all_clips(n: int, g: int) -> SetScores:
    """Every clip for the sentence: F1 = 2g/(n + g), IoU = g/n, Hit = 1."""
    return _scores(g, n, g)


def one_at_random(n: int, g: int) -> SetScores:
    """Expected scores of one clip drawn at random: F1 = 2g/(n(1 + g)), IoU = 1/n, Hit = g/n."""
    return SetScores(2 * g / (n * (1 + g)), 1 / n if g else 0.0, g / n)


def best(n: int, g: int) -> SetScores:  # noqa: ARG001 - as the other two are called
    """The true clips themselves, or nothing where there is none."""
    return _scores(g, g, g)


def _scores(hits: int, given: int, true: int) -> SetScores:
    if not given and not true:
        return SetScores(0.0, 1.0, 0.0)
    return SetScores(2 * hits / (given + true), hits / (given + true - hits), float(hits > 0))
