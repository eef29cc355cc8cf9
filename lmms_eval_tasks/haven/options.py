"""HAVEN's names, what each task shows and asks (paper, 3.4, C), and what a user can choose.

    LMMS_EVAL_TASKS_HAVEN=NAME=VALUE,...        or   lmms_eval --haven NAME=VALUE,...

The paper gives none of the numbers that can be chosen; the defaults are those of its authors' code
(README).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.haven.settings import HAVEN
from lmms_eval_tasks.utils.validation import told

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

    A text proxy shows descriptions in place of pictures (4.3); none is given the document.
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
    """K, the number of keyframes asked for: 15 % of the sampled frames, rounded up.

    From the number of frames alone, never from the number of true keyframes.
    """
    return -(-n_frames * 15 // 100)


AUTHORS: Final = "authors"
# Shots (or sentences) to order or to rank, and sentences to ground, at most: so many are drawn.
MOST = {"temporal": 5, "saliency": 8, "grounding": 3}
Count = Annotated[int, Field(ge=0)]


class HavenOptions(BaseModel):
    """How items are made: what a user can choose (lmms_eval_tasks/haven/README.md)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # Sampled frames of a shot whose pictures are shown: `authors` is all, and of a clip to ground
    # in the first ones; a number is how many at most, uniform; 0 is all. Summaries and keyframes
    # always show every sampled frame.
    frames_per_shot: Literal["authors"] | Count = AUTHORS
    size: Annotated[int, Field(ge=16)] = 512  # longest side in pixels; never enlarged
    # The model's limit of pictures in one request, 0 is none: an item that needs more is left out.
    max_images: Count = 0
    sources: tuple[str, ...] = ()  # empty: the paper's six, or a user's own where none is there
    seed: Count = 0  # of draws and subsets; 0 are the authors' own draws
    subset: Count = 100  # videos of each large source; 0 is all
    # What the proxy of temporal order shows: shots' descriptions, or the document's (Appendix C).
    temporal_text: Literal["shots", "sentences"] = "shots"
    # Of v2vt and text proxies: the summary's sentences, or its text with tags of shots (authors).
    reference: Literal["plain", "tagged"] = "plain"
    ids: tuple[str, ...] = ()  # files that name the videos of a source, in place of all

    @field_validator("sources", "ids", mode="before")
    @classmethod
    def _several(cls, value: object) -> object:
        return tuple(filter(None, value.split("+"))) if isinstance(value, str) else value

    @field_validator("sources")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if set(value) - set(SOURCES):
            raise ValueError(f"expected some of {'+'.join(SOURCES)}")
        return tuple(slug for slug in SOURCES if slug in value)

    def asdict(self) -> dict[str, object]:
        """Plain types, for result logs."""
        sources = list(self.sources) or list(SOURCES)
        return {**self.model_dump(mode="json"), "sources": sources}


OF_SENTENCES = "temporal_sentences"  # the layout of the one proxy that shows no shots


def layout(task: Variant, chosen: HavenOptions, *, by_shot: bool = True) -> str:
    """The name of what a request holds, and in which order (inputs.py).

    Args:
        by_shot: whether each of the video's frames is of a shot.
    """
    if task.name == "haven_temporal_text" and chosen.temporal_text == "sentences":
        return OF_SENTENCES
    if task.name == "haven_v2vt" and not by_shot:
        return "v2vt_frames"
    return task.kind + ("_text" if task.text else "")


def current() -> HavenOptions:
    """The user's choice; raises as `parse`."""
    return parse(settings.text(HAVEN))


def parse(text: str) -> HavenOptions:
    """Options from `NAME=VALUE,...`; sources and ids are joined by `+`: `sources=tvsum+summe`.

    Raises:
        TasksError: an option is unknown, given twice, or has no value of its range.
    """
    pairs = [part.partition("=")[::2] for part in text.split(",") if part.strip()]
    given = {name.strip(): value.strip() for name, value in pairs}
    why = "expected NAME=VALUE, each name once"
    try:
        if len(given) == len(pairs) and all(given.values()):
            return HavenOptions.model_validate(given)
    except ValidationError as error:
        why = f"{told(error, 2)}; known: {', '.join(HavenOptions.model_fields)}"
    raise TasksError(f"{HAVEN.option} {text!r}: {why}")
