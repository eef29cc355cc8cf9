"""HAVEN's names, what each task shows and asks (paper, 3.4, C), and what a user can choose.

    LMMS_EVAL_TASKS_HAVEN=NAME=VALUE,...        or   lmms_eval --haven NAME=VALUE,...

The paper gives none of the numbers that can be chosen; the defaults are this suite's (README).
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, fields
from typing import Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import TasksError

OWN = "own"  # a user's own videos (`lmms-eval-tasks haven build`), which are no part of the paper
# Slug, which is the name of the files too -> title; the paper's six in its order (Table 1).
SOURCES = {
    "summe": "SumMe",
    "tvsum": "TVSum",
    "ovp": "OVP",
    "youtube": "YouTube",
    "videoxum": "VideoXum",
    "mrhisum": "MR.HiSum",
    OWN: "own videos",
}
# The paper evaluates 100 videos of each of the two large sources, and all of the others (4.1).
LARGE_SOURCES = ("videoxum", "mrhisum")
# Videos of the full release (Table 1).
PAPER_COUNTS = {
    "summe": 25,
    "tvsum": 50,
    "ovp": 50,
    "youtube": 40,
    "videoxum": 5300,
    "mrhisum": 5590,
}

KINDS = ("v2t", "v2v", "v2vt", "temporal", "grounding", "saliency")
SUMMARIES = ("v2t", "v2vt")  # kinds whose replies hold a text summary
SELECTIONS = ("v2v", "v2vt")  # kinds whose replies hold keyframes
ORDERS = ("temporal", "saliency")  # kinds whose replies are an order of all that is shown


@dataclass(frozen=True)
class Variant:
    """One task: `haven_KIND`, with `_doc` (the document is given) or `_text` (text proxy).

    A text proxy shows descriptions in place of pictures (Appendix C); none is given the document.
    """

    kind: str
    document: bool = False
    text: bool = False

    @property
    def name(self) -> str:
        """As the host knows it."""
        return f"haven_{self.kind}{'_doc' if self.document else ''}{'_text' if self.text else ''}"


TASKS: dict[str, Variant] = {
    task.name: task
    for task in (
        *(Variant(kind) for kind in ("v2t", "v2v", "v2vt", "temporal")),
        Variant("temporal", document=True),
        Variant("grounding"),
        Variant("saliency"),
        Variant("saliency", document=True),
        *(Variant(kind, text=True) for kind in KINDS),
    )
}


def capacity(n_frames: int) -> int:
    """floor(15 % of F) in whole numbers: what the frames of key shots may add up to (3.2, 4.1)."""
    return n_frames * 15 // 100


def budget(n_frames: int) -> int:
    """K, the number of keyframes asked for: 15 % of the sampled frames, at least 1.

    From the number of frames alone, never from the number of true keyframes.

    Args:
        n_frames: F, at least 1.
    """
    return max(1, capacity(n_frames))


REFERENCE = "reference"


@dataclass(frozen=True)
class Options:
    """How items are made.

    Attributes:
        frames_per_shot: pictures shown of a shot at most, uniform over its sampled frames; 0 is all
            of them. Summaries and keyframes always show every sampled frame.
        size: longest side of a picture in pixels; smaller ones are not enlarged.
        max_images: the model's limit of pictures in one request; 0 is none. An item that needs more
            is left out and named, never cut.
        max_shots: shots (or event sentences) to order or to rank at most; of more, so many are
            drawn, seeded by the item's id. Grounding always shows all.
        sentences: number of sentences asked for where the prompt names one (v2vt and the text
            proxies); `reference` is as many as the reference summary has.
        sources: which to run; empty is the paper's six, or a user's own where none of them is.
        seed: of the shuffles and of the subsets of the two large sources.
        subset: videos of each large source; 0 is all of them.
    """

    frames_per_shot: int = 4
    size: int = 512
    max_images: int = 0
    max_shots: int = 30
    sentences: int | str = 4
    sources: tuple[str, ...] = ()
    seed: int = 0
    subset: int = 100

    def asdict(self) -> dict[str, Any]:
        """Plain types, for result logs."""
        return {**asdict(self), "sources": list(self.sources) or list(SOURCES)}


_LEAST = {
    "frames_per_shot": 0,
    "size": 16,
    "max_images": 0,
    "max_shots": 2,
    "sentences": 1,
    "seed": 0,
    "subset": 0,
}


def current() -> Options:
    """The user's choice.

    Raises:
        TasksError: an option is unknown, given twice, or has no value of its range.
    """
    return parse(os.environ.get(settings.HAVEN, ""))


def parse(text: str) -> Options:
    """Options from `NAME=VALUE,...`; sources are joined by `+`, as in `sources=tvsum+summe`.

    Raises:
        TasksError: as `current`.
    """
    given: dict[str, Any] = {}
    names = [field.name for field in fields(Options)]
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = (piece.strip() for piece in part.partition("="))
        if name not in names:
            raise _wrong(text, f"{name!r} is none of {', '.join(names)}")
        if name in given:
            raise _wrong(text, f"{name} is given twice")
        given[name] = _sources(text, value) if name == "sources" else _number(text, name, value)
    return Options(**given)


def _sources(text: str, value: str) -> tuple[str, ...]:
    asked = [slug for slug in value.lower().split("+") if slug]
    if not asked or set(asked) - set(SOURCES):
        raise _wrong(text, f"sources={value}: expected some of {'+'.join(SOURCES)}")
    return tuple(slug for slug in SOURCES if slug in asked)


def _number(text: str, name: str, value: str) -> int | str:
    if name == "sentences" and value == REFERENCE:
        return REFERENCE
    if not value.isdecimal() or int(value) < _LEAST[name]:
        also = f" or {REFERENCE}" if name == "sentences" else ""
        raise _wrong(
            text, f"{name}={value}: expected a whole number of {_LEAST[name]} or more{also}"
        )
    return int(value)


def _wrong(text: str, why: str) -> TasksError:
    return TasksError(f"{settings.HAVEN}={text!r}: {why}")
