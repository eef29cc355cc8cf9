"""What a model's reply says: a letter, or why there is none (design/metrics.md, "Choice letters").

The five rules, in the order in which they are tried:

1. Closed reasoning blocks, and channels that are not the final one, are dropped; a block left open,
   or no final channel, makes the reply `truncated`.
2. An explicit statement names the letter: "answer: C", "la risposta è la B", "\\boxed{C}".
3. Else the whole reply is the letter, alone or in front of its text: "C", "(C)", "C) text".
4. Else the reply is one option's text, and no other's, up to case, punctuation and accents.
5. Of several statements the last counts; a statement that names two letters is unparsed.

A letter is never guessed. Guards keep words and names from being read as letters ("A man runs",
"E poi", "G major", "Team B": they stand for the option whose whole text they are, if any), and
drop statements that deny ("the answer is not A"), ask ("the answer is A?") or suppose ("if the
answer is A"). A letter beyond the item's options, or one followed by another option's text, is
unparsed. The patterns are in `answer_patterns.py`; replies that are refusals or failures of the
host are told apart by `reply_status`.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lmms_eval_tasks.utils.replies import answer_patterns as patterns
from lmms_eval_tasks.utils.replies.reasoning import strip_reasoning

LOST = "model_error"  # status of an item whose request failed
MAX_MARKS = 8  # combining marks kept per character: NFKC is quadratic in a run of them
BEFORE = 80  # characters looked at before a statement, for a negation
AFTER = 400  # characters looked at after a statement, beyond twice the longest option
BEYOND = 10**9  # stands for every number of more than 9 digits: no video has that many frames


class Choice(NamedTuple):
    """A letter with the rule (2, 3 or 4) that read it, or None and None with the reason."""

    letter: str | None
    status: str  # ok | unparsed | empty | truncated | refused | model_error
    rule: int | None


class _Item(NamedTuple):
    """The letters an item offers, its options as `fold` leaves them, and the longest one's size."""

    letters: str
    texts: tuple[str, ...]
    longest: int

    def named_by(self, text: str) -> set[str]:
        """Letters of the options whose text opens `text`, up to the end of a sentence or line."""
        window = text.lstrip(" \n()]}\"'>.:,-")[: 2 * self.longest + AFTER]
        ends = [m.start() for m in re.finditer(r"[.!?;\n]", window)][:12]
        heads = {fold(window[:end]) for end in [*ends, len(window)]}
        return {
            letter
            for letter, option in zip(self.letters, self.texts, strict=True)
            if option and option in heads
        }

    def own(self, letter: str) -> str:
        """The text of a letter's option; "" if there is none."""
        return dict(zip(self.letters, self.texts, strict=True)).get(letter.upper(), "")

    def called(self, text: str) -> str | None:
        """The letter of the one option that a folded text is; None of several."""
        return self.letters[self.texts.index(text)] if self.texts.count(text) == 1 else None

    def follows(self, letter: str, text: str) -> bool:
        """Whether `text` begins with the words of the letter's option, whatever comes then."""
        own = self.own(letter)
        return bool(own) and f"{fold(text[: 2 * self.longest + AFTER])} ".startswith(f"{own} ")

    def behind(self, letter: str, text: str) -> str | None:
        """What stands behind the letter's own option where `text` opens with all of that."""
        own = self.own(letter)
        window = text[: 2 * self.longest + AFTER]
        ends = [m.start() for m in re.finditer(r"[.!?;\n]| - ", window)][:12]
        return next((window[end:] for end in ends if own and fold(window[:end]) == own), None)

    def hold(self, first: str, second: str) -> bool:
        """Whether these two words stand side by side in an option's text."""
        pair = f" {fold(first)} {fold(second)} "
        return any(pair in f" {option} " for option in self.texts)


class _Statement(NamedTuple):
    """One place where a letter is named: the letter as written, and the text on both sides.

    `near` is the part of `after` in which another letter makes the statement unclear, and
    `is_verdict` marks the form "B is correct", where the letter is the subject.
    """

    letter: str
    before: str
    after: str
    near: str
    is_verdict: bool = False


