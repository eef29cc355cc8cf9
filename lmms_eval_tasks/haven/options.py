"""HAVEN's names, what each task shows and asks (paper, 3.4, C), and the options of a user.

    LMMS_EVAL_TASKS_HAVEN=NAME=VALUE,...    or   lmms_eval --haven NAME=VALUE,...

The paper states none of the numbers that are options here. The defaults are those of the authors'
code (README).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.haven.settings import HAVEN
from lmms_eval_tasks.utils.validation import validation_problems

# Slug of a user's own videos (`lmms-eval-tasks haven build`), which the paper does not have.
OWN = "own"
# Slug, which is also the name of the files -> title; the paper's six in its order (Table 1).
SOURCES = {
    "summe": "SumMe",
    "tvsum": "TVSum",
    "ovp": "OVP",
    "youtube": "YouTube",
    "videoxum": "VideoXum",
    "mrhisum": "MR.HiSum",
    OWN: "own videos",
}
# The paper evaluates 100 videos of each of these two, and all videos of the other sources (4.1).
LARGE_SOURCES = ("videoxum", "mrhisum")
# Number of videos in the full release (Table 1).
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
ORDERS = ("temporal", "saliency")  # kinds whose replies are an order of all shown units


@dataclass(frozen=True)
class Variant:
    """One task: `haven_KIND`, with `_doc` (the prompt has the document) or `_text` (text proxy).

    A text proxy shows descriptions in place of pictures (4.3), and never the document.
    """

    kind: str
    document: bool = False
    text: bool = False

    @property
    def name(self) -> str:
        """The task's name in lmms-eval."""
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
    """Return floor(15 % of F), the most frames that all key shots may have together (3.2, 4.1)."""
    return n_frames * 15 // 100


def budget(n_frames: int) -> int:
    """Return K, the number of keyframes to select: 15 % of the sampled frames, rounded up.

    K follows from the number of frames alone, never from the number of true keyframes.
    """
    return -(-n_frames * 15 // 100)


AUTHORS: Final = "authors"
# The largest number of shots (or sentences) to order or to rank, and of sentences to ground. If
# there are more, this number is drawn.
MOST = {"temporal": 5, "saliency": 8, "grounding": 3}
Count = Annotated[int, Field(ge=0)]


class HavenOptions(BaseModel):
    """How items are made: what a user can choose (lmms_eval_tasks/haven/README.md)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # The sampled frames of a shot whose pictures are shown. `authors` means all frames, and for
    # grounding the first frames of a clip. A number is the maximum, spread uniformly; 0 means all.
    # Summaries and keyframes always show every sampled frame.
    frames_per_shot: Literal["authors"] | Count = AUTHORS
    # Longest side in pixels; smaller pictures stay as they are.
    size: Annotated[int, Field(ge=16)] = 512
    # The model's limit of pictures in one request; an item that needs more is left out. 0: no
    # limit.
    max_images: Count = 0
    # Empty: the paper's six, or a user's own if none of the six is there.
    sources: tuple[str, ...] = ()
    seed: Count = 0  # seed of draws and subsets; 0 gives the authors' draws
    subset: Count = 100  # number of videos of each large source; 0 means all
    # The texts in the proxy of temporal order: descriptions of shots, or sentences of the document
    # (Appendix C).
    temporal_text: Literal["shots", "sentences"] = "shots"
    # The reference of v2vt and of text proxies: the summary's sentences, or its text with tags of
    # shots, as the authors' code has it.
    reference: Literal["plain", "tagged"] = "plain"
    # The system text: none, so that the model's class decides, or one for each task with pictures
    # (prompts/system.yml).
    system: Literal["none", "task"] = "none"
    ids: tuple[str, ...] = ()  # files with ids of videos; their sources are limited to these videos

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
        """Return the options as plain types, for results."""
        sources = list(self.sources) or list(SOURCES)
        return {**self.model_dump(mode="json"), "sources": sources}


OF_SENTENCES = "temporal_sentences"  # layout of the only task that shows no shots


def layout(task: Variant, options: HavenOptions, *, by_shot: bool = True) -> str:
    """Return the name of the prompt's layout: its parts and their order (inputs.py).

    Args:
        task: the task.
        options: the user's options.
        by_shot: True if each of the video's frames belongs to a shot.
    """
    if task.name == "haven_temporal_text" and options.temporal_text == "sentences":
        return OF_SENTENCES
    if task.name == "haven_v2vt" and not by_shot:
        return "v2vt_frames"
    return task.kind + ("_text" if task.text else "")


def current() -> HavenOptions:
    """Return the user's options; raises the errors of `parse`."""
    return parse(settings.text(HAVEN))


def parse(text: str) -> HavenOptions:
    """Return options from `NAME=VALUE,...`; sources and ids are joined by `+`: `sources=ovp+summe`.

    Raises:
        TasksError: an option is unknown, given twice, or outside its range.
    """
    pairs = [part.partition("=")[::2] for part in text.split(",") if part.strip()]
    given = {name.strip(): value.strip() for name, value in pairs}
    why = "expected NAME=VALUE, each name once"
    try:
        if len(given) == len(pairs) and all(given.values()):
            return HavenOptions.model_validate(given)
    except ValidationError as error:
        why = f"{validation_problems(error, 2)}; known: {', '.join(HavenOptions.model_fields)}"
    raise TasksError(f"{HAVEN.option} {text!r}: {why}")
