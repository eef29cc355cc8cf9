"""What the offline judge sees in an Italian text: content stems, polarity, slots, numbers. Pure.

Words are compared as Snowball stems of accent-free lower-case forms ("perchè" and "perché" are
one). The word lists are general Italian, but were chosen after reading three of MAIA's five public
videos (5, 8, 11): offline.py says how the rules do on the two others.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

_SCOPE = 5  # tokens after a negator that it reaches


class _Lexicon:
    """judges/italian.json, with words as the tokens or stems they are looked up by.

    `absent` negates without a negator ("manca il padre"); `know`, negated or after `hard`, says
    that the video does not tell. The values of a slot exclude each other (sinistra, destra); where
    stemming would merge two values (bambino, bambina), the words are compared as written.
    """

    def __init__(self) -> None:
        source = resources.files("lmms_eval_tasks.judges") / "italian.json"
        words = json.loads(source.read_text(encoding="utf-8"))
        self.stop_words = frozenset(words["stop_words"].split())
        self.negators = frozenset(words["negators"].split())
        self.prefixes: tuple[str, ...] = tuple(words["negative_prefixes"].split())
        self.numbers: dict[str, int] = words["numbers"]
        self.absent, self.know, self.hard = (
            frozenset(map(_stem, _tokens(words[name]))) for name in ("absent", "know", "hard")
        )
        slots = words["slots"]
        self.by_stem = _slot_index(slots, 0, _stem)
        self.by_form = _slot_index(words["slots_as_written"], len(slots), str)


@dataclass(frozen=True)
class Text:
    """One text as the rules see it."""

    tokens: tuple[str, ...]
    stems: frozenset[str]  # content words, without negators and stop words
    negated: frozenset[str]  # for each negation, what comes next ("" at the end)
    slots: dict[int, frozenset[int]]  # slot -> values named
    numbers: frozenset[int]
    unsure: bool  # says that the answer cannot be known


@lru_cache(maxsize=2048)
def analyse(text: str) -> Text:
    """Read one text; cached, because a question's references come back with every answer."""
    words = _lexicon()
    tokens = _tokens(text)
    stems = [_stem(token) for token in tokens]
    function_words = words.stop_words | words.negators
    return Text(
        tokens=tuple(tokens),
        stems=frozenset(
            stem for token, stem in zip(tokens, stems, strict=True) if token not in function_words
        ),
        negated=_negated(tokens, stems),
        slots=_slots(tokens, stems),
        numbers=frozenset(
            int(token) if token.isdecimal() else words.numbers[token]
            for token in tokens
            if (token.isdecimal() and len(token) < 10) or token in words.numbers
        ),
        unsure=_unsure(tokens, stems),
    )


def opposite_by_prefix(word: str, others: frozenset[str]) -> bool:
    """Whether a stem is another with a negative prefix, or the other way round (in-felice)."""
    return any(
        len(short) > 3 and long == prefix + short
        for other in others
        for short, long in (sorted((word, other), key=len),)
        for prefix in _lexicon().prefixes
    )


def _tokens(text: str) -> list[str]:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return re.findall(r"\w+", "".join(c for c in decomposed if not unicodedata.combining(c)))


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    from nltk.stem.snowball import SnowballStemmer

    return SnowballStemmer("italian")


@lru_cache(maxsize=65536)
def _stem(token: str) -> str:
    return str(_stemmer().stem(token))


@lru_cache(maxsize=1)
def _lexicon() -> _Lexicon:
    return _Lexicon()


def _slot_index(
    slots: Sequence[Sequence[str]], first: int, key: Callable[[str], str]
) -> dict[str, frozenset[tuple[int, int]]]:
    """Word -> (slot, value) it names; slots are numbered from `first`."""
    index: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for slot, values in enumerate(slots, first):
        for value, words in enumerate(values):
            for token in _tokens(words):
                index[key(token)].add((slot, value))
    return {word: frozenset(places) for word, places in index.items()}


def _negated(tokens: Sequence[str], stems: Sequence[str]) -> frozenset[str]:
    """The stem after each negation: tells one that the question holds from the answer's own."""
    words = _lexicon()
    found = set()
    for i, token in enumerate(tokens):
        if token in words.negators or stems[i] in words.absent:
            rest = zip(tokens[i + 1 :], stems[i + 1 :], strict=True)
            found.add(next((stem for word, stem in rest if word not in words.stop_words), ""))
    return frozenset(found)


def _unsure(tokens: Sequence[str], stems: Sequence[str]) -> bool:
    words = _lexicon()
    return any(
        (token in words.negators or stems[i] in words.hard)
        and words.know & set(stems[i + 1 : i + 1 + _SCOPE])
        for i, token in enumerate(tokens)
    )


def _slots(tokens: Sequence[str], stems: Sequence[str]) -> dict[int, frozenset[int]]:
    words = _lexicon()
    found: dict[int, set[int]] = defaultdict(set)
    for token, stem in zip(tokens, stems, strict=True):
        for slot, value in (*words.by_stem.get(stem, ()), *words.by_form.get(token, ())):
            found[slot].add(value)
    return {slot: frozenset(values) for slot, values in found.items()}
