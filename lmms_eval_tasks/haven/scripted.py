"""HAVEN's replies of known worth, made from the doc, for `--model tasks_scripted`.

`right` reaches the best value that the item allows, `wrong` is a false reply in the right form, and
`unreadable` is a text that no parser reads. For tests of metrics, of one process against two, and
of the way to the report; a player that sees only the request is sample_oracle.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.sample.players import UNREADABLE

Doc = Mapping[str, Any]

WRONG_SUMMARY = (
    "Somebody repairs a bicycle in a garage.",
    "Two dogs run along a beach.",
    "Rain falls on an empty market.",
    "The lights go out in a theatre.",
)


def item(doc: Doc) -> str:
    """What a reply's worth is drawn by: the same video is drawn anew in every task.

    Raises:
        TasksError: a field is missing.
    """
    try:
        names = [doc["kind"], "doc" if doc["with_document"] else "", "text" if doc["text"] else ""]
        return "_".join(filter(None, ["haven", *names])) + f"/{doc['id']}"
    except (KeyError, TypeError) as error:
        raise _lacking(error) from None


def reply(doc: Doc, worth: str) -> str:
    """A reply to a doc.

    Args:
        doc: of any HAVEN task (items.doc).
        worth: `right`, `wrong` or `unreadable`.

    Raises:
        TasksError: the doc is of no known kind or lacks a field that its kind has.
    """
    if doc.get("not_run"):
        return "skipped"
    try:
        if worth == "unreadable":
            # Any text is a summary; an empty reply is the only one that is none.
            return "" if doc["kind"] == "v2t" else UNREADABLE
        return _REPLIES[doc["kind"]](doc, worth == "right")
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise _lacking(error) from None


def fitted(sentences: Sequence[str], asked: int) -> list[str]:
    """A summary of `asked` sentences at most, the last one of which holds all further ones."""
    if not 0 < asked < len(sentences):
        return list(sentences)
    return [*sentences[: asked - 1], " ".join(sentences[asked - 1 :])]


def _lacking(error: Exception) -> TasksError:
    return TasksError(f"tasks_scripted needs docs of HAVEN with all their fields: {error!r}")


def _v2t(doc: Doc, right: bool) -> str:
    sentences = _summary(doc, right)
    return _numbered(sentences) if doc["text"] else " ".join(sentences)


def _v2v(doc: Doc, right: bool) -> str:
    return str(_frames(doc, right))


def _v2vt(doc: Doc, right: bool) -> str:
    name = "" if doc["text"] else "Frame "
    frames = ", ".join(f"{name}{frame}" for frame in _frames(doc, right))
    return f"{_numbered(_summary(doc, right))}\nIMPORTANT FRAMES: [{frames}]"


def _temporal(doc: Doc, right: bool) -> str:
    word = "Sentence" if doc["text"] else "Shot"
    return _order(word, sorted(_places(doc), key=lambda place: doc["units"][place - 1]), right)


def _saliency(doc: Doc, right: bool) -> str:
    importance = [doc["importance"][unit - 1] for unit in doc["units"]]
    return _order("Shot", sorted(_places(doc), key=lambda place: -importance[place - 1]), right)


def _grounding(doc: Doc, right: bool) -> str:
    lines = []
    for number, sentence in enumerate(doc["sentences"], 1):
        true = doc["summary_shots"][sentence - 1]
        hits = [place for place in _places(doc) if doc["units"][place - 1] in true]
        misses = [place for place in _places(doc) if place not in hits]
        clips = hits if right else (misses or hits)[:1]  # of a sentence about all clips, one
        lines.append(f"Summary {number}: {', '.join(f'Clip {clip}' for clip in clips)}")
    return "\n".join(lines)


_REPLIES: dict[str, Callable[[Doc, bool], str]] = {
    "v2t": _v2t,
    "v2v": _v2v,
    "v2vt": _v2vt,
    "temporal": _temporal,
    "grounding": _grounding,
    "saliency": _saliency,
}


def _places(doc: Doc) -> range:
    return range(1, len(doc["units"]) + 1)


def _order(word: str, best: Sequence[int], right: bool) -> str:
    """The best order, or its opposite."""
    numbers = best if right else best[::-1]
    return " > ".join(f"{word} {number}" for number in numbers)


def _frames(doc: Doc, right: bool) -> list[int]:
    """As many as are asked for: true keyframes first, or last."""
    numbers = range(1, len(doc["picks"]) + 1)
    true = set(doc["keyframes"])
    order = sorted(numbers, key=lambda number: ((number in true) != right, number))
    return sorted(order[: doc["budget"]])


def _summary(doc: Doc, right: bool) -> list[str]:
    return fitted(doc["summary"] if right else WRONG_SUMMARY, doc["n_sentences"])


def _numbered(sentences: Sequence[str]) -> str:
    lines = [f"{number}. {sentence}" for number, sentence in enumerate(sentences, 1)]
    return "\n".join(["SUMMARY:", *lines])
