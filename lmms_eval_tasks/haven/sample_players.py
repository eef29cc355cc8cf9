"""Who replies to HAVEN's packaged sample: the oracle, the coin, and scripted replies.

Oracle and coin see a request as a model does, its texts and its pictures, and no key, file or doc.
The prompt's own words tell the task and the form of the reply (Appendix C); strips (sample.py) and
templates (sample_stories.py) tell the rest. So labels that are wrong in the data, pictures in the
wrong order, a picture that is lost or too small to read, and prompts that lost a number or no
longer name their format show in their scores. A request of anything else, or one that cannot be
read, is None.

The oracle gives the best reply. Where importance ties it reaches the item's best value: any order
of what ties is as good. Its keyframes are the key shots' frames, not those that `is_gt` marks. The
coin uses of a request how much there is and how much is asked for. Scripted replies (`--model
tasks_scripted`) are made from the doc: they test metrics, not prompts.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.haven import sample, sample_stories
from lmms_eval_tasks.haven.options import OF_SENTENCES, ORDERS, SELECTIONS, Variant
from lmms_eval_tasks.haven.sample import Mark
from lmms_eval_tasks.haven.sample_stories import SCENES, FrameText, Scene
from lmms_eval_tasks.sample.players import UNREADABLE

if TYPE_CHECKING:
    from PIL.Image import Image

    Part = str | Image

PLACEHOLDER = "<image>"  # where a simple request has a picture, which then comes before the text
_KEY_SHOTS = 2  # of a made-up summary

# `Shot 2:`, `Shot 2 (Frames 5-8):`, in a simple request `Shot 2 (images 5 to 8):`, or `2.`
_LABEL = re.compile(
    r"\s*(?:(Shot|Clip|Frame|Sentence|Summary) )?(\d+)(?: \((?:image|Frame)s? [^)]*\))?"
    r"[:.)](?:\s+(.*))?$"
)
_BUDGET = re.compile(r"\bexactly (\d+) (?:[\w-]+ ){0,3}?(?:frame|element|integer)", re.IGNORECASE)
_SENTENCES = re.compile(r"\bexactly (\d+) (?:[\w-]+ ){0,3}?sentence", re.IGNORECASE)


# --- a request as the players see it --------------------------------------------------------------


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

    kind: of options.KINDS. word: what its units are called, "" for summaries and keyframes.
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
        word = "Sentence" if "Sentence X" in prompt else "Shot"
        units = _units(labelled, word)
        told = [unit.order if kind == "temporal" else unit.importance for unit in units]
        return Request(kind, word, units=units) if told and None not in told else None
    if kind == "grounding":
        clips, sentences = _units(labelled, "Clip"), _units(labelled, "", "Summary", "Sentence")
        both = clips and sentences
        return Request(kind, "Clip", units=clips, sentences=sentences) if both else None
    return None if kind is None else _choice(kind, prompt, labelled, loose)


def _choice(
    kind: str, prompt: str, labelled: Iterable[_Labelled], loose: Sequence[Image]
) -> Request | None:
    """A summary, keyframes or both."""
    frames = _frames([one for one in labelled if one.word in ("Frame", "Shot")], loose)
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


def _units(labelled: Iterable[_Labelled], *words: str) -> tuple[Unit, ...]:
    """The unit of each label with one of these words; none if one shows nothing to be read."""
    found = [_unit(one) for one in labelled if one.word in words]
    known = tuple(unit for unit in found if unit is not None)
    return known if len(known) == len(found) else ()


def _unit(one: _Labelled) -> Unit | None:
    marks = _marks(one.pictures)
    if marks is None:
        return None
    if marks:
        first = min(marks)
        return Unit(one.number, first.frame, first.importance, (SCENES[first.scene],))
    scenes = tuple(sample_stories.scenes_of(one.text))
    place = sample_stories.read_place(one.text)
    importance = sample_stories.read_importance(one.text)
    return Unit(one.number, place, importance, scenes) if scenes else None


def _frames(shown: Sequence[_Labelled], loose: Sequence[Image]) -> tuple[FrameText, ...]:
    """What every frame shows, in order; none if one of them cannot be read."""
    pictures = [picture for one in shown for picture in one.pictures] or list(loose)
    if pictures:
        marks = _marks(pictures) or []
        return tuple(FrameText(SCENES[m.scene], m.level, m.key) for m in marks)
    told = [sample_stories.read_frame(one.text) for one in shown]
    known = tuple(frame for frame in told if frame is not None)
    return known if len(known) == len(told) else ()


def _marks(pictures: Iterable[Image]) -> list[Mark] | None:
    """What each picture says; None if one says nothing."""
    found = [sample.read(picture) for picture in pictures]
    known = [mark for mark in found if mark is not None and mark.scene < len(SCENES)]
    return known if len(known) == len(found) else None


# --- the form of a reply --------------------------------------------------------------------------


def _reply(
    request: Request,
    sentences: Callable[[], Sequence[str]],
    frames: Callable[[], list[int]],
    units: Callable[[], Sequence[int]],
    clips: Callable[[], Mapping[int, Sequence[int]]],
) -> str:
    """What a player makes of a request, in the form that it asks for."""
    if request.kind in ORDERS:
        return " > ".join(f"{request.word} {number}" for number in units())
    if request.kind == "grounding":
        named = {number: [f"Clip {clip}" for clip in own] for number, own in clips().items()}
        return "\n".join(f"Summary {number}: {', '.join(own)}" for number, own in named.items())
    if request.kind == "v2v":
        return str(frames())
    told, asked = list(sentences()), request.n_sentences
    if 0 < asked < len(told):  # the last one holds all further ones
        told = [*told[: asked - 1], " ".join(told[asked - 1 :])]
    lines = [" ".join(told)]
    if request.numbered:
        lines = ["SUMMARY:", *(f"{number}. {sentence}" for number, sentence in enumerate(told, 1))]
    if request.kind == "v2vt":
        name = "Frame " if request.named else ""
        lines.append(f"IMPORTANT FRAMES: [{', '.join(f'{name}{frame}' for frame in frames())}]")
    return "\n".join(lines)


# --- the oracle -----------------------------------------------------------------------------------


def oracle(parts: Sequence[Part]) -> str | None:
    """The best reply to a request of the sample's; None if it is none.

    Args:
        parts: the request's texts and pictures (`read`).
    """
    request = read(parts)
    if request is None:
        return None
    return _reply(
        request,
        lambda: summary(request),
        lambda: keyframes(request),
        lambda: best_order(request),
        lambda: grounded(request),
    )


def summary(request: Request) -> list[str]:
    """The sentences about the key shots, in order."""
    scenes = list(dict.fromkeys(frame.scene for frame in request.frames if frame.key))
    return sample_stories.summary(scenes) if scenes else []


def keyframes(request: Request) -> list[int]:
    """Numbers of the key shots' frames, then of those with the highest levels, as many as asked."""

    def place(number: int) -> tuple[bool, int, int]:
        frame = request.frames[number - 1]
        return not frame.key, -frame.level, number

    return sorted(sorted(range(1, len(request.frames) + 1), key=place)[: request.budget])


