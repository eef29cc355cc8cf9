"""Replies to a choice that decline to choose: "I can't tell from the video", "Non saprei dire".

To an open question such a reply is an answer, which a judge compares with the reference. To a
choice it picks nothing, and must not pay (design/metrics.md): it is `refused`, which is worth 0 in
`_valid` too, where `unparsed` is left out. `answers.read_choice` asks here when no rule found a
letter.

A reply declines if one of its sentences does and every other one does too, is courtesy, or denies
something ("the video does not show her"). One that goes on to an answer ("... but the man runs",
"... maybe a dog") does not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lmms_eval_tasks.utils import answer_patterns as patterns

# "I'm sorry, but based on the video, ..."
_LEAD = (
    rf"{patterns.REFUSAL_LEAD}(?:(?:based on|from|given|with|in|judging by|dal|dalla|dall'|in base"
    rf" a|sulla base d)[^.,]{{1,60}},? )?"
)
_ASKS = r"(?:which|what|who|whom|whose|where|when|how|why|whether|if)"
_CHIEDE = r"(?:quale?|quali|cosa|che|chi|dove|quando|come|perché|se|quant[oaie])"
_ANSWER = r"(?:(?:the|an?|any) )?(?:(?:correct|right|best|exact|definitive|single) )?"
_ANSWER += r"(?:answer|option|choice|one)"
_RISPOSTA = r"(?:la |una |l')?(?:risposta|opzione|scelta|alternativa)"
_EN = (
    r"(?:(?:i (?:can ?not|can't|could not|couldn't)|(?:i'm|i am) (?:unable|not able) to"
    r"|(?:it(?:'s| is) )?(?:impossible|not possible) to|there(?:'s| is) no way to|cannot|can't"
    r"|unable to)(?: \w+ly)? (?:(?:answer|determine|tell|say|know|decide|choose|conclude)\b"
    rf"|(?:see|identify|establish|infer|confirm|find|select|pick|give|provide|make out) "
    rf"(?:{_ASKS}|{_ANSWER})\b)"
    r"|(?:it|this|that|the (?:correct |right )?answer|the question)(?: can ?not| can't|"
    r" could not) be (?:answered|determined|told|said|known|decided|established|inferred)\b"
    rf"|i (?:do not|don't) know(?= ?[.,!]| ?\Z| (?:{_ASKS}|{_ANSWER}|this|that|it)\b)"
    rf"|(?:i'm |i am )?not (?:sure|certain)(?= ?[.!]| ?\Z| (?:about|of|{_ASKS})\b)"
    r"|(?:i have )?no idea\b"
    rf"|(?:it(?:'s| is) )?(?:not clear|unclear)(?= ?[.]| ?\Z| (?:from|{_ASKS})\b)"
    r"|(?:there(?:'s| is| are)|i have|i (?:do not|don't) have|(?:the|this) [^.,]{1,60}"
    r" (?:does not|doesn't|do not|don't) (?:have|give|provide|contain|offer))?"
    r" ?(?:not |no |in)?(?:enough|sufficient) (?:information|evidence|context|detail)s?\b)"
)
_IT = (
    r"(?:(?:non (?:lo )?(?:posso|riesco a|sono in grado di|è possibile|si può|si riesce a"
    r"|saprei)|(?:è )?impossibile|sono impossibilitat[oa] a) (?:(?:da|a) )?"
    r"(?:(?:rispondere|dir|determinar|stabilir|saper|capir|sceglier|decider)\w*"
    rf"|(?:identificar|individuar|indicar|trovar|dar|fornir|veder)\w* (?:{_CHIEDE}|{_RISPOSTA}))\b"
    rf"|non lo (?:so|saprei)\b|non so(?= ?[.,!]| ?\Z| (?:rispondere|dire|scegliere|{_CHIEDE})\b)"
    r"|non saprei(?= ?[.,!]| ?\Z)|non ne ho idea\b|nessuna idea\b"
    r"|(?:non (?:ho|ci sono|vi sono|c'è) )?(?:abbastanza|sufficienti) (?:informazioni|elementi)\b"
    r"|(?:non (?:ho|ci sono|vi sono) )?informazioni (?:in|non )?sufficienti\b)"
)
# A sentence that goes on to an answer of its own; "but if you ..." does not (patterns.COURTESY).
_GUESS = (
    r"(?!.*\b(?:probabl[ey]|likely|maybe|perhaps|guess|i think|i believe|i'd say|seems|appears"
    r"|forse|probabilmente|credo|penso|direi|sembra)\b)"
    r"(?!.*\b(?:but|however|ma|tuttavia|però|although)\b,? (?!(?:if|se)\b))"
)
DECLINES = re.compile(rf"{_LEAD}{_GUESS}(?:{_EN}|{_IT})")
DENIES = re.compile(
    rf"{_GUESS}.*(?:n't|\b(?:not|no|cannot|nothing|without|non|nessun[oa]?|nulla|niente|senza))\b"
)
# An option that itself says that nothing can be known: a reply that says so may mean this one.
OPTION = re.compile(
    rf"{_EN}|{_IT}|\b(?:unknown|undetermined|impossibile|impossible|(?:un|in)certain|incerto)\b"
    r"|\b(?:can ?not|can't|non (?:può|possono|si può|è possibile)|not possible)\b"
)


def declines(text: str, options: Sequence[str]) -> bool:
    """Whether a reply only says that its writer does not choose.

    Args:
        text: the reply, as `answers.normalise` leaves it; no rule found a letter in it.
        options: the item's, likewise; if one of them says that the answer cannot be known, no reply
            declines.
    """
    reply = text.lower()
    if len(reply) > patterns.REFUSAL_LENGTH or any(OPTION.search(o.lower()) for o in options):
        return False
    sentences = [part for part in re.split(r"(?<=[.!?]) |\n", reply) if part]
    own = [bool(DECLINES.match(part)) for part in sentences]
    other = [bool(patterns.COURTESY.match(part) or DENIES.match(part)) for part in sentences]
    return any(own) and all(a or b for a, b in zip(own, other, strict=True))
