"""What a HAVEN doc brings along: texts and pictures in their order (paper, Appendix C).

Of the doc, a request holds what is shown and how many: no id, file name, pick, frame or shot number
of the video, which would tell the order that the temporal tasks ask for. True keyframes, importance
and alignments are in the doc for scoring alone.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from lmms_eval_tasks import prompts
from lmms_eval_tasks.benchmark import Part
from lmms_eval_tasks.haven import options
from lmms_eval_tasks.haven.items import HavenDoc
from lmms_eval_tasks.haven.options import SELECTIONS, SUMMARIES
from lmms_eval_tasks.media import indexed_frames

if TYPE_CHECKING:
    from PIL.Image import Image

_SHOWN = ""  # in a layout: the pictures or descriptions
_NONE = "(not described)"  # in place of a description that the release lacks
_EXAMPLE = (1, 5, 12)  # of frames, the appendix's
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
_JOINT = ("n_sentences", "k", "n_frames|", "names|", "numbered|", "picked|")
_PICKING = ("k", "n_frames|", "example|", "n_example|")
_ORDERING = ("n", "names", "form|")
_PLACEHOLDERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("v2t_ask", "grounding_ask", "v2t_text_open", "v2v_text_open"), ()),
    **dict.fromkeys(("v2v_open", "v2vt_open", "v2vt_text_open", "frame_images"), ("n_frames",)),
    **dict.fromkeys(("temporal_open", "grounding_open", "saliency_open"), ("n",)),
    **dict.fromkeys(("temporal_text_open", "grounding_text_open", "saliency_text_open"), ("n",)),
    **dict.fromkeys(("temporal_document", "saliency_document"), ("document",)),
    **dict.fromkeys(("v2v_ask", "v2v_text_ask"), _PICKING),
    **dict.fromkeys(("v2vt_ask", "v2vt_text_ask"), _JOINT),
    **dict.fromkeys(("temporal_ask", "temporal_text_ask"), _ORDERING),
    **dict.fromkeys(("saliency_ask", "saliency_text_ask"), _ORDERING),
    "v2t_open": ("n_frames|",),
    "v2t_text_ask": ("n_sentences", "numbered|"),
    "grounding_sentences": ("n_sentences", "lines"),
    "one_image": ("first",),
    "more_images": ("first", "last"),
}
task_prompts = prompts.file("haven", "task", _PLACEHOLDERS)


def request_prompt(doc: HavenDoc) -> list[Part]:
    """The request: no two texts follow each other; line breaks to the pictures are the texts'.

    Many simple models drop placeholders and put all pictures before the text; so their text also
    says which pictures a shot has, or that picture i is Frame i.
    """
    numbers: list[int] = []
    loaded = functools.cache(
        lambda: pictures(doc["video_path"], doc["picks"], numbers)
    )  # when the first is asked for
    found: list[Part] = []
    before, told = ["", ""], [False, False]  # of chat models and of simple ones
    for texts, frames in _pieces(doc):
        for form, text in enumerate(texts):
            if text:
                before[form] += ("\n\n" if told[form] else "") + text + (":\n" if frames else "")
                told[form] = True
        for number in frames:
            if any(before):
                found.append(Part("text", before[0], simple_content=before[1]))
            before = ["", ""]
            place = len(numbers)
            found.append(Part("image", lambda nth=place: loaded()[nth]))
            numbers.append(number)
    return [*found, Part("text", before[0], simple_content=before[1])]


def pictures(path: str, picks: Sequence[int], numbers: Sequence[int]) -> list[Image]:
    """The pictures of sampled frames by their numbers, from 1, in this order; else MediaError."""
    return sampled_frames(path, picks).images(numbers) if numbers else []


def sampled_frames(path: str, picks: Sequence[int]) -> indexed_frames.FrameArchive:
    """All sampled frames of a video, read in one pass if they are not kept; else a MediaError."""
    return indexed_frames.load_frames(path, picks, options.current().size)


def _pieces(doc: HavenDoc) -> Iterator[tuple[tuple[str, str], Sequence[int]]]:
    """Paragraphs, and labels with their frames, in their order; v2t's frames have no label.

    Of each the text for chat models and that for simple ones, which lack the pictures' places.
    """
    said, values, unit = task_prompts().text, _values(doc), _unit(doc)
    by_frame = doc["kind"] in SUMMARIES + SELECTIONS  # and not by shot, clip or sentence
    for part in _LAYOUTS[doc["layout"]]:
        if part != _SHOWN:
            if doc["with_document"] or not part.endswith("_document"):
                yield (prompts.fill(said[part], values),) * 2, ()
        elif doc["text"]:
            texts = doc["descriptions"]
            if not by_frame:
                by_sentence = doc["layout"] == options.OF_SENTENCES
                unit_texts = doc["document"] if by_sentence else doc["shot_texts"]
                texts = [unit_texts[number - 1] for number in doc["units"]]
            yield (_lines(unit, [text or _NONE for text in texts]),) * 2, ()
        elif not by_frame:
            before = 0  # pictures of the request
            for place, own in enumerate(doc["unit_frames"], 1):
                first, before = before + 1, before + len(own)
                name = "one_image" if first == before else "more_images"
                where = prompts.fill(said[name], {"first": str(first), "last": str(before)})
                yield (f"{unit} {place}", f"{unit} {place} {where}"), own
        elif doc["kind"] == "v2t":
            yield ("", ""), range(1, len(doc["picks"]) + 1)
        else:
            yield ("", prompts.fill(said["frame_images"], values)), ()
            by_shot = doc["layout"] == "v2vt"
            every = [[number] for number in range(1, len(doc["picks"]) + 1)]
            for place, own in enumerate(doc["shots"] if by_shot else every, 1):
                span = f"Frame {own[0]}" if len(own) == 1 else f"Frames {own[0]}-{own[-1]}"
                yield (f"Shot {place} ({span})" if by_shot else f"{unit} {place}",) * 2, own


def _unit(doc: HavenDoc) -> str:
    if doc["layout"] == options.OF_SENTENCES:
        return "Sentence"
    return {"temporal": "Shot", "saliency": "Shot", "grounding": "Clip"}.get(doc["kind"], "Frame")


def _values(doc: HavenDoc) -> dict[str, str]:
    """A value for every placeholder of the parts around what is shown.

    What the appendix shows with three and more stays true of one or two: no example asks for more
    than there is.
    """
    n_frames, n, k = len(doc["picks"]), len(doc["units"]), doc["budget"]
    unit, asked = _unit(doc), doc["n_sentences"]
    summary = [doc["summary"][sentence - 1] for sentence in doc["sentences"]]
    few = [number for number in _EXAMPLE[:k] if number <= n_frames]
    names = [f"{unit} {number}" for number in range(1, 1 + (n or n_frames))]
    lines = [f"{number}. [sentence {number}]" for number in range(1, asked + 1)]
    frame = "" if doc["text"] else f"{unit} "
    return {
        "n_frames": str(n_frames),
        "n": str(n),
        "names": ", ".join(_shortened(names)),
        "form": " > ".join([*(f"{unit} {letter}" for letter in "XYZ"[:n]), *["..."] * (n > 3)]),
        "k": str(k),
        "picked": ", ".join([*(f"{frame}{letter}" for letter in "XY"[:k]), *["..."] * (k > 2)]),
        "example": json.dumps(few),
        "n_example": str(len(few)),
        "n_sentences": str(asked if doc["kind"] in SUMMARIES else len(summary)),
        "numbered": "\n".join(_shortened(lines)),
        "document": " ".join(" ".join(text.split()) for text in doc["document"]),
        "lines": _lines("Summary", summary),
    }


def _shortened(every: list[str]) -> list[str]:
    return every if len(every) <= 3 else [*every[:2], "...", every[-1]]


def _lines(label: str, texts: Iterable[str]) -> str:
    """`LABEL 1: text`, one a line whatever breaks a text has."""
    lines = (" ".join(text.split()) for text in texts)
    return "\n".join(f"{label} {place}: {line}" for place, line in enumerate(lines, 1))