def best_order(request: Request) -> list[int]:
    """Numbers of the units, sorted by time or by importance."""

    def place(unit: Unit) -> tuple[Fraction, int]:
        by_time = request.kind == "temporal"
        return Fraction((unit.order if by_time else -(unit.importance or 0)) or 0), unit.number

    return [unit.number for unit in sorted(request.units, key=place)]


def grounded(request: Request) -> dict[int, list[int]]:
    """Number of each sentence -> numbers of the clips whose scenes it names."""
    return {
        sentence.number: [
            clip.number for clip in request.units if set(clip.scenes) & set(sentence.scenes)
        ]
        for sentence in request.sentences
    }


# --- the coin -------------------------------------------------------------------------------------


def coin(parts: Sequence[Part], seed: int = 0) -> str | None:
    """A random reply in the right form; None if it is no request of the sample's.

    A draw depends on the request's texts and pictures and on the seed, so that it is the same in
    every process and another one for every video: sentences like the references', about any scenes;
    as many frames as are asked for, each as likely as any other; one clip for each sentence.
    """
    request = read(parts)
    if request is None:
        return None
    digest = hashlib.sha256(f"{seed}".encode())
    for part in parts:
        digest.update(b"\x1f" + (part.encode() if isinstance(part, str) else part.tobytes()))
    draw = random.Random(digest.digest())
    numbers = [unit.number for unit in request.units]
    frames = range(1, len(request.frames) + 1)
    return _reply(
        request,
        lambda: sample_stories.summary(draw.sample(SCENES, _KEY_SHOTS)),
        lambda: sorted(draw.sample(frames, min(request.budget, len(frames)))),
        lambda: draw.sample(numbers, len(numbers)),
        lambda: {sentence.number: [draw.choice(numbers)] for sentence in request.sentences},
    )


