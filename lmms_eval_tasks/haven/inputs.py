"""What a HAVEN doc brings along: texts and pictures in their order (paper, Appendix C).

Of the doc, a request holds what is shown and how many: no id, file name, pick, frame or shot number
of the video, which would tell the order that the temporal tasks ask for. True keyframes, importance
and alignments are in the doc for scoring alone.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lmms_eval_tasks.benchmark import Doc, Part
from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.haven import options
from lmms_eval_tasks.haven.options import SELECTIONS, SUMMARIES
from lmms_eval_tasks.utils import prompts
from lmms_eval_tasks.utils.media import indexed_frames

if TYPE_CHECKING:
    from PIL.Image import Image

Piece = str | int  # a text, or the number of a sampled frame whose picture is shown

_SHOWN = ""  # in a layout: the pictures or descriptions
_NONE = "(not described)"  # in place of a description that the release lacks
# What a doc's `layout` names -> parts of the prompt file in their order. A part `KIND_document` is
# there only where the task gives the document.
_LAYOUTS: dict[str, tuple[str, ...]] = {
    "v2t": (_SHOWN, "v2t_open", "v2t_ask"),
    "v2v": ("v2v_open", _SHOWN, "v2v_ask"),
    "v2vt": ("v2vt_open", _SHOWN, "v2vt_ask"),
    "v2vt_frames": (_SHOWN, "v2vt_ask"),
    "temporal": ("temporal_open", _SHOWN, "temporal_document", "temporal_ask"),
    "grounding": ("grounding_open", _SHOWN, "grounding_sentences", "grounding_ask"),
    "saliency": ("saliency_document", "saliency_open", _SHOWN, "saliency_ask"),
    "v2t_text": ("v2t_text_open", _SHOWN, "v2t_text_ask"),
    "v2v_text": ("v2v_text_open", _SHOWN, "v2v_text_ask"),
    "v2vt_text": ("v2vt_text_open", _SHOWN, "v2vt_text_ask"),
    "temporal_text": ("temporal_open", _SHOWN, "temporal_ask"),
    options.OF_SENTENCES: ("temporal_text_open", _SHOWN, "temporal_text_ask"),
    "grounding_text": ("grounding_text_open", _SHOWN, "grounding_sentences", "grounding_ask"),
    "saliency_text": ("saliency_text_open", _SHOWN, "saliency_text_ask"),
}
# What ours says of formats, from how many there are, is fixed in the authors' texts.
_JOINT = {"n_sentences", "k", "n_frames|", "names|", "numbered|", "picked|"}
_PICKING = {"k", "n_frames|", "example|", "n_example|"}
_ORDERING = {"n", "names", "form|"}
_PLACEHOLDERS: dict[str, set[str]] = {
    **{"v2t_open": {"n_frames|"}, "v2t_ask": set()},
    **{"v2v_open": {"n_frames"}, "v2v_ask": _PICKING},
    **{"v2vt_open": {"n_frames"}, "v2vt_ask": _JOINT},
    **{"temporal_open": {"n"}, "temporal_document": {"document"}, "temporal_ask": _ORDERING},
    **{"grounding_open": {"n"}, "grounding_sentences": {"n_sentences", "lines"}},
    "grounding_ask": set(),
    **{"saliency_document": {"document"}, "saliency_open": {"n"}, "saliency_ask": _ORDERING},
    **{"v2t_text_open": set(), "v2t_text_ask": {"n_sentences", "numbered|"}},
    **{"v2v_text_open": set(), "v2v_text_ask": _PICKING},
    **{"v2vt_text_open": {"n_frames"}, "v2vt_text_ask": _JOINT},
    **{"temporal_text_open": {"n"}, "temporal_text_ask": _ORDERING},
    "grounding_text_open": {"n"},
    **{"saliency_text_open": {"n"}, "saliency_text_ask": _ORDERING},
    **{"frame_images": {"n_frames"}, "one_image": {"first"}, "more_images": {"first", "last"}},
}


class _Pictures(NamedTuple):
    """Frames behind a label; the frames of v2t have none."""

    label: str
    frames: list[int]


def prompt(doc: Doc) -> list[Part]:
    """The request: no two texts follow each other; line breaks to the pictures are the texts'.

    Many simple models drop placeholders and put all pictures before the text; so their text also
    says which pictures a shot has, or that picture i is Frame i.

    Raises:
        PromptError: the user's prompt file lacks a part or a placeholder.
    """
    chat, simple = _joined(doc, simple=False), _joined(doc, simple=True)
    numbers = [piece for piece in chat if isinstance(piece, int)]
    loaded = functools.cache(
        lambda: pictures(doc, numbers)
    )  # once, and when the first is asked for
    places = itertools.count()
    return [
        Part("text", piece, simple=other)
        if isinstance(piece, str)
        else Part("image", functools.partial(_nth, loaded, next(places)))
        for piece, other in zip(chat, simple, strict=True)
    ]


def _nth(loaded: Callable[[], Sequence[Image]], place: int) -> Image:
    return loaded()[place]


def pictures(doc: Doc, numbers: Sequence[int]) -> list[Image]:
    """The pictures of sampled frames by their numbers, from 1, in this order.

    Raises:
        MediaError: they cannot be read; the message names the item.
    """
    if not numbers:
        return []
    try:
        if not doc["video_path"]:
            raise MediaError("its video file is not there")
        return frames(doc).images(numbers)
    except MediaError as error:
        # The host cannot pass over an item, so the run ends here; before it, the check has read it.
        raise MediaError(
            f"{doc['id']}: its frames cannot be read any more, so the run ends ({error}); all "
            "frames that are read are kept: start it again, with --allow-bad-items to leave it out"
        ) from None


def frames(doc: Doc) -> indexed_frames.Frames:
    """All sampled frames of a video, read in one pass if they are not kept from another task.

    Raises:
        MediaError: the video cannot be read, or ends before a pick; names it.
    """
    return indexed_frames.frames(doc["video_path"], doc["picks"], options.current().size)


@prompts.once
def task_prompts() -> prompts.Prompt:
    """The task prompts, ours or the user's.

    Raises:
        PromptError: the user's file lacks a text or a placeholder.
    """
    return prompts.load("haven", "task", _PLACEHOLDERS)


def _joined(doc: Doc, *, simple: bool) -> list[Piece]:
    """Texts, an empty line between them, and frame numbers; neighbouring texts are one."""
    said = task_prompts().text
    made: list[Piece] = [""]
    n = 0
    for piece in _pieces(doc, said, simple=simple):
        made.append("\n\n" if any(isinstance(one, str) and one for one in made) else "")
        if isinstance(piece, str):
            made.append(piece)
            continue
        if piece.label:
            located = simple and not _by_frame(doc)
            where = _where(said, n, len(piece.frames)) if located else ""
            made.append(f"{piece.label}{where}:\n")
        made += piece.frames
        n += len(piece.frames)
    return _merged(made)


def _merged(found: Iterable[Piece]) -> list[Piece]:
    made: list[Piece] = []
    for part in found:
        if isinstance(part, str) and made and isinstance(made[-1], str):
            made[-1] += part
        elif part != "":
            made.append(part)
    return made


def _where(said: Mapping[str, str], before: int, count: int) -> str:
    """` (images 5 to 8)`: the places of a shot's pictures among all of the request."""
    values = {"first": str(before + 1), "last": str(before + count)}
    return " " + prompts.fill(said["one_image" if count == 1 else "more_images"], values)


