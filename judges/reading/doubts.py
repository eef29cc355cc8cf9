"""Words around a statement that make it none: it is supposed, asked, denied or taken back. Pure."""

from __future__ import annotations

import re


def any_of(text: str) -> str:
    """Alternation of the blank-separated words; "_" stands for a blank inside one."""
    return "(?:" + "|".join(word.replace("_", " ") for word in text.split()) + ")"


LEAD = r"(?:(?:my|the|your|overall|total|final|il|la|lo|mi[oa])\s+){0,3}"
SIGN = r"[*_]*(?:\s?\([^()\n]{1,20}\)[*_]*)?\s?[:=][\s*_]*"  # " (1-5): "
# First words that suppose what they follow ("5 if all facts were there"), and those that halve it.
SUPPOSED = any_of(
    "if unless when whenever only would could might may should were maybe perhaps possibly "
    "probably provided assuming or nor at_first at_best had_(?:it|the|this|he|she|they) "
    "not_(?:really|quite|at_all|exactly) just_an?_example "
    "(?:is|was)_(?:not|what|too|an?_example|the_(?:form|format|example)) (?:is|was|does)n't "
    "(?:but|although)_(?:could|might|may|would|maybe|if) se solo sarebbe forse oppure o"
)
HALVED = any_of(
    "except but however partially partly mostly almost nearly half in_part ma però quasi "
    "parzialmente in_parte"
)


def taken_back(words: str) -> re.Pattern[str]:
    """One of the words, a question, or an arrow to a number behind a statement, in its sentence."""
    return re.compile(
        rf"(?:[^\w.!;\u3002\uff1b\n]|\.{{2,4}}){{0,8}}(?:\?|{words}\b)|[^.!?\n]{{0,80}}\?"
        r"|[ \t*_]{0,8}(?:[-=]>|[>|\u2192])[ \t*_]{0,8}[0-9]",
        re.IGNORECASE,
    )


_SUPPOSED_BEHIND = taken_back(SUPPOSED)
REASON = any_of(
    "because since as(?!_(?:far|long)_as) given due_to for_the_reason reason explanation "
    "perch[ée] poich[ée] in_quanto dato_che visto_che siccome"
)

# Words right in front of a statement that deny or ask it, or give an example: "not [[5]]",
# "Is it\nCorrect".
_FILLER = any_of(
    "an? the be is are it this that deserve worth give get earn reach merit call(?:ed)? award "
    "really quite exactly un[ao]? merita è"
)
_GIVES = any_of("calls? makes? says? is be gives? supports?")
_DENIED_BEFORE = re.compile(
    rf"(?:(?:\b(?:not|never|cannot|non|(?:rather|less|more|higher|lower|other) than|instead of"
    rf"|at (?:most|least|best)|up to|maybe|perhaps|forse)|n't|\u00ac)(?: {_FILLER}){{0,4}}"
    rf"|(?:\A|[.;,:!?\n] ?)(?:is|does|should|shall|can|could|would) (?:it|this|that|i)"
    rf"(?: (?:{_FILLER}|say|answer|rate|reply)){{0,4}}"
    rf"|\b(?:none|nothing|nobody|no one|no reference)\b[^.;:\n]{{0,40}} {_GIVES}(?: it)?"
    r"|\b(?:for (?:example|instance)|e\.g\.|such as|(?:per|ad) esempio)"
    r"|(?:\A|[.;\n])[\W_]{0,8}(?:the |an? )?"
    r"(?:(?:expected|required|output|reply|example|sample) )?"
    r"(?:example|format|template|esempio|formato)(?: (?:output|reply|answer|is|would be))?"
    r"|\bwould be|\bwhether\b[^.;:,\n]{0,40}"
    r"|(?<!~)~~|<!--|<(?:s|del|draft|quote|candidate|example)>)\Z",
    re.IGNORECASE,
)
# A clause in front that supposes it, or tells of somebody else; on a line of its own it needs a
# colon ("If it named the dog:\nScore: 5").
_SUPPOSED_BEFORE = re.compile(
    r"(?:\bwould (?:be|get|deserve|have|earn|need)\b[^.;:,\n]{0,20}"
    r"|(?<!even )\b(?:if|unless|suppos\w*|assum\w+|imagine|tempted|never)\b[^.;:,\n]{0,60}"
    rf"|\bno(?: {_FILLER}){{0,4}}|(?:\A|[.;\n])[\W_]{{0,4}}(?:had\b|(?:an?|any|every) (?:\w+ )?"
    r"(?:answer|reply|response)\b)[^.;:\n]{0,60}"
    r"|\b(?:someone|one|you|others|people|some) (?:might|may|could|would|can)\b[^.;:,\n]{0,20}"
    r"|\b(?:candidate|user|answer|text|reply|response|it|he|she)"
    r" (?:wants?|asks?(?: for)?|claims?|says?|demands?))\Z",
    re.IGNORECASE,
)
BRACKET = re.compile(r"[\s*_'\"`.,;:]{0,8}[(\[](?P<inner>[^()\[\]\n]{1,40})[)\]]")


def is_doubted(text: str, start: int, end: int) -> bool:
    """Whether what stands right before or behind a statement, text[start:end], makes it none."""
    before = re.sub(r"`{3,}\w*\s*\Z", "", text[max(0, start - 150) : start])
    plain = before.rstrip(" \t\r\n'\"*_`(:,[$")
    between, after = set(before[len(plain) :]), text[end : end + 150]
    is_near = "\n" not in between or bool(between & set(":,"))
    bracket = BRACKET.match(after)
    return bool(
        _DENIED_BEFORE.search(plain)
        or (is_near and _SUPPOSED_BEFORE.search(plain))
        or _SUPPOSED_BEHIND.match(after)
        or (bracket and _SUPPOSED_BEHIND.match(after, bracket.end()))
    )
