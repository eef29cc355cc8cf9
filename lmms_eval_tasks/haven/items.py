"""Types of HAVEN's docs and items: a video with what a task shows of it and asks.

Frames, shots and sentences are numbers, from 1 on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from typing_extensions import ReadOnly, TypedDict

from lmms_eval_tasks.benchmark import Scored
from lmms_eval_tasks.judges.geval import TextRating

Ordinals = Sequence[int]


class HavenVideo(TypedDict):
    """A video and what is asked about it, as docs and the log have it."""

    id: ReadOnly[str]  # SOURCE/VIDEO
    source: ReadOnly[str]  # slug (options.SOURCES)
    kind: ReadOnly[str]  # one of options.KINDS
    text: ReadOnly[bool]  # a text proxy: descriptions in place of pictures
    with_document: ReadOnly[bool]
    record: ReadOnly[str]  # hash of all that the release says of the video
    keyframes: ReadOnly[Ordinals]  # that `is_gt` marks
    key_shots: ReadOnly[Ordinals]
    shots: ReadOnly[Sequence[Ordinals]]  # frames of each
    importance: ReadOnly[Sequence[float]]  # of each shot; empty without scores
    document: ReadOnly[Sequence[str]]  # sentences
    summary: ReadOnly[Sequence[str]]  # sentences of the reference
    summary_shots: ReadOnly[Sequence[Ordinals]]  # of each of them
    units: ReadOnly[Ordinals]  # shots or document sentences that are shown, in the order shown
    budget: ReadOnly[int]  # K, the keyframes asked for
    n_sentences: ReadOnly[int]  # asked for; 0 without a summary
    layout: ReadOnly[str]  # of the request (inputs.py); older runs have none


class HavenRow(TypedDict):
    """The row of a video that docs are made from; it has all that the release says of the video."""

    id: ReadOnly[str]
    source: ReadOnly[str]
    video: ReadOnly[str]
    record: ReadOnly[str]
    picks: ReadOnly[Ordinals]
    shots: ReadOnly[Sequence[Ordinals]]
    document: ReadOnly[Sequence[str]]
    summary: ReadOnly[Sequence[str]]
    tagged: ReadOnly[str]
    video_path: ReadOnly[str]


class HavenDoc(HavenVideo):
    """A task's doc of a video: its row, and what the task shows and asks (3.4, C)."""

    video: ReadOnly[str]  # its key in the release
    picks: ReadOnly[Ordinals]  # sampled frames among the original video's, from 0 on
    descriptions: ReadOnly[Sequence[str]]  # of each sampled frame; "" where there is none
    shot_texts: ReadOnly[Sequence[str]]
    document_shots: ReadOnly[Sequence[Ordinals]]
    video_path: ReadOnly[str]
    data: ReadOnly[str]  # digest of the release
    tagged: ReadOnly[str]  # the reference where it is the text with tags of shots, else ""
    unit_frames: ReadOnly[Sequence[Ordinals]]  # whose pictures are shown of each unit
    n_images: ReadOnly[int]  # pictures that are shown
    sentences: ReadOnly[Ordinals]  # of the summary, that are shown


class Sometimes(TypedDict, total=False):
    """Fields that only some docs have in the log."""

    tagged: ReadOnly[str]  # the reference where it is the text with tags of shots
    at_limit: ReadOnly[bool]  # the reply may have been cut by its limit of tokens


class KeptHaven(HavenVideo, Sometimes):
    """A doc in the log.

    The release's digest is `release`, not `data`: runs of other releases are joined over the videos
    whose record is the same.
    """

    release: ReadOnly[str]
    asked: ReadOnly[Ordinals]  # the doc's `sentences`: an item's own are the reply's
    video: ReadOnly[str]  # its id, the cluster of intervals
    n_frames: ReadOnly[int]  # sampled


class Reading(TypedDict, total=False):
    """The parts of a reply that could be read, and their scores; empty where a kind has none."""

    parts: ReadOnly[Mapping[str, str]]  # part of the reply -> its status
    violations: ReadOnly[Mapping[str, int]]  # kind -> how often
    undefined: ReadOnly[str]  # why no reply can have a score
    scores: ReadOnly[Mapping[str, float | None]]  # 0..1, of orders -1..1; None where undefined
    authors: ReadOnly[Mapping[str, float | None]]  # of the order that their code reads
    baselines: ReadOnly[
        Mapping[str, float | None]
    ]  # METRIC_BASELINE: what looking at nothing gives
    candidate: ReadOnly[str]  # the summary
    sentences: ReadOnly[Sequence[str]]  # of it
    frames: ReadOnly[Ordinals]  # that were selected
    ranked: ReadOnly[Ordinals]  # units in the order given
    clips: ReadOnly[Sequence[Ordinals]]  # given for each sentence


class HavenScore(Reading, Scored):
    """Readings and scores of a reply."""

    geval: ReadOnly[TextRating | None]  # 1 to 5; None where no summary is asked for


class HavenItem(KeptHaven, HavenScore):
    """A reply about a video."""
