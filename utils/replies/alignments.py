"""The clips to which a reply grounds each sentence (HAVEN; paper, C): "Summary 2: Clip 1, Clip 4".

number_statements.py has statements and their ranks. In addition:

- A sentence's statement is the text after its name on the line, or on the lines below if the line
  ends there. It may hold one list of clips, and words that name no other clip. "Clip 1-3" is clips
  1, 2 and 3. "None" grounds the sentence to nothing.
- Numbers without "Clip" count if the statement has nothing else.
- Statements after "Final answer:" win over others, and statements at the head of a line over those
  inside a line. A sentence with differing statements is missing.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from lmms_eval_tasks.utils.replies import denials, reply_text
from lmms_eval_tasks.utils.replies.number_statements import (
    ALONE,
    LABEL,
    LEAD,
    MACHINE,
    PROSE,
    Statement,
    Violations,
    guard,
    labelled,
    nonzero,
    nothing,
    number,
    repeats,
    settled,
    uncut,
)


class ClipAlignment(NamedTuple):
    """The clips of each sentence; an empty set for a sentence without a statement.

    `status` is ok if every sentence has a statement. A number without a clip stays in its set:
    precision counts every stated number.
    """

    sets: tuple[frozenset[int], ...]
    status: str
    # Also `missing` and `unknown` sentences, `repeated` statements, `unknown_clips` and
    # `repeated_clips`.
    violations: Violations


class ClipList(NamedTuple):
    """The numbers of a list as stated; `extra` is True if other words surround them."""

    numbers: list[int]
    extra: bool


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
# A bare number before a word counts something else: "Clip 1, 2 people".
_ENDED = r"(?= ?(?:[,;&+/\n.:!?(-]|and\b|\Z))"
_NUMBERS = rf"\d+(?:{_TO}(?:{_CLIP}\d+|\d+{_ENDED}))?(?!\w|[.,:-]\d)"
_ENTRY = rf"(?:{_CLIP})?{_NUMBERS}"
_MORE = rf"(?:(?: ?[,;&+/\n] ?(?:and )?| and )(?:{_CLIP}{_NUMBERS}|{_NUMBERS}{_ENDED}))*"
_NAMED = re.compile(rf"(?<!\w)(?={_CLIP}\d){_ENTRY}{_MORE}", re.IGNORECASE)
_BARE = re.compile(rf"{_ENTRY}{_MORE}", re.IGNORECASE)
_CLIP_NUMBER = re.compile(rf"(?<!\w){_CLIP}\d", re.IGNORECASE)
_RANGE = re.compile(rf"(\d+)(?:{_TO}(?:{_CLIP})?(\d+))?", re.IGNORECASE)
_NONE = re.compile(
    r"(?:none(?: of [^\n]*)?|no clips?|n/a|no match(?:ing clips?)?|-)", re.IGNORECASE
)
_FINAL = re.compile(r"^[^\w\n]{0,6}final \w{1,20} ?:", re.IGNORECASE | re.MULTILINE)
_FORM = re.compile(r"^Summary \d+: Clip \d+(?:, Clip \d+)*[ \t\r]*$", re.MULTILINE)


def read_alignment(
    text: str, n_sentences: int, n_clips: int, *, at_limit: bool = False
) -> ClipAlignment:
    """Return the clips to which a reply grounds each sentence; never raises.

    Args:
        text: the model's reply, as lmms-eval passes it.
        n_sentences: the number of sentences in the prompt, numbered 1..m.
        n_clips: the number of clips, numbered 1..n.
        at_limit: True if the reply is as long as its limit of tokens (`uncut`).
    """
    reply = reply_text.shape(text)
    none = (frozenset[int](),) * n_sentences
    if not reply.has_text:
        return ClipAlignment(none, reply.status, {})
    visible = labelled(reply_text.normalise(uncut(text, reply, n_clips, at_limit=at_limit)))
    heads = list(_HEAD.finditer(visible))
    ends = [*(head.start() for head in heads), len(visible)][1:]
    final = max((match.end() for match in _FINAL.finditer(visible)), default=len(visible))
    counts: Counter[str] = Counter()
    stated: dict[int, dict[Statement, ClipList | None]] = {}
    extra = reply_text.has_words(visible[: heads[0].start()] if heads else visible)
    for head, end in zip(heads, ends, strict=True):
        body = visible[head.end() : end]
        statement, rest = _statement(body, n_clips)
        extra = extra or reply_text.has_words(rest) or statement is None
        sentence = number(head["id"] or head["inner"])
        line = visible[visible.rfind("\n", 0, head.start()) + 1 : head.start()]
        at_head = head["id"] or (
            len(line) <= LEAD and not reply_text.has_words(guard("corrected").sub("", line))
        )
        rank = MACHINE if head.start() >= final else LABEL if at_head else PROSE
        if not statement:  # numbers with words after them win over a statement inside a line
            rank = ALONE if at_head and re.match(rf" ?(?i:{_CLIP})?\d", body) else 0
        numbers = tuple(statement.numbers) if statement else ()
        if rank and not 1 <= sentence <= n_sentences:
            counts["unknown"] += statement is not None
        elif rank:
            own = stated.setdefault(sentence, {})
            counts["repeated"] += any(own.values()) and statement is not None
            own[Statement(rank, head.start(), head.end(), numbers)] = statement
    chosen = {one: settled(own, visible, frozenset, near=True) for one, own in stated.items()}
    read = {
        one: next(said for own, said in stated[one].items() if own.start == place.start)
        for one, place in chosen.items()
        if place
    }
    found = {sentence: statement for sentence, statement in read.items() if statement}
    if not found:
        status, violations = nothing(reply)
        return ClipAlignment(none, status, {**nonzero(counts), **violations})
    for one in found.values():
        counts["unknown_clips"] += sum(not 1 <= clip <= n_clips for clip in set(one.numbers))
        counts["repeated_clips"] += repeats(one.numbers)
    counts["missing"] = n_sentences - len(found)
    counts["other_form"] = len(_FORM.findall(reply.text)) < len(found)
    counts["extra_text"] = extra or any(one.extra for one in found.values())
    sets = tuple(
        frozenset(found[sentence].numbers if sentence in found else ())
        for sentence in range(1, n_sentences + 1)
    )
    return ClipAlignment(sets, "unparsed" if counts["missing"] else "ok", nonzero(counts))


def _statement(text: str, n_clips: int) -> tuple[ClipList | None, str]:
    """Return the clips stated after a sentence's name, and the lines that do not belong to them."""
    first, _, below = text.lstrip(" ,").partition("\n")
    if reply_text.has_words(first) or first.strip(" \"'[({") == "-":
        return _clips(first, n_clips), below
    lines = below.split("\n")
    bare = [line.lstrip(" -•").rstrip(" .,;") for line in lines]
    own = next((at for at, line in enumerate(bare) if not _BARE.fullmatch(line)), len(bare)) or 1
    return _clips(", ".join(bare[:own]), n_clips), "\n".join(lines[own:])


def _clips(text: str, n_clips: int) -> ClipList | None:
    body = " ".join(re.sub(r"[\"'\[\]{}|]", " ", text).split()).strip("() ")
    bare = body.rstrip(" .,;")
    if _NONE.fullmatch(bare):
        return ClipList([], False)
    match = _BARE.fullmatch(bare) or _NAMED.search(body)
    if match is None:
        return None
    before, after = body[: match.start()], body[match.end() :]
    others = _CLIP_NUMBER.search(before) or _CLIP_NUMBER.search(after)
    if others or denials.is_denied(before, after) or guard("something else behind").match(after):
        return None
    clips: list[int] = []
    for start, end in _RANGE.findall(match[0]):
        low = number(start)
        high = number(end) if end else low
        if high < low:
            return None
        # A single number stands for all numbers of a range after the last clip.
        clips.extend(range(low, (min(high, max(low, n_clips + 1)) if end else high) + 1))
    return ClipList(clips, reply_text.has_words(before + after))
