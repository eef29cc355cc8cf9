"""What the small models answer: pure functions, with no model and no host.

An oracle and a coin see what a real model sees, the texts and media of a request, and a key: of
every request of the sample's docs its fingerprint and the replies to it. A request that lost its
question, its video or one of its pictures is none of these. `scripted` sees the doc instead.
"""

from __future__ import annotations

import functools
import hashlib
import json
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from lmms_eval_tasks import registry
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.models.host_types import Doc
from lmms_eval_tasks.utils.json_files import Json, JsonObject
from lmms_eval_tasks.utils.released_files import read_text

if TYPE_CHECKING:
    from PIL.Image import Image

# A request's texts and media in their order, files as paths.
Contents: TypeAlias = "Sequence[str | Path | Image]"

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


class KnownReplies(NamedTuple):
    """Replies to a doc whose worth is known."""

    item: str  # what the worth of a scripted reply is drawn by
    right: str
    wrong: str
    unreadable: str
    drawn: Sequence[str] = ()  # what a coin draws from
    pool: str | None = None  # items of one pool are right together on some of the pools


class Chance(NamedTuple):
    """What a coin gets: over the items of `tasks`, the means of `value` and of `expected`."""

    what: str
    tasks: Sequence[str]
    value: Callable[[Mapping[str, Json]], float]
    expected: Callable[[Mapping[str, Json]], float]


class Played(NamedTuple):
    """A benchmark's part of the demo."""

    tasks: Sequence[str]  # what is run, tasks or groups; none is in those of two benchmarks
    oracle: Mapping[str, Mapping[str, float]]  # task or group -> what it must have in each metric
    coin: Sequence[Chance]  # what the coin must have about
    headline: tuple[str, str]  # task or group and metric that the last screen shows


@functools.cache
def _known_of(task: str) -> Callable[[Doc], KnownReplies | None] | None:
    """The function `known` in the sample of a task's benchmark; None without one."""
    name = registry.of_task_name(task) if task else None
    if name is None or not registry.has_part(name, "sample"):
        return None
    return getattr(registry.part(name, "sample"), "known", None)


def known(doc: Doc) -> KnownReplies:
    """Replies to a doc: those of its benchmark's `sample.known(doc)`, if it has such a function.

    Where it has none, or it returns None, they are a letter or a reference.

    The same item in another input mode or length is drawn anew, so that tasks that differ in these
    differ in score.

    Args:
        doc: `id`, and `options` with `answer` (a letter), or `references` with an optional `lure`;
            no reference makes nothing right. `task`, `question_id` (a pool), `mode` and `length`
            are optional. Or what the benchmark's own function asks for.

    Raises:
        TasksError: a field is missing or of another form.
    """
    of_benchmark = _known_of(doc.get("task", ""))
    if of_benchmark and (replies := of_benchmark(doc)) is not None:
        return replies
    try:
        given = [str(doc[name]) for name in ("mode", "length") if name in doc]
        item = "/".join([str(doc["id"]), *given])
        if not doc.get("options"):
            wrong = str(doc.get("lure") or UNKNOWN)
            right = next((str(one) for one in doc["references"]), wrong)
            return KnownReplies(item, right, wrong, "", [right, wrong])
        pool = "/".join([str(doc["question_id"]), *given]) if "question_id" in doc else None
        letters, answer = LETTERS[: len(doc["options"])], doc["answer"]
    except (KeyError, TypeError) as error:
        raise TasksError(
            f"fake models require docs with id and options, answer or references: {error!r}"
        ) from None
    if len(letters) < 2 or answer not in [*letters]:
        raise TasksError(f"{item}: answer {answer!r} is not one of {list(letters)}")
    wrong = _draw(letters.replace(answer, ""), "wrong", item)
    return KnownReplies(item, answer, wrong, UNREADABLE, letters, pool)


def scripted(doc: Doc) -> str:
    """A reply whose worth is known from the doc's id: right, wrong or unreadable.

    The only player that looks at the doc: its score tests metrics, not prompts. Items are right on
    about 70 %, unreadable on 5 %, wrong on the rest; those of a pool together on half of the pools,
    so that pool metrics lie between 0 and 1 too, with the same shares over all items.
    """
    replies = known(doc)
    whole = WHOLE_POOL_SHARE if replies.pool is not None else 0.0
    if _unit("pool", replies.pool) < whole:
        return replies.right
    # Shares among the rest, so that over all items they are what they should be.
    place = _unit("item", replies.item) * (1 - whole)
    if place < RIGHT_SHARE - whole:
        return replies.right
    return replies.unreadable if place < RIGHT_SHARE - whole + UNREADABLE_SHARE else replies.wrong


