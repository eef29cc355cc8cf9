"""A video's summary in a reply, as keyframes and as text (HAVEN; paper, C).

`status` and `violations` are those of number_statements.py.

Frames ("[4, 17, 30]") are numbered 1..F in the order of sampling. An array counts if it holds only
whole numbers, with or without "Frame" before them, in quotes or not. A list of such numbers counts
under a label, or alone on its lines. Of several the rank decides, as in number_statements.py; an
array among others in an array is none. Nothing is ever evaluated. Ranges ("1-5") are not read: the
prompt asks for exact numbers.

A text summary ("SUMMARY:" and numbered sentences): headers with numbered sentences win over others,
and of several the last counts. If the prompt asks for a number of sentences, differing numbered
summaries need a correction between them. Text from "IMPORTANT FRAMES:" or "TASK 2" on is not part
of it, nor are the prompt's placeholders ("1. [sentence 1]"). Sentences stay as written, without
numbers and emphasis.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from lmms_eval_tasks.utils.replies import reply_text
from lmms_eval_tasks.utils.replies.number_statements import (
    ALONE,
    LABEL,
    PROSE,
    Statement,
    Violations,
    corrections,
    labelled,
    nonzero,
    nothing,
    number,
    repeats,
    settled,
    to_statement,
    uncut,
)
from lmms_eval_tasks.utils.replies.reply_text import ShapedReply


class FrameSelection(NamedTuple):
    """The frames that a reply selects.

    `frames` are those that exist, in the stated order; `selected` are all stated numbers. Precision
    and recall use `selected`: a frame that does not exist is wrong.
    """

    frames: tuple[int, ...]
    selected: frozenset[int]
    status: str
    violations: Violations  # also `too_many` or `too_few`, `repeated`, `out_of_range`


class Summary(NamedTuple):
    """The sentences of a reply's summary in order, as written."""

    sentences: tuple[str, ...]
    status: str
    # Also `too_many_sentences` or `too_few_sentences`, and `placeholder` (lines of the prompt's
    # form).
    violations: Violations

    @property
    def text(self) -> str:
        """The summary in one line, for metrics of a whole text."""
        return " ".join(self.sentences)


# --- frames ---------------------------------------------------------------------------------------

_ARRAY = re.compile(r"\[([^\[\]]*)\]")
_EMPTY_ARRAY = re.compile(r"\[\s{0,20}\]")
_ONE = r"[\"']?(?:frames?[ #_-]{0,2})?-?\d+(?:\.0{1,3})?[\"']?"
_AFTER_ARRAY = re.compile(r"\] ?\n?, ?\n?\Z")
_NUMBER = re.compile(_ONE, re.IGNORECASE)
# A list without brackets, alone on its lines or after a colon.
_LIST = re.compile(
    rf"(?:^(?:[-•] ?)?|(?<=\D:)|(?<=\D: )){_ONE}(?:(?:,? and |[,;] ?|,?\n(?:[-•] ?)?){_ONE})*"
    rf"(?=[.,;]?$)(?!,?\n(?:[-•] ?)?{_ONE})",
    re.IGNORECASE | re.MULTILINE,
)
_OPENING = re.compile(rf"(?:[^\d\n:]{{1,60}}: ?)?(?:[-•] ?)?(?i:{_ONE})(?! ?[a-zà-ÿ(:)])(?!\w)")
_FRAMES_HEADER = re.compile(
    r"\bimportant[ _]frames\b[*_\"' ]{0,6}(?::|$|(?=\[))", re.IGNORECASE | re.MULTILINE
)
_HEADS = re.compile(rf"{_FRAMES_HEADER.pattern}([^\d\n]*)\Z", re.IGNORECASE | re.MULTILINE)
_HEADED = re.compile(rf"{_FRAMES_HEADER.pattern}\s?(?:[-•] ?)?{_ONE}", re.IGNORECASE | re.MULTILINE)
_INTEGERS = re.compile(r"\[[0-9,\s]+\]")
_IMPORTANT = re.compile(r"important frames\s*:\s*\[?([^\]\n]+)", re.IGNORECASE)


