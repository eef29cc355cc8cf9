"""What an oracle knows: which statements are true and which answers are right, without any doc."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.sample import pictures

_BY_QUESTION = ("answers", "lures", "choices")


@dataclass(frozen=True)
class AnswerKey:
    """What is true, independent of any task's docs.

    Attributes:
        pairs: (true statement, false statement), in any number and order.
        answers: question -> right answer.
        lures: question -> a wrong answer that looks right.
        choices: question asked with more than two options -> text of the right one.
        pictures: benchmarks whose packaged sample is played from its pictures (pictures.py).
    """

    pairs: tuple[tuple[str, str], ...] = ()
    answers: Mapping[str, str] = field(default_factory=dict)
    lures: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)
    pictures: tuple[str, ...] = ()

    @classmethod
    def load(cls, path: str | Path) -> AnswerKey:
        """Read a key file.

        It is `{"pairs": [[true, false], ...], "answers": {question: answer}, "lures":
        {question: answer}, "choices": {question: option}, "pictures": [benchmark, ...]}`; each part
        may be absent, anything else is an error.

        Raises:
            TasksError: the file is missing, is not JSON or has another form.
        """
        content = _read_json(path)
        if not isinstance(content, dict) or set(content) - {"pairs", "pictures", *_BY_QUESTION}:
            parts = ", ".join(("pairs", *_BY_QUESTION))
            raise TasksError(f"{path}: expected an object with {parts} or pictures")
        pairs = content.get("pairs", [])
        if not isinstance(pairs, list) or not all(_is_texts(pair, 2) for pair in pairs):
            raise TasksError(f"{path}: pairs must be a list of [true statement, false statement]")
        for part in _BY_QUESTION:
            entries = content.get(part, {})
            if not isinstance(entries, dict) or not _is_texts(list(entries.values())):
                raise TasksError(f"{path}: {part} must be an object of texts")
        named = content.get("pictures", [])
        if not _is_texts(named) or not set(named) <= set(pictures.PLAYERS):
            known = ", ".join(pictures.PLAYERS)
            raise TasksError(f"{path}: pictures must be a list of benchmarks, of {known}")
        return cls(
            pairs=tuple((true, false) for true, false in pairs),
            answers=content.get("answers", {}),
            lures=content.get("lures", {}),
            choices=content.get("choices", {}),
            pictures=tuple(named),
        )

    @cached_property
    def truth(self) -> dict[tuple[str, str], int | None]:
        """(text, text), folded -> index of the true one; None where the pairs say both."""
        found: dict[tuple[str, str], int | None] = {}
        for true, false in self.pairs:
            for pair, index in (((fold(true), fold(false)), 0), ((fold(false), fold(true)), 1)):
                if found.get(pair, index) != index:
                    found[pair] = None
                else:
                    found[pair] = index
        return found

    @cached_property
    def questions(self) -> list[tuple[str, str]]:
        """(folded question, question), longest first: one question may stand in another."""
        return _longest_first(self.answers)

    @cached_property
    def choice_questions(self) -> list[tuple[str, str]]:
        """As `questions`, of those that are asked with more than two options."""
        return _longest_first(self.choices)


def fold(text: str) -> str:
    """`text` as it is compared here: composed accents, single spaces."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def _longest_first(questions: Iterable[str]) -> list[tuple[str, str]]:
    folded = ((fold(question), question) for question in questions)
    return sorted((f for f in folded if f[0]), key=lambda f: (-len(f[0]), f[0]))


def _read_json(path: str | Path) -> Any:
    try:
        return json.loads(Path(path).expanduser().read_text(encoding="utf-8"))
    except OSError as error:
        raise TasksError(f"answer key {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise TasksError(f"answer key {path} is not JSON: {error}") from None


def _is_texts(value: object, length: int | None = None) -> bool:
    return (
        isinstance(value, list)
        and (length is None or len(value) == length)
        and all(isinstance(text, str) for text in value)
    )
