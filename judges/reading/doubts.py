"""Words around a statement that cancel it: it is supposed, asked, denied or taken back.

The words and forms are data: utils/replies/statements.yml.
"""

from __future__ import annotations

import re

from lmms_eval_tasks.utils.replies import forms


def guard(name: str) -> re.Pattern[str]:
    """Return a row of statements.yml, compiled."""
    return forms.guards("statements")[name]


def is_doubted(text: str, start: int, end: int) -> bool:
    """Return True if the words before or after a statement, text[start:end], cancel it."""
    before = re.sub(r"`{3,}\w*\s*\Z", "", text[max(0, start - 150) : start])
    plain = before.rstrip(" \t\r\n'\"*_`(:,[$")
    between, after = set(before[len(plain) :]), text[end : end + 150]
    is_near = "\n" not in between or bool(between & set(":,"))
    bracket = guard("bracket").match(after)
    return bool(
        guard("denied before").search(plain)
        or (is_near and guard("supposed before").search(plain))
        or guard("supposed behind").match(after)
        or (bracket and guard("supposed behind").match(after, bracket.end()))
    )