def read_frames(text: str, n_frames: int, k: int, *, at_limit: bool = False) -> FrameSelection:
    """Return the frames that a reply selects (V2V); never raises.

    Args:
        text: the model's reply, as lmms-eval passes it.
        n_frames: F, the number of sampled frames, numbered 1..F.
        k: K, the requested number of frames.
        at_limit: True if the reply is as long as its limit of tokens (`uncut`).
    """
    reply = reply_text.shape(text)
    if not reply.has_text:
        return FrameSelection((), frozenset(), reply.status, {})
    visible = labelled(reply_text.normalise(uncut(text, reply, n_frames, at_limit=at_limit)))
    found = settled([*_selections(visible)], visible, frozenset)
    # A reply that begins with a list means that list, even if it holds an array.
    if found and found.rank == PROSE and found.start and _OPENING.match(visible):
        found = None
    written = visible[found.start : found.end] if found else ""
    extra = found is not None and reply_text.has_words(visible.replace(written, "", 1))
    other_form = not (written.startswith("[") and _is_json(written))
    return _selected(reply, found, n_frames, k, other_form=other_form, extra_text=extra)


def read_joint(
    text: str, n_frames: int, k: int, n_sentences: int | None = None, *, at_limit: bool = False
) -> tuple[Summary, FrameSelection]:
    """Return summary and frames of a reply to the joint task (V2VT), with pictures or descriptions.

    Each has its own status and violations. Without the header "SUMMARY:" only numbered sentences
    are a summary; without "IMPORTANT FRAMES:" an array counts, with the violation `other_form`.

    Args:
        text, n_frames, k, at_limit: as for `read_frames`.
        n_sentences: as for `read_summary`.
    """
    reply = reply_text.shape(text)
    if not reply.has_text:
        return Summary((), reply.status, {}), FrameSelection((), frozenset(), reply.status, {})
    visible = labelled(reply_text.normalise(uncut(text, reply, n_frames, at_limit=at_limit)))
    headed = (
        one._replace(rank=max(one.rank, LABEL)) if _HEADS.search(one.lead) else one
        for one in _selections(visible)
        if one.rank >= LABEL or visible[one.start] == "["
    )
    selected, extra = settled(headed, visible, frozenset), False
    other_form = selected is None or visible[selected.start] != "["
    if selected and (header := _HEADS.search(selected.lead)):
        # Text before the header is the summary; only text after it is extra.
        extra = reply_text.has_words(header[1] + visible[selected.end :])
    elif _HEADED.search(visible):  # the header's numbers are meant, but cannot be read
        selected = None
    else:
        other_form = True
    frames = _selected(reply, selected, n_frames, k, other_form=other_form, extra_text=extra)
    return _summary(reply, n_sentences, prose=False), frames


def read_leniently(text: str, n_frames: int, k: int | None) -> tuple[int, ...]:
    """Return the frames of a reply as the authors' scoring reads them (README), in stated order.

    Only frames that exist, each once. For frames alone (V2V) the first k integers of the first JSON
    array of integers, else of the whole reply; for a joint reply all integers after the first
    "IMPORTANT FRAMES:". Reasoning is removed here too.

    Args:
        text, n_frames: as for `read_frames`.
        k: how many frames count; None for a joint reply.
    """
    reply = reply_text.shape(text)
    found = (_INTEGERS if k is not None else _IMPORTANT).search(reply.text)
    if k is None:
        digits = re.findall(r"[0-9]+", found[1]) if found else []
    else:
        listed = found[0] if found and _is_json(found[0]) else reply.text
        digits = re.findall(r"\b[0-9]+\b", listed)
    numbers = map(number, digits)
    return tuple(dict.fromkeys(one for one in numbers if 1 <= one <= n_frames))[:k]


