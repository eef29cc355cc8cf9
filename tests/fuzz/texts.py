"""Replies that nobody would expect, each made from its number alone.

Real replies with a few mistakes, pieces of every form that some reader knows in a random order,
and one piece repeated until the text is long: what is slow on a text is slow on one of these.
Not hypothesis, which tests the readers' properties beside them: it draws at most 8 KB for an
example, and a million examples, most of them mutations of texts that are there, take it hours.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random

LONGEST = 200_000  # characters, of a repeated piece

# Pieces that readers look for, or stumble over.
FORMS = (
    *("A", "B", " C", "H", "Z", "a", "(B)", "B.", "B)", "**B**", "`B`", "A or B", "\\boxed{C}"),
    *("Answer: ", "La risposta è ", "the correct option is ", "not ", "non ", "A is correct. "),
    *("I'm sorry, but I cannot ", "watch videos. ", "Non posso ", "I think ", "if ", "because "),
    *("Shot 3 > Shot 1", "Shot ", "Sentence 2", " > ", " -> ", "Clip 1-3", "Summary 2: Clip 1, 4"),
    *("[4, 17, 30]", "[]", "[1, 2", "IMPORTANT FRAMES: ", "SUMMARY:\n1. A man enters.", "TASK 2"),
    *("1. ", "- ", "# ", "> ", "* ", "_", "***", "```", "```json\n", "~~~\n", "$", "|", "none"),
    *("{", "}", "{{", "[", "]", "(", ")", '"', "'", ":", ",", ".", "!", "?", "/", "=", "<", "&"),
    *('"score": 5', "'score': 4.0", '{"score": 3}', "Rating: 4/5", "[[4]]", "4 or 5", "reason: "),
    *('{"correct": true}', '"reason": "', "True", "null", '{"claims": [', '"labels": [', '"id": 1'),
    *("Correct", "INCORRECT", "correct/incorrect", "yes", "supported", "partially_relevant"),
    *("<think>", "</think>", "<thinking>", "[THINK]", "◁think▷", "<|channel|>analysis<|message|>"),
    *("<|channel|>final<|message|>", "assistantfinal", "analysisA", "<|im_end|>", "</s>", "<br>"),
    *("[LMMS_EVAL_REQUEST_FAILED] ", "[ERROR] ", "Error: ", "DebateJudge", "{candidate}", "%s"),
    *("0", "-1", "1e400", "-1e400", "NaN", "Infinity", "0.1", "9" * 400, "1" + "0" * 20, "٣", "²"),
    *("a", "é", "e\u0301", "\u0301", "\u0300" * 40, "\u200b", "\u202e", "\u2066", "\ufeff", "\xad"),
    *("ﷺ", "İ", "ß", "ﬁ", "👨\u200d👩\u200d👧", "\U000e0041", "中文。", "עברית", "Ａ", "𝐁"),
    *("\0", "\x1b[31m", "\x07", "\ud83d", "\ude00", "\ud83d\ude00", "\\ud83d", "\uffff"),
    *(" ", "\u1680", "\t", "\n", "\r\n", "\r", "\u2028", "\xa0", "\n\n", "\\", "\\n", '\\"'),
)
_DEEP = 10_000
_WHOLE = (  # as they are
    "",
    "[" * _DEEP + "]" * _DEEP,
    '{"a":' * _DEEP + "1" + "}" * _DEEP,
    '{"score":' * _DEEP,
    '{"score": ' + "9" * 5000 + "}",
    '{"score": 1e400, "reason": "x"}',
    '{"lm_pairs": {"choice": "A", "scores": {"m": [NaN, -Infinity]}}}',
    '{"score": 3, "score": 4}',
    "{'score': 3, 'reason': 'don't'}",
    "\0" * 100,
    "\ud83d" * 100,
)


def text(random: Random, real: Sequence[str], longest: int = LONGEST) -> str:
    """One text.

    Args:
        random: seeded; all that it depends on.
        real: at least one reply that the reader is made for.
        longest: length of a repeated piece.
    """
    kinds = (_mistaken, _forms, _whole, _json)
    if random.random() < 0.01:
        # Many at a length where an exponential search hangs, some where a quadratic one does.
        part = random.choices((100, 10, 1), (70, 20, 10))[0]
        return _repeated(random, real, longest // part)
    return random.choices(kinds, (60, 30, 2, 8))[0](random, real)


def _mistaken(random: Random, real: Sequence[str]) -> str:
    """A real reply, or one in another's clothes, with a few mistakes."""
    made = random.choice(real)
    for _ in range(random.choice((0, 1, 1, 2, 3, 6))):
        made = random.choice(_MISTAKES)(random, made, real)
    return made


