"""HAVEN's packaged sample in the release's schema: eight videos of all six sources.

    haven/processed/SOURCE_data.json     frames, clips, document and summary with their alignment
    haven/SOURCE/h5/SOURCE.h5            one group per video: shots, picks, importance
    haven/videos/SOURCE/video_N.mp4      20 to 40 sampled frames, 5 to 10 frames a second, no sound
    haven/replay.jsonl                   G-Eval's highest rating for the reference summaries, for
                                         `--judge replay:FILE`: it tests the path to the score, and
                                         says nothing about a judge

The ground truth follows from sample_stories.py. `gtscore` is a level / 8, which binary floats hold
exactly, so that shots of equal levels are equal in the files. If the release has two forms of a
field, the sample has both: `is_gt` and `gt` as true or false and as 1 or 0; `video_name` in two
sources; `shot_level_gt` in the JSON of one source.

Below its scene, every frame has a strip of ROWS x COLUMNS light and dark cells with the frame's
ground truth: its number in time, its level, its shot's sum of levels and number of sampled frames,
its scene, whether its shot is a key shot, and a check sum. The strip remains readable after H.264,
JPEG and scaling.
"""

from __future__ import annotations

import functools
import json
import random
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.haven.items import HavenDoc
from lmms_eval_tasks.haven.metrics import ALIGNMENT, ORDER, ROUGE
from lmms_eval_tasks.haven.options import OF_SENTENCES, ORDERS, SUMMARIES, TASKS, Variant
from lmms_eval_tasks.haven.sample_stories import (
    PLACES,
    SCENES,
    STORIES,
    TOP,
    Story,
    document,
    summary,
)
from lmms_eval_tasks.judges.geval import HIGHEST, SAMPLES
from lmms_eval_tasks.models.fake_replies import UNREADABLE, Chance, KnownReplies, Played
from lmms_eval_tasks.sample import scenes
from lmms_eval_tasks.sample.render import Canvas, Clip
from lmms_eval_tasks.utils.media.second_code import PALETTE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAMED = ("summe", "tvsum")  # sources whose files name the original video
SHOTS_IN_JSON = ("youtube",)
# Options of render.Clip: a key frame at least every 30 frames, and no macroblock trees
# (second_code.py says why).
X264 = {"g": "30", "mbtree": "0"}

# K, 15 % rounded up, is more frames than the key shots have.
_KEYFRAMES = {"f1": 0.9112554112554112, "precision": 0.8416666666666667, "recall": 1.0}
# Kind of task -> the best reachable values. A reply cannot say that two shots are equally
# important, but some shots of the sample are.
_BEST: Mapping[str, Mapping[str, float]] = {
    "v2t": dict.fromkeys(ROUGE, 1.0),
    "v2v": _KEYFRAMES,
    "v2vt": {**dict.fromkeys(ROUGE, 1.0), **_KEYFRAMES},
    "temporal": dict.fromkeys(ORDER, 1.0),
    "grounding": dict.fromkeys(ALIGNMENT, 1.0),
    "saliency": {"spearman": 0.9832986583839738, "kendall": 0.9611235341120444},
}


def _chance(metric: str, quantity: str, *kinds: str) -> Chance:
    return Chance(
        quantity,
        [name for name, task in TASKS.items() if task.kind in kinds],
        lambda item: item["scores"][metric],
        lambda item: item["baselines"][f"{metric}_random"],
    )


PLAYED = Played(
    tasks=("haven", "haven_text"),
    expected={
        name: {
            **{"failed": 0.0, "violations": 0.0},
            **_BEST[task.kind],
            **({"geval_samples_valid": float(HIGHEST)} if task.kind in SUMMARIES else {}),
        }
        for name, task in TASKS.items()
    },
    chances=(
        _chance("f1", "keyframes", "v2v", "v2vt"),
        _chance("spearman", "orders", "temporal", "saliency"),
        _chance("hit1", "alignments", "grounding"),
    ),
    headline=("haven_v2v", "f1"),
)


# --- the files ------------------------------------------------------------------------------------


def sample_files() -> dict[str, object]:
    """Return all files except the videos, by path."""
    files: dict[str, object] = {}
    for source in dict.fromkeys(story.source for story in STORIES):
        source_stories = [story for story in STORIES if story.source == source]
        texts = {story.video: annotation(story) for story in source_stories}
        files[f"processed/{source}_data.json"] = texts
        files[f"{source}/h5/{source}.h5"] = functools.partial(_write_h5, source_stories)
    return {**files, "replay.jsonl": replay()}


