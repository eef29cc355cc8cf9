"""A judge's reply without its reasoning, even if the verdict has marks of reasoning. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from itertools import islice

from lmms_eval_tasks.judges.reading.objects import UnreadableError, objects, outside, squashed
from lmms_eval_tasks.judges.verdict import Status
from lmms_eval_tasks.utils.replies.reasoning import closes_only, strip_reasoning

# Such a reply does not begin with reasoning: marks inside it belong to its text.
OBJECT_FIRST = re.compile(r"\s*(?:`{3,}\w*\s*)?\{")
# The place of a mark of reasoning; utils/replies/reasoning.py decides what it means.
_MARK = re.compile(r"[<\[\u25c1][^<>\[\]\u25c1\u25b7\n]{1,60}[>\]\u25b7]|assistantfinal")


def without_reasoning(reply: str, keys: Collection[str], sources: Sequence[str]) -> str:
    """Return a judge's reply without its reasoning (utils/replies/reasoning.py).

    Marks inside a verdict's text stay, and so does a closing mark that occurs in one of the
    `sources`: it may be quoted, and the text after it need not be the verdict.

    Args:
        reply: the judge's text.
        keys: keys of the objects whose texts may have marks.
        sources: texts that the judge may quote.

    Raises:
        UnreadableError: `truncated`, the reply ends inside its reasoning.
    """
    text, is_open = strip_reasoning(reply)
    plain = ""
    with suppress(UnreadableError):
        plain = outside([one for one in objects(reply, keys) if one.value is not None], reply)
    # Reasoning may begin with an object if its opening mark is in the prompt: then its end follows.
    is_behind = closes_only(plain) and not is_open and bool(text)
    if text == reply.strip() or (OBJECT_FIRST.match(reply) and not is_behind):
        return reply
    marks = list(islice(_MARK.finditer(reply), 1000))
    names = {squashed(mark[0]) for mark in marks}
    for mark in marks[:20]:  # an object after the reasoning: its text may have marks too
        if OBJECT_FIRST.match(reply, mark.end()) and _is_reasoning(reply[: mark.end()]):
            return reply[mark.end() :]
    if plain and strip_reasoning(plain) == (plain.strip(), False):
        return reply
    told = [squashed(source) for source in sources]
    if any(name in source for name in names for source in told):
        # The mark of a block that the reply itself opens is no quotation.
        if not is_open and not (text and _is_reasoning(reply.rstrip().removesuffix(text))):
            return reply
    elif not is_open and reply.rstrip().endswith(text):
        # Some chat templates open the reasoning in the prompt, so that only its end is in the
        # reply. With half an object on either side the mark seems to be inside the object.
        head = reply.rstrip().removesuffix(text)
        halves = any(side.count("{") != side.count("}") for side in (head, text))
        return reply if halves and not _is_reasoning(head) else text
    if is_open:
        raise UnreadableError("the reply ends inside its reasoning", Status.TRUNCATED)
    return text


def _is_reasoning(text: str) -> bool:
    """Return True if a text is nothing but reasoning, opened and closed in it."""
    text = text.rstrip()
    *_, last = (None, *_MARK.finditer(text))
    opened = last and last.end() == len(text) and strip_reasoning(text[: last.start()])[1]
    return bool(opened) and strip_reasoning(text) == ("", False)
