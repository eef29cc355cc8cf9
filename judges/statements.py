"""A rating or a label that a judge states in words, where its reply holds no object. Pure.

A statement is the whole reply, or stands under a label of its own ("Score: 4", "Verdict: Correct");
a label's word also counts at the start of the reply, with its reason behind. What is supposed,
asked, denied, corrected or one of several is no statement: nothing is guessed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any, Literal, get_args, get_origin

from annotated_types import Le
from pydantic.fields import FieldInfo

from lmms_eval_tasks.judges.objects import ObjectSpan, UnreadableError, squashed, unfenced
from lmms_eval_tasks.utils.replies import answers, forms


def _words(text: str) -> str:
    """Alternation of the blank-separated words; "_" stands for a blank inside one."""
    return "(?:" + "|".join(word.replace("_", " ") for word in text.split()) + ")"


_LEAD = r"(?:(?:my|the|your|overall|total|final|il|la|lo|mi[oa])\s+){0,3}"
_SIGN = r"[*_]*(?:\s?\([^()\n]{1,20}\)[*_]*)?\s?[:=][\s*_]*"  # " (1-5): "
# First words that suppose what they follow ("5 if all facts were there"), and those that halve it.
_SUPPOSED = _words(
    "if unless when whenever only would could might may should were maybe perhaps possibly "
    "probably provided assuming or nor at_first at_best had_(?:it|the|this|he|she|they) "
    "not_(?:really|quite|at_all|exactly) just_an?_example "
    "(?:is|was)_(?:not|what|too|an?_example|the_(?:form|format|example)) (?:is|was|does)n't "
    "(?:but|although)_(?:could|might|may|would|maybe|if) se solo sarebbe forse oppure o"
)
_HALVED = _words(
    "except but however partially partly mostly almost nearly half in_part ma però quasi "
    "parzialmente in_parte"
)


def _taken_back(words: str) -> re.Pattern[str]:
    """One of the words, a question, or an arrow to a number behind a statement, in its sentence."""
    return re.compile(
        rf"(?:[^\w.!;\u3002\uff1b\n]|\.{{2,4}}){{0,8}}(?:\?|{words}\b)|[^.!?\n]{{0,80}}\?"
        r"|[ \t*_]{0,8}(?:[-=]>|[>|\u2192])[ \t*_]{0,8}[0-9]",
        re.IGNORECASE,
    )


_SUPPOSED_BEHIND = _taken_back(_SUPPOSED)
_REASON = _words(
    "because since as(?!_(?:far|long)_as) given due_to for_the_reason reason explanation "
    "perch[ée] poich[ée] in_quanto dato_che visto_che siccome"
)

# Words right in front of a statement that deny or ask it, or give an example: "not [[5]]",
# "Is it\nCorrect".
_FILLER = _words(
    "an? the be is are it this that deserve worth give get earn reach merit call(?:ed)? award "
    "really quite exactly un[ao]? merita è"
)
_GIVES = _words("calls? makes? says? is be gives? supports?")
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
_BRACKET = re.compile(r"[\s*_'\"`.,;:]{0,8}[(\[](?P<inner>[^()\[\]\n]{1,40})[)\]]")


def is_doubted(text: str, start: int, end: int) -> bool:
    """Whether what stands right before or behind a statement, text[start:end], makes it none."""
    before = re.sub(r"`{3,}\w*\s*\Z", "", text[max(0, start - 150) : start])
    plain = before.rstrip(" \t\r\n'\"*_`(:,[$")
    between, after = set(before[len(plain) :]), text[end : end + 150]
    is_near = "\n" not in between or bool(between & set(":,"))
    bracket = _BRACKET.match(after)
    return bool(
        _DENIED_BEFORE.search(plain)
        or (is_near and _SUPPOSED_BEFORE.search(plain))
        or _SUPPOSED_BEHIND.match(after)
        or (bracket and _SUPPOSED_BEHIND.match(after, bracket.end()))
    )


# --- ratings --------------------------------------------------------------------------------------

_NUMBER = r"[-+]?[0-9]{1,9}(?:\.[0-9]{1,9})?"
# A rating: a number, perhaps over its scale's end, and not the first one of several ("1-5",
# "4 or 5", "4, 5") nor the beginning of something longer.
_RATING = (
    rf"(?P<value>{_NUMBER})(?:\s*(?:/|\bout\s+of\b)\s*(?P<over>{_NUMBER}))?"
    r"(?![\w%/^]|[.,:][0-9]|\s*(?:[-\u2013\u2014~&/,\u00b1\u2026]|\.{2,}"
    r"|\b(?:to|or|and|of|out\s+of)\b)\s*[0-9])"
)
_ALONE = re.compile(_RATING)
_MARKED = (
    re.compile(rf"(?P<form>\[\[)\s*{_RATING}\s*\]\]"),
    re.compile(rf"(?P<form>\\boxed\{{)\s*{_RATING}\s*\}}"),
)
# Where a rating is stated: at the start of a line or a clause, "Final score (1-5): ".
_LABEL = (
    rf"(?:(?:^|[.;,!?)]\s)[-#*_ \t]*(?P<q>['\"]?)"
    rf"(?P<label>{_LEAD}(?:rating|score|FIELD)(?P=q){_SIGN})"
    r"|(?:^|[.;!?)]\s)[-#*_ \t]*(?:(?:so|thus|hence|therefore|overall|quindi|dunque),? )?"
    rf"(?P<copula>{_LEAD}(?:rating|score|FIELD)\s+(?:is|è)[:\s*_]+))"
    r"(?P<quote>['\"]|\[{1,2}|)(?=[-+]?[0-9])"
)
_SECOND = re.compile(r"[\]'\"]{1,2}\s*(?:[-~&/,\u2013\u2014]|or|and|to)\s*[\['\"]{1,2}[0-9]")
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
# Another number that a reply ends at: "so 4.", "No, wait: 4", "Revised score: 4", a last line "4".
_CONCLUDES = (
    r"(?:(?:\b(?:so|thus|hence|therefore|rather|mine is|adjusted|updated|new"
    r"|on (?:second|further) \w+"
    r"|i(?:'d| would)?(?: rather)? (?:give|say|rate|choose)|quindi|dunque|CORRECTS)(?!\w)"
    r"|(?:\A|[\n.,:;!?\u2013\u2014-])[ \t*_]{0,8}(?:no|final)\b)[,.: *_]{0,4}"
    r"(?:(?:it(?:'s)?|this|that|the|my|is|be|a|an|i|would|should|must|will|give|say|rate|lower|raise"
    r"|change|reduce|make|to|of|now|down|up|final|score|rating|answer|NAME)\b[,: *_]{1,4}){0,8}"
    r"|CORRECTS(?!\w)[^\n]{0,60}?(?:[:,]|\b(?:to|be|give|so))\s{1,3}"
    r"|[\n.!?;][ \t*_]{0,8})(?P<value>[-+]?[0-9]{1,3}(?:\.[0-9]{1,9})?)"
    r"(?=[*_ \t]{0,8}\.?[*_ \t]{0,8}(?:\n|\Z))"
)
# A reason behind a number that opens the reply: "4 because ...", "4 - good", "4 (one slip)".
_REASONED = re.compile(
    rf"{_RATING}(?=[*_'\"`]*(?:,?\s+{_REASON}\b|\s*[-\u2013\u2014:(]\s?[^\W\d_]|\s*\n))",
    re.IGNORECASE,
)
_SCALE_WORD = re.compile(
    "on|an?|the|scale|range|out|of|from|max(?:imum)?|possible|points?|to|in|percent|ten|hundred",
    re.IGNORECASE,
)


@cache
def _concluded(name: str) -> re.Pattern[str]:
    correction = forms.guards()["correction"].pattern.removeprefix(r"\b").removesuffix(r"(?!\w)")
    # These go on as often as they correct: "However, the reference says 3."
    correction = rf"(?!should|however|better|instead|in fact){correction}"
    pattern = _CONCLUDES.replace("CORRECTS", correction).replace("NAME", re.escape(name))
    return re.compile(pattern, re.IGNORECASE)


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
    whole = re.sub(r"\Afinal answer:\s*(?=[0-9])", "", whole, flags=re.IGNORECASE)
    told = [squashed(unfenced(source)).removesuffix(".") for source in sources]
    if rating := _ALONE.fullmatch(whole):
        ratings, quoted = [rating], squashed(whole) in told
    else:
        stated = [*_marked(text), *_labelled(text, name)]
        ratings = [rating for _, rating in stated] or _reasoned(whole)
        text = text if stated else whole
        told_forms = [squashed(form + rating["value"]) for form, rating in stated] or [
            squashed(whole)
        ]
        quoted = any(form in source for form in told_forms for source in told)
    if not ratings:
        raise UnreadableError("no object with the keys of the schema, and no rating")
    _check_one([float(rating["value"]) for rating in ratings], text, ratings[-1].end(), name)
    if quoted:
        raise UnreadableError("the reply repeats a rating of the candidate's text")
    for rating in ratings:
        _check_scale(rating, field)
        label = text[max(0, rating.start() - 40) : rating.start()].rpartition("\n")[2]
        check_scale_around(label, text[rating.end() :], rating["value"], field)
    return ratings[0]["value"]


def check_beside(
    text: str, span: ObjectSpan, rating: tuple[str, float], field: FieldInfo, sources: Sequence[str]
) -> None:
    """What stands around an object with a rating, a field's name and value, states no other one.

    Raises:
        UnreadableError: it does, or it names another scale.
    """
    name, value = rating
    told = [squashed(source) for source in sources]
    numbers = [value]
    for part in (text[: span.start], text[span.end :]):
        if alone := _ALONE.fullmatch(part.strip(" \t\r\n*_`.")):
            numbers.append(float(alone["value"]))
        for form, other in _labelled(part, name, strict=False):
            if not any(squashed(form + other["value"]) in source for source in told):
                numbers.append(float(other["value"]))
    _check_one(numbers, text, span.end, name)
    check_scale_around("", text[span.end :], str(value), field)


def _check_one(numbers: Sequence[float], text: str, end: int, name: str) -> None:
    numbers = [*numbers, *(float(one["value"]) for one in _concluded(name).finditer(text, end))]
    if len(set(numbers)) > 1:
        raise UnreadableError("different ratings in one reply")


def _marked(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Ratings in brackets of their own, `[[4]]`, that nothing around them denies or supposes."""
    for form in _MARKED:
        for rating in form.finditer(text):
            if is_doubted(text, rating.start(), rating.end()):
                raise UnreadableError("a rating that is denied, asked or supposed")
            yield rating["form"], rating