# --- scripted replies -----------------------------------------------------------------------------

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
        task = Variant(doc["kind"], document=doc["with_document"], text=doc["text"])
        return f"{task.name}/{doc['id']}"
    except (KeyError, TypeError) as error:
        raise _lacking(error) from None


def reply(doc: Doc, worth: str) -> str:
    """A reply to a doc.

    Args:
        doc: of any HAVEN task (data.make_doc).
        worth: `right` reaches the best value that the item allows, `wrong` is a false reply in the
            right form, and `unreadable` is a text that no parser reads.

    Raises:
        TasksError: the doc is of no known kind or lacks a field that its kind has.
    """
    if doc.get("not_run"):
        return "skipped"
    try:
        if worth == "unreadable":
            # Any text is a summary; an empty reply is the only one that is none.
            return "" if doc["kind"] == "v2t" else UNREADABLE
        right = worth == "right"
        request = Request(
            doc["kind"],
            "Sentence" if doc["layout"] == OF_SENTENCES else "Shot",
            n_sentences=doc["n_sentences"],
            numbered=doc["text"] or doc["kind"] == "v2vt",
            named=not doc["text"],
        )
        return _reply(
            request,
            lambda: doc["summary"] if right else WRONG_SUMMARY,
            lambda: _scripted_frames(doc, right),
            lambda: _scripted_order(doc, right),
            lambda: _scripted_clips(doc, right),
        )
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise _lacking(error) from None


def _lacking(error: Exception) -> TasksError:
    return TasksError(f"tasks_scripted needs docs of HAVEN with all their fields: {error!r}")


def _scripted_frames(doc: Doc, right: bool) -> list[int]:
    """As many as are asked for: true keyframes first, or last."""
    numbers = range(1, len(doc["picks"]) + 1)
    true = {frame for shot in doc["key_shots"] for frame in doc["shots"][shot - 1]}
    best = sorted(numbers, key=lambda number: ((number in true) != right, number))
    return sorted(best[: doc["budget"]])


def _scripted_order(doc: Doc, right: bool) -> list[int]:
    """The best order, or its opposite."""
    by_time = doc["kind"] == "temporal"
    units, worth = doc["units"], doc["importance"]
    places = range(1, len(units) + 1)
    best = sorted(
        places, key=lambda place: units[place - 1] if by_time else -worth[units[place - 1] - 1]
    )
    return best if right else best[::-1]


def _scripted_clips(doc: Doc, right: bool) -> dict[int, list[int]]:
    chosen = {}
    for number, sentence in enumerate(doc["sentences"], 1):
        true = doc["summary_shots"][sentence - 1]
        hits = [place for place, unit in enumerate(doc["units"], 1) if unit in true]
        misses = [place for place in range(1, len(doc["units"]) + 1) if place not in hits]
        # Of a sentence about all clips, one.
        chosen[number] = hits if right else (misses or hits)[:1]
    return chosen