_FENCE_LINE = re.compile(r"^[ \t]*(?:```|~~~)[^\n`~]*$", re.MULTILINE)
_UNPARSED = Choice(None, "unparsed", None)


def read_choice(text: str, options: Sequence[str]) -> Choice:
    """Letter that `text` chooses among `options` (option 0 is A).

    A refusal is looked for only in a reply in which no rule found anything, so that "I'm sorry ...
    Answer: B" is B. Here "I cannot tell from the video" is one too: it chooses nothing, and must
    not pay (`declines`).

    Raises:
        ValueError: not 1 to 26 options. No text raises.
    """
    if not 1 <= len(options) <= len(string.ascii_uppercase):
        raise ValueError(f"{len(options)} options; letters exist for 1 to 26")
    reply = shape(text)
    if not reply.there:
        return Choice(None, reply.status, None)
    visible = normalise(reply.text)
    texts = [normalise(option) for option in options]
    item = _Item(
        string.ascii_uppercase[: len(options)],
        tuple(fold(option) for option in texts),
        max(len(option) for option in texts),
    )
    for rule in (_rule_2, _judged, _rule_3):
        if choice := rule(visible, item):
            return choice
    if letter := item.called(fold(visible)):
        return Choice(letter, "ok", 4)
    declined = reply.status == "refused" or declines(visible, texts)
    return Choice(None, "refused", None) if declined else _UNPARSED


def reply_status(text: str) -> str:
    """Status of a free-text reply: ok, empty, truncated, refused or model_error.

    `empty` is a reply without a letter, digit or symbol outside its reasoning. That the
    video does not show something is an answer (MAIA's Uncertainty and Out-of-Scope), so it is ok.
    """
    return shape(text).status


def is_model_error(text: str) -> bool:
    """Whether a reply is the host's text for a request that failed."""
    return patterns.HOST_FAILURE.match(patterns.INVISIBLE.sub("", text)) is not None


def model_error(why: str) -> str:
    """The text of a request that failed, as the host's own classes begin it."""
    return f"[LMMS_EVAL_REQUEST_FAILED] {why}"


def to_judge(text: str) -> tuple[str, str]:
    """What of a free-text reply is put to a judge: `("ok", text without reasoning)`.

    Of what holds no answer (empty, truncated, model_error) nothing is, and the text is "". A
    refusal is: the papers' judges are asked about every answer that is not empty.
    """
    reply = shape(text)
    return ("ok", reply.text.strip()) if reply.there else (reply.status, "")


def is_refusal(text: str) -> bool:
    """Whether a short reply only declines the task: every sentence declines or is courtesy.

    To decline is to deny help or to deny being able to watch videos at all. "I cannot tell from
    the video" or "non posso rispondere a questa domanda" judges the video's content: an answer.
    """
    reply = normalise(text).lower()
    return bool(patterns.REFUSAL_START.match(reply)) and _only(
        reply, patterns.REFUSAL, (patterns.COURTESY,)
    )


def _only(reply: str, wanted: re.Pattern[str], others: Sequence[re.Pattern[str]]) -> bool:
    """Whether a short reply has a sentence of one kind, and none but this and `others`."""
    if len(reply) > patterns.REFUSAL_LENGTH:
        return False
    sentences = [part for part in re.split(r"(?<=[.!?]) |\n", reply) if part]
    own = [bool(wanted.match(part)) for part in sentences]
    other = (any(kind.match(part) for kind in others) for part in sentences)
    return any(own) and all(a or b for a, b in zip(own, other, strict=True))


