"""The reasoning that a reply begins with, told by its form: the one reader of it for all replies.

Models' answers, texts put to judges, text metrics and judges' replies all pass here. A block is
reasoning if its marks name anything but an answer, so that the tags of the next model work too:

    <x>...</x>   [X]...[/X]   ◁x▷...◁/x▷   <|START_X|>...<|END_X|>   <|begin_of_x|>...<|end_of_x|>
    <|channel>x ...<channel|>   <unused94>x ...<unused95>   gpt-oss's channels

A name that speaks of thinking marks reasoning wherever it stands; any other name only at the start
of a reply. A closing mark alone ends a block that the chat template opened in the prompt.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from lmms_eval_tasks.utils.replies import forms

_FORMS = ("unused", "angle", "square", "kimi", "bars", "opens", "closes")  # groups of the mark


def _rules() -> dict[str, re.Pattern[str]]:
    return forms.guards("reasoning")


class _Mark(NamedTuple):
    """An opening or closing mark of a block; it closes what was opened under the same key."""

    key: str
    closes: bool
    thinks: bool  # its name speaks of thinking: it is reasoning wherever it stands
    form: str  # one of _FORMS
    start: int
    end: int


def strip_reasoning(text: str) -> tuple[str, bool]:
    """Return a reply without its reasoning, and whether a block of reasoning was left open.

    Nothing is kept of an open block. A block ends at the first closing mark of its own kind, so
    that an opening mark quoted inside does not hide the answer. Of gpt-oss's channels the last
    final one is the reply. A block of an unknown name that holds the whole reply is the reply.
    """
    text, unfinished = _final_channel(re.sub(r"\A[\s\u200b-\u200f\u2060\ufeff]+", "", text))
    if unfinished:
        return "", True
    words = _rules()["in words"].match(text)
    if words and (words["end"] or not any(mark.thinks for mark in _marks(text))):
        text = text[words.end() :]
        if not words["end"]:
            return "", True
    text = _rules()["plan"].sub("", text, count=1) if _rules()["plan"].match(text) else text
    marks = _marks(text)
    last_end = {mark.key: mark.start for mark in marks if mark.closes}
    kept: list[str] = []
    start, opened, wrapped = 0, None, ""
    is_start = True  # nothing was said so far
    seen: set[str] = set()  # keys of unknown marks inside the text
    for mark in marks:
        if opened is not None:
            if mark.closes and mark.key == opened.key:
                is_answer = not opened.thinks and not _rules()["not kept"].search(opened.key)
                wrapped = wrapped or (text[opened.end : mark.start] if is_answer else "")
                opened, start = None, mark.end
            continue
        is_start = is_start and not text[start : mark.start].strip()
        if mark.closes:
            is_word = re.fullmatch(r"[^\W\d_]+(?:[:_][^\W\d_]+)*", mark.key) is not None
            if mark.thinks or (is_word and mark.key not in seen):  # it was opened in the prompt
                kept.clear()
                start, is_start = mark.end, True
        elif (is_start or mark.thinks) and (
            last_end.get(mark.key, -1) > mark.start or _is_left_open(mark, text, is_start)
        ):
            kept.append(text[start : mark.start])
            opened = mark
        else:
            seen.add(mark.key)
    if opened is None:
        kept.append(text[start:])
    return "".join(kept).strip() or wrapped.strip(), opened is not None


def has_reasoning_tag(text: str) -> bool:
    """Return whether a reply opens or closes a reasoning block, or has gpt-oss's channels."""
    return any(mark.thinks for mark in _marks(text)) or bool(_rules()["channel"].match(text))


def closes_only(text: str) -> bool:
    """Return whether a reply's first reasoning mark closes a block that something else opened."""
    first = next((mark for mark in _marks(text) if mark.thinks), None)
    return first is not None and first.closes


def unknown_mark(text: str) -> str:
    """Return the mark that a reply begins with, if neither its name nor its form is known; else "".

    Such a mark may be a new model's: what follows is read by form, and the user is told.
    """
    text = text.lstrip()
    match = _rules()["mark"].match(text)
    if match is None or (match.lastgroup == "square" and not match["square"].isupper()):
        return ""
    name = next(filter(None, match.group("angle", "square", "kimi", "bars", "opens", "closes")), "")
    plain = _rules()["opening name"].sub("", name.strip(" /"))
    said = _rules()["thinking"].search(name) or match["of"] or match["thought"]
    known = said or _is_known(plain) or _is_known(name)
    return "" if known else text[: match.end()]


def _marks(text: str) -> list[_Mark]:
    """The marks in a text that may begin or end a block of reasoning."""
    found = []
    is_answer = False  # inside of a half mark that names an answer: "<|channel>final ..."
    for match in _rules()["mark"].finditer(text):
        form = next(name for name in _FORMS if match[name])
        written = match[form].strip().replace(" ", "")
        closes = form == "closes" or bool(_rules()["closing name"].match(written))
        affix = _rules()["closing part" if closes else "opening name"]
        name = (affix.sub("", written) or written).lower()
        key = "think" if _rules()["thought"].fullmatch(name) else name
        if form in ("opens", "closes", "unused"):  # the name stands behind an opening mark
            key, name = "half", (match["of"] or match["thought"] or "").lower()
            closes = closes or (form == "unused" and not name)
            is_turn = form != "unused" and written.lower() != "channel" and _is_known(written)
            if is_turn:
                continue
        if key == "half" and closes and is_answer:
            is_answer = False
            continue
        thinks = _rules()["thinking"].search(name) is not None
        if name and not thinks and (_is_known(name) or _is_known(written)):
            is_answer |= key == "half"
            continue
        thinks |= key == "half" and closes
        found.append(_Mark(key, closes, thinks, form, match.start(), match.end()))
    return found


def _is_known(name: str) -> bool:
    """Whether a name is one of an answer, of text, of media or of a turn."""
    return any(kind.fullmatch(name) for kind in (_rules()["answer name"], _rules()["common name"]))


def _is_left_open(mark: _Mark, text: str, is_start: bool) -> bool:
    """Whether a mark without its end is a block that was cut.

    "<PERSON> walks in", "[Music] A man" and "writes <think> on the board" are text, and so is a
    mark with nothing behind it. Of special tokens, "<|sep|>", only one that says so opens a block.
    """
    rest, written = text[mark.end :], text[mark.start : mark.end].strip("<>|\uff5c")
    if mark.thinks:
        return is_start or not re.match(r"[^\S\n]\S", rest) or text[mark.start - 1] == "\n"
    is_token = mark.form == "bars" and not _rules()["opening name"].search(written)
    if mark.form == "square" or is_token:
        return False
    return bool(rest.strip()) and not re.match(r"[^\S\n]|[,;.:)]", rest)


def _final_channel(text: str) -> tuple[str, bool]:
    """What gpt-oss says in its last final channel; whether it says something in others alone."""
    final = _rules()["final channel"].match(text)
    if final and (final["mark"] or _rules()["channel"].match(text)):
        return text[final.end() :], False
    # Such a reply begins with a channel; one further on is something that an answer quotes.
    return ("", True) if _rules()["channel"].match(text) else (text, False)
