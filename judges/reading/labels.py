"""A label that a judge states in words, where its reply holds no object. Pure.

A label is the whole reply, or stands under a noun of its own ("Verdict: Correct") or at the start
of the reply, with its reason behind. What is supposed, asked, denied, corrected or one of several
is no statement: nothing is guessed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import islice

from lmms_eval_tasks.judges.reading.doubts import (
    HALVED,
    LEAD,
    REASON,
    SUPPOSED,
    any_of,
    is_doubted,
    taken_back,
)
from lmms_eval_tasks.judges.reading.objects import UnreadableError, squashed, unfenced
from lmms_eval_tasks.utils.replies import answers, forms

_MAX_LABELS = 100  # in one reply; bounds the work
_NOUN = any_of(
    "verdict judge?ment assessment evaluation decision conclusion result outcome label grade "
    "rating classification answer reply response output verdetto giudizio valutazione decisione "
    "conclusione risultato esito etichetta classificazione risposta"
)
_UNDER = re.compile(
    rf"(?:\A|[\n.!?;:])[^\w\n>]{{0,8}}(?P<form>{LEAD}{_NOUN}(?: {_NOUN}| finale| definitiv[oa])?"
    r"[*_\"']{0,4}(?: ?\([^()\n]{1,40}\)[*_]{0,4})? ?"
    r"(?:[:=\u2013\u2014\u2192]|->?|(?P<is>\b(?:is|è)\b:?))[^\w?>]{0,12})\Z",
    re.IGNORECASE,
)
_FIRST = re.compile(r"[^\w?>]*\Z")
_WRAPPED = re.compile(rf"</?{_NOUN}>|\\(?:boxed|text\w{{0,4}}|mathrm) ?\{{", re.IGNORECASE)
_NO_SIGN = r"[\u274c\u2717\u2718\u00d7\u2612\U0001f44e]"
# A tick on a line of its own belongs to the label above; one before words to those.
_TICK = re.compile(
    rf"(?:[*_'\"`)\]}} \t]{{0,8}}|[*_'\"`)\]}}\s]{{0,8}}(?=[^\w\s]+\s*(?:\n|\Z)))"
    rf"(?:(?P<no>{_NO_SIGN})|[\u2705\u2713\u2714\u2611\U0001f44d])\ufe0f?"
)
_CHECKBOX = re.compile(
    r"^[-*+\u2022 \t]*(?:\[(?:(?P<set>[xX\u2713\u2714])|[ \t]?)\]|[\u2610\u25a1])(?(set)|[^\n]*)",
    re.MULTILINE,
)
_CLOSERS = r"[*_'\"`)\]}>\u00bb\u201d$]*"
_OPEN_BEHIND = taken_back(f"(?:{SUPPOSED}|{HALVED})")
# Behind a label: the end of its sentence or line; a sign or a word that opens a reason.
_DONE = re.compile(
    rf"{_CLOSERS}(?:[ \t]*(?:\Z|\n|[.!;\u2026\u3002]|(?P<sign>[,:(\[\u2013\u2014]|-(?!\w)))"
    rf"|[ \t]+{REASON}\b)",
    re.IGNORECASE,
)
# A value or a denial that is a clause of its own: "Correct: false", "Correct. No."
_VALUE = re.compile(
    r"[^\w\n]*(?:true|false|yes|no(?:pe)?|s[iì]|ver[oa]|fals[oa]|wrong|right|none|null|nan|n/?a"
    r"|un(?:known|clear|sure|certain)|or (?:not|no)|o no|partial(?:ly)?|partly|somewhat"
    r"|not(?: (?:really|quite|at all|exactly|so|true|right))?|non (?:proprio|del tutto|è vero)"
    r"|[0-9][0-9/.,% ]*(?:(?:out )?of [0-9]+)?)(?: (?:or|o) \w+)?"
    r"(?=[\s)\]'\"*_]*(?:[.,;!?)\n]|\Z))",
    re.IGNORECASE,
)
# What denies behind "Correct:", "Correct (" and "Correct,", beside the words of languages.yml.
_DENIES = re.compile(
    rf"[^\w\n]*(?:{_NO_SIGN}|[\u5426\u9519\u932f\u4e0d]|\u3044\u3044\u3048|(?:[nfx0]|"
    + any_of(
        "not? non? never none neither nor nobody nothing zero niente nada nessun\\w* cannot can't "
        "unable do(?:es)?(?:n't|_not) is(?:n't|_not) wrong fail\\w* nah nope negative disagree\\w* "
        "contradict\\w* mismatch\\w* insufficient unfortunately absolutely_not sort_of kind_of "
        "somewhat hardly barely inaccurate missing rejected"
    )
    + r")(?![\w-]))",
    re.IGNORECASE,
)
# "No contradiction", "none of them disagrees": both denied.
_AGREES = re.compile(
    r"[^\w\n]*(?:no|not|none|nothing|does(?:n't| not)|non|nessun\w*|0)(?: \w+){0,4}? (?:contra\w+"
    r"|conflict|disagree|differ|error|mistake|discrepan|issue|problem|miss|wrong|incorrect|only)",
    re.IGNORECASE,
)


def _is_denying(tail: str) -> bool:
    """Whether what follows "Correct:" begins with a denial, in any language."""
    if _AGREES.match(tail):
        return False
    guards, first = forms.guards(), re.match(r"[^\w\n]*(\w+)", tail)
    word = f"{first[1]}," if first else ""
    return bool(
        _DENIES.match(tail)
        or guards["correction"].match(word)
        or (first and guards["denied before"].search(first[1]))
    )


_NO_BELOW = re.compile(r"\s*\n\W*(?:no(?:pe)?|wrong|false)\W*\Z", re.IGNORECASE)
_CORRECTED = re.compile(
    r"(?:\A|[.!?,;:\n\u2013\u2014-])[^\w\n]*(?:no,? |but |oh,? )?"
    + any_of(
        "hm+ my_mistake sorry update changed_to actually,?_(?:no|yes|not|wrong) "
        "wait oops strike_that hold_on correction scratch_that "
        "on_second_thoughts? let_me_re\\w+ i_take_that "
        "i_was_wrong just_kidding anzi aspetta ripensandoci"
    )
    + r"\b",
    re.IGNORECASE,
)
_WRONG = re.compile(
    r"(?:\b(?:is|are|was|è|sono)|'s)(?: \w+ly)? "
    r"(?:wrong|false|inaccurate|sbagliat\w|errat\w|fals[aoe])\b",
    re.IGNORECASE,
)
# "the correct place", "to be correct": the word, and no verdict.
_ATTRIBUTE = re.compile(
    r"(?:\b(?:the|an?|its?|their|one|no|any|each|most|only|il|la|lo|una?|le|i|gli) (?:\w+ )?"
    r"|\bl')\Z",
    re.IGNORECASE,
)
# "Only part of it is correct": no other verdict.
_IN_PART = re.compile(
    r"\b(?:only|part|partly|partially|some|while|although|though|solo|mentre)\b[^.!?\n]*\Z",
    re.IGNORECASE,
)
# Words that turn "Correct" where they follow it; a cut one may be any that it begins.
_TURNING = (
    "no not none never neither but if unless except only however partially partly mostly almost "
    "nearly although wait false wrong ma se solo non nessuno però quasi anzi parzialmente or oppure"
).split()
_TO_BE = re.compile(
    r"\b(?:to|would|could|should|must) (?:be|have been)(?: \w+)? ?\Z", re.IGNORECASE
)


def label(text: str, words: Sequence[str], sources: Sequence[str], *, cut: bool = False) -> str:
    """Return the one of `words` that a reply without an object gives as its verdict.

    Args:
        text: the reply without reasoning.
        words: the labels; if one ends with another ("Incorrect", "Correct") it denies that.
        sources: texts that the judge may quote; what stands in one is no verdict.
        cut: the reply was cut off; a label counts if what stands behind it cannot change it.

    Raises:
        UnreadableError: no label, more than one, or one that is denied, asked, supposed, taken back
            or has a value behind it.
    """
    text = unicodedata.normalize("NFKC", unfenced(text).replace("\u2019", "'"))
    text = re.sub(r"(?<!\w)__|__(?!\w)", "**", _WRAPPED.sub("\n", text))
    text = _CHECKBOX.sub("", text).strip()
    quotes = [squashed(_WRAPPED.sub("\n", source)) for source in sources]
    folded, denying = [word.casefold() for word in words], _denying(words)
    stated = [
        (place, word)
        for place, word in _places(text, words)
        if _is_stated(text, place, folded, quotes, denies=word in denying, cut=cut)
    ]
    if not stated:
        raise UnreadableError(f"not one of the words {', '.join(words)}")
    last, said = stated[-1]
    if len({word for _, word in stated}) > 1:
        raise UnreadableError("different labels in one reply")
    check_around(text[last.end() :], words, said)
    whole = squashed(text).removesuffix(".")
    if any(whole == one.removesuffix(".") or (whole != said and whole in one) for one in quotes):
        raise UnreadableError("the reply repeats the candidate's text")
    return next(word for word in words if word.casefold() == said)


def check_around(text: str, words: Sequence[str], said: str) -> None:
    """What stands beside a label that is `said` may not hold another one, nor take it back.

    Raises:
        UnreadableError: it does.
    """
    said = said.casefold()
    if _CORRECTED.search(text) or (said not in _denying(words) and _WRONG.search(text)):
        raise UnreadableError("a label that the reply takes back")
    if any(_is_against(text, place, same=word == said) for place, word in _places(text, words)):
        raise UnreadableError("another label beside the first one")


def _places(text: str, words: Sequence[str]) -> list[tuple[re.Match[str], str]]:
    """Where the labels stand in a text as words of their own, each with the label."""
    names = sorted(map(re.escape, words), key=len, reverse=True)
    found = re.finditer(rf"(?<![\w-])(?:{'|'.join(names)})(?![\w/|])", text, re.IGNORECASE)
    places = [(place, place[0].casefold()) for place in islice(found, _MAX_LABELS + 1)]
    if len(places) > _MAX_LABELS:
        raise UnreadableError(f"more than {_MAX_LABELS} labels in one reply")
    return places


def _denying(words: Sequence[str]) -> set[str]:
    """The labels that deny another one: "incorrect" of Correct and Incorrect."""
    folded = [word.casefold() for word in words]
    return {one for one in folded if any(one != two and one.endswith(two) for two in folded)}


def _is_stated(
    text: str,
    place: re.Match[str],
    words: Sequence[str],
    quotes: Sequence[str],
    *,
    denies: bool,
    cut: bool,
) -> bool:
    """Whether a label's word is a verdict where it stands."""
    head, after = text[: place.start()], text[place.end() :]
    lines, line = head[-200:].rpartition("\n")[::2]
    under, first = _UNDER.search(head[-200:]), _FIRST.match(head)
    # A word alone on the last line, and no quotation ("The answer says:", or a line of that).
    last = not cut and not re.search(r"[\w>?]", line + after) and not lines.rstrip().endswith(":")
    last = last and not any(place[0].casefold() in one for one in quotes)
    for tick in (_TICK.search(line[-4:]), _TICK.match(after)):
        if tick and bool(tick["no"]) != denies:
            return False
    if tick:
        after = after[tick.end() :]
    done, sentence = _DONE.match(after), after.partition("\n")[0]
    if not (under or first or last) or done is None or _OPEN_BEHIND.match(sentence):
        return False
    begin = len(head) - len(under["form"]) if under else len(head)
    if (under and under["is"] and not place[0][0].isupper()) or is_doubted(
        text, begin, place.end()
    ):
        return False
    turning = words if denies else (*words, *_TURNING)
    if not _is_kept(after[done.end() :], done["sign"] or "", turning, denies=denies, cut=cut):
        return False
    # What stands in the candidate's text may be a quotation, unless it is a word alone.
    if head[-1:] in ("'", '"') and re.search(r"\w", sentence):
        return not any(place[0].casefold() in one for one in quotes)
    form = under["form"] + place[0] if under else line + place[0] + sentence
    return not re.search(r"\w", form.replace(place[0], "")) or not any(
        squashed(form) in one for one in quotes
    )