def _forms(random: Random, real: Sequence[str]) -> str:
    between = random.choice(("", "", " ", "\n", ", "))
    return between.join(random.choices((*FORMS, random.choice(real)), k=random.randint(1, 30)))


def _whole(random: Random, real: Sequence[str]) -> str:
    return random.choice(_WHOLE)


def _json(random: Random, real: Sequence[str]) -> str:
    """A real reply's object with another value at one of its keys; or any value."""
    try:
        made = json.loads(random.choice(real))
    except (ValueError, RecursionError):
        made = _value(random)
    if isinstance(made, dict) and made:
        made[random.choice([*made])] = _value(random)
    return json.dumps(made, ensure_ascii=random.random() < 0.5)


def _value(random: Random, depth: int = 0) -> object:
    plain = (None, True, False, -1, 0, 2.5, 6, 1e308, float("inf"), float("nan"), 10**30, "", "4")
    if depth > 3 or random.random() < 0.6:
        return random.choice((*plain, random.choice(FORMS)))
    inner = [_value(random, depth + 1) for _ in range(random.randint(0, 4))]
    keys = random.choices(("score", "reason", "id", "label", "\0", "correct", "claims"), k=4)
    return inner if random.random() < 0.5 else dict(zip(keys, inner, strict=False))


def _repeated(random: Random, real: Sequence[str], longest: int) -> str:
    """One to three pieces again and again, with something before and after."""
    unit = "".join(random.choices(FORMS, k=random.randint(1, 3)))
    head, tail = (random.choice(("", *FORMS, random.choice(real))) for _ in range(2))
    return head + unit * (longest // len(unit)) + tail


# --- mistakes -------------------------------------------------------------------------------------


def _put(random: Random, made: str, _: Sequence[str]) -> str:
    at = random.randint(0, len(made))
    return made[:at] + random.choice(FORMS) + made[at:]


def _cut(random: Random, made: str, _: Sequence[str]) -> str:
    at = random.randint(0, len(made))
    return made[:at] + made[at + random.randint(1, 8) :]


def _end(random: Random, made: str, _: Sequence[str]) -> str:
    return made[: random.randint(0, len(made))]


def _twice(random: Random, made: str, _: Sequence[str]) -> str:
    start, end = sorted(random.randint(0, len(made)) for _ in range(2))
    return made[:end] + made[start:end] * random.choice((1, 1, 3)) + made[end:]


def _joined(random: Random, made: str, real: Sequence[str]) -> str:
    return made + random.choice((" ", "\n", "")) + random.choice(real)


def _wrapped(random: Random, made: str, _: Sequence[str]) -> str:
    before, after = random.choice(
        (
            ("<think>", "</think>"),
            ("```json\n", "\n```"),
            ('"', '"'),
            ("[", "]"),
            ('{"score": ', "}"),
            ("**", "**"),
            ("\u202e", "\u202c"),
            ("<think>hmm</think>", ""),
        )
    )
    return before + made + after


def _other_case(random: Random, made: str, _: Sequence[str]) -> str:
    return random.choice((made.upper(), made.lower(), made.swapcase()))


def _marked(random: Random, made: str, _: Sequence[str]) -> str:
    return random.choice(("\u0301", "\u200b", "\ufe0f", "\0")).join(made[:2000])


_Mistake = Callable[[Random, str, Sequence[str]], str]
_MISTAKES: tuple[_Mistake, ...] = (
    *(_put, _put, _cut, _end, _twice, _joined, _wrapped, _wrapped, _other_case, _marked),
)
