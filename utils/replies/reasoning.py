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

_BAR = "[|\uff5c]"
_NAME = r"[^\W\d_][\w:.\u2581-]{1,40}"
_MARK = re.compile(
    r"<(?P<unused>unused\d{1,4})>(?P<thought>thought|think\w{0,5}|)"
    rf"|<(?P<angle>[ /]{{0,2}}{_NAME}) ?>|\[(?P<square>/?{_NAME})\]|◁(?P<kimi>/?{_NAME})▷"
    rf"|<{_BAR}(?P<bars>/?{_NAME}){_BAR}>"
    rf"|<{_BAR}(?P<opens>{_NAME})>[^\S\n]?(?P<of>\w{{0,20}})|<(?P<closes>{_NAME}){_BAR}>"
)
# How a name tells that its mark opens or closes: START_THINKING, end_of_thought, inner_suffix.
_OPENING = re.compile(r"(?:begin_of|start_of|begin|start)_|_(?:start|begin|prefix)$", re.IGNORECASE)
_CLOSING = re.compile(r"/|end_of_|end_|.*_(?:end|suffix)$", re.IGNORECASE)
_END = re.compile(r"^(?:/|end_of_|end_)|_(?:end|suffix)$", re.IGNORECASE)
_THOUGHT = re.compile(r"(?:\w+:)?(?:think|thinking|thoughts?)")  # <think> closed by </thinking>
_THINKING = re.compile(
    r"think|thought|reason|analy[sz]|reflect|scratch|rational|deliberat|monolog|commentary"
    r"|chain.?of|\bcot$|(?<![a-z])inner|ponder|brainstorm|cogitat",
    re.IGNORECASE,
)
_ANSWER = re.compile(
    r"(?:final|your|my|the|short|direct)?[_.-]?(?:answer|response|reply|solution|conclusion|box|choice"
    r"|option|output|result|final|summary|prediction|verdict|judge?ment|score|rating|label|frames"
    r"|order|risposta|respuesta|réponse|reponse|antwort|resposta|答案|答え|정답|ответ)s?",
    re.IGNORECASE,
)
# Marks of text, media and turns, which are neither reasoning nor unknown.
_COMMON = re.compile(
    r"b|i|u|s|p|br|em|strong|del|strike|div|span|code|pre|li|ol|ul|h[1-6]|td|tr|th|table|mark|font"
    r"|html|body|center|details|sub|sup|json|python|text|markdown|inst|sys"
    r"|(?:im|image|img|video|vid|frame|audio|vision|imagehere|sound|music|speech|ref|object|quad)\w*"
    r"|bos|eos|pad|unk|sep|cls|eot|eom|eod|sop|eop|endof\w+|begin_of_text|end_of_\w+|start_of_turn"
    r"|\w*turn\w*|system|user|human|assistant|model|end|start|return|call|message|channel"
    r"|constrain|eot_id|eom_id|\w*header_id|begin.of.sentence|end.of.sentence",
    re.IGNORECASE,
)
# Granite says it in words.
_IN_WORDS = re.compile(
    r"\s*here(?: i|')s my (?:thought process|reasoning)[^:\n]{0,20}:(?P<trace>.*?)"
    r"(?P<end>here(?: i|')s my (?:final )?(?:response|answer)[^:\n]{0,20}:|\Z)",
    re.IGNORECASE | re.DOTALL,
)
# LLaVA-CoT's first block says what it will do; elsewhere a summary may be the answer.
_PLAN = re.compile(
    r"\s*<(summary)>.*?</\1>(?=\s*<(?:caption|\w*(?:reason|think)))", re.IGNORECASE | re.DOTALL
)

# gpt-oss: "<|channel|>analysis<|message|>...<|channel|>final<|message|>B", or what is left of it
# where special tokens were dropped: "analysis...assistantfinalB".
_CHANNEL = re.compile(
    r"<\|channel\|>\s?(?P<name>\w{0,20})[^<>|\n]{0,40}(?:<\|constrain\|>\w{0,20}\s?)?<\|message\|>"
)
_CHANNEL_END = re.compile(r"<\|(?:end|return|start|channel|call)\|>")
_PLAIN_CHANNELS = re.compile(r"\s*(?:analysis|commentary)(?=[A-Z])")
_PLAIN_FINAL = "assistantfinal"


class _Mark(NamedTuple):
    """An opening or closing mark of a block; it closes what was opened under the same key."""

    key: str
    closes: bool
    thinks: bool  # its name speaks of thinking: it is reasoning wherever it stands
    form: str  # the group of _MARK
    start: int
    end: int