def _pieces(doc: Doc, said: Mapping[str, str], *, simple: bool) -> list[str | _Pictures]:
    """Paragraphs and groups of pictures in their order."""
    values = _values(doc)
    made: list[str | _Pictures] = []
    for part in _LAYOUTS[doc["layout"]]:
        if part != _SHOWN:
            if doc["with_document"] or not part.endswith("_document"):
                made.append(prompts.fill(said[part], values))
        elif doc["text"]:
            made.append(_lines(_unit(doc), _descriptions(doc)))
        else:
            shown = _shown(doc)
            if simple and _by_frame(doc) and shown[0].label:
                made.append(prompts.fill(said["frame_images"], values))
            made += shown
    return made


def _shown(doc: Doc) -> list[_Pictures]:
    """The pictures as they are labelled: by shot or clip, by frame, or not at all (v2t)."""
    if not _by_frame(doc):
        return [
            _Pictures(f"{_unit(doc)} {place}", list(frames))
            for place, frames in enumerate(doc["unit_frames"], 1)
        ]
    numbers = list(range(1, len(doc["picks"]) + 1))
    if doc["kind"] == "v2t":
        return [_Pictures("", numbers)]
    if doc["layout"] == "v2vt":
        return [_Pictures(f"Shot {n} ({_span(own)})", own) for n, own in enumerate(doc["shots"], 1)]
    return [_Pictures(f"{_unit(doc)} {number}", [number]) for number in numbers]