def declines(text: str, options: Sequence[str]) -> bool:
    """Whether a reply to a choice only says that its writer does not choose.

    "I can't tell from the video", "Non saprei dire": one of its sentences declines and every other
    one does too, is courtesy, or denies something ("the video does not show her"). One that goes on
    to an answer ("... but the man runs", "... maybe a dog") does not. To an open question such a
    reply is an answer, which a judge compares with the reference; to a choice it picks nothing and
    must not pay: it is `refused`, which is worth 0 in `_valid` too, where `unparsed` is left out.

    Args:
        text: the reply, as `normalise` leaves it; no rule found a letter in it.
        options: the item's, likewise; if one of them says that the answer cannot be known, no reply
            declines.
    """
    unknowable = any(patterns.UNKNOWABLE.search(option.lower()) for option in options)
    return not unknowable and _only(
        text.lower(), patterns.ABSTAINS, (patterns.COURTESY, patterns.DENIES)
    )


def normalise(text: str) -> str:
    """Text with one form of each letter, quote and blank, and without markdown and special tokens.

    A letter set apart by bold or code marks becomes "(C)"; runs of blanks become one space, and
    runs with a line end one line end. Linear in the text's length.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _limit_marks(text))
    text = re.sub(r"\r\n?|[\u2028\u2029\x85]", "\n", text)
    text = patterns.INVISIBLE.sub("", text.translate(patterns.TYPOGRAPHY))
    text = patterns.SPECIAL_TOKEN.sub("", text)
    text = patterns.CODE_FENCE.sub("\n", text)
    text = patterns.EMPHASISED_LETTER.sub(r"(\2)", text)
    text = patterns.MARKDOWN.sub("", text)
    text = re.sub(r"[^\S\n]+", " ", text)
    return re.sub(r" ?\n[ \n]*", "\n", text).strip()


def fold(text: str) -> str:
    """Text for rule 4: lower case, no accents, every run of other signs one space.

    A text of signs alone ("+") is kept as it is, so that it still equals itself.
    """
    plain = unicodedata.normalize("NFKD", _limit_marks(text).casefold())
    letters = (c if c.isalnum() else " " for c in plain if not unicodedata.combining(c))
    return " ".join("".join(letters).split()) or text.strip()


def _rule_2(text: str, item: _Item) -> Choice | None:
    """An explicit statement, the last one (rule 5); if it cannot be read, the search ends."""
    found = [s for s in _find_statements(text, item) if not _is_negated(s, item)]
    return _settle(found[-1], item, rule=2) if found else None


def _judged(text: str, item: _Item) -> Choice | None:
    """Nothing but a verdict on each letter, of which one is right: "A: falso. B: vero"."""
    found = list(patterns.JUDGED.finditer(text))
    letters = [match["letter"] or match["named"] for match in found]
    if sorted(letters) != list(item.letters) or has_words(patterns.JUDGED.sub("", text)):
        return None
    right = [x for x, match in zip(letters, found, strict=True) if match["right"] or match["first"]]
    return Choice(right[0], "ok", 2) if len(right) == 1 else None


def _rule_3(text: str, item: _Item) -> Choice | None:
    """The whole reply is a letter, with its option's text or a reason after it or not."""
    match = patterns.WHOLE.match(text)
    if not match:
        return None
    after = text[match.end("letter") :]
    statement = _Statement(match["letter"], "", after, near=after)
    if (
        (match["lead"] and not match["noun"] and statement.letter.islower())  # "la a", "the a"
        or statement.letter.upper() not in item.letters
        or _is_negated(statement, item)
        or _is_word(statement, item, patterns.END_OF_WHOLE, frozenset())
        or _is_name(statement, item)
        or (has_words(after) and fold(text) in item.texts)  # "A. Rossi" is for rule 4
    ):
        return None
    return _settle(statement, item, rule=3)


def _settle(statement: _Statement, item: _Item, rule: int) -> Choice:
    """The statement's letter, unless it is out of range, one of two, or against its own text."""
    if _is_name(statement, item) and (named := _named(statement, item)):
        return Choice(named, "ok", rule)
    letter, texts = statement.letter.upper(), item.named_by(statement.after)
    contradicts = bool(texts) and letter not in texts  # "A) text of B"
    wrong = contradicts or letter not in item.letters or _is_name(statement, item)
    return _UNPARSED if wrong or _names_two(statement, item) else Choice(letter, "ok", rule)


