"""What an oracle knows: which statements are true and which answers are right, without any doc."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import cached_property
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.sample import pictures
from lmms_eval_tasks.utils.released_files import read_text
from lmms_eval_tasks.utils.validation import told


@dataclass(frozen=True, config={"extra": "forbid"})
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
        """Read a key file: a JSON object with these attributes, each of which may be absent.

        Raises:
            TasksError: the file is missing, is not JSON or has another form; says where.
        """
        try:
            key = TypeAdapter(cls).validate_json(read_text(Path(path).expanduser()))
        except ValidationError as error:
            raise TasksError(f"answer key {path}: {told(error)}") from None
        if not set(key.pictures) <= set(pictures.PLAYERS):
            known = ", ".join(pictures.PLAYERS)
            raise TasksError(f"answer key {path}: pictures: expected benchmarks, of {known}")
        return key

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