def _span(frames: Sequence[int]) -> str:
    first, last = frames[0], frames[-1]
    return f"Frame {first}" if first == last else f"Frames {first}-{last}"


def _descriptions(doc: Doc) -> list[str]:
    """What a text proxy shows in place of pictures, in the order shown."""
    if _by_frame(doc):
        return [text or _NONE for text in doc["descriptions"]]
    texts = doc["document" if doc["layout"] == options.OF_SENTENCES else "shot_texts"]
    return [texts[unit - 1] or _NONE for unit in doc["units"]]


def _by_frame(doc: Doc) -> bool:
    """Whether all sampled frames are shown, and not shots, clips or sentences."""
    return doc["kind"] in SUMMARIES + SELECTIONS


def _unit(doc: Doc) -> str:
    if doc["layout"] == options.OF_SENTENCES:
        return "Sentence"
    return {"temporal": "Shot", "saliency": "Shot", "grounding": "Clip"}.get(doc["kind"], "Frame")


def _values(doc: Doc) -> dict[str, str]:
    """A value for every placeholder of the parts around what is shown."""
    n_frames, n, k = len(doc["picks"]), len(doc["units"]), doc["budget"]
    unit = _unit(doc)
    few = example(k, n_frames)
    summary = [doc["summary"][sentence - 1] for sentence in doc["sentences"]]
    return {
        "n_frames": str(n_frames),
        "n": str(n),
        "names": names(unit, n or n_frames),
        "form": order(unit, n),
        "k": str(k),
        "picked": picked("" if doc["text"] else unit, k),
        "example": json.dumps(few),
        "n_example": str(len(few)),
        "n_sentences": str(doc["n_sentences"] if doc["kind"] in SUMMARIES else len(summary)),
        "numbered": numbered(doc["n_sentences"]),
        "document": " ".join(map(_line, doc["document"])),
        "lines": _lines("Summary", summary),
    }


def _lines(label: str, texts: Iterable[str]) -> str:
    """`LABEL 1: text`, one a line whatever breaks a text has."""
    return "\n".join(f"{label} {place}: {_line(text)}" for place, text in enumerate(texts, 1))


def _line(text: str) -> str:
    return " ".join(text.split())


# --- formats and enumerations that depend on how many there are --------------------------------

# What the appendix shows with three and more stays true of one or two: no example asks for more
# than there is.
_LETTERS = ("X", "Y", "Z")
_EXAMPLE = (1, 5, 12)  # the appendix's


def names(word: str, n: int) -> str:
    """`Shot 1, Shot 2, ..., Shot 5`; up to three are listed in full."""
    if n <= 3:
        return ", ".join(f"{word} {number}" for number in range(1, n + 1))
    return f"{word} 1, {word} 2, ..., {word} {n}"


def order(word: str, n: int) -> str:
    """`Shot X > Shot Y > Shot Z > ...`; the dots only where there are more than three."""
    return _form(word, n, 3, " > ")


def picked(word: str, k: int) -> str:
    """`Frame X, Frame Y, ...`; the dots only where there are more than two."""
    return _form(word, k, 2, ", ")


def numbered(n: int) -> str:
    """`1. [sentence 1]` to `n. [sentence n]`, one a line; up to three are listed in full."""
    lines = [f"{number}. [sentence {number}]" for number in range(1, n + 1)]
    return "\n".join(lines if n <= 3 else [*lines[:2], "...", lines[-1]])


def example(k: int, n_frames: int) -> list[int]:
    """The appendix's example, `[1, 5, 12]`, of no more frames than are asked for or there are.

    With K of 15 % of the frames it is never cut for want of frames, and from K = 3 on it is whole.
    """
    return [number for number in _EXAMPLE[:k] if number <= n_frames]


def _form(word: str, n: int, shown: int, separator: str) -> str:
    before = f"{word} " if word else ""
    dots = ["..."] if n > shown else []
    return separator.join([*(f"{before}{letter}" for letter in _LETTERS[: min(n, shown)]), *dots])
