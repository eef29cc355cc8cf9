"""The texts of a record, written by a model through the judges' layer (paper, 3.2 and A).

    frame -> description;  all frames of a shot -> description
    descriptions of all shots -> document;  of the key shots -> summary; sentences name their shots

The document and the summary wait until all their descriptions exist. A video has the form of the
JSON file here; "" is a missing text.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any

from lmms_eval_tasks.judges import writer
from lmms_eval_tasks.judges.writer import SOME, Line, ReplySchema, Step, Unit, Want, words
from lmms_eval_tasks.prompts import Prompt


class Description(ReplySchema):
    """Of a frame or of a shot."""

    description: Line


class AlignedSentence(ReplySchema):
    """A sentence and the numbers of the shots that it tells about, as they were shown, from 1."""

    sentence: Line
    shots: Annotated[list[int], SOME]


class Sentences(ReplySchema):
    """A document or a summary."""

    sentences: Annotated[list[AlignedSentence], SOME]


@lru_cache(maxsize=256)
def sentences_on(shots: int) -> type[Sentences]:
    """Return the schema of sentences that name only shots 1 to `shots`, each once in a sentence."""

    def checked(reply: Sentences) -> Sentences:
        for number, one in enumerate(reply.sentences, 1):
            if not {*one.shots} <= {*range(1, shots + 1)} or len({*one.shots}) < len(one.shots):
                raise ValueError(f"sentence {number} names shots {one.shots} of {shots}")
        return reply

    return writer.checked(Sentences, checked)


FRAME = Step("haven", "frame", Description, ("image",), images=("image",))
SHOT = Step("haven", "shot", Description, ("images",), images=("images",), words=("words",))
DOCUMENT = Step("haven", "document", Sentences, ("shots",))
SUMMARY = Step("haven", "summary", Sentences, ("shots",))
STEPS: tuple[Step[Any], ...] = (FRAME, SHOT, DOCUMENT, SUMMARY)

WORDS = 50  # most words of a shot's description; the paper states no number
# Tokens of a reply, for the estimate. These are assumptions, not measurements.
OF_STEP = {"frame": 40, "shot": 60}
OF_SENTENCE, SHOTS_PER_SENTENCE = 30, 2
ASSUMED = (
    f"pictures by OpenAI's rule for gpt-4o; {OF_STEP['frame']} tokens for a frame's description, "
    f"{OF_STEP['shot']} for a shot's, a sentence of {OF_SENTENCE} for {SHOTS_PER_SENTENCE} shots"
)

DOCUMENT_OF, SUMMARY_OF = "aligned_full_document", "aligned_text_summary"


def missing(video: Mapping[str, Any]) -> list[str]:
    """Return a phrase for each kind of text that is missing, with its count.

    A video without key shots needs no summary.
    """
    found = []
    for what, own in (
        ("frame", [one["description"] for one in video["frames"]]),
        ("shot", [one["summary"] for one in video["clips"]]),
    ):
        if "" in own:
            found.append(f"{own.count('')} of {len(own)} {what} descriptions")
    if not video[DOCUMENT_OF]["sentences"]:
        found.append("the document")
    if any(clip["gt"] for clip in video["clips"]) and not video[SUMMARY_OF]["sentences"]:
        found.append("the summary")
    return found


def unit(
    prompt: Prompt, video: Mapping[str, Any], images: Callable[[Sequence[int]], Sequence[Any]]
) -> Unit[dict[str, Any]]:
    """Return the unit of work that writes one video's texts with these instructions (writer.py).

    `images` returns the pictures of sampled frames, given their numbers from 1; several threads
    call it.
    """
    made = copy.deepcopy(dict(video))
    clips, frame_ids = made["clips"], [frame["frame_id"] for frame in made["frames"]]
    lacking: list[tuple[dict[str, Any], str, Want[Description]]] = []

    def described(step: Step[Description], subject: dict[str, Any], name: str, n: int) -> None:
        numbers = [
            1 + frame_ids.index(one) for one in subject.get("frames", [subject.get("frame_id")])
        ]
        want: Want[Description] = Want(
            f"{step.name} {n}",
            step.criterion(prompt),
            {"words": WORDS},
            {"description": words(OF_STEP[step.name])},
            images=lambda: {step.shows[0]: images(numbers)},
            pictures=len(numbers),
        )
        lacking.append((subject, name, want))

    for n, frame in enumerate(made["frames"], 1):
        described(FRAME, frame, "description", n)
    for n, clip in enumerate(clips, 1):
        described(SHOT, clip, "summary", n)
    verdicts = yield [want for *_, want in lacking]
    for (held, name, want), verdict in zip(lacking, verdicts, strict=True):
        if said := want.parsed_reply(verdict):
            held |= {name: said.description, "status": "ok"}

    joined: list[tuple[str, Sequence[int], Want[Sentences]]] = []
    for step, name, of in (
        (DOCUMENT, DOCUMENT_OF, list(range(len(clips)))),
        (SUMMARY, SUMMARY_OF, [n for n, clip in enumerate(clips) if clip["gt"]]),
    ):
        shown = [clips[n]["summary"] for n in of]
        if shown and all(shown):
            stand_in = {"sentence": words(OF_SENTENCE), "shots": [1, 2][: len(of)]}
            usual = {"sentences": [stand_in] * -(-len(of) // SHOTS_PER_SENTENCE)}
            fields = {"shots": shown, "words": WORDS}
            joined.append((name, of, step.want(prompt, fields, usual, sentences_on(len(of)))))
    verdicts = yield [asked for *_, asked in joined]
    for (name, shots, asked), verdict in zip(joined, verdicts, strict=True):
        if reply := asked.parsed_reply(verdict):
            told = [one.sentence for one in reply.sentences]
            aligned = [
                {"sentence_id": place, "shot_ids": sorted(shots[n - 1] for n in one.shots)}
                for place, one in enumerate(reply.sentences)
            ]
            made[name] = {"sentences": told, "alignments": aligned, "raw_text": " ".join(told)}
    return made