def strip_reasoning(text: str) -> tuple[str, bool]:
    """Return a reply without its reasoning, and whether a block of reasoning was left open.

    Nothing is kept of an open block. A block ends at the first closing mark of its own kind, so
    that an opening mark quoted inside does not hide the answer. Of gpt-oss's channels the last
    final one is the reply. A block of an unknown name that holds the whole reply is the reply.
    """
    text, unfinished = _final_channel(text)
    if unfinished:
        return "", True
    if (words := _IN_WORDS.match(text)) and (words["end"] or words["trace"].strip()):
        text = text[words.end() :]
        if not words["end"]:
            return "", True
    text = _PLAN.sub("", text, count=1) if _PLAN.match(text) else text
    marks = _marks(text)
    last_end = {mark.key: mark.start for mark in marks if mark.closes}
    kept: list[str] = []
    start, opened, wrapped = 0, None, ""
    is_start = True  # nothing was said so far
    seen: set[str] = set()  # keys of unknown marks inside the text
    for mark in marks:
        if opened is not None:
            if mark.closes and mark.key == opened.key:
                wrapped = wrapped or ("" if opened.thinks else text[opened.end : mark.start])
                opened, start = None, mark.end
            continue
        is_start = is_start and not text[start : mark.start].strip()
        if mark.closes:
            if mark.thinks or mark.key not in seen:
                kept.clear()
                start, is_start = mark.end, True
        elif mark.thinks or (
            is_start and (last_end.get(mark.key, -1) > mark.start or _is_left_open(mark, text))
        ):
            kept.append(text[start : mark.start])
            opened = mark
        else:
            seen.add(mark.key)
    if opened is None:
        kept.append(text[start:])
    reply = "".join(kept).strip()
    return (reply or wrapped.strip()), opened is not None


def has_reasoning_tag(text: str) -> bool:
    """Return whether a reply opens or closes a reasoning block, or has gpt-oss's channels."""
    known = any(mark.thinks for mark in _marks(text))
    return bool(known or _CHANNEL.search(text) or _PLAIN_CHANNELS.match(text))


def closes_only(text: str) -> bool:
    """Return whether a reply's first reasoning mark closes a block that something else opened."""
    first = next((mark for mark in _marks(text) if mark.thinks), None)
    return first is not None and first.closes


def unknown_mark(text: str) -> str:
    """Return the mark that a reply begins with, if neither its name nor its form is known; else "".

    Such a mark may be a new model's: what follows is read by form, and the user is told.
    """
    text = text.lstrip()
    match = _MARK.match(text)
    if match is None or (match.lastgroup == "square" and not match["square"].isupper()):
        return ""
    name = next(filter(None, match.group("angle", "square", "kimi", "bars", "opens", "closes")), "")
    plain = _OPENING.sub("", name.strip(" /"))
    known = _THINKING.search(name) or match["of"] or match["thought"]
    known = known or _ANSWER.fullmatch(plain) or _COMMON.fullmatch(plain) or _COMMON.fullmatch(name)
    return "" if known else text[: match.end()]


def _marks(text: str) -> list[_Mark]:
    """The marks in a text that may begin or end a block of reasoning."""
    found = []
    is_answer = False  # inside of a half mark that names an answer: "<|channel>final ..."
    for match in _MARK.finditer(text):
        form = match.lastgroup if match.lastgroup not in ("of", "thought") else None
        form = form or ("opens" if match["opens"] else "unused")
        written = match[form].strip().replace(" ", "")
        closes = form == "closes" or bool(_CLOSING.match(written))
        name = (_END if closes else _OPENING).sub("", written).lower()
        key = "think" if _THOUGHT.fullmatch(name) else name
        if form in ("opens", "closes", "unused"):  # the name stands behind an opening mark
            key, name = "half", (match["of"] or match["thought"] or "").lower()
            closes = closes or (form == "unused" and not name)
            if form != "unused" and written.lower() != "channel" and _COMMON.fullmatch(written):
                continue
        if key == "half" and closes and is_answer:
            is_answer = False
            continue
        if name and (_COMMON.fullmatch(name) or _ANSWER.fullmatch(name)):
            is_answer |= key == "half"
            continue
        thinks = bool(_THINKING.search(name)) or (key == "half" and closes)
        found.append(_Mark(key, closes, thinks, form, match.start(), match.end()))
    return found


def _is_left_open(mark: _Mark, text: str) -> bool:
    """Whether an unknown mark without its end is a block that was cut.

    "<PERSON> walks in" and "[Music] A man" are text, and so is a mark with nothing behind it. Of
    special tokens, "<|sep|>", only one that says so opens a block.
    """
    rest, written = text[mark.end :], text[mark.start : mark.end].strip("<>|\uff5c")
    if mark.form == "square" or (mark.form == "bars" and not _OPENING.search(written)):
        return False
    return bool(rest.strip()) and not re.match(r"[^\S\n]|[,;.:)]", rest)


def _final_channel(text: str) -> tuple[str, bool]:
    """What gpt-oss says in its last final channel; whether it says something in others alone."""
    # Such a reply begins with a channel; one further on is something that an answer quotes.
    if _CHANNEL.match(text.lstrip().removeprefix("<|start|>assistant")):
        channels = list(_CHANNEL.finditer(text))
        final = [match for match in channels if match["name"].lower() == "final"]
        if not final:
            return "", True
        start = final[-1].end()
        end = _CHANNEL_END.search(text, start)
        return text[start : end.start() if end else len(text)], False
    if _PLAIN_CHANNELS.match(text):
        _, found, answer = text.rpartition(_PLAIN_FINAL)
        return (answer, False) if found else ("", True)
    return text, False
