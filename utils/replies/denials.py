"""The words around a statement that deny it, suppose it, ask it, or make it somebody else's."""

from __future__ import annotations

import re

from lmms_eval_tasks.utils.replies import forms

BEFORE = 80  # characters looked at before a statement, for a negation


def is_denied(before: str, after: str = "") -> bool:
    """Whether a statement is denied or supposed by the words around it, or asked.

    Args:
        before: the text in front of it, normalised; its last `BEFORE` characters count.
        after: the text behind it.
    """
    guards = forms.guards()
    return bool(
        denies(before) or guards["denied after"].match(after) or guards["asked"].match(after)
    )


def denies(before: str) -> bool:
    """Whether the words in front of a statement deny or suppose it, or make it somebody else's."""
    guards, before = forms.guards(), before[-BEFORE:]
    clause = guards["clause end"].split(before)[-1]
    sentence = re.split(r"[.!?\n]", before)[-1]
    kinds = ("denied before", "supposed", "hearsay", "of each", "whose")
    return any(guards[kind].search(clause) for kind in kinds) or bool(
        guards["elsewhere"].search(sentence)
    )
