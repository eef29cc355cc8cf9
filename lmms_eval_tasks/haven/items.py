"""Types of HAVEN's docs and items. A doc is a video with the things that a task shows and asks.

Frames, shots and sentences are numbers that count from 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from typing_extensions import ReadOnly, TypedDict

from lmms_eval_tasks.benchmark import Scored
from lmms_eval_tasks.judges.geval import TextRating

Ordinals = Sequence[int]


class HavenVideo(TypedDict):
    """A video and the question about it: the fields that docs and the log share."""

    id: ReadOnly[str]  # SOURCE/VIDEO
    source: ReadOnly[str]  # slug, a key of options.SOURCES
    kind: ReadOnly[str]  # one of options.KINDS
    text: ReadOnly[bool]  # True for a text proxy: descriptions in place of pictures
    with_document: ReadOnly[bool]
    record: ReadOnly[str]  # hash of everything that the release holds about the video
    keyframes: ReadOnly[Ordinals]  # frames that `is_gt` marks
    key_shots: ReadOnly[Ordinals]
    shots: ReadOnly[Sequence[Ordinals]]  # frames of each shot
    # Importance of each shot, 0 or more; empty without scores.
    importance: ReadOnly[Sequence[float]]
    document: ReadOnly[Sequence[str]]  # sentences of the document
    summary: ReadOnly[Sequence[str]]  # sentences of the reference summary
    summary_shots: ReadOnly[Sequence[Ordinals]]  # shots of each sentence of the summary
    units: ReadOnly[Ordinals]  # shown shots or document sentences, in the shown order
    budget: ReadOnly[int]  # K, the number of keyframes to select
    n_sentences: ReadOnly[int]  # number of sentences to write; 0 without a summary
    layout: ReadOnly[str]  # name of the prompt's layout (inputs.py); missing in older runs


class HavenRow(TypedDict):
    """The row of a video, with everything in the release about it; docs are made from rows."""

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
    """A task's doc of a video: the video's row, and what the task shows and asks (3.4, C)."""

    video: ReadOnly[str]  # the video's key in the release
    picks: ReadOnly[Ordinals]  # indices of the sampled frames in the original video, from 0
    descriptions: ReadOnly[Sequence[str]]  # description of each sampled frame; "" without one
    shot_texts: ReadOnly[Sequence[str]]
    document_shots: ReadOnly[Sequence[Ordinals]]
    video_path: ReadOnly[str]
    data: ReadOnly[str]  # the release's hash
    tagged: ReadOnly[str]  # the reference as text with tags of shots; else ""
    unit_frames: ReadOnly[Sequence[Ordinals]]  # the frames of each unit whose pictures are shown
    n_images: ReadOnly[int]  # number of shown pictures
    sentences: ReadOnly[Ordinals]  # numbers of the summary's sentences that are shown


class Sometimes(TypedDict, total=False):
    """Fields that only some items have in the log."""

    tagged: ReadOnly[str]  # the reference as text with tags of shots
    at_limit: ReadOnly[bool]  # True if the limit of tokens may have cut the reply


class KeptHaven(HavenVideo, Sometimes):
    """The fields of a doc in the log.

    The field `release` holds the release's hash. Its name is not `data`, because runs of different
    releases are joined over the videos whose record is the same.
    """

    release: ReadOnly[str]
    asked: ReadOnly[Ordinals]  # the doc's `sentences`; an item's `sentences` are the reply's
    video: ReadOnly[str]  # the video's id, which is the cluster of intervals
    n_frames: ReadOnly[int]  # number of sampled frames


class Reading(TypedDict, total=False):
    """The parts of a reply that could be read, and their scores.

    A field is empty if the task's kind has no such part.
    """

    parts: ReadOnly[Mapping[str, str]]  # part of the reply -> status of this part
    violations: ReadOnly[Mapping[str, int]]  # kind of violation -> count
    undefined: ReadOnly[str]  # reason why no reply to this doc can have a score; else ""
    scores: ReadOnly[Mapping[str, float | None]]  # 0..1, for orders -1..1; None if undefined
    # Scores of the order that the authors' code reads.
    authors: ReadOnly[Mapping[str, float | None]]
    baselines: ReadOnly[
        Mapping[str, float | None]
    ]  # METRIC_BASELINE: score of a reply that ignores the video
    candidate: ReadOnly[str]  # the summary in the reply
    sentences: ReadOnly[Sequence[str]]  # the summary's sentences
    frames: ReadOnly[Ordinals]  # selected frames
    ranked: ReadOnly[Ordinals]  # units in the reply's order
    clips: ReadOnly[Sequence[Ordinals]]  # clips in the reply for each sentence


class HavenScore(Reading, Scored):
    """The readings of a reply and its scores."""

    geval: ReadOnly[TextRating | None]  # G-Eval's rating, 1 to 5; None for tasks without a summary


class HavenItem(KeptHaven, HavenScore):
    """A reply about a video, with its scores."""
