"""The forms and words that state a choice: forms.yml and languages.yml, compiled.

Both are data with examples that tests read. They are read and compiled at the first reply.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import NamedTuple

from lmms_eval_tasks.utils import json_files
from lmms_eval_tasks.utils.json_files import JsonObject

RANKS = ("machine", "label", "alone", "verdict")  # best first
_ENGLISH_AND_ITALIAN = ("en", "it")  # forms.yml itself has the words of these languages


class StatementForm(NamedTuple):
    """A row of forms.yml; its pattern has a group `letter`, or `content` for a machine's form."""

    name: str
    rank: str
    pattern: re.Pattern[str]
    text: re.Pattern[str] | None = None  # the form with a text in the letter's place
    expects: bool = False
    subject: bool = False  # the letter is the subject: "B is correct"


@cache
def load_table(name: str) -> JsonObject:
    """Return a data file of this package, `forms` or `languages`, as plain types."""
    text = (resources.files(__package__) / f"{name}.yml").read_text(encoding="utf-8")
    return dict(json_files.package_yaml(text))


@cache
def of_rank(rank: str) -> tuple[StatementForm, ...]:
    """Return the forms of one rank, compiled, in the order of the file."""
    return tuple(_form(row) for row in load_table("forms")["forms"] if row["rank"] == rank)


@cache
def guards(file: str = "forms") -> dict[str, re.Pattern[str]]:
    """Return the compiled guards of a data file, by name."""
    data = load_table(file)
    parts = _words() | data["parts"]
    return {row["name"]: _compile(row["pattern"], parts) for row in data["guards"]}


def _form(row: JsonObject) -> StatementForm:
    pattern, parts = row["pattern"], _words() | load_table("forms")["parts"]
    text = None
    if row.get("text"):
        head = pattern.replace("{FILLER}{LETTER}", "{LETTER}")
        text = _compile(head.replace("{LETTER}", "{TEXT}"), parts)
    marks = {name: bool(row.get(name)) for name in ("expects", "subject")}
    return StatementForm(row["name"], row["rank"], _compile(pattern, parts), text, **marks)


def _compile(pattern: str, parts: Mapping[str, str]) -> re.Pattern[str]:
    while names := set(re.findall(r"\{([A-Z_]+)\}", pattern)):
        for name in names:
            pattern = pattern.replace(f"{{{name}}}", parts[name])
    return re.compile(pattern, re.IGNORECASE)


@cache
def _words() -> dict[str, str]:
    """Return the words of all languages for {NAME} in a pattern, besides a file's own parts."""
    languages: dict[str, JsonObject] = load_table("languages")

    def listed(column: str, names: Iterable[str] = languages) -> list[str]:
        """Return the words of a column, longest first."""
        joined = " ".join(languages[name].get(column, "") for name in names)
        written = {*unicodedata.normalize("NFKC", joined).split()}  # normalised as the replies are
        return [word.replace("_", " ") for word in sorted(written, key=lambda w: (-len(w), w))]

    def words(column: str, names: Iterable[str] = languages) -> str:
        """Return an alternation of a column's words, grouped by first letter for speed.

        An alternation of no words never matches.
        """
        tails: dict[str, list[str]] = {}
        for word in listed(column, names):
            plain = word[0].isalnum() and word[1:2] not in ("", "?", "*", "+", "{")
            tails.setdefault(word[0] if plain else "", []).append(word[1:] if plain else word)
        return "|".join(f"{head}(?:{'|'.join(own)})" for head, own in tails.items()) or "(?!)"

    joined = [name for name in languages if "joined_noun" in languages[name]]
    others = [name for name in languages if name not in (*joined, *_ENGLISH_AND_ITALIAN)]
    heads, verdicts = [], []
    for name in others:
        own = {column: words(column, [name]) for column in ("noun", "is", "not", "wrong", "right")}
        gap = rf"(?:(?!\b(?:{own['wrong']}|{own['not']})\b|(?-i:\b[A-Z]\b)){{IN_CLAUSE}}){{0,40}}?"
        heads.append(rf"(?<!\w)(?:{own['noun']})(?!\w){gap}(?<!\w)(?:{own['is']})(?!\w)")
        verdicts.append(rf"(?:{own['is']}) (?:\w{{1,4}} )?(?:{own['right']})\b")
    # "no" and "ne" deny in one language only.
    denials = [word for word in listed("not") if len(word) > 2 or not word.isascii()]
    columns = {"NOUN": "noun", "FALSE": "wrong", "RIGHT": "right", "FINAL": "final"}
    columns |= {"CHOOSE": "choose", "AFTER": "after", "CORRECTS": "corrects"}
    columns |= {"IS_AFTER": "is_after"}
    of_joined = {"IS": "joined_is", "NOT": "not", "RIGHT": "right", "FALSE": "wrong"}
    return {
        **{name: f"(?:{words(column)})" for name, column in columns.items()},
        **{f"JOINED_{name}": f"(?:{words(column, joined)})" for name, column in of_joined.items()},
        "JOINED": rf"(?<![오誤误不错錯])(?:{words('joined_noun')})",
        "VERBS": words("is", _ENGLISH_AND_ITALIAN),
        "DENIALS": "|".join(denials),
        "HEADS": "|".join(heads),
        "VERDICTS": "|".join(verdicts),
    }
