"""What the small models answer: pure functions of a rendered request, with no model and no host.

A player sees what a real model sees, the text of the request, and at most a key of its own. It
never sees the doc: labels that are wrong in the data, or a prompt that lost its question, show in
its score. `scripted` is the exception, and says so. Players that read pictures are in pictures.py.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.sample.answer_key import AnswerKey, fold

UNKNOWN = "I do not know"
LETTERS = "ABCDEFGH"
# No letter stands alone in it, in Italian or English, it is no plausible option, and nothing in it
# declines to choose (answers.declines), which would be another status.
UNREADABLE = "Bella domanda!"

RIGHT_SHARE = 0.70
UNREADABLE_SHARE = 0.05
# Pairs that name their question are right pool by pool on this share of the pools: if all pairs
# were drawn alone, 0.7 ** 8 = 6 % of pools would be right, and a small run would see none.
WHOLE_POOL_SHARE = 0.50

# A field that only one benchmark's docs have -> the module that writes that benchmark's scripted
# replies, which are neither a letter nor a reference. It offers `item(doc)`, what a reply's worth
# is drawn by, and `reply(doc, worth)`.
SCRIPTS: dict[str, str] = {
    "kind": "lmms_eval_tasks.haven.sample_players",
    "candidate": "lmms_eval_tasks.cvrr_es.sample_answers",
}

_OPTION = re.compile(r"^[ \t]*\(?([A-H])[.):][ \t]*(\S.*)$", re.MULTILINE)


def options(text: str) -> dict[str, list[str]]:
    """Letter -> texts of the lines `A. text`, `A) text`, `(A) text` or `A: text`, in order."""
    found: dict[str, list[str]] = {}
    for letter, option in _OPTION.findall(text):
        found.setdefault(letter, []).append(fold(option))
    return found


def oracle(text: str, key: AnswerKey) -> str:
    """The right reply to a rendered request, found through `key` alone.

    Args:
        text: all text parts of the request, in order.
        key: what is true.

    Returns:
        With options: the letter of the right one, by the key's pairs if the request shows two, by
        its choices and the question in the text if it shows more. Without: the answer of the
        longest question of the key that stands in the text. Else `UNKNOWN`; also if the key holds
        the pair with both truths, or the right option is not shown, or at two letters.
    """
    shown = options(text)
    if len(shown) > 2:
        asked = _question(text, key.choice_questions)
        right = None if asked is None else fold(key.choices[asked])
        letters = [letter for letter, texts in shown.items() if right in texts]
        return letters[0] if len(letters) == 1 else UNKNOWN
    if len(shown) > 1:
        verdicts = {
            key.truth.get((first, second))
            for first in shown.get("A", [])
            for second in shown.get("B", [])
        } - {None}
        return "AB"[verdicts.pop() or 0] if len(verdicts) == 1 else UNKNOWN
    question = _question(text, key.questions)
    return UNKNOWN if question is None else key.answers[question]


def coin(text: str, key: AnswerKey | None = None, seed: int = 0) -> str:
    """One of the letters shown, or the right answer or the lure, by a hash of text and seed.

    Returns:
        `UNKNOWN` if there is nothing to choose from: no options, and no question of the key, or one
        without a lure.
    """
    shown = sorted(options(text))
    if len(shown) > 1:
        return _draw(shown, "coin", seed, text)
    question = None if key is None else _question(text, key.questions)
    if key is None or question is None or question not in key.lures:
        return UNKNOWN
    return _draw([key.answers[question], key.lures[question]], "coin", seed, text)


def scripted(doc: Mapping[str, Any]) -> str:
    """A reply whose worth is known from the doc's id: right, wrong or unreadable.

    The only player that looks at the doc: its score tests metrics, not prompts. Items are right on
    about 70 %, unreadable on 5 %, wrong on the rest. Choices with a `question_id` (a pool) are
    right together on half of the pools, so that pool metrics lie between 0 and 1 too, with the
    same shares over all items. Open answers are drawn apart from the pools. The same item in
    another input mode or length is drawn anew, so that tasks that differ in these differ in score.
    Where the truth is withheld, nothing is right: it replies with any letter, or with the lure.
    Docs with a field of `SCRIPTS` have the same shares, and replies of their benchmark's own.

    Args:
        doc: `id`, and `options` with `answer` (a letter), or `references` with an optional `lure`;
            an empty answer or list of references is withheld. `question_id`, `mode` and `length`
            are optional. Or what the module in `SCRIPTS` asks for.

    Raises:
        TasksError: a field is missing or of another form.
    """
    own = next((module for field, module in SCRIPTS.items() if field in doc), None)
    if own is not None:
        script = importlib.import_module(own)
        return str(script.reply(doc, _worth(script.item(doc), None)))
    try:
        given = [str(doc[name]) for name in ("mode", "length") if name in doc]
        item = "/".join([str(doc["id"]), *given])
        if doc.get("options"):
            pool = doc.get("question_id")
            worth = _worth(item, pool if pool is None else "/".join([str(pool), *given]))
            return _scripted_choice(worth, item, list(doc["options"]), doc["answer"])
        known = [str(reference) for reference in doc["references"]]
    except (KeyError, TypeError) as error:
        raise TasksError(
            f"tasks_scripted needs docs with id and options, answer or references: {error!r}"
        ) from None
    worth = _worth(item, None)
    if worth == "right" and known:
        return known[0]
    return "" if worth == "unreadable" else str(doc.get("lure") or UNKNOWN)


def lm_pairs_choice(scores: Mapping[str, Iterable[float]]) -> str | None:
    """The statement with the highest probability among all models (paper, 4.3).

    Args:
        scores: model -> (score of A, score of B), length-normalised log-probabilities.

    Returns:
        `A` or `B`; None if both have the same maximum.
    """
    first, second = (max(column) for column in zip(*scores.values(), strict=True))
    if first == second:
        return None
    return "A" if first > second else "B"


def lm_pairs_reply(scores: Mapping[str, Iterable[float]]) -> str:
    """The reply of `--model lm_pairs`: JSON that `read_lm_pairs` reads."""
    kept = {model: list(pair) for model, pair in scores.items()}
    return json.dumps({"lm_pairs": {"choice": lm_pairs_choice(kept), "scores": kept}})


def read_lm_pairs(reply: str) -> tuple[str | None, dict[str, list[float]]] | None:
    """Choice and scores of a reply of `--model lm_pairs`; never raises.

    Returns:
        (`A`, `B` or None for a tie, model -> [score of A, score of B]), or None if the reply has
        any other form, or a choice that does not follow from its scores.
    """
    try:
        content = json.loads(reply)
    except (ValueError, TypeError, RecursionError):
        return None
    body = content.get("lm_pairs") if isinstance(content, dict) and len(content) == 1 else None
    if not isinstance(body, dict) or set(body) != {"choice", "scores"}:
        return None
    choice, scores = body["choice"], body["scores"]
    if not isinstance(scores, dict) or not scores or not all(map(_is_pair, scores.values())):
        return None
    return (choice, scores) if choice == lm_pairs_choice(scores) else None


def _is_pair(value: object) -> bool:
    """Two finite log-probabilities. By type(): a bool is an int, and neither is a score."""
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(type(score) is float and float("-inf") < score <= 0 for score in value)
    )


def _question(text: str, questions: Iterable[tuple[str, str]]) -> str | None:
    asked = fold(text)
    return next((question for folded, question in questions if folded in asked), None)


def _unit(*parts: object) -> float:
    """A number in [0, 1) that depends on `parts` only: the same in every process and version."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


