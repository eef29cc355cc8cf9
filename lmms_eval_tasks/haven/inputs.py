"""The prompts of HAVEN's docs: texts and pictures in their order (paper, Appendix C).

A prompt holds what is shown and how many pictures there are. It holds no id, no file name and no
number of a pick, frame or shot in the video, because such a number would reveal the order that the
temporal tasks ask for. The true keyframes, the importance and the alignments are in the doc for
scoring alone.
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
from lmms_eval_tasks.haven.options import KINDS, SELECTIONS, SUMMARIES
from lmms_eval_tasks.media import indexed_frames

if TYPE_CHECKING:
    from PIL.Image import Image

_SHOWN = ""  # stands in a layout for the pictures or descriptions
_NONE = "(not described)"  # text for a frame or shot without a description
_EXAMPLE = (1, 5, 12)  # numbers of frames in the appendix's example
# A doc's `layout` -> parts of the prompt file in their order. A part `KIND_document` is used only
# in tasks with the document.
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
# Optional placeholders ("|"): our packaged texts fill in the numbers of their examples, the
# authors' texts have fixed ones.
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
system_prompts = prompts.file("haven", "system", dict.fromkeys(KINDS, ()))


def system_text(doc: HavenDoc) -> str:
    """Return the system text of the doc's task; "" for a text proxy, and without `system=task`."""
    if doc["text"] or options.current().system == "none":
        return ""
    return system_prompts().text[doc["kind"]]


def request_prompt(doc: HavenDoc) -> list[Part]:
    """Return the parts of a doc's prompt: texts and pictures in turn, never two texts in a row.

    A text ends in the line break before its picture. Many simple models drop placeholders and put
    all pictures before the text. Their text therefore also says which pictures a shot has, or that
    picture i is Frame i.
    """
    numbers: list[int] = []
    loaded = functools.cache(
        lambda: pictures(doc["video_path"], doc["picks"], numbers)
    )  # read at the first picture
    parts: list[Part] = []
    before, began = ["", ""], [False, False]  # for chat models, for simple models
    for texts, frames in _pieces(doc):
        for form, text in enumerate(texts):
            if text:
                before[form] += ("\n\n" if began[form] else "") + text + (":\n" if frames else "")
                began[form] = True
        for number in frames:
            if any(before):
                parts.append(Part("text", before[0], simple_content=before[1]))
            before = ["", ""]
            place = len(numbers)
            parts.append(Part("image", lambda nth=place: loaded()[nth]))
            numbers.append(number)
    return [*parts, Part("text", before[0], simple_content=before[1])]


def pictures(path: str, picks: Sequence[int], numbers: Sequence[int]) -> list[Image]:
    """Return the pictures of sampled frames, by their numbers from 1, in the order of `numbers`.

    Raises:
        MediaError: the video cannot be read.
    """
    return sampled_frames(path, picks).images(numbers) if numbers else []


def sampled_frames(path: str, picks: Sequence[int]) -> indexed_frames.FrameArchive:
    """Return all sampled frames of a video, read in one pass unless the cache holds them.

    Raises:
        MediaError: the video cannot be read.
    """
    return indexed_frames.load_frames(path, picks, options.current().size)


def _pieces(doc: HavenDoc) -> Iterator[tuple[tuple[str, str], Sequence[int]]]:
    """Yield paragraphs without frames, and labels with their frames, in the prompt's order.

    Each text comes in two forms: for chat models, and for simple models, which lose the places of
    the pictures. The frames of v2t have no label.
    """
    said, values, unit = task_prompts().text, _values(doc), _unit(doc)
    # Shown by frame, and not by shot, clip or sentence.
    by_frame = doc["kind"] in SUMMARIES + SELECTIONS
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
            before = 0  # number of pictures so far
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
    """Return a value for each placeholder in the texts around the pictures or descriptions.

    The appendix's examples name three and more units. With one or two units the values here are
    shorter, so that no example asks for more units than there are.
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
    """Return one line `LABEL N: text` for each text; line breaks in a text become spaces."""
    lines = (" ".join(text.split()) for text in texts)
    return "\n".join(f"{label} {place}: {line}" for place, line in enumerate(lines, 1))
