"""A request of HAVEN's packaged sample as its players see it: its texts and its pictures, no more.

The prompt's own words tell the task and the form of the reply (Appendix C); strips (sample_code.py)
and templates (sample_texts.py) tell the rest. A request of anything else, or one that cannot be
read, is None: a picture that is lost or too small to read, a text that lost a line, or a prompt
that no longer names its format shows in the players' scores.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from lmms_eval_tasks.haven import sample_code, sample_texts
from lmms_eval_tasks.haven.options import ORDERS, SELECTIONS
from lmms_eval_tasks.haven.sample_code import Mark
from lmms_eval_tasks.haven.sample_stories import SCENES, Scene
from lmms_eval_tasks.haven.sample_texts import FrameText

if TYPE_CHECKING:
    from PIL.Image import Image

    Part = str | Image

PLACEHOLDER = "<image>"  # where a simple request has a picture, which then comes before the text

# `Shot 2:`, in a simple request `Shot 2 (images 5 to 8):`, or `2.`
_LABEL = re.compile(
    r"\s*(?:(Shot|Clip|Frame|Sentence|Summary) )?(\d+)(?: \(images? [^)]*\))?[:.)](?:\s+(.*))?$"
)
_BUDGET = re.compile(r"\bexactly (\d+) (?:[\w-]+ ){0,3}?(?:frame|element|integer)", re.IGNORECASE)
_SENTENCES = re.compile(r"\bexactly (\d+) (?:[\w-]+ ){0,3}?sentence", re.IGNORECASE)


class Unit(NamedTuple):
    """A labelled thing that a request shows: shot, clip or sentence.

    number: of its label. order: it comes before units with a greater one; None if nothing tells.
    importance: None if nothing tells. scenes: those it shows or names.
    """

    number: int
    order: int | None
    importance: Fraction | None
    scenes: tuple[Scene, ...]


class Request(NamedTuple):
    """What a request shows and asks.

    kind: of labels.KINDS. word: what its units are called, "" for summaries and keyframes.
    frames: what is shown of a summary's or selection's frames, in order. units: what is to be
    ordered, ranked or named. sentences: what is to be grounded. budget: keyframes asked for, 0 if
    none. n_sentences: asked for exactly, 0 if the prompt leaves it open. numbered: the summary is
    to stand under SUMMARY: in numbered sentences. named: keyframes are to be called `Frame 3`.
    """

    kind: str
    word: str = ""
    frames: tuple[FrameText, ...] = ()
    units: tuple[Unit, ...] = ()
    sentences: tuple[Unit, ...] = ()
    budget: int = 0
    n_sentences: int = 0
    numbered: bool = False
    named: bool = False


class _Labelled(NamedTuple):
    word: str
    number: int
    lines: list[str]
    pictures: list[Image]

    @property
    def text(self) -> str:
        return " ".join(self.lines)


def read(parts: Sequence[Part]) -> Request | None:
    """What a request shows and asks.

    Args:
        parts: texts and pictures in their order (a chat request), or all pictures and then a text
            with a placeholder for each (a simple one).
    """
    labelled, loose, prompt = _lines(_placed(parts))
    kind = _kind(prompt)
    if kind in ORDERS:
        return _order(kind, "Sentence" if "Sentence X" in prompt else "Shot", labelled)
    if kind == "grounding":
        clips = _units(one for one in labelled if one.word == "Clip")
        sentences = _units(one for one in labelled if one.word in ("", "Summary", "Sentence"))
        both = clips and sentences
        return Request(kind, "Clip", units=clips, sentences=sentences) if both else None
    return None if kind is None else _choice(kind, prompt, labelled, loose)


def _order(kind: str, word: str, labelled: Iterable[_Labelled]) -> Request | None:
    units = _units(one for one in labelled if one.word == word)
    told = [unit.order if kind == "temporal" else unit.importance for unit in units]
    return Request(kind, word, units=units) if told and None not in told else None


def _choice(
    kind: str, prompt: str, labelled: Iterable[_Labelled], loose: Sequence[Image]
) -> Request | None:
    """A summary, keyframes or both."""
    frames = _frames([one for one in labelled if one.word == "Frame"], loose)
    budget, n_sentences = (
        int(found[1]) if (found := pattern.search(prompt)) else 0
        for pattern in (_BUDGET, _SENTENCES)
    )
    if not frames or (kind in SELECTIONS and not budget):
        return None
    return Request(
        kind,
        frames=frames,
        budget=budget,
        n_sentences=n_sentences,
        numbered="SUMMARY:" in prompt,
        named="[Frame" in prompt,
    )


def _kind(prompt: str) -> str | None:
    """The task, by the format that the prompt asks for."""
    if "Summary 1: Clip" in prompt:
        return "grounding"
    if re.search(r"(Shot|Sentence) X > ", prompt):
        return "saliency" if "most important" in prompt else "temporal"
    if "IMPORTANT FRAMES:" in prompt:
        return "v2vt"
    if "JSON array" in prompt:
        return "v2v"
    return "v2t" if re.search(r"summary", prompt, re.IGNORECASE) else None


def _placed(parts: Sequence[Part]) -> list[Part]:
    """The parts with every picture in its place."""
    texts = [part for part in parts if isinstance(part, str)]
    pictures = [part for part in parts if not isinstance(part, str)]
    pieces = "\n".join(texts).split(PLACEHOLDER)
    if len(pieces) == 1 or len(pieces) != len(pictures) + 1:
        return list(parts)
    placed: list[Any] = [pieces[0]]
    for picture, piece in zip(pictures, pieces[1:], strict=True):
        placed += [picture, piece]
    return placed


def _lines(parts: Iterable[Part]) -> tuple[list[_Labelled], list[Image], str]:
    """What stands under labels, pictures that stand under none, and the text that is no label's.

    A label's text is the rest of its line, or the next line if there is none.
    """
    labelled: list[_Labelled] = []
    loose: list[Image] = []
    prompt: list[str] = []
    for part in parts:
        if not isinstance(part, str):
            (labelled[-1].pictures if labelled else loose).append(part)
            continue
        for line in filter(str.strip, part.splitlines()):
            label = _LABEL.match(line)
            # The format's own example names no thing that is shown.
            if label and "Clip X" not in line and "[" not in line:
                rest = [label[3]] if label[3] else []
                labelled.append(_Labelled(label[1] or "", int(label[2]), rest, []))
            elif labelled and not labelled[-1].lines and not labelled[-1].pictures:
                labelled[-1].lines.append(line.strip())
            else:
                prompt.append(line)
    return labelled, loose, "\n".join(prompt)


def _units(labelled: Iterable[_Labelled]) -> tuple[Unit, ...]:
    """Each label's unit; none if one of them shows nothing that can be read."""
    found = [_unit(one) for one in labelled]
    known = tuple(unit for unit in found if unit is not None)
    return known if len(known) == len(found) else ()