def annotation(story: Story) -> dict[str, object]:
    """Return a video's entry of the JSON file."""

    def truth(value: bool) -> bool | int:  # every other video has numbers
        return int(value) if STORIES.index(story) % 2 else value

    frames, clips = [], []
    for number, (pick, level) in enumerate(zip(story.picks, story.frames, strict=True), 1):
        shot, _ = story.shot_and_level(pick)
        key = " in a highlight" if shot in story.key_shots else ""
        seen = f"A{str(story.scenes[shot - 1])[1:]}"
        frames.append(
            {
                "frame_id": pick,
                "description": f"{seen}, marked {level} of {TOP} for importance{key}.",
                "is_gt": truth(number in story.keyframes),
                "status": "success",
            }
        )
    for number, (scene, own) in enumerate(zip(story.scenes, story.shots, strict=True), 1):
        told = f"{PLACES[number - 1]}, {scene} moves for {len(own)} sampled frames"
        total = sum(story.frames[frame - 1] for frame in own)
        clips.append(
            {
                "clip_id": number - 1,
                "summary": f"{told}; its marks for importance add up to {total}.",
                "gt": truth(number in story.key_shots),
                "frames": [story.picks[frame - 1] for frame in own],
                "frame_count": len(own),
                "status": "success",
            }
        )
    first, last = story.key_shots[0], story.key_shots[-1]
    of_summary = [[first], story.key_shots, [last], sorted({first, last})]
    return {
        **({"video_name": story.name} if story.source in NAMED else {}),
        "frames": frames,
        "clips": clips,
        "aligned_full_document": _block(document(story), story.document_shots),
        "aligned_text_summary": _block(summary(story.key_scenes), of_summary),
        **({"shot_level_gt": shot_level_gt(story)} if story.source in SHOTS_IN_JSON else {}),
    }


def _block(sentences: list[str], shots: Sequence[Sequence[int]]) -> dict[str, object]:
    """Return sentences with their alignment in the JSON's form, where shots count from 0."""
    of = [[number - 1 for number in numbers] for numbers in shots]
    aligned = [{"sentence_id": place, "shot_ids": own} for place, own in enumerate(of)]
    return {"sentences": sentences, "alignments": aligned, "raw_text": " ".join(sentences)}


def shot_level_gt(story: Story) -> list[int]:
    """Return 1 for every key shot and 0 for every other shot, (n_shots,)."""
    return [int(number in story.key_shots) for number in range(1, len(story.shots) + 1)]


def _write_h5(stories: Sequence[Story], path: Path) -> None:
    """Write the HDF5 file with a group for each video, as released.

    change_points (n_shots, 2), both ends inclusive, n_frame_per_seg (n_shots,) and picks (n_steps,)
    count frames of the video; gtscore (n_steps,) is in [0, 1]; gtframe (n_steps,) and shot_level_gt
    (n_shots,) are 0 or 1.
    """
    import h5py
    import numpy as np

    with h5py.File(path, "w") as file:
        for story in stories:
            keyframes = [n in story.keyframes for n in range(1, len(story.frames) + 1)]
            lengths = [last - first + 1 for first, last in story.change_points]
            made = file.create_group(story.video)
            for dataset, value in {
                "change_points": np.array(story.change_points, dtype=np.int64),
                "gtframe": np.array(keyframes, dtype=np.int64),
                "gtscore": np.array([level / TOP for level in story.frames], dtype=np.float32),
                "n_frame_per_seg": np.array(lengths, dtype=np.int64),
                "n_frames": np.int64(story.n_frames),
                "n_steps": np.int64(len(story.frames)),
                "picks": np.array(story.picks, dtype=np.int64),
                "shot_level_gt": np.array(shot_level_gt(story), dtype=np.int64),
                **({"video_name": story.name} if story.source in NAMED else {}),
            }.items():
                made.create_dataset(dataset, data=value)


def replay() -> Iterator[dict[str, object]]:
    """Yield recorded replies (replay.py) about every reference summary, one for each sample."""
    for story in STORIES:
        told = " ".join(summary(story.key_scenes))
        fields = {"reference": told, "document": " ".join(document(story)), "candidate": told}
        reply = json.dumps({"score": HIGHEST})
        line = {"criterion": "haven_geval", "fields": fields, "reply": reply}
        yield from ({**line, "sample": sample} for sample in range(SAMPLES))


# --- the videos -----------------------------------------------------------------------------------

HALF = 0.18  # half the size of a shape, as a share of the picture's height
_MARGIN = 0.25  # share of the picture's width before a shape's start and after its end
ROWS, COLUMNS = 2, 20  # rows and columns of the strip
TOP_EDGE = 0.875  # the strip's upper edge, as a share of the picture's height
WIDTHS = (8, 4, 7, 4, 7, 1)  # bits of each number of a mark; 31 in all
CHECK_BITS = 9


def sample_videos() -> dict[str, Clip]:
    """Return all videos, by path."""
    return {
        f"videos/{story.source}/{story.video}.mp4": Clip(
            functools.partial(story_frames, story), story.fps, picture_options=X264
        )
        for story in STORIES
    }


def story_frames(story: Story) -> Iterator[NDArray[np.uint8]]:
    """Yield every frame of a video in order, (height, width, 3): a moving shape above the strip."""
    width, height = story.size
    for frame in range(story.n_frames):
        shot, _ = story.shot_and_level(frame)
        first, last = story.change_points[shot - 1]
        share = (frame - first) / max(last - first, 1)
        scene = story.scenes[shot - 1]
        place = [[0.0, width * (_MARGIN + (1 - 2 * _MARGIN) * share), height * TOP_EDGE / 2]]
        canvas = Canvas(width, height, PALETTE[scene.ground])
        scenes.Actor(scene.shape, scene.colour, place, HALF * height).draw(canvas, 0)
        yield striped(canvas.pixels(), mark(story, frame))