# --- the key --------------------------------------------------------------------------------------


def of_messages(messages: Iterable[JsonObject]) -> Contents:
    """A chat request's texts and media in their order; see `fingerprint`."""
    parts = (part for message in messages for part in message["content"])
    return [part["text"] if part["type"] == "text" else _medium(part["url"]) for part in parts]


def of_visuals(visuals: Iterable[Image | str], text: str) -> Contents:
    """A simple request's media and text; see `fingerprint`."""
    return [*map(_medium, visuals), text]


def _medium(given: Image | str) -> Image | Path:
    """A file's path as a Path, so that it is no text."""
    return Path(given.removeprefix("file://")) if isinstance(given, str) else given


def fingerprint(parts: Contents) -> str:
    """Of what a model is handed: texts (str), PIL images by their pixels, Paths by their names."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            text = " ".join(unicodedata.normalize("NFC", part).split())
            digest.update(b"\0text" + text.encode())
        elif isinstance(part, Path):
            digest.update(b"\0file" + part.name.encode())
        else:
            digest.update(f"\0image{part.size}".encode() + part.tobytes())
    return digest.hexdigest()[:24]


Key = Mapping[str, Sequence[str]]  # of every request its replies: the right one, then the drawn


def load_key(path: str | Path) -> Key:
    """Read a key file (demo.write_key): fingerprint -> replies.

    Raises:
        TasksError: the file is missing or has another form.
    """
    text = read_text(Path(path).expanduser())
    try:
        return TypeAdapter(dict[str, list[str]]).validate_json(text)
    except ValidationError:
        expected = "expected a JSON object of fingerprints with replies"
        raise TasksError(f"key {path}: {expected}") from None


def oracle(key: Key, parts: Contents) -> str:
    """The right reply to a request, or UNKNOWN."""
    return next(iter(key.get(fingerprint(parts), ())), UNKNOWN)


def coin(key: Key, parts: Contents, seed: int) -> str:
    """One of the replies that a coin draws from, by a hash of request and seed, or UNKNOWN."""
    name = fingerprint(parts)
    drawn = key.get(name, ())[1:]
    return _draw(drawn, "coin", seed, name) if drawn else UNKNOWN


def _unit(*parts: object) -> float:
    """A number in [0, 1) that depends on `parts` only: the same in every process and version."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


def _draw(choices: Sequence[str], *parts: object) -> str:
    return choices[int(_unit(*parts) * len(choices))]


# --- replies of lm_pairs --------------------------------------------------------------------------


_Score = Annotated[float, Field(le=0, allow_inf_nan=False)]


class _PairScores(BaseModel, extra="forbid", strict=True):
    choice: Literal["A", "B"] | None
    scores: Annotated[dict[str, tuple[_Score, _Score]], Field(min_length=1)]


class _PairReply(BaseModel, extra="forbid"):
    lm_pairs: _PairScores


def lm_pairs_choice(scores: Mapping[str, Iterable[float]]) -> str | None:
    """The statement with the highest probability among all models (paper, 4.3); None of a tie.

    Of each model the length-normalised log-probabilities of A and B.
    """
    first, second = (max(column) for column in zip(*scores.values(), strict=True))
    if first == second:
        return None
    return "A" if first > second else "B"


def lm_pairs_reply(scores: Mapping[str, Iterable[float]]) -> str:
    """The reply: JSON that `read_lm_pairs` reads."""
    kept = {model: list(pair) for model, pair in scores.items()}
    return json.dumps({"lm_pairs": {"choice": lm_pairs_choice(kept), "scores": kept}})


def read_lm_pairs(reply: str) -> tuple[str | None, dict[str, list[float]]] | None:
    """Choice and scores of a reply of `--model lm_pairs`; never raises.

    Returns:
        (`A`, `B` or None for a tie, model -> [score of A, score of B]), or None if the reply has
        any other form, or a choice that does not follow from its scores.
    """
    try:
        read = _PairReply.model_validate_json(reply).lm_pairs
    except ValidationError:
        return None
    scores = {model: list(pair) for model, pair in read.scores.items()}
    return (read.choice, scores) if read.choice == lm_pairs_choice(scores) else None
