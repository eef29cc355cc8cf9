"""The replies of the fake models: pure functions, without lmms-eval.

An oracle and a coin get the texts and media of a request, as a real model does, and a key: for
every request of the sample's docs its fingerprint and the replies to it. A request that lost its
question, its video or one of its pictures is not in the key. `scripted` gets the doc instead.
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

# A request's texts and media in order; a file is a Path.
Contents: TypeAlias = "Sequence[str | Path | Image]"

UNKNOWN = "I do not know"
LETTERS = "ABCDEFGH"
# The text holds no single letter in Italian or English and is no plausible option. It does not
# decline to choose either (answers.declines): that would be another status.
UNREADABLE = "Bella domanda!"

RIGHT_SHARE = 0.70
UNREADABLE_SHARE = 0.05
# Pairs with a question id are right together on this share of the pools: if all pairs were drawn
# independently, 0.7 ** 8 = 6 % of pools would be right, and a small run would have none.
WHOLE_POOL_SHARE = 0.50


class KnownReplies(NamedTuple):
    """Replies to a doc: a right, a wrong and an unreadable one."""

    item: str  # the text that decides which of the replies is scripted
    right: str
    wrong: str
    unreadable: str
    random_replies: Sequence[str] = ()  # `random_reply` draws from these
    pool: str | None = None  # the items of a pool are right together on some of the pools


class Chance(NamedTuple):
    """A score of random replies: the mean of `value` over the items of `tasks`, and its target."""

    label: str
    tasks: Sequence[str]
    value: Callable[[Mapping[str, Json]], float]
    expected: Callable[[Mapping[str, Json]], float]


class Played(NamedTuple):
    """A benchmark's part of the demo: its tasks, and the numbers that the fake models must get."""

    tasks: Sequence[str]  # tasks or groups to run; no two benchmarks share one
    expected: Mapping[str, Mapping[str, float]]  # task or group -> its value of each metric
    chances: Sequence[Chance]  # scores that random replies must reach about
    headline: tuple[str, str]  # task or group, and metric, for the last screen


@functools.cache
def _known_of(task: str) -> Callable[[Doc], KnownReplies | None] | None:
    """The function `known_replies` of the `sample` module of a benchmark; None if there is none."""
    name = registry.of_task_name(task) if task else None
    if name is None or not registry.has_part(name, "sample"):
        return None
    return getattr(registry.part(name, "sample"), "known_replies", None)


def known_replies(doc: Doc) -> KnownReplies:
    """Replies to a doc: those of its benchmark's `sample.known_replies(doc)`, if there is one.

    If it has none, or it returns None, the replies are letters or references.

    `KnownReplies.item` has `mode` and `length` too: an item is drawn anew for each of these, so
    that tasks that differ in them differ in score.

    Args:
        doc: `id`, and `options` with `answer` (a letter), or `references` with an optional `lure`;
            without a reference no reply is right. `task`, `question_id` (a pool), `mode` and
            `length` are optional. Else the fields that the benchmark's function requires.

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
    """Return the right, wrong or unreadable reply, as a hash of the doc's id decides.

    The only fake model that gets the doc: its score tests metrics, not prompts. About 70 % of the
    items are right, 5 % unreadable and the others wrong. In half of the pools all items are right
    together, so that pool metrics lie between 0 and 1 too; the shares over all items stay the same.
    """
    replies = known_replies(doc)
    whole = WHOLE_POOL_SHARE if replies.pool is not None else 0.0
    if _unit("pool", replies.pool) < whole:
        return replies.right
    # The shares within the other pools are smaller, so that the shares over all items are right.
    place = _unit("item", replies.item) * (1 - whole)
    if place < RIGHT_SHARE - whole:
        return replies.right
    return replies.unreadable if place < RIGHT_SHARE - whole + UNREADABLE_SHARE else replies.wrong


# --- the key --------------------------------------------------------------------------------------


def of_messages(messages: Iterable[JsonObject]) -> Contents:
    """A chat request's texts and media, in order; input of `fingerprint`."""
    parts = (part for message in messages for part in message["content"])
    return [part["text"] if part["type"] == "text" else _medium(part["url"]) for part in parts]


def of_visuals(visuals: Iterable[Image | str], text: str) -> Contents:
    """A simple request's media, then its text; input of `fingerprint`."""
    return [*map(_medium, visuals), text]


def _medium(medium: Image | str) -> Image | Path:
    """Return the picture; for a path or file:// URL a Path, to tell it from a text."""
    return Path(medium.removeprefix("file://")) if isinstance(medium, str) else medium


def fingerprint(parts: Contents) -> str:
    """Return a hash of a request's parts: 24 hexadecimal digits.

    Texts (str) count without regard to white space, PIL images by their pixels, Paths by their
    names.
    """
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


# Replies by the request's fingerprint: the right one, then those that `random_reply` draws from.
Key = Mapping[str, Sequence[str]]


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


def right_reply(key: Key, parts: Contents) -> str:
    """Return the right reply to a request; UNKNOWN if the key lacks the request."""
    return next(iter(key.get(fingerprint(parts), ())), UNKNOWN)


def random_reply(key: Key, parts: Contents, seed: int) -> str:
    """Return a random reply, by a hash of request and seed; UNKNOWN if there is none."""
    name = fingerprint(parts)
    drawn = key.get(name, ())[1:]
    return _draw(drawn, "coin", seed, name) if drawn else UNKNOWN


def _unit(*parts: object) -> float:
    """Return a number in [0, 1) from `parts` alone: the same in every process and version."""
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
    """Return the statement with the highest probability among all models (paper, 4.3).

    Args:
        scores: by model, the length-normalised log-probabilities of A and B.

    Returns:
        "A" or "B"; None for a tie.
    """
    first, second = (max(column) for column in zip(*scores.values(), strict=True))
    if first == second:
        return None
    return "A" if first > second else "B"


def lm_pairs_reply(scores: Mapping[str, Iterable[float]]) -> str:
    """Return the reply of lm_pairs as JSON, in the form that `read_lm_pairs` reads."""
    kept = {model: list(pair) for model, pair in scores.items()}
    return json.dumps({"lm_pairs": {"choice": lm_pairs_choice(kept), "scores": kept}})


def read_lm_pairs(reply: str) -> tuple[str | None, dict[str, list[float]]] | None:
    """Return choice and scores of a reply of `--model lm_pairs`; never raises.

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