def _selected(
    reply: ShapedReply, statement: Statement | None, n_frames: int, k: int, **form: bool
) -> FrameSelection:
    if statement is None:
        # An empty array selects nothing: its status is `empty`, which scores 0, not `unparsed`.
        if _EMPTY_ARRAY.search(reply.text):
            return FrameSelection((), frozenset(), "empty", {})
        return FrameSelection((), frozenset(), *nothing(reply))
    existing = [number for number in statement.numbers if 1 <= number <= n_frames]
    violations = {
        "too_many": max(0, len(statement.numbers) - k),
        "too_few": max(0, k - len(statement.numbers)),
        "repeated": repeats([*statement.numbers]),
        "out_of_range": len(statement.numbers) - len(existing),
        **form,
    }
    frames = tuple(dict.fromkeys(existing))
    return FrameSelection(frames, frozenset(statement.numbers), "ok", nonzero(violations))


def _selections(text: str) -> Iterator[Statement]:
    """Yield all arrays and lists of numbers that state a selection."""
    for pattern in (_ARRAY, _LIST):
        for match in pattern.finditer(text):
            start, end = match.span()
            none = text.rfind("[", 0, start) > text.rfind("]", 0, start)  # inside another array
            if pattern is _ARRAY:
                among = _AFTER_ARRAY.search(text[max(0, start - 9) : start])
                none = bool(among or re.match(r"\n? ?, ?\n?\[", text[end : end + 9]))
            numbers = () if none else _numbers(match, pattern is _ARRAY)
            found = to_statement(text, start, end, "frames", bare=True) if numbers else None
            # A list in a sentence, or a single number at the end, may be of anything.
            several = found and (len(numbers) > 1 or not start or found.whole)
            if found and (pattern is _ARRAY or found.rank > ALONE - bool(several)):
                yield found._replace(numbers=numbers)


def _numbers(match: re.Match[str], is_array: bool) -> tuple[int, ...]:
    """Return the values of all parts but an empty last one; () if a part is no whole number."""
    parts = match[1].split(",") if is_array else _NUMBER.findall(match[0])
    parts = [part.strip() for part in parts]
    parts = parts[: len(parts) - (not parts[-1])]
    if not all(map(_NUMBER.fullmatch, parts)):
        return ()
    signs = [-1 if part.lstrip("\"'").startswith("-") else 1 for part in parts]
    digits = re.findall(r"\d+", " ".join(part.split(".")[0] for part in parts))
    return tuple(sign * number(one) for sign, one in zip(signs, digits, strict=True))


def _is_json(array: str) -> bool:
    """Return True if an array is JSON of whole numbers, the requested form."""
    try:
        values = json.loads(array)
    except ValueError:  # also a number with more digits than Python converts
        return False
    return all(type(value) is int for value in values)


# --- summaries ------------------------------------------------------------------------------------