def _find_statements(text: str, item: _Item) -> list[_Statement]:
    """All statements in the order of their letters; words that look like letters are left out."""
    reach = 2 * item.longest + AFTER
    found: dict[int, _Statement] = {}
    for pattern in (*patterns.STATEMENTS, patterns.VERDICT):
        for match in pattern.finditer(text):
            at = match.start("letter")
            head = at if pattern is patterns.VERDICT else match.start()
            after = text[at + 1 : at + 1 + reach]
            near = "\n".join(after.split("\n", 2)[:2])  # its own line and the next
            statement = _Statement(
                match["letter"],
                text[max(0, head - BEFORE) : head],
                after,
                near,
                is_verdict=pattern is patterns.VERDICT,
            )
            expected = pattern in patterns.LETTER_EXPECTED
            plain = patterns.PLAIN_LETTERS if expected else frozenset()
            word = (
                _is_name(statement, item)  # its subject: "B. Team B is correct"
                if statement.is_verdict
                else _is_word(statement, item, patterns.END, plain)
            )
            if not word or _named(statement, item):
                found.setdefault(at, statement)
    return [found[at] for at in sorted(found)]


def _is_word(
    statement: _Statement, item: _Item, end: re.Pattern[str], plain: frozenset[str]
) -> bool:
    """Article guard: whether the letter is a word of the sentence ("A man", "E poi", "a sinistra").

    It is a letter if punctuation, the end, a reason or a second letter follows, or its own
    option's text; or any word, for the letters in `plain` (capitals that are no word).
    """
    after = statement.after
    if end.match(after) or _joined(statement, item):
        return False
    if statement.letter in plain and after.startswith(" "):
        return False
    return statement.letter.upper() not in item.named_by(after)


def _is_name(statement: _Statement, item: _Item) -> bool:
    """Whether the letter is part of a name ("B flat", "Team B", "B. B. King").

    So it is if it stands beside the same word in an option's text; not if its own text follows.
    """
    if statement.letter.upper() in item.named_by(statement.after):
        return False
    if statement.is_verdict:
        word = patterns.WORD_BEFORE.search(statement.before)
        named = patterns.NAMED_BEFORE.search(statement.before)
        return bool(named or (word and item.hold(word[1], statement.letter)))
    word = patterns.NEXT_WORD.match(statement.after)
    named = patterns.NAMED_AFTER.match(statement.after)
    return bool(named or (word and item.hold(statement.letter, word[1])))


def _named(statement: _Statement, item: _Item) -> str | None:
    """The option whose whole text is the name that holds the letter ("The answer is G major")."""
    line = statement.before.rpartition("\n")[2] if statement.is_verdict else ""
    name = fold(line + statement.letter + ("" if statement.is_verdict else statement.after))
    return None if statement.after.endswith("?") else item.called(name)


def _is_negated(statement: _Statement, item: _Item) -> bool:
    """Negation guard: whether the statement denies, doubts, supposes or asks."""
    clause = patterns.CLAUSE_END.split(statement.before)[-1]
    if patterns.DENIED_BEFORE.search(clause):
        return True
    question = patterns.ASKED_VERDICT if statement.is_verdict else patterns.ASKED
    if question.match(statement.after):
        return True
    behind = item.behind(statement.letter, statement.after)
    if behind is None and item.follows(statement.letter, statement.after):
        return False
    after = statement.after if behind is None else behind
    return bool(patterns.DENIED_AFTER.match(after) or patterns.UNSHOWN.match(after))


def _names_two(statement: _Statement, item: _Item) -> bool:
    """Rule 5: whether the statement names a second letter, corrects itself or lists the options."""
    letter, rest = statement.letter.upper(), fold(statement.after)
    before = patterns.PAIR_BEFORE if statement.is_verdict else patterns.EITHER_BEFORE
    others = [match["letter"] for match in before.finditer(statement.before)]
    if not rest or (letter, rest) not in zip(item.letters, item.texts, strict=True):
        # Its own option's text may hold any letters; other text may name or list a second one.
        others += [_joined(statement, item) or letter]
        others += [match["letter"] for match in patterns.CORRECTION.finditer(statement.near)]
        others += [match["letter"] for match in patterns.LISTED.finditer(statement.near)]
    return any(other != letter for other in others)