def mark(story: Story, frame: int) -> tuple[int, ...]:
    """Return the numbers in the strip of a frame; WIDTHS gives their widths in bits."""
    shot, sampled = story.shot_and_level(frame)
    levels = [story.frames[number - 1] for number in story.shots[shot - 1]]
    scene = SCENES.index(story.scenes[shot - 1])
    level, key = story.frames[sampled - 1], int(shot in story.key_shots)
    return frame, level, sum(levels), len(levels), scene, key


def striped(picture: NDArray[np.uint8], mark: Sequence[int]) -> NDArray[np.uint8]:
    """Return a picture, (height, width, 3), with the strip drawn over its lower edge."""
    import numpy as np

    value = functools.reduce(
        lambda bits, one: bits << one[1] | one[0], zip(mark, WIDTHS, strict=True), 0
    )
    whole = value << CHECK_BITS | check_sum(value)
    height, width = picture.shape[:2]
    top = round(TOP_EDGE * height)
    cells = np.array([whole >> n & 1 for n in reversed(range(ROWS * COLUMNS))], dtype=np.uint8)
    rows = np.arange(height - top) * ROWS // (height - top)
    columns = np.arange(width) * COLUMNS // width
    marked: NDArray[np.uint8] = picture.copy()
    marked[top:] = (cells * 255).reshape(ROWS, COLUMNS)[rows][:, columns][..., None]
    return marked


def check_sum(value: int) -> int:
    """Return a check sum that a completely dark or light strip does not match."""
    return zlib.crc32(value.to_bytes(4, "big")) & (1 << CHECK_BITS) - 1


# --- replies to a doc -----------------------------------------------------------------------------

_DRAWS = 8  # random replies to a doc


def known_replies(doc: HavenDoc) -> KnownReplies:
    """Return the right reply and random replies to a doc of any HAVEN task (data.make_doc).

    The right reply reaches the best value that the item allows. Random replies have the right form:
    sentences about any scenes; the requested number of frames, all equally likely; any order; one
    clip for each sentence. They are drawn anew for every video and task.

    Raises:
        TasksError: the kind of the doc is unknown, or the doc lacks a field of its kind.
    """
    try:
        task = Variant(doc["kind"], document=doc["with_document"], text=doc["text"])
        name = f"{task.name}/{doc['id']}"
        right, *drawn = (
            _said(doc, random.Random(f"{name}/{seed}") if seed else None)
            for seed in range(_DRAWS + 1)
        )
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise TasksError(f"a document of HAVEN has no field {error}") from None
    # Any text counts as a summary; only an empty reply does not.
    unreadable = "" if doc["kind"] == "v2t" else UNREADABLE
    return KnownReplies(name, right, drawn[0], unreadable, random_replies=drawn)


def _said(doc: HavenDoc, draw: random.Random | None) -> str:
    """Return the right reply, or a random one, in the form that the prompt asks for (Appendix C).

    A random reply is drawn with `draw`; without it, the reply is right.
    """
    kind, units = doc["kind"], doc["units"]
    places = range(1, len(units) + 1)
    if kind in ORDERS:
        word = "Sentence" if doc["layout"] == OF_SENTENCES else "Shot"

        def place(number: int) -> float:  # sort key: time, or importance
            unit = units[number - 1]
            return float(unit if kind == "temporal" else -doc["importance"][unit - 1])

        order = draw.sample(places, len(places)) if draw else sorted(places, key=place)
        return " > ".join(f"{word} {number}" for number in order)
    if kind == "grounding":
        lines = []
        for number, sentence in enumerate(doc["sentences"], 1):
            hits = [n for n in places if units[n - 1] in doc["summary_shots"][sentence - 1]]
            clips = [draw.choice(places)] if draw else hits
            lines.append(f"Summary {number}: {', '.join(f'Clip {clip}' for clip in clips)}")
        return "\n".join(lines)
    # K frames, the true ones first.
    numbers, k = range(1, len(doc["picks"]) + 1), doc["budget"]
    true = {frame for shot in doc["key_shots"] for frame in doc["shots"][shot - 1]}
    best = sorted(numbers, key=lambda number: (number not in true, number))
    frames = sorted(draw.sample(numbers, k) if draw else best[:k])
    if kind == "v2v":
        return str(frames)
    told, asked = list(doc["summary"]), doc["n_sentences"]
    if draw:
        told = summary(draw.sample(SCENES, 2))
    if 0 < asked < len(told):  # the last sentence takes in all further ones
        told = [*told[: asked - 1], " ".join(told[asked - 1 :])]
    lines = [" ".join(told)]
    if doc["text"] or kind == "v2vt":
        lines = ["SUMMARY:", *(f"{number}. {sentence}" for number, sentence in enumerate(told, 1))]
    if kind == "v2vt":
        name = "" if doc["text"] else "Frame "
        lines.append(f"IMPORTANT FRAMES: [{', '.join(f'{name}{frame}' for frame in frames)}]")
    return "\n".join(lines)