def _labelled(text: str, name: str, *, strict: bool = True) -> Iterator[tuple[str, re.Match[str]]]:
    """Ratings under a label: `Score: 4`, `Rating: "4"`. Unless `strict`, others are passed over."""
    label = re.compile(_LABEL.replace("FIELD", re.escape(name)), re.IGNORECASE | re.MULTILINE)
    for place in label.finditer(text):
        rating, closing = _ALONE.match(text, place.end()), place["quote"].replace("[", "]")
        if (
            rating is None
            or not text.startswith(closing, rating.end())
            or _SECOND.match(text, rating.end())
        ):
            problem = "a rating that is not one number"
        elif is_doubted(
            text, max(place.start("label"), place.start("copula")), rating.end()
        ) or not _ENDED.match(text[rating.end() : rating.end() + 100]):
            problem = "a rating with more around it than its end or a reason"
        else:
            yield place["label"] or place["copula"], rating
            continue
        if strict:
            raise UnreadableError(problem)


def _reasoned(whole: str) -> list[re.Match[str]]:
    """The number that a reply begins with, its reason behind; not the first item of a list."""
    rating = _REASONED.match(whole)
    if rating is None or len(re.findall(r"^[\W_]*[0-9]", whole, re.MULTILINE)) > 1:
        return []
    others = re.search(r"[,;]\s*(?:not )?[0-9]+ ?\(", whole)
    return [] if others or is_doubted(whole, rating.start(), rating.end()) else [rating]