def _joined(statement: _Statement, item: _Item) -> str | None:
    """A second letter right after the first: "or B", "e B", "/B", or ", B" and what ends there."""
    second = patterns.PAIR.match(statement.after)
    if not second:
        return None
    following: str | None = second["next"]  # nothing joins it, so it may be an initial or a word
    if following and following.upper() not in item.letters:
        return None
    return str(second["either"] or second["also"] or following).upper()


def _limit_marks(text: str) -> str:
    """Text in which no character carries more than MAX_MARKS combining marks."""
    if text.isascii():
        return text
    kept, run = [], 0
    for c in text:
        run = run + 1 if unicodedata.combining(c) else 0
        if run <= MAX_MARKS:
            kept.append(c)
    return "".join(kept)


# --- what every reply goes through before it is read ----------------------------------------------


class Reply(NamedTuple):
    """A reply without its reasoning, or why there is none.

    status: ok, or empty, truncated, model_error with an empty text. `refused` is a first opinion
    and keeps the text: it stands only if nothing can be read (`unread`).
    """

    status: str
    text: str

    @property
    def there(self) -> bool:
        """Whether there is a text to parse."""
        return self.status in ("ok", "refused")


def shape(text: str) -> Reply:
    """A model's text as the parsers take it. No text raises."""
    if is_model_error(text):
        return Reply(LOST, "")
    reply, unclosed = strip_reasoning(text)
    if unclosed:
        return Reply("truncated", "")
    visible = normalise(reply)
    if not any(unicodedata.category(c)[0] in "LNS" for c in visible):
        return Reply("empty", "")
    return Reply("refused" if is_refusal(visible) else "ok", reply)


def unread(reply: Reply) -> str:
    """Status of a reply in which nothing could be read: `refused` or `unparsed`.

    "I cannot determine the order" gives none and must not pay: it is a refusal too.
    """
    declined = reply.status == "refused" or declines(normalise(reply.text), ())
    return "refused" if declined else "unparsed"


def number(digits: str) -> int:
    """Value of decimal digits of any script, with leading zeros or not; `BEYOND` if too long.

    Raises:
        ValueError: a character is no decimal digit.
    """
    plain = "".join(str(unicodedata.decimal(c)) for c in digits).lstrip("0")
    return int(plain or "0") if len(plain) <= 9 else BEYOND


def is_denied(before: str, after: str = "") -> bool:
    """Whether a statement is denied or supposed by the words around it, or asked.

    Args:
        before: the text in front of it, normalised; its last `BEFORE` characters count.
        after: the text behind it.
    """
    clause = patterns.CLAUSE_END.split(before[-BEFORE:])[-1]
    return bool(
        patterns.DENIED_BEFORE.search(clause)
        or patterns.DENIED_AFTER.match(after)
        or patterns.ASKED.match(after)
    )


def plain_lines(text: str) -> str:
    """A reply whose sentences are to be kept as written: one kind of line end, no fence lines."""
    text = re.sub(r"\r\n?|[\u2028\u2029\x85]", "\n", text)
    text = patterns.SPECIAL_TOKEN.sub("", patterns.INVISIBLE.sub("", text))
    return _FENCE_LINE.sub("", text).strip()


def has_words(text: str) -> bool:
    """Whether a text holds a letter or digit."""
    return any(c.isalnum() for c in text)


def nonzero(counts: Mapping[str, int]) -> dict[str, int]:
    """Violations as results keep them: by kind, without the kinds that did not occur."""
    return {kind: int(count) for kind, count in counts.items() if count}


def repeats(numbers: list[int]) -> int:
    """How many of `numbers` were there before."""
    return len(numbers) - len(Counter(numbers))
