"""A label that a judge states in words, in a reply without an object. Pure.

A label is the whole reply, or follows its noun ("Verdict: Correct"), or begins the reply with its
reason after it. A label that is supposed, asked, denied, corrected or one of several is no
statement: nothing is guessed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import islice

from lmms_eval_tasks.judges.reading.doubts import guard, is_doubted
from lmms_eval_tasks.judges.reading.objects import UnreadableError, squashed, unfenced
from lmms_eval_tasks.utils.replies import denials, forms

_MAX_LABELS = 100  # in one reply; limits the work


def _is_denying(tail: str) -> bool:
    """Return True if the text after "Correct:" begins with a denial, in any language."""
    if guard("agrees").match(tail):
        return False
    guards, first = forms.guards(), re.match(r"[^\w\n]*(\w+)", tail)
    word = f"{first[1]}," if first else ""
    return bool(
        guard("denies").match(tail)
        or guards["correction"].match(word)
        or (first and guards["denied before"].search(first[1]))
    )


def label(text: str, words: Sequence[str], sources: Sequence[str], *, cut: bool = False) -> str:
    """Return the one of `words` that a reply without an object gives as its verdict.

    Args:
        text: the reply without reasoning.
        words: the labels; if one ends with another ("Incorrect", "Correct"), it denies that one.
        sources: texts that the judge may quote; a label in one is no verdict.
        cut: True if the reply was cut off; a label then counts if the text after it cannot change
            it.

    Raises:
        UnreadableError: no label, more than one, or one that is denied, asked, supposed, taken back
            or has a value after it.
    """
    text = unicodedata.normalize("NFKC", unfenced(text).replace("\u2019", "'"))
    text = re.sub(r"(?<!\w)__|__(?!\w)", "**", guard("wrapped").sub("\n", text))
    text = guard("checkbox").sub("", text).strip()
    quotes = [squashed(guard("wrapped").sub("\n", source)) for source in sources]
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


def check_around(text: str, words: Sequence[str], label: str) -> None:
    """Check that the text around the label `label` has no other label, and does not cancel it.

    Raises:
        UnreadableError: it does.
    """
    label = label.casefold()
    if guard("corrected").search(text) or (
        label not in _denying(words) and guard("wrong").search(text)
    ):
        raise UnreadableError("a label that the reply takes back")
    if any(_is_against(text, place, same=word == label) for place, word in _places(text, words)):
        raise UnreadableError("another label beside the first one")


def _places(text: str, words: Sequence[str]) -> list[tuple[re.Match[str], str]]:
    """Return the places of labels in a text, as separate words, each with its label."""
    names = sorted(map(re.escape, words), key=len, reverse=True)
    found = re.finditer(rf"(?<![\w-])(?:{'|'.join(names)})(?![\w/|])", text, re.IGNORECASE)
    places = [(place, place[0].casefold()) for place in islice(found, _MAX_LABELS + 1)]
    if len(places) > _MAX_LABELS:
        raise UnreadableError(f"more than {_MAX_LABELS} labels in one reply")
    return places


def _denying(words: Sequence[str]) -> set[str]:
    """Return the labels that deny another one: "incorrect" of Correct and Incorrect."""
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
    """Return True if a label's word is a verdict at its place."""
    head, after = text[: place.start()], text[place.end() :]
    lines, line = head[-200:].rpartition("\n")[::2]
    under, first = guard("under").search(head[-200:]), re.match(r"[^\w?>]*\Z", head)
    # A word alone on the last line, but not a quotation ("The answer says:", or a quoted line).
    last = not cut and not re.search(r"[\w>?]", line + after) and not lines.rstrip().endswith(":")
    last = last and not any(place[0].casefold() in one for one in quotes)
    for tick in (guard("tick").search(line[-4:]), guard("tick").match(after)):
        if tick and bool(tick["no"]) != denies:
            return False
    if tick:
        after = after[tick.end() :]
    done, sentence = guard("label ended").match(after), after.partition("\n")[0]
    if not (under or first or last) or done is None or guard("open behind").match(sentence):
        return False
    begin = len(head) - len(under["form"]) if under else len(head)
    if (under and under["is"] and not place[0][0].isupper()) or is_doubted(
        text, begin, place.end()
    ):
        return False
    turning = words if denies else (*words, *forms.load_table("statements")["turning"].split())
    if not _is_kept(after[done.end() :], done["sign"] or "", turning, denies=denies, cut=cut):
        return False
    # A form that occurs in the candidate's text may be a quotation, unless it is a word alone.
    if head[-1:] in ("'", '"') and re.search(r"\w", sentence):
        return not any(place[0].casefold() in one for one in quotes)
    form = under["form"] + place[0] if under else line + place[0] + sentence
    return not re.search(r"\w", form.replace(place[0], "")) or not any(
        squashed(form) in one for one in quotes
    )


def _is_kept(tail: str, sign: str, turning: Sequence[str], *, denies: bool, cut: bool) -> bool:
    """Return True if the text after a label and its `sign` does not change it."""
    agrees = denies and (re.match(r"\W*0 ?(?:of|out|/|su)\b", tail) or (cut and sign != ":"))
    denied = not denies and (guard("no below").match("\n" + tail) or (sign and _is_denying(tail)))
    is_empty = sign == ":" and not re.match(r"\s*\n|[^\n]*\w", tail)
    if denied or is_empty or (guard("value").match(tail) and not agrees):
        return False
    # In a reply that was cut, the next word may still become a label, a value or a denial.
    begun = re.fullmatch(r"\W*(\w*)", tail) if cut else None
    word = begun[1].casefold() if begun else ""
    can_turn = bool(word) and any(one.startswith(word) for one in turning)
    return not (begun and ((sign and sign in ":([") or can_turn))


def _is_against(text: str, place: re.Match[str], *, same: bool) -> bool:
    """Return True if a later label makes the verdict doubtful: another label, or a denied one.

    "The correct place" and "to be correct" are no labels.
    """
    before, after = text[max(0, place.start() - 100) : place.start()], text[place.end() :][:100]
    if not same and guard("in part").search(before):
        return False
    is_noun = re.match(r"['\"*_`]* \w", after) and guard("attribute").search(before)
    return (
        not (is_noun or guard("to be").search(before)) and denials.is_denied(before, after) == same
    )
