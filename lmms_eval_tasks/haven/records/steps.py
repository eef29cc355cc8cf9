"""The texts of a record, by a model through the judges' layer (paper, 3.2 and A).

    frame -> description;  all frames of a shot -> description
    descriptions of all shots -> document;  of the key shots -> summary; sentences name their shots

A text that is there already (hand-written, or of an earlier run) is kept and not asked for. The
document and the summary wait for all descriptions that they are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

from lmms_eval_tasks.haven.records.structure import Structure
from lmms_eval_tasks.judges import writer
from lmms_eval_tasks.judges.writer import SOME, Form, Line, Step, Unit, Want, words
from lmms_eval_tasks.utils.prompts import Prompt


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


FRAME = Step("haven", "frame", Description, ("image",), images=("image",))
SHOT = Step("haven", "shot", Description, ("images",), images=("images",), words=("words",))
DOCUMENT = Step("haven", "document", Sentences, ("shots",))
SUMMARY = Step("haven", "summary", Sentences, ("shots",))
STEPS: tuple[Step[Any], ...] = (FRAME, SHOT, DOCUMENT, SUMMARY)

WORDS = 50  # of a shot's description at most; the paper gives no number
# Tokens of a reply for the estimate, as nothing of the kind has been measured.
OF_STEP = {"frame": 40, "shot": 60}
OF_SENTENCE, SHOTS_PER_SENTENCE = 30, 2
ASSUMED = (
    f"pictures by OpenAI's rule for gpt-4o; {OF_STEP['frame']} tokens for a frame's description, "
    f"{OF_STEP['shot']} for a shot's, a sentence of {OF_SENTENCE} for {SHOTS_PER_SENTENCE} shots"
)

# Pictures of sampled frames, by number from 1.
Images = Callable[[Sequence[int]], Sequence[Any]]


class Said(NamedTuple):
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
            (sum(not text for text in own), len(own), f"{what} descriptions")
            for what, own in (("frame", self.frames), ("shot", self.shots))
        ]
        found = [f"{count} of {total} {what}" for count, total, what in counts if count]
        found += ["the document"] if not self.document else []
        return found + (["the summary"] if key_shots and not self.summary else [])


def unit(given: Prompt, made: Structure, have: Texts, images: Images) -> Unit[Texts]:
    """The texts of one video, of which those that are missing are asked for (writer.py).

    Args:
        given: the instructions.
        made: the video's structure.
        have: texts that are there.
        images: called from several threads.
    """

    def described(step: Step[Description], place: int, shown: Sequence[int]) -> Want[Description]:
        (field,), numbers = step.shows, [n + 1 for n in shown]
        return Want(
            f"{step.name} {place + 1}",
            step.criterion(given),
            {"words": WORDS},
            {"description": words(OF_STEP[step.name])},
            images=lambda: {field: images(numbers)},
            pictures=len(numbers),
        )

    frames, shots = list(have.frames), list(have.shots)
    lacking = [(frames, n, described(FRAME, n, [n])) for n, text in enumerate(frames) if not text]
    lacking += [
        (shots, n, described(SHOT, n, made.shots[n])) for n, text in enumerate(shots) if not text
    ]
    verdicts = yield [want for *_, want in lacking]
    for (texts, n, want), verdict in zip(lacking, verdicts, strict=True):
        if said := want.said(verdict):
            texts[n] = said.description

    told = {DOCUMENT.name: have.document, SUMMARY.name: have.summary}
    joined: list[tuple[Sequence[int], str, Want[Sentences]]] = []
    parts: tuple[tuple[Step[Sentences], Sequence[int]], ...]
    parts = (DOCUMENT, range(len(shots))), (SUMMARY, made.key_shots)
    for step, of in parts:
        if of and not told[step.name] and all(shots[n] for n in of):
            stand_in = {"sentence": words(OF_SENTENCE), "shots": [1, 2][: len(of)]}
            asked = step.want(
                given,
                {"shots": [shots[n] for n in of], "words": WORDS},
                {"sentences": [stand_in] * -(-len(of) // SHOTS_PER_SENTENCE)},
                sentences_on(len(of)),
            )
            joined.append((of, step.name, asked))
    verdicts = yield [asked for *_, asked in joined]
    for (chosen, name, asked), verdict in zip(joined, verdicts, strict=True):
        if reply := asked.said(verdict):
            told[name] = tuple(
                Said(one.sentence, tuple(sorted(chosen[n - 1] for n in one.shots)))
                for one in reply.sentences
            )
    return Texts(tuple(frames), tuple(shots), told[DOCUMENT.name], told[SUMMARY.name])