# A line of its own or the head of a line, in any case; inside a line only in capitals.
_HEADER = re.compile(
    r"^[^a-zA-Z0-9\n]{0,12}(?i:(?:task ?\d{1,2}[ :.–—-]{0,6})?(?:(?:video|text) )?summary)"
    r"[*_\"']{0,3} ?(?::[*_]{0,3}|$)|\b(?:VIDEO )?SUMMARY[*_]{0,3}:[*_]{0,3}",
    re.MULTILINE,
)
_NEXT_PART = re.compile(
    r"(?i:\bimportant[ _]frames\b[*_\"' ]{0,6}(?::|$|(?=\[)))|\bTASK ?2\b"
    r"|^[^a-zA-Z0-9\n]{0,12}(?i:task ?2)\b"
    r"|^[^\w\n\[]{0,6}\[(?i:[\d ,\"'#]|frames?){1,9999}\][^\w\n]{0,6}$",  # an array alone
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


class _SentenceBlock(NamedTuple):
    """The sentences in a block of text."""

    sentences: list[str]
    placeholders: int
    numbered: bool
    extra: bool


def read_summary(text: str, n_sentences: int | None = None) -> Summary:
    """Return the summary of a reply, "SUMMARY:" and numbered sentences (V2T text proxy).

    Without the header the numbered sentences count; without numbers the whole text does.

    Args:
        text: the model's reply, as lmms-eval passes it. No text raises.
        n_sentences: the requested number; None: any number is fine.
    """
    reply = reply_text.shape(text)
    if reply.status != "ok":  # else a refusal would count as a summary
        return Summary((), reply.status, {})
    return _summary(reply, n_sentences, prose=True)


def _summary(reply: ShapedReply, n_sentences: int | None, prose: bool) -> Summary:
    text = reply_text.plain_lines(reply.text)
    headers = list(_HEADER.finditer(text))[-8:]
    ends = [*(header.start() for header in headers), len(text)][1:]
    parts = [text[header.end() : end] for header, end in zip(headers, ends, strict=True)]
    blocks = [_block(part, prose=True) for part in parts] or [_block(text, prose)]
    asked_for = [one for one in blocks if one.sentences and one.numbered]
    block = next((one for one in reversed(asked_for or blocks) if one.sentences), None)
    if n_sentences and len({tuple(one.sentences) for one in asked_for}) > 1:
        before = text[: headers[blocks.index(asked_for[-1])].start()]
        block = block if corrections("\n".join(before.rstrip().split("\n")[-2:])) else None
    if block is None:
        placeholders = sum(one.placeholders for one in blocks)
        return Summary((), *nothing(reply, placeholder=placeholders))
    found, asked = len(block.sentences), n_sentences or len(block.sentences)
    violations: Mapping[str, int] = {
        "too_many_sentences": max(0, found - asked),
        "too_few_sentences": max(0, asked - found),
        "other_form": not (headers and block.numbered),
        "placeholder": block.placeholders,
        "extra_text": block.extra,
    }
    return Summary(tuple(block.sentences), "ok", nonzero(violations))


def _block(text: str, prose: bool) -> _SentenceBlock:
    """Return the sentences of a block: numbered ones, else items of a list, else those of prose."""
    if end := _NEXT_PART.search(text):  # the frames' part begins
        text = text[: end.start()]
    text = text.strip().rstrip(" \n*_#-–—")
    marks = list(_NUMBERED.finditer(text))
    if len(marks) < 2:
        row: list[re.Match[str]] = []  # marks 1, 2, 3, ...; other numbers belong to the sentences
        for mark in _INLINE.finditer(text):
            row += [mark] if number(mark[1]) == len(row) + 1 else []
        # A single "1." inside prose ends a sentence ("... in game 1. Then ...") and begins none.
        marks = row if len(row) > 1 or (row and not text[: row[0].start()].strip()) else marks
    extra = False
    parts: Sequence[str] = []
    if marks:
        ends = [*(mark.start() for mark in marks[1:]), len(text)]
        parts = [text[mark.end() : end] for mark, end in zip(marks, ends, strict=True)]
        last, _, after = parts[-1].strip().partition("\n\n")
        parts = [*parts[:-1], last]
        extra = reply_text.has_words(text[: marks[0].start()] + after)
    elif prose and len(bullets := _BULLET.split(text)) > 1:
        parts, extra = bullets[1:], reply_text.has_words(bullets[0])
    elif prose:
        parts = _END.split(text)
    texts = [" ".join(re.sub(r"\*\*|__|`", "", part).split()).strip("*_ ") for part in parts]
    found = [part for part in texts if reply_text.has_words(part)]
    sentences = [part for part in found if not _PLACEHOLDER.fullmatch(part)]
    return _SentenceBlock(sentences, len(found) - len(sentences), bool(marks), extra)