def rating(text: str, field: FieldInfo) -> float | None:
    """The number of a text that is nothing but a rating, "4" or "4/5"; None if it is none.

    Raises:
        UnreadableError: it is on another scale than the field's.
    """
    if match := _ALONE.fullmatch(text.strip()):
        _check_scale(match, field)
        return float(match["value"])
    return None


def ends(field: FieldInfo) -> list[float]:
    """The highest value of a field, if it has one."""
    found: list[Any] = [limit.le for limit in field.metadata if isinstance(limit, Le)]
    if get_origin(field.annotation) is Literal:
        found += sorted(o for o in get_args(field.annotation) if type(o) is int)[-1:]
    return found


def _check_scale(rating: re.Match[str], field: FieldInfo) -> None:
    """A rating "4/5" is one on the schema's scale only if that ends at 5; else UnreadableError."""
    if rating["over"] is not None and float(rating["over"]) not in ends(field):
        raise UnreadableError("a rating on another scale")


def check_scale_around(before: str, behind: str, value: str, field: FieldInfo) -> None:
    """A scale in words beside a rating, "(0-10)", is the schema's; else UnreadableError."""
    parts = re.findall(r"[(\[]([^()\[\]\n]{1,40})[)\]]", before)
    behind = behind[:100]
    if bracket := _BRACKET.match(behind):
        parts.append(bracket["inner"])
        beside = re.match(r"\s*(?:[-\u2013\u2014]|to|or)\s*[0-9]", behind[bracket.end() :])
        if beside or re.match(rf"{_NUMBER}\s+{_SUPPOSED}\b", parts[-1], re.IGNORECASE):
            raise UnreadableError("more than one number")
    if clause := re.match(r"[ \t*_'\"`.,;:]{0,8}([^\n()\[\].]{1,50})(?:[.\n]|\Z)", behind):
        parts += [clause[1]] if re.match(r"\W*(?:/|[a-z])", clause[1], re.IGNORECASE) else []
    for part in parts:
        words = re.findall(r"[^\W\d_]+", part.lower())
        numbers = [float(one) for one in re.findall(r"[0-9]+(?:\.[0-9]+)?", part)]
        numbers += [100.0] if {"ten", "hundred"} & {*words} else []
        if not all(map(_SCALE_WORD.fullmatch, words)) or not (
            numbers or "%" in part or "percent" in words
        ):
            continue
        is_scale = bool(words) or len(numbers) > 1 or re.match(r"\W*[/%]", part)
        known = ends(field) if is_scale else [float(value)]
        if max(numbers, default=100.0) not in known or "%" in part or "percent" in words:
            raise UnreadableError("a rating on another scale")


