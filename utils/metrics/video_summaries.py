"""A video's summary, as text and as keyframes: what a reply gives, what a selection is worth (C).

A text summary has a form: "SUMMARY:" and numbered sentences. They are kept as written, without
numbers and marks of emphasis. The last "SUMMARY:" that is followed by sentences counts; what
"IMPORTANT FRAMES:" or "TASK 2" begins is no part of it. The format's own placeholders ("1.
[sentence 1]") are no sentences.

Frames are numbered 1..F as they were sampled. A reply's selection is a JSON array. One counts if
all it holds are whole numbers, with or without "Frame" in front, in quotes or not, with or without
a comma at the end. Of several the last counts: models correct themselves. One that is announced as
an example or as what was not chosen, or that stands among other arrays in an array, does not.
Without an array the whole reply may be a list of such numbers. Nothing is ever evaluated, and
ranges ("1-5") are not read: an exact number of frames is asked for.

A selection is scored against the one set of true keyframes, index by index (metrics.md, "Keyframes
and shots"): these are single-reference numbers, never TVSum's or SumMe's F1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, field

from lmms_eval_tasks.utils.replies import answers
from lmms_eval_tasks.utils.replies.answers import Reply

# --- the text summary -----------------------------------------------------------------------------

# A line of its own or the head of one, in any case; inside a line only in capitals.
_HEADER = re.compile(
    r"^[^a-zA-Z0-9\n]{0,12}(?i:(?:task ?\d{1,2}[ :.–—-]{0,6})?(?:(?:video|text) )?summary)"
    r"[*_\"']{0,3} ?(?::[*_]{0,3}|$)|\b(?:VIDEO )?SUMMARY[*_]{0,3}:[*_]{0,3}",
    re.MULTILINE,
)
_NEXT_PART = re.compile(
    r"(?i:\bimportant[ _]frames\b[*_\"' ]{0,6}(?::|$|(?=\[)))|\bTASK ?2\b"
    r"|^[^a-zA-Z0-9\n]{0,12}(?i:task ?2)\b"
    r"|^[^\w\n\[]{0,6}\[(?i:[\d ,\"'#]|frames?){1,9999}\][^\w\n]{0,6}$",  # an array by itself
    re.MULTILINE,
)
_MARK = r"[*_]{0,3}\(?(?:[Ss]entence )?(\d{1,3})[*_]{0,3}[.):]\)?[*_]{0,3}"
_NUMBERED = re.compile(rf"^[ \t]{{0,8}}(?:[-•#>] ?)?{_MARK}(?:[ \t]+|$)", re.MULTILINE)
_INLINE = re.compile(rf"(?:^|(?<=[\s.!?;:\]])){_MARK}\s")
_BULLET = re.compile(r"^[ \t]{0,8}[-•*][ \t]+", re.MULTILINE)
_PLACEHOLDER = re.compile(
    r"\[[^\[\]]{0,80}\][\s.…]{0,8}|[\s.…]{1,8}|sentence \d{1,3}", re.IGNORECASE
)
_END = re.compile(r"(?<=[.!?])[\"')\]]{0,2}\s+|(?<=[。！？])\s*")


@dataclass(frozen=True)
class Summary:
    """What a reply says of the video.

    Attributes:
        sentences: in order, as written; empty unless something was read.
        status: ok; unparsed; empty, refused, truncated or model_error without sentences.
        violations: by kind, those that occurred: `too_many_sentences` or `too_few_sentences`, by
            how many; `other_form` (1: no header, or sentences without numbers); `placeholder`
            (lines of the format itself); `extra_text` (1: text after the last sentence);
            `nothing_read` (1).
    """

    sentences: tuple[str, ...]
    status: str
    violations: dict[str, int] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The summary in one line, for metrics of a whole text."""
        return " ".join(self.sentences)


@dataclass(frozen=True)
class _Block:
    """Sentences as found in a block of text."""

    sentences: list[str]
    placeholders: int
    numbered: bool
    extra: bool