def _draw(choices: list[str], *parts: object) -> str:
    return choices[int(_unit(*parts) * len(choices))]


def _worth(item: str, pool: object) -> str:
    whole = 0.0
    if pool is not None:
        whole = WHOLE_POOL_SHARE
        if _unit("pool", pool) < whole:
            return "right"
    # Shares among the rest, so that over all items they are what they should be.
    right = (RIGHT_SHARE - whole) / (1 - whole)
    unreadable = UNREADABLE_SHARE / (1 - whole)
    place = _unit("item", item)
    if place < right:
        return "right"
    return "unreadable" if place < right + unreadable else "wrong"


def _scripted_choice(worth: str, item: str, shown: list[str], answer: object) -> str:
    letters = LETTERS[: len(shown)]
    if answer == "" and len(shown) > 1:  # withheld
        return UNREADABLE if worth == "unreadable" else _draw(list(letters), "withheld", item)
    if not isinstance(answer, str) or len(answer) != 1 or answer not in letters or len(shown) < 2:
        raise TasksError(f"tasks_scripted, {item}: answer {answer!r} is none of {list(letters)}")
    if worth == "right":
        return answer
    if worth == "unreadable":
        return UNREADABLE
    return _draw([letter for letter in letters if letter != answer], "wrong", item)