# --- labels ---------------------------------------------------------------------------------------

_MAX_LABELS = 100  # in one reply; bounds the work
_NOUN = _words(
    "verdict judge?ment assessment evaluation decision conclusion result outcome label grade "
    "rating classification answer reply response output verdetto giudizio valutazione decisione "
    "conclusione risultato esito etichetta classificazione risposta"
)
_UNDER = re.compile(
    rf"(?:\A|[\n.!?;:])[^\w\n>]{{0,8}}(?P<form>{_LEAD}{_NOUN}(?: {_NOUN}| finale| definitiv[oa])?"
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
    r"|un(?:known|clear|sure|certain)|or (?:not|no)|o no|partial(?:ly)?|partly|somewhat"
    r"|not(?: (?:really|quite|at all|exactly|so|true|right))?|non (?:proprio|del tutto|è vero)"
    r"|[0-9][0-9/.,% ]*(?:(?:out )?of [0-9]+)?)(?: (?:or|o) \w+)?"
    r"(?=[\s)\]'\"*_]*(?:[.,;!?)\n]|\Z))",
    re.IGNORECASE,
)
# What denies behind "Correct:", "Correct (" and "Correct,", beside the words of languages.yml.
_DENIES = re.compile(
    rf"[^\w\n]*(?:{_NO_SIGN}|[\u5426\u9519\u932f\u4e0d]|\u3044\u3044\u3048|(?:[nfx0]|"
    + _words(
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
    + _words(
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
    *("no", "not", "none", "never", "neither", "but", "if", "unless", "except", "only", "however"),
    *("partially", "partly", "mostly", "almost", "nearly", "although", "wait", "false", "wrong"),
    *(
        "ma",
        "se",
        "solo",
        "non",
        "nessuno",
        "però",
        "quasi",
        "anzi",
        "parzialmente",
        "or",
        "oppure",
    ),
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