def read_summary(text: str, n_sentences: int | None = None) -> Summary:
    """The summary of a reply in the form "SUMMARY:" and numbered sentences (V2T text proxy).

    Without the header the numbered sentences count, and without numbers the whole text does.

    Args:
        text: the model's reply, as the host hands it over. No text raises.
        n_sentences: how many were asked for; None to count no violation of it.
    """
    reply = answers.shape(text)
    if reply.status != "ok":  # a refusal would otherwise be taken for a summary
        return Summary((), reply.status)
    return _summary(reply, n_sentences, prose=True)


def _summary(reply: Reply, n_sentences: int | None, prose: bool) -> Summary:
    text = answers.plain_lines(reply.text)
    headers = list(_HEADER.finditer(text))[-8:]
    ends = [*(header.start() for header in headers), len(text)][1:]
    blocks = [
        _block(_own_part(text[header.end() : end]), prose=True)
        for header, end in zip(headers, ends, strict=True)
    ]
    block = next((one for one in reversed(blocks) if one.sentences), None)
    headed = block is not None
    placeholders = sum(one.placeholders for one in blocks) if block is None else block.placeholders
    if block is None and not headers:
        block = _block(_own_part(text), prose)
        placeholders = block.placeholders
    if block is None or not block.sentences:
        status = answers.unread(reply)
        counts = {"nothing_read": 1, "placeholder": placeholders} if status == "unparsed" else {}
        return Summary((), status, answers.nonzero(counts))
    found, asked = len(block.sentences), n_sentences or len(block.sentences)
    violations = {
        "too_many_sentences": max(0, found - asked),
        "too_few_sentences": max(0, asked - found),
        "other_form": not (headed and block.numbered),
        "placeholder": placeholders,
        "extra_text": block.extra,
    }
    return Summary(tuple(block.sentences), "ok", answers.nonzero(violations))


def _own_part(text: str) -> str:
    """A block up to where the frames' part begins."""
    end = _NEXT_PART.search(text)
    return (text[: end.start()] if end else text).strip().rstrip(" \n*_#-–—")


def _block(text: str, prose: bool) -> _Block:
    """Sentences of a block: numbered ones, else items of a list, else those of prose."""
    marks = list(_NUMBERED.finditer(text))
    if len(marks) < 2:
        row = _in_a_row(text)
        # One "1." inside prose ends a sentence ("... in game 1. Then ...") and begins none.
        marks = row if len(row) > 1 or (row and not text[: row[0].start()].strip()) else marks
    numbered = bool(marks)
    extra = False
    if marks:
        ends = [*(mark.start() for mark in marks[1:]), len(text)]
        parts = [text[mark.end() : end] for mark, end in zip(marks, ends, strict=True)]
        last, _, after = parts[-1].strip().partition("\n\n")
        parts[-1], extra = last, answers.has_words(text[: marks[0].start()] + after)
    elif not prose:
        parts = []
    elif len(bullets := _BULLET.split(text)) > 1:
        parts, extra = bullets[1:], answers.has_words(bullets[0])
    else:
        parts = _END.split(text)
    texts = [_clean(part) for part in parts]
    found = [part for part in texts if answers.has_words(part)]
    sentences = [part for part in found if not _PLACEHOLDER.fullmatch(part)]
    return _Block(sentences, len(found) - len(sentences), numbered, extra)


def _in_a_row(text: str) -> list[re.Match[str]]:
    """Marks 1, 2, 3, ... that follow each other inside lines; other numbers are the sentences'."""
    marks: list[re.Match[str]] = []
    for mark in _INLINE.finditer(text):
        if answers.number(mark[1]) == len(marks) + 1:
            marks.append(mark)
    return marks


def _clean(text: str) -> str:
    """A sentence in one line, without marks of emphasis."""
    return " ".join(re.sub(r"\*\*|__|`", "", text).split()).strip("*_ ")


