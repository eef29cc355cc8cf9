"""HAVEN's names, what each task shows and asks (paper, 3.4, C), and what a user can choose.

    LMMS_EVAL_TASKS_HAVEN=NAME=VALUE,...        or   lmms_eval --haven NAME=VALUE,...

The paper gives none of the numbers that can be chosen; the defaults are those of its authors' code
(README).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import TasksError, nearest

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


def budget(n_frames: int, rounding: str = "ceil") -> int:
    """K, the number of keyframes asked for: 15 % of the sampled frames, at least 1.

    From the number of frames alone, never from the number of true keyframes.

    Args:
        n_frames: F, at least 1.
        rounding: `ceil` or `floor`.
    """
    return -(-n_frames * 15 // 100) if rounding == "ceil" else max(1, capacity(n_frames))


REFERENCE = "reference"
AUTHORS = "authors"
# Shots to order or to rank, and frames of a clip to ground in: a share of them, within bounds.
SHOTS = {"temporal": 5, "saliency": 8}
CLIP_SHARE, CLIP_LEAST, CLIP_MOST = 0.3, 4, 8


@dataclass(frozen=True)
class Options:
    """How items are made.

    Attributes:
        frames_per_shot: `authors` is all sampled frames of a shot to order or to rank, and the
            first ones of a clip to ground in; a number is how many at most, uniform over the
            sampled frames; 0 is all. Summaries and keyframes always show every sampled frame.
        size: longest side of a picture in pixels; smaller ones are not enlarged.
        max_images: the model's limit of pictures in one request; 0 is none. An item that needs more
            is left out and named, never cut.
        max_shots: shots (or event sentences) to order or to rank at most; of more, so many are
            drawn, seeded by the item's id. `authors` is 5 and 8. Grounding always shows all.
        sentences: number of sentences asked for where the prompt names one (v2vt and the text
            proxies); `reference` is as many as the reference summary has.
        sources: which to run; empty is the paper's six, or a user's own where none of them is.
        seed: of the shuffles and of the subsets of the two large sources; 0 are the authors' draws.
        subset: videos of each large source; 0 is all of them.
        max_sentences: summary sentences to ground at most; 0 is all.
        shotless: whether a summary sentence that belongs to no shot may be among them, `ask` or
            `drop`; whatever is said of it, its F1 and Hit@1 are 0.
        document: whether it stands `after` the shots to order, or `before`.
        temporal_text: what the proxy of temporal order shows, descriptions of the same `shots`, or
            the document's `sentences` (Appendix C).
        reference: of v2vt and of text proxies: the summary's sentences, `plain`, or `tagged`, its
            text with tags of shots, which the authors' code takes there.
        joint: what v2vt labels: `shots`, with the numbers of their frames, or the `frames`, as it
            does anyway where a frame is of no shot. What is asked for are frames all the same.
        draws: `authors` are their code's, `hash` follow a SHA-256.
        budget: how K is rounded, `ceil` or `floor`.
        ids: files that name the videos of a source, in place of all or of its subset.
        slack: frames by which JSON, HDF5 and video may differ.
    """

    frames_per_shot: int | str = AUTHORS
    size: int = 512
    max_images: int = 0
    max_shots: int | str = AUTHORS
    sentences: int | str = REFERENCE
    sources: tuple[str, ...] = ()
    seed: int = 0
    subset: int = 100
    max_sentences: int = 3
    shotless: str = "ask"
    document: str = "after"
    temporal_text: str = "shots"
    reference: str = "plain"
    joint: str = "shots"
    draws: str = AUTHORS
    budget: str = "ceil"
    ids: tuple[str, ...] = ()
    slack: int = 0

    def asdict(self) -> dict[str, Any]:
        """Plain types, for result logs."""
        lists = {"sources": list(self.sources) or list(SOURCES), "ids": list(self.ids)}
        return {**asdict(self), **lists}


OF_SENTENCES = "temporal_sentences"  # the layout of the one proxy that shows no shots


def layout(task: Variant, chosen: Options, *, by_shot: bool = True) -> str:
    """The name of what a request holds, and in which order (inputs.py).

    Args:
        by_shot: whether each of the video's frames is of a shot.
    """
    if task.name == "haven_temporal_text" and chosen.temporal_text == "sentences":
        return OF_SENTENCES
    if task.kind == "temporal" and not task.text and chosen.document == "before":
        return "temporal_before"
    if task.name == "haven_v2vt" and (chosen.joint == "frames" or not by_shot):
        return "v2vt_frames"
    return task.kind + ("_text" if task.text else "")


# Options that are words, and words that an option that is a number takes too.
_WORDS = {
    "shotless": ("ask", "drop"),
    "document": ("after", "before"),
    "temporal_text": ("shots", "sentences"),
    "reference": ("plain", "tagged"),
    "joint": ("shots", "frames"),
    "draws": (AUTHORS, "hash"),
    "budget": ("ceil", "floor"),
    "sentences": (REFERENCE,),
    "frames_per_shot": (AUTHORS,),
    "max_shots": (AUTHORS,),
}
_LEAST = {
    "frames_per_shot": 0,
    "size": 16,
    "max_images": 0,
    "max_shots": 2,
    "sentences": 1,
    "seed": 0,
    "subset": 0,
    "max_sentences": 0,
    "slack": 0,
}


def current() -> Options:
    """The user's choice.

    Raises:
        TasksError: an option is unknown, given twice, or has no value of its range.
    """
    return parse(settings.text(settings.HAVEN))


def parse(text: str) -> Options:
    """Options from `NAME=VALUE,...`; sources and ids are joined by `+`: `sources=tvsum+summe`.

    Raises:
        TasksError: as `current`.
    """
    given: dict[str, Any] = {}
    names = [field.name for field in fields(Options)]
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = (piece.strip() for piece in part.partition("="))
        if name not in names:
            told = f"{name!r} is none of {', '.join(names)}{nearest(name, names)}"
            raise _wrong(text, told)
        if name in given:
            raise _wrong(text, f"{name} is given twice")
        given[name] = _READERS.get(name, _value)(text, name, value)
    return Options(**given)


def _sources(text: str, _: str, value: str) -> tuple[str, ...]:
    asked = [slug for slug in value.lower().split("+") if slug]
    if not asked or set(asked) - set(SOURCES):
        raise _wrong(text, f"sources={value}: expected some of {'+'.join(SOURCES)}")
    return tuple(slug for slug in SOURCES if slug in asked)


def _files(text: str, name: str, value: str) -> tuple[str, ...]:
    files = tuple(filter(None, value.split("+")))
    if not files:
        raise _wrong(text, f"{name}={value}: expected a file, or several joined by +")
    return files


def _value(text: str, name: str, value: str) -> int | str:
    words = _WORDS.get(name, ())
    if value in words:
        return value
    least = _LEAST.get(name)
    if least is not None and value.isdecimal() and int(value) >= least:
        return int(value)
    number = [] if least is None else [f"a whole number of {least} or more"]
    raise _wrong(text, f"{name}={value}: expected {' or '.join([*number, *words])}")


_READERS: Mapping[str, Callable[[str, str, str], Any]] = {"sources": _sources, "ids": _files}


def _wrong(text: str, why: str) -> TasksError:
    return TasksError(f"{settings.HAVEN}={text!r}: {why}")
