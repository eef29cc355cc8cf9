"""A rating or a label that a judge states in words, where its reply holds no object. Pure.

A statement is the whole reply, or stands under a label of its own ("Score: 4", "Verdict: Correct");
a label's word also counts at the start of the reply, with its reason behind. What is supposed,
asked, denied, corrected or one of several is no statement: nothing is guessed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal, get_args, get_origin

from annotated_types import Le
from pydantic.fields import FieldInfo

from lmms_eval_tasks.judges.objects import UnreadableError, squashed, unfenced
from lmms_eval_tasks.utils.replies import answers


def _words(text: str) -> str:
    """Alternation of the blank-separated words; "_" stands for a blank inside one."""
    return "(?:" + "|".join(word.replace("_", " ") for word in text.split()) + ")"


_LEAD = (
    r"(?:(?:my|the|your|overall|total|final|revised|adjusted|updated|corrected|new"
    r"|il|la|lo|mi[oa])\s+){0,3}"
)
_SIGN = r"[*_]*(?:\s?\([^()\n]{1,20}\)[*_]*)?\s?[:=][\s*_]*"  # " (1-5): "
# First words that suppose what they follow ("5 if all facts were there"), and those that halve it.
_SUPPOSED = _words(
    "if unless when whenever only would could might may should were maybe perhaps possibly "
    "probably provided assuming or nor at_first at_best "
    "(?:but|although)_(?:could|might|may|would|maybe|if) se solo sarebbe forse oppure o"
)
_HALVED = _words(
    "except but however partially partly mostly almost nearly half in_part ma però quasi "
    "parzialmente in_parte"
)


def _taken_back(words: str) -> re.Pattern[str]:
    """One of the words, a question, or an arrow to a number behind a statement, in its sentence."""
    return re.compile(
        rf"[^\w.!;\u3002\uff1b\n]{{0,8}}(?:\?|{words}\b)|[^.!?\n]{{0,80}}\?"
        r"|[ \t*_]{0,8}(?:[-=]>|[>|\u2192])[ \t*_]{0,8}[0-9]",
        re.IGNORECASE,
    )


# In front of a verdict of any form: what denies or supposes it, shows it as an example, or reports
# what somebody wants.
_UNSURE_BEFORE = re.compile(
    r"(?:(?:\b(?:not|never|cannot|non)|n't)\b[^.,;:!?{}\n]{0,25}|\b(?:if|unless|ideal\w*|se)\b"
    r"[^.;!?{}\n]{0,80}|\b(?:example|format|template|at (?:most|least)|wants?|asks? for|demands?"
    r"|esempio|formato|should i say|the (?:answer|candidate) says)\b[^.;!?{}\n]{0,20})"
    r"[\s:\"'`*~-]*(?:```\w*\s*)?\Z|(?<!~)~~\s*\Z|<!--\s*\Z",
    re.IGNORECASE,
)
_UNSURE_BEHIND = re.compile(
    r"[\s`*]{0,4}(?:\?|~~(?!~)|-->|(?:would|could|might|may|if|unless)\b|is (?:not|too)\b"
    r"|out of\b|/\s?\d)",
    re.IGNORECASE,
)


def check_sure(text: str, start: int, end: int) -> None:
    """A verdict at a place may not be denied, supposed, asked, struck out, or an example.

    Raises:
        UnreadableError: it is.
    """
    before, behind = text[max(0, start - 120) : start], text[end : end + 40]
    if _UNSURE_BEFORE.search(before) or _UNSURE_BEHIND.match(behind):
        raise UnreadableError("a verdict that is denied, asked, supposed or an example")


_REASON = _words(
    "because since as(?!_(?:far|long)_as) given due_to for_the_reason reason explanation "
    "perch[ée] poich[ée] in_quanto dato_che visto_che siccome"
)

# --- ratings --------------------------------------------------------------------------------------

_NUMBER = r"[-+]?[0-9]{1,9}(?:\.[0-9]{1,9})?"
# A rating: a number, perhaps over its scale's end, and not the first one of several ("1-5",
# "4 or 5", "4, 5") nor the beginning of something longer.
_RATING = (
    rf"(?P<value>{_NUMBER})(?:\s*(?:/|\bout\s+of\b)\s*(?P<over>{_NUMBER}))?"
    r"(?![\w%/]|[.,][0-9]|\s*[\u00b1\u2026^]|\s*(?:[-\u2013\u2014~&/,]|\b(?:to|or|and|of|out\s+of)\b)\s*[0-9])"
)
_ALONE = re.compile(_RATING)
_MARKED = (
    re.compile(rf"(?P<form>\[\[)\s*{_RATING}\s*\]\]"),
    re.compile(rf"(?P<form>\\boxed\{{)\s*{_RATING}\s*\}}"),
)
# Where a rating is stated: at the start of a line or a clause, "Final score (1-5): ".
_LABEL = (
    rf"(?:^|[.;,!?)]\s)[-#*_ \t]*(?P<label>{_LEAD}(?:rating|score|FIELD){_SIGN})"
    r"(?P<quote>['\"]?)(?=[-+]?[0-9])"
)
# "(out of 10)", "(0-100)", "(%)", "(scale 1-10)": a scale that ends at no schema's end.
_OTHER_SCALE = re.compile(
    r"[^.;\n]{0,30}?\((?:[^()]{0,20}\b)?(?:10|100|20|7)\b[^()]{0,12}\)|[^.;\n]{0,12}\(%\)"
    r"|[^.;\n]{0,20}\bon a scale of [01] to (?:10|100)\b",
    re.IGNORECASE,
)
_LEVEL = _words(
    "(?:very_)?(?:poor|bad|weak|low|fair|average|medium|adequate|good|strong|high|excellent) "
    "perfect correct incorrect"
)
_CLAUSE_END = r"[ \t*_'\"`\])}]*(?:\Z|[\r\n]|[^\w\s?=+~%/&])"
# Behind a rating: the end of its clause, a unit, a reason, or a name or sentence in capitals.
_ENDED = re.compile(
    rf"{_CLAUSE_END}|[ \t*_'\"`\])}}]*(?:(?-i:[A-Z])\w|{_REASON}\b"
    rf"|(?:points?|pts?|stars?|{_LEVEL}){_CLAUSE_END})",
    re.IGNORECASE,
)
_SUPPOSED_BEHIND = _taken_back(_SUPPOSED)
# "not [[5]]", "would get [[5]]", "if it named the dog [[5]]".
_SUPPOSED_BEFORE = re.compile(
    r"(?:(?:\b(?:not|never|no|non)|n't)"
    r"(?: (?:an?|be|deserve|worth|give|it|get|earn|reach|merita|un))*"
    r"|\bwould (?:be|get|deserve|have been|earn|need)\b[^.;:,\n]{0,20}"
    r"|\b(?:if|unless)\b[^.;:,\n]{0,60})[ '\"*(:,]*\Z",
    re.IGNORECASE,
)
# Another number that a reply ends at: "so 4.", "No, wait: 4", "4" on the last line.
_CONCLUDED = re.compile(
    r"(?:\b(?:so|thus|hence|therefore|wait|actually|final|edit|revised|updated|it should be"
    r"|(?:lower|raise|change) it to|no(?=[,:])|rather|correction|make (?:it|that)|mine is"
    r"|i(?:'d| would)?(?: rather)? (?:give|say|rate|choose)|quindi|dunque|anzi)\b"
    r"(?: (?:it(?:'s| is)?|this|that|the answer|an?|is)\b){0,3}[,: *_]{0,4}|[\n.!?;][ \t*_]{0,8})"
    rf"(?P<value>{_NUMBER})(?=[*_ \t]{{0,8}}\.?[*_ \t]{{0,8}}(?:\n|\Z))",
    re.IGNORECASE,
)


def bare_rating(text: str, field: FieldInfo, name: str, sources: Sequence[str]) -> str:
    """Return the number of a reply without an object, as text.

    Args:
        text: the reply without reasoning and objects.
        field: the schema's field that the rating fills, called `name`.
        sources: texts that the judge may quote; a rating that stands in one is none.

    Raises:
        UnreadableError: there is no rating, more than one, or one on another scale.
    """
    whole = unfenced(text).strip("*_'\"`").strip().removesuffix(".")
    told = [squashed(unfenced(source)).removesuffix(".") for source in sources]
    if rating := _ALONE.fullmatch(whole):
        ratings, quoted = [rating], squashed(whole) in told
    else:
        stated = [*_marked(text), *_labelled(text, name)]
        ratings = [rating for _, rating in stated]
        forms = [squashed(form + rating["value"]) for form, rating in stated]
        quoted = any(form in source for form in forms for source in told)
    if not ratings:
        raise UnreadableError("no object with the keys of the schema, and no rating")
    last = max(rating.end() for rating in ratings)
    numbers = [*ratings, *_CONCLUDED.finditer(text, last)]
    if len({float(rating["value"]) for rating in numbers}) > 1:
        raise UnreadableError("different ratings in one reply")
    if quoted:
        raise UnreadableError("the reply repeats a rating of the candidate's text")
    for rating in ratings:
        _check_scale(rating, field)
    return ratings[0]["value"]


def _marked(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Ratings in brackets of their own, `[[4]]`, that nothing around them denies or supposes."""
    for form in _MARKED:
        for rating in form.finditer(text):
            after = text[rating.end() : rating.end() + 100]
            before = text[max(0, rating.start() - 100) : rating.start()]
            if _SUPPOSED_BEHIND.match(after) or _SUPPOSED_BEFORE.search(before):
                raise UnreadableError("a rating that is denied, asked or supposed")
            yield rating["form"], rating


