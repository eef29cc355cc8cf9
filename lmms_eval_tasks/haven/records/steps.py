"""The texts of a record, by a model through the judges' layer (paper, 3.2 and A).

    frame -> description;  all frames of a shot -> description
    descriptions of all shots -> document;  of the key shots -> summary; sentences name their shots

A text that is there already (hand-written, or of an earlier run) is kept and not asked for. The
check of shots' numbers is in Python: the JSON schema that is sent is the same for any number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any

from pydantic import BaseModel

from lmms_eval_tasks.haven.records.structure import Structure
from lmms_eval_tasks.judges import Criterion, Judge, writer
from lmms_eval_tasks.judges.writer import SOME, Form, Line
from lmms_eval_tasks.utils import prompts


class Description(Form):
    """Of a frame or of a shot."""

    description: Line


class AlignedSentence(Form):
    """A sentence and the numbers of the shots that it tells about, as they were shown, from 1."""

    sentence: Line
    shots: Annotated[list[int], SOME]


class Sentences(Form):
    """A document or a summary."""

    sentences: Annotated[list[AlignedSentence], SOME]


@lru_cache(maxsize=256)
def sentences_on(shots: int) -> type[Sentences]:
    """Sentences that name only shots 1 to `shots`, none twice in one sentence."""

    def known(reply: Sentences) -> Sentences:
        for number, one in enumerate(reply.sentences, 1):
            if wrong := [shot for shot in one.shots if not 1 <= shot <= shots]:
                raise ValueError(f"sentence {number} names shot {wrong[0]} of {shots}")
            if len(set(one.shots)) < len(one.shots):
                raise ValueError(f"sentence {number} names a shot twice")
        return reply

    return writer.checked(Sentences, known)


WORDS = 50  # of a shot's description at most; the paper gives no number
TASK = "haven build"  # under which the ledger books
# Steps -> what their user's message shows; `words` stands in the instructions.
_SHOWN: Mapping[str, str] = {
    "frame": "image",
    "shot": "images",
    "document": "shots",
    "summary": "shots",
}
_SCHEMAS: Mapping[str, type[BaseModel]] = {
    "frame": Description,
    "shot": Description,
    "document": Sentences,
    "summary": Sentences,
}
STEPS = tuple(_SHOWN)

# Pictures of sampled frames, by number from 1.
Images = Callable[[Sequence[int]], Sequence[Any]]


@dataclass(frozen=True)
class Said:
    """A sentence and its shots, from 0, ascending."""

    text: str
    shots: tuple[int, ...]


@dataclass(frozen=True)
class Texts:
    """The texts of a record; "" or () is a text that is missing."""

    frames: tuple[str, ...]
    shots: tuple[str, ...]
    document: tuple[Said, ...] = ()
    summary: tuple[Said, ...] = ()

    def missing(self, key_shots: Sequence[int]) -> list[str]:
        """What is missing, in words. Without key shots there is nothing to summarise."""
        counts = [
            (sum(not text for text in self.frames), len(self.frames), "frame descriptions"),
            (sum(not text for text in self.shots), len(self.shots), "shot descriptions"),
        ]
        found = [f"{count} of {total} {what}" for count, total, what in counts if count]
        found += ["the document"] if not self.document else []
        return found + (["the summary"] if key_shots and not self.summary else [])


def nothing(made: Structure) -> Texts:
    """No text at all."""
    return Texts(("",) * len(made.sampled.picks), ("",) * len(made.starts))


@prompts.once
def prompt() -> prompts.Prompt:
    """The instructions: ours, or `haven/build.yml` of the user's folder of prompts.

    Raises:
        PromptError: the user's file does not fit.
    """
    required: dict[str, tuple[str, ...]] = dict.fromkeys(STEPS, ())
    required["shot"] = ("words",)
    required |= {f"{step}_user": (shown,) for step, shown in _SHOWN.items()}
    return prompts.load("haven", "build", required)


def criterion(step: str, schema: type[BaseModel] | None = None) -> Criterion:
    """One step as the judges' layer asks it; its score says only that there is a reply."""
    given, shown = prompt(), _SHOWN[step]
    pictures = shown != "shots"
    return Criterion(
        name=f"haven_{step}",
        system=given.text[step],
        template=given.text[f"{step}_user"],
        schema=schema or _SCHEMAS[step],
        score=lambda _: 1.0,
        prompt_hash=given.hash,
        untrusted=() if pictures else (shown,),  # a model or a hand wrote it
        images=(shown,) if pictures else (),
    )


def fields(step: str, shown: Sequence[Any]) -> dict[str, Any]:
    """What a step is asked about."""
    return {_SHOWN[step]: list(shown), "words": WORDS}


def write(
    judge: Judge, made: Structure, images: Images, have: Texts
) -> tuple[Texts, dict[str, str]]:
    """Ask for the texts that are missing; trouble becomes a failure, never an exception.

    The document and the summary wait for all descriptions that they are made of.

    Args:
        images: called from several threads.

    Returns:
        The texts, and what failed: place -> why.
    """
    from lmms_eval_tasks.judges.run import ordered_map

    ranges = made.shots
    jobs = [("frame", n) for n, text in enumerate(have.frames) if not text]
    jobs += [("shot", n) for n, text in enumerate(have.shots) if not text]
    failures: dict[str, str] = {}

    def describe(job: tuple[str, int]) -> str:
        step, place = job
        numbers = [n + 1 for n in ([place] if step == "frame" else ranges[place])]
        try:
            asked = criterion(step)
            reply = writer.reply(judge, asked, fields(step, images(numbers)), Description)
        except writer.FailedError as error:
            failures[f"{step} {place + 1}"] = str(error)
            return ""
        return reply.description

    texts = dict(zip(jobs, ordered_map(describe, jobs, TASK), strict=True))
    frames = tuple(texts.get(("frame", n), text) for n, text in enumerate(have.frames))
    shots = tuple(texts.get(("shot", n), text) for n, text in enumerate(have.shots))

    def join(step: str) -> tuple[Said, ...]:
        chosen = range(len(shots)) if step == "document" else made.key_shots
        schema = sentences_on(len(chosen))
        try:
            if lacking := [n + 1 for n in chosen if not shots[n]]:
                raise writer.FailedError(f"waits for the description of shot {lacking[0]}")
            asked = fields(step, [shots[n] for n in chosen])
            reply = writer.reply(judge, criterion(step, schema), asked, schema)
        except writer.FailedError as error:
            failures[step] = str(error)
            return ()
        return tuple(
            Said(one.sentence, tuple(sorted(chosen[n - 1] for n in one.shots)))
            for one in reply.sentences
        )

    steps = [] if have.document else ["document"]
    steps += ["summary"] if made.key_shots and not have.summary else []
    joined = dict(zip(steps, ordered_map(join, steps, TASK), strict=True))
    done = replace(
        have,
        frames=frames,
        shots=shots,
        document=joined.get("document", have.document),
        summary=joined.get("summary", have.summary),
    )
    # In the record's order, not in that of the threads.
    order = [*(f"{step} {place + 1}" for step, place in jobs), *steps]
    return done, {name: failures[name] for name in order if name in failures}