# --- the keyframes ------------------------------------------------------------------------------

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
_FRAMES_HEADER = re.compile(
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


def read_joint(
    text: str, n_frames: int, k: int, n_sentences: int | None = None
) -> tuple[Summary, Frames]:
    """Summary and frames of a reply to the joint task (V2VT), with pictures or descriptions.

    Each has its own status and violations. Without the header "SUMMARY:" only numbered sentences
    are a summary; without "IMPORTANT FRAMES:" the last array counts, as other form.

    Args:
        text: the model's reply, as the host hands it over. No text raises.
        n_frames: F, number of sampled frames, which are numbered 1..F.
        k: K, how many frames were asked for.
        n_sentences: as for `read_summary`.
    """
    reply = answers.shape(text)
    if not reply.there:
        return Summary((), reply.status), Frames((), frozenset(), reply.status)
    return _summary(reply, n_sentences, prose=False), _headed_frames(reply, n_frames, k)


def _headed_frames(reply: Reply, n_frames: int, k: int) -> Frames:
    """The frames behind the last "IMPORTANT FRAMES:"; without it those of the last array."""
    visible = answers.normalise(reply.text)
    for header in reversed(list(_FRAMES_HEADER.finditer(visible))[-8:]):
        rest = visible[header.end() :].strip()
        found = _array(rest, strict=False) or _bare(rest) or _bare(rest.partition("\n")[0])
        if found is not None:
            # What stands before the header is the summary; only what follows is too much.
            return _selected(reply, found, n_frames, k)
    found = _array(visible, strict=False)
    return _selected(reply, found and _Given(found.numbers, False, False), n_frames, k)


_INTEGERS = re.compile(r"\[[0-9,\s]+\]")
_IMPORTANT = re.compile(r"important frames\s*:\s*\[?([^\]\n]+)", re.IGNORECASE)


def read_leniently(text: str, n_frames: int, k: int | None) -> tuple[int, ...]:
    """The frames of a reply as the benchmark's own scoring takes them (README): in the order given.

    Frames that there are, each once. Alone (V2V) the first JSON array of integers counts, or all
    integers of the reply, of which the first k; in a joint reply those behind the first
    "IMPORTANT FRAMES:", all of them. Reasoning is no part of a reply here either.

    Args:
        text: the model's reply, as the host hands it over. No text raises.
        n_frames: F, number of sampled frames.
        k: how many count; None for a joint reply.
    """
    reply = answers.shape(text)
    found = (_INTEGERS if k is not None else _IMPORTANT).search(reply.text)
    if k is None:
        digits = re.findall(r"[0-9]+", found[1]) if found else []
    else:
        listed = found[0] if found and _is_json(found[0]) else reply.text
        digits = re.findall(r"\b[0-9]+\b", listed)
    numbers = map(answers.number, digits)
    return tuple(dict.fromkeys(one for one in numbers if 1 <= one <= n_frames))[:k]


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


@dataclass(frozen=True)
class Scores:
    """Precision, recall and F1, all in 0..1."""

    precision: float
    recall: float
    f1: float


def precision_recall_f1(predicted: Collection[int], true: Collection[int]) -> Scores:
    """How well a selection meets the true keyframes, one to one by number.

    Args:
        predicted: numbers given; one that no frame has is wrong like any other. Nothing selected is
            worth 0 in all three.
        true: numbers of the true keyframes, at least one: without, recall is undefined.
    """
    chosen, wanted = set(predicted), set(true)
    return _scores(len(chosen & wanted), len(chosen), len(wanted))


def uniform(n_frames: int, k: int) -> list[int]:
    """The middle frames of k equal parts of a video, ascending: floor((2i + 1) F / 2k) + 1.

    Not the ends of the range, as when frames are sampled for a model: the first and last frame are
    often titles, and with k = 1 this would be the first frame again. As in all of these,
    1 <= k <= F.
    """
    return [(2 * part + 1) * n_frames // (2 * k) + 1 for part in range(k)]


def first(n_frames: int, k: int) -> list[int]:  # noqa: ARG001 - as `uniform` is called
    """The first k frames."""
    return list(range(1, k + 1))


def chance(n_frames: int, n_true: int, k: int) -> Scores:
    """Expected scores of k frames drawn without replacement, with G true ones among F.

    The number of hits is hypergeometric with mean KG/F, and all three are linear in it:
    P = G/F, R = K/F, F1 = 2KG / (F (K + G)).
    """
    return _scores(k * n_true / n_frames, k, n_true)


def best(n_true: int, k: int) -> Scores:
    """The most that exactly k frames can reach with G true ones: min(K, G) hits."""
    return _scores(min(n_true, k), k, n_true)


def _scores(hits: float, chosen: int, true: int) -> Scores:
    precision = hits / chosen if chosen else 0.0
    return Scores(precision, hits / true, 2 * hits / (chosen + true))
