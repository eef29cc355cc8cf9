"""A reply as all readers take it: without its reasoning, up to the beginning of another turn."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from lmms_eval_tasks.utils.replies import forms, refusals
from lmms_eval_tasks.utils.replies.reasoning import strip_reasoning

MAX_MARKS = 8  # combining marks kept per character: NFKC takes quadratic time in a run of them
_TYPOGRAPHY = str.maketrans(
    dict.fromkeys("’‘‛′´", "'")
    | dict.fromkeys("“”„‟«»″", '"')
    | dict.fromkeys("‐‑‒–—―−→", "-")
    | dict.fromkeys("✔✅☑🗹", "✓")
    | dict.fromkeys("✘❌✖✕🗷☒☐⬜◻□", "✗")
    | {"。": ".", "、": ",", "【": "[", "】": "]", "「": '"', "」": '"'}
)


_WORD = re.compile(r"(?<![^\W_])[<>≤≥~≈±]?-?\d+(?:[.,:]\d+)*(?![^\W_])|[^\W_]+")


class ShapedReply(NamedTuple):
    """A reply without its reasoning, or the reason why there is none.

    `status` is ok, or empty, truncated or model_error with an empty text. `refused` is provisional
    and keeps the text: it counts only if nothing can be read (`unread`).
    """

    status: str
    text: str

    @property
    def has_text(self) -> bool:
        """True if there is a text to parse."""
        return self.status in ("ok", "refused")


def shape(text: str) -> ShapedReply:
    """Return a model's text for the parsers: up to its end, without struck-out text."""
    return _shaped(text, struck_out=False)


def to_judge(text: str) -> tuple[str, str]:
    """Return the part of a free-text reply for a judge: `("ok", text without reasoning)`.

    A reply without an answer (empty, truncated, model_error) gives its status and "". A refusal
    goes to the judge: the papers' judges get every answer that is not empty.
    """
    reply = _shaped(text)
    return ("ok", reply.text.strip()) if reply.has_text else (reply.status, "")


def reply_status(text: str) -> str:
    """Return the status of a free-text reply: ok, empty, truncated, refused or model_error.

    `empty` is a reply without a letter, digit or symbol outside its reasoning. "The video does not
    show it" is an answer (MAIA's Uncertainty and Out-of-Scope), so it is ok.
    """
    return _shaped(text).status


def _shaped(text: str, *, struck_out: bool = True) -> ShapedReply:
    if refusals.is_model_error(text):
        return ShapedReply(refusals.LOST, "")
    reply, unclosed = strip_reasoning(text)
    if unclosed:
        return ShapedReply("truncated", "")
    rules = forms.guards("text")
    reply = reply if struck_out else rules["struck out"].sub(" ", reply)
    reply = rules["own mark"].sub("", rules["echo"].sub("", reply))
    turn = rules["turn"].search(reply)
    said = without_special_tokens(reply[: turn.start()]) if turn else ""
    reply = reply[: turn.start()] if turn and has_words(said) else reply
    visible = normalise(reply)
    if not any(unicodedata.category(c)[0] in "LNS" for c in visible):
        return ShapedReply("empty", "")
    return ShapedReply("refused" if refusals.is_refusal(visible) else "ok", reply)


def unread(reply: ShapedReply) -> str:
    """Return the status of a reply in which nothing could be read: `refused` or `unparsed`.

    "I cannot determine the order" must not score: it is a refusal too.
    """
    declined = reply.status == "refused" or refusals.declines(normalise(reply.text), ())
    return "refused" if declined else "unparsed"


def normalise(text: str) -> str:
    """Return a text with one form per letter, quote and blank, without markdown or special tokens.

    A letter in bold or code marks becomes "(C)". A run of blanks becomes one space, or one line end
    if it holds one. Check and cross marks become one of each. Takes time linear in the length.
    """
    rules = forms.guards("text")
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _limit_marks(text))
    text = _one_line_end(text.translate(_TYPOGRAPHY))
    text = rules["special token"].sub("", rules["answer token"].sub(r"<\1>\2</\1>", text))
    text = rules["code fence"].sub("\n", text)
    text = rules["line break"].sub("\n", rules["bold"].sub("**", text))
    text = rules["check box"].sub(lambda match: match[1] + ("✓" if match[2] else "✗"), text)
    text = rules["markdown"].sub("", rules["emphasised letter"].sub(r"(\2)", text))
    text = re.sub(r"[^\S\n]+", " ", rules["script change"].sub(" ", text))
    return re.sub(r" ?\n[ \n]*", "\n", text).strip()


def _one_line_end(text: str) -> str:
    """Return a text with one kind of line end, and without invisible characters."""
    text = re.sub(r"\r\n?|[\u2028\u2029\x85]", "\n", text)
    return forms.guards("text")["invisible"].sub("", text)


def fold(text: str) -> str:
    """Return a text for comparison with an option: lower case, no accents, single spaces.

    A run of other signs becomes one space. A number keeps its sign and point: "-2", "2.5", ">5". A
    text of signs alone ("+") stays, so that it equals itself.
    """
    plain = unicodedata.normalize("NFKD", _limit_marks(text).casefold())
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    return " ".join(_WORD.findall(plain)) or text.strip()


def _limit_marks(text: str) -> str:
    """Return a text with at most MAX_MARKS combining marks per character."""
    if text.isascii():
        return text
    kept, run = [], 0
    for c in text:
        run = run + 1 if unicodedata.combining(c) else 0
        if run <= MAX_MARKS:
            kept.append(c)
    return "".join(kept)


def plain_lines(text: str) -> str:
    """Return a reply with its sentences as written: one kind of line end, no code fences."""
    plain = without_special_tokens(_one_line_end(text))
    return forms.guards("text")["fence line"].sub("", plain).strip()


def without_special_tokens(text: str) -> str:
    """Return a text without the special tokens of chat templates."""
    return forms.guards("text")["special token"].sub("", text)


def has_words(text: str) -> bool:
    """Return True if a text has a letter or digit."""
    return any(c.isalnum() for c in text)