def _labelled(text: str, name: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Ratings under a label: `Score: 4`, `Rating: "4"`."""
    label = re.compile(_LABEL.replace("FIELD", re.escape(name)), re.IGNORECASE | re.MULTILINE)
    for place in label.finditer(text):
        rating = _ALONE.match(text, place.end())
        if rating is None or not text.startswith(place["quote"], rating.end()):
            raise UnreadableError("a rating that is not one number")
        after = text[rating.end() : rating.end() + 100]
        check_sure(text, place.start("label"), rating.end())
        if _OTHER_SCALE.search(place[0]) or _OTHER_SCALE.match(after):
            raise UnreadableError("a rating on another scale")
        if _SUPPOSED_BEHIND.match(after) or not _ENDED.match(after):
            raise UnreadableError("a rating with more behind it than its end or a reason")
        yield place["label"], rating


def rating(text: str, field: FieldInfo) -> float | None:
    """The number of a text that is nothing but a rating, "4" or "4/5"; None if it is none.

    Raises:
        UnreadableError: it is on another scale than the field's.
    """
    if match := _ALONE.fullmatch(text.strip()):
        _check_scale(match, field)
        return float(match["value"])
    return None


def _check_scale(rating: re.Match[str], field: FieldInfo) -> None:
    """A rating "4/5" is one on the schema's scale only if that ends at 5; else UnreadableError."""
    ends = [limit.le for limit in field.metadata if isinstance(limit, Le)]
    if get_origin(field.annotation) is Literal:
        ends += sorted(o for o in get_args(field.annotation) if type(o) is int)[-1:]
    if rating["over"] is not None and float(rating["over"]) not in ends:
        raise UnreadableError("a rating on another scale")


# --- labels ---------------------------------------------------------------------------------------

_MAX_LABELS = 100  # in one reply; bounds the work
_NOUN = _words(
    "verdict judge?ment assessment evaluation decision conclusion result outcome label grade "
    "rating classification answer reply response output verdetto giudizio valutazione decisione "
    "conclusione risultato esito etichetta classificazione risposta"
)
_UNDER = re.compile(
    rf"(?:\A|[\n.!?;])[^\w\n>]{{0,8}}(?P<form>{_LEAD}{_NOUN}(?: {_NOUN}| finale| definitiv[oa])?"
    r"[*_\"']{0,4}(?: ?\([^()\n]{1,40}\)[*_]{0,4})? ?"
    r"(?:[:=\u2013\u2014\u2192]|->?)[^\w?>]{0,12})\Z",
    re.IGNORECASE,
)
_FIRST = re.compile(r"[^\w?>]*\Z")
_WRAPPED = re.compile(rf"</?{_NOUN}>|\\(?:boxed|text\w{{0,4}}|mathrm) ?\{{", re.IGNORECASE)
# Where one label is ticked, the others' lines, with an empty box or a cross, are not chosen.
_TICKED = re.compile(r"(?m)^[ \t*-]{0,6}(?:\[[xX]\]|[\u2705\u2713\u2714])")
_UNTICKED = re.compile(r"(?m)^[ \t*-]{0,6}(?:\[ \]|[\u274c\u2717\u2718\u2610])[^\n]*$")
_TICK = re.compile(
    r"[*_'\"`)\]}\s]{0,8}(?:(?P<no>[\u274c\u2717\u2718\u00d7\u2612])|[\u2705\u2713\u2714\u2611])\ufe0f?"
)
_CLOSERS = r"[*_'\"`)\]}>\u00bb\u201d]*"
_OPEN_BEHIND = _taken_back(f"(?:{_SUPPOSED}|{_HALVED})")
# Behind a label: the end of its sentence or line; a sign or a word that opens a reason.
_DONE = re.compile(
    rf"{_CLOSERS}(?:[ \t]*(?:\Z|\n|[.!;\u2026\u3002]|(?P<sign>[,:(\[\u2013\u2014]|-(?!\w)))"
    rf"|[ \t]+{_REASON}\b)",
    re.IGNORECASE,
)
# A value or a denial that is a clause of its own: "Correct: false", "Correct. No."
_VALUE = re.compile(
    r"[^\w\n]*(?:true|false|yes|no(?:pe)?|s[iì]|ver[oa]|fals[oa]|wrong|right|none|null|nan|n/?a"
    r"|un(?:known|clear|sure|certain)|or (?:not|no)|o no"
    r"|not(?: (?:really|quite|at all|exactly|so|true|right))?|non (?:proprio|del tutto|è vero)"
    r"|[0-9][0-9/.,% ]*(?:(?:out )?of [0-9]+)?)(?: (?:or|o) \w+)?"
    r"(?=[\s)\]'\"*_]*(?:[.,;!?)\n]|\Z))",
    re.IGNORECASE,
)
# Behind "Correct:" or "Correct (": words that deny it.
_DENIES = re.compile(
    r"[\s*_'\"]*(?:[\u274c\u2717\u2718\u00d7]|\U0001f44e|(?:[nx]|0|zero|no|none|not(?! incorrect)"
    r"|never|neither|nein|nessun\w*|niente|non|não|нет|不\w*|いいえ|wrong|false|untrue|fail\w*"
    r"|contradict\w*|disagree\w*|does not|doesn't|do not|don't|cannot|can't|unfortunately"
    r"|absolutely not|somewhat|partial\w*|sort of|sbagliat\w|errat\w)(?!\w))",
    re.IGNORECASE,
)
_CORRECTED = re.compile(
    r"(?:\A|[.!?,;:\n\u2013\u2014-])[^\w\n]*(?:no,? |but )?"
    + _words(
        "wait oops hold_on correction scratch_that on_second_thoughts? let_me_re\\w+ i_take_that "
        "i_was_wrong just_kidding anzi aspetta ripensandoci"
    )
    + r"\b",
    re.IGNORECASE,
)
_WRONG = re.compile(
    r"(?:\A|[.!\n])[^\w\n]{0,4}(?:(?:actually|hmm|my mistake)[,:]? )?"
    r"(?:no|wrong|partially|it's wrong)[.!]?[*_]*(?=\s*(?:\Z|\n))"
    r"|\b(?:is|are|was|è|sono)(?: \w+ly)? "
    r"(?:wrong|false|inaccurate|sbagliat\w|errat\w|fals[aoe])\b",
    re.IGNORECASE,
)
# "the correct place", "to be correct": the word, and no verdict.
_ATTRIBUTE = re.compile(
    r"(?:\b(?:the|an?|its?|their|one|no|any|each|most|only|il|la|lo|una?|le|i|gli) (?:\w+ )?"
    r"|\bl')\Z",
    re.IGNORECASE,
)
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
    text = _WRAPPED.sub("\n", text).strip()
    if _TICKED.search(text):
        text = _TICKED.sub("", _UNTICKED.sub("", text)).strip()
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
    tail = after[done.end() :]
    # "Correct: F": so short a text behind a colon is a value, and no reason.
    is_value = done["sign"] == ":" and len(sentence[done.end() :].split()) < 2 and not under
    denied = not denies and done["sign"] in (":", "(", ",") and _DENIES.match(tail)
    lead = head[-200:][: under.start("form")] if under else head
    unsure = lead.strip() and _UNSURE_BEFORE.search(lead[-120:])
    is_key = done["sign"] == ":" and not tail.strip()
    if denied or unsure or is_key or is_value or _VALUE.match(tail):
        return False
    # Of a reply that was cut, the next word may still become a label, a value or a denial.
    if cut and (open_word := re.fullmatch(r"\W*(\w*)", tail)):
        begun = open_word[1].casefold()
        if done["sign"] or (begun and any(one.startswith(begun) for one in (*words, "no"))):
            return False
    # What stands in the candidate's text may be a quotation, unless it is a word alone.
    if head[-1:] in ("'", '"') and re.search(r"\w", sentence):
        return not any(place[0].casefold() in one for one in quotes)
    form = under["form"] + place[0] if under else line + place[0] + sentence
    return not re.search(r"\w", form.replace(place[0], "")) or not any(
        squashed(form) in one for one in quotes
    )


def _is_against(text: str, place: re.Match[str], *, same: bool) -> bool:
    """Whether a label's word behind the verdict makes it doubtful: another one, or the same denied.

    "The correct place" and "to be correct" are no labels.
    """
    before, after = text[max(0, place.start() - 100) : place.start()], text[place.end() :][:100]
    is_noun = re.match(r"['\"*_`]* \w", after) and _ATTRIBUTE.search(before)
    return not (is_noun or _TO_BE.search(before)) and answers.is_denied(before, after) == same
