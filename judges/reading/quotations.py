"""Objects in a reply that are not the judge's own: from a list, a source or an example. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

from lmms_eval_tasks.judges.reading.objects import ObjectSpan, squashed, unescaped, unfenced
from lmms_eval_tasks.utils.json_files import JsonObject


def is_copied(
    value: JsonObject, written: str, examples: Iterable[str], options: Collection[str]
) -> bool:
    """Return True if an object with free text occurs in one of the prompt's texts.

    It is a copy, too, if only its lists of objects were filled in.
    """

    def texts(part: object) -> list[str]:
        if isinstance(part, (dict, list)):
            inner = part.values() if isinstance(part, dict) else part
            return [text for one in inner for text in texts(one)]
        return [part] if isinstance(part, str) and part and part not in options else []

    if not texts(value):
        return False
    told = " ".join(map(_unmarked, examples))
    filled = {  # without lists of objects
        key: part
        for key, part in value.items()
        if not (isinstance(part, list) and any(isinstance(one, dict) for one in part))
    }
    worded = any(any(map(str.isalnum, text)) for text in texts(filled))
    pairs = (_unmarked(f"{key}:{part}") for key, part in filled.items())
    return _unmarked(written) in told or (worded and all(_stands(pair, told) for pair in pairs))


@lru_cache(maxsize=64)  # a prompt is the same in all requests
def _unmarked(text: str) -> str:
    return re.sub("[<>]", "", squashed(text))


def in_list(text: str, span: ObjectSpan) -> bool:
    """Return True if an object is in a list, unless the reply is a list of it alone."""
    whole = unfenced(text)
    if whole == f"[{text[span.start : span.end]}]":  # the whole reply, hence no quotation
        return False
    before, after = text[: span.start].rstrip(), text[span.end :].lstrip()
    whole_list = whole.startswith("[") and whole.endswith("]")
    return before.endswith("[") or after.startswith("]") or whole_list


def is_quoted(value: JsonObject, written: str, sources: Sequence[str]) -> bool:
    """Return True if the object occurs in a source: as written, or key by key, in any order.

    A source counts only from its first brace on: words are no object.
    """
    own, pairs = squashed(written), [squashed(f"{key}:{one}") for key, one in value.items()]
    texts = [squashed(text) for source in sources for text in (source, unescaped(source))]
    texts = [text[text.find("{") :] for text in texts if "{" in text]
    return any(own in text or all(_stands(pair, text) for pair in pairs) for text in texts)


def _stands(pair: str, text: str) -> bool:
    """Return True if a key with its value occurs in a text; 4 does not occur in 45."""
    if not pair[-1:].isdigit():
        return pair in text
    return re.search(rf"{re.escape(pair)}(?!\.?[0-9])", text) is not None