def _unit(one: _Labelled) -> Unit | None:
    marks = _marks(one.pictures)
    if marks is None:
        return None
    if marks:
        first = min(marks)
        return Unit(one.number, first.frame, first.importance, (SCENES[first.scene],))
    scenes = tuple(sample_texts.scenes_of(one.text))
    place, importance = sample_texts.read_place(one.text), sample_texts.read_importance(one.text)
    return Unit(one.number, place, importance, scenes) if scenes else None


def _frames(shown: Sequence[_Labelled], loose: Sequence[Image]) -> tuple[FrameText, ...]:
    """What every frame shows, in order; none if one of them cannot be read."""
    pictures = [picture for one in shown for picture in one.pictures] or list(loose)
    if pictures:
        marks = _marks(pictures) or []
        return tuple(FrameText(SCENES[m.scene], m.level, m.key) for m in marks)
    told = [sample_texts.read_frame(one.text) for one in shown]
    known = tuple(frame for frame in told if frame is not None)
    return known if len(known) == len(told) else ()


def _marks(pictures: Iterable[Image]) -> list[Mark] | None:
    """What each picture says; None if one says nothing."""
    found = [sample_code.read(picture) for picture in pictures]
    known = [mark for mark in found if mark is not None and mark.scene < len(SCENES)]
    return known if len(known) == len(found) else None
