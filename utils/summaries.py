"""The text summary of a reply that has a form: "SUMMARY:" and numbered sentences (paper, C).

The sentences are kept as written, without numbers and marks of emphasis. The last "SUMMARY:" that
is followed by sentences counts; what "IMPORTANT FRAMES:" or "TASK 2" begins is no part of it. The
format's own placeholders ("1. [sentence 1]") are no sentences.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from lmms_eval_tasks.utils import answers, keyframes
from lmms_eval_tasks.utils.keyframes import Frames

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
class Joint:
    """Both parts of a V2VT reply; each has its own status and violations."""

    summary: Summary
    frames: Frames


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


def read_joint(text: str, n_frames: int, k: int, n_sentences: int | None = None) -> Joint:
    """Summary and frames of a reply to the joint task (V2VT), with pictures or descriptions.

    Without the header "SUMMARY:" only numbered sentences are a summary.

    Args:
        text: the model's reply, as the host hands it over. No text raises.
        n_frames: F, number of sampled frames, which are numbered 1..F.
        k: K, how many frames were asked for.
        n_sentences: as for `read_summary`.
    """
    reply = answers.shape(text)
    if not reply.there:
        return Joint(Summary((), reply.status), Frames((), frozenset(), reply.status))
    return Joint(
        _summary(reply, n_sentences, prose=False),
        keyframes.read_headed_frames(reply, n_frames, k),
    )


def _summary(reply: answers.Reply, n_sentences: int | None, prose: bool) -> Summary:
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
