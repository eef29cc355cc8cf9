"""The reasoning at the beginning of a reply, known by its form: one reader for all replies.

Answers of models, texts for judges, text metrics and judges' replies all use it. A block is
reasoning if its marks name anything but an answer, so that tags of future models work too:

    <x>...</x>   [X]...[/X]   ◁x▷...◁/x▷   <|START_X|>...<|END_X|>   <|begin_of_x|>...<|end_of_x|>
    <|channel>x ...<channel|>   <unused94>x ...<unused95>   gpt-oss's channels

A name that speaks of thinking marks reasoning anywhere; any other name only at the beginning of a
reply. A closing mark alone ends a block that the chat template opened in the prompt.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from lmms_eval_tasks.utils.replies import forms

# Groups of the pattern `mark`.
_FORMS = ("unused", "angle", "square", "kimi", "bars", "opens", "closes")


def _rules() -> dict[str, re.Pattern[str]]:
    return forms.guards("reasoning")


class _Mark(NamedTuple):
    """An opening or closing mark of a block; a closing mark ends a block of the same key."""

    key: str
    closes: bool
    thinks: bool  # True if its name speaks of thinking: reasoning anywhere in a reply
    form: str  # one of _FORMS
    start: int
    end: int


def strip_reasoning(text: str) -> tuple[str, bool]:
    """Return a reply without its reasoning, and True if a block of reasoning is left open.

    Nothing is kept of an open block. A block ends at the first closing mark of its kind, so that a
    quoted opening mark inside does not hide the answer. For gpt-oss the last final channel is the
    reply. A block of an unknown name that holds the whole reply is the reply.
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
    parts: list[str] = []
    start, opened, wrapped = 0, None, ""
    is_start = True  # no text before this mark
    unknown_keys: set[str] = set()  # keys of unknown marks inside the text
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
            # Its opening mark is in the prompt.
            if mark.thinks or (is_word and mark.key not in unknown_keys):
                parts.clear()
                start, is_start = mark.end, True
        elif (is_start or mark.thinks) and (
            last_end.get(mark.key, -1) > mark.start or _is_left_open(mark, text, is_start)
        ):
            parts.append(text[start : mark.start])
            opened = mark
        else:
            unknown_keys.add(mark.key)
    if opened is None:
        parts.append(text[start:])
    return "".join(parts).strip() or wrapped.strip(), opened is not None


def has_reasoning_tag(text: str) -> bool:
    """Return True if a reply opens or closes a reasoning block, or has gpt-oss's channels."""
    return any(mark.thinks for mark in _marks(text)) or bool(_rules()["channel"].match(text))


def closes_only(text: str) -> bool:
    """Return True if a reply's first reasoning mark closes a block that the prompt opened."""
    first = next((mark for mark in _marks(text) if mark.thinks), None)
    return first is not None and first.closes


def unknown_mark(text: str) -> str:
    """Return the mark at the beginning of a reply if its name and form are unknown; else "".

    Such a mark may be a new model's: the text is then read by its form, and the user gets a note.
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
    """Return the marks in a text that may begin or end a block of reasoning."""
    found = []
    is_answer = False  # inside a half mark that names an answer: "<|channel>final ..."
    for match in _rules()["mark"].finditer(text):
        form = next(name for name in _FORMS if match[name])
        written = match[form].strip().replace(" ", "")
        closes = form == "closes" or bool(_rules()["closing name"].match(written))
        affix = _rules()["closing part" if closes else "opening name"]
        name = (affix.sub("", written) or written).lower()
        key = "think" if _rules()["thought"].fullmatch(name) else name
        if form in ("opens", "closes", "unused"):  # the name follows the opening mark
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
    """Return True if a name belongs to an answer, a text, a medium or a turn."""
    return any(kind.fullmatch(name) for kind in (_rules()["answer name"], _rules()["common name"]))


def _is_left_open(mark: _Mark, text: str, is_start: bool) -> bool:
    """Return True if an opening mark without its end begins a block that was cut.

    "<PERSON> walks in", "[Music] A man" and "writes <think> on the board" are text, and so is a
    mark at the end of the text. A special token ("<|sep|>") opens a block only if its name says so.
    """
    rest, written = text[mark.end :], text[mark.start : mark.end].strip("<>|\uff5c")
    if mark.thinks:
        return is_start or not re.match(r"[^\S\n]\S", rest) or text[mark.start - 1] == "\n"
    is_token = mark.form == "bars" and not _rules()["opening name"].search(written)
    if mark.form == "square" or is_token:
        return False
    return bool(rest.strip()) and not re.match(r"[^\S\n]|[,;.:)]", rest)


def _final_channel(text: str) -> tuple[str, bool]:
    """Return gpt-oss's last final channel, and True if the reply has other channels only."""
    final = _rules()["final channel"].match(text)
    if final and (final["mark"] or _rules()["channel"].match(text)):
        return text[final.end() :], False
    # Such a reply begins with a channel; a channel further on is a quotation in an answer.
    return ("", True) if _rules()["channel"].match(text) else (text, False)