def _is_kept(tail: str, sign: str, turning: Sequence[str], *, denies: bool, cut: bool) -> bool:
    """Whether what stands behind a label and its `sign` leaves it as it is."""
    agrees = denies and (re.match(r"\W*0 ?(?:of|out|/|su)\b", tail) or (cut and sign != ":"))
    denied = not denies and (_NO_BELOW.match("\n" + tail) or (sign and _is_denying(tail)))
    is_empty = sign == ":" and not re.match(r"\s*\n|[^\n]*\w", tail)
    if denied or is_empty or (_VALUE.match(tail) and not agrees):
        return False
    # Of a reply that was cut, the next word may still become a label, a value or a denial.
    begun = re.fullmatch(r"\W*(\w*)", tail) if cut else None
    word = begun[1].casefold() if begun else ""
    can_turn = bool(word) and any(one.startswith(word) for one in turning)
    return not (begun and ((sign and sign in ":([") or can_turn))


def _is_against(text: str, place: re.Match[str], *, same: bool) -> bool:
    """Whether a label's word behind the verdict makes it doubtful: another one, or the same denied.

    "The correct place" and "to be correct" are no labels.
    """
    before, after = text[max(0, place.start() - 100) : place.start()], text[place.end() :][:100]
    if not same and _IN_PART.search(before):
        return False
    is_noun = re.match(r"['\"*_`]* \w", after) and _ATTRIBUTE.search(before)
    return not (is_noun or _TO_BE.search(before)) and answers.is_denied(before, after) == same
