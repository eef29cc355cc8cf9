"""Guards of a statement: words around it that deny, suppose or ask it, or ascribe it to others."""

from __future__ import annotations

import re

from lmms_eval_tasks.utils.replies import forms

BEFORE = 80  # characters before a statement in which a negation counts


def is_denied(before: str, after: str = "") -> bool:
    """Return True if the words around a statement deny, suppose or ask it.

    Args:
        before: the text before the statement, normalised; only its last `BEFORE` characters count.
        after: the text after the statement.
    """
    guards = forms.guards()
    return bool(
        denies(before) or guards["denied after"].match(after) or guards["asked"].match(after)
    )


def denies(before: str) -> bool:
    """Return True if the words before a statement deny or suppose it, or ascribe it to others."""
    guards, before = forms.guards(), before[-BEFORE:]
    clause = guards["clause end"].split(before)[-1]
    sentence = re.split(r"[.!?\n]", before)[-1]
    kinds = ("denied before", "supposed", "hearsay", "of each", "whose")
    return any(guards[kind].search(clause) for kind in kinds) or bool(
        guards["elsewhere"].search(sentence)
    )
