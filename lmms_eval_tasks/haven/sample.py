"""HAVEN's packaged sample in the release's schema: eight videos of all six sources, and a key.

    haven/processed/SOURCE_data.json   frames, clips, document and summary with their alignment
    haven/SOURCE/h5/SOURCE.h5          one group per video: shots, picks, importance
    haven/videos/SOURCE/video_N.mp4    20 to 40 sampled frames, 5 to 10 frames a second, no sound
    haven/key.json                     {"pictures": ["haven"]}: the oracle reads the requests'
                                       pictures and texts (sample_oracle.py) and needs no answers
    haven/replay.jsonl                 G-Eval's highest rating for the reference summaries, for
                                       `--judge replay:FILE`: it shows the way to the score, and
                                       nothing about a judge

Every frame says what is true of it in a strip below its scene (sample_code.py), every text what it
describes (sample_texts.py). Where the release has two forms of a thing, the sample has both:
`is_gt` and `gt` as true or false and as 1 or 0; `video_name` in two sources, `shot_level_gt` in the
JSON of one. No task reads the key.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lmms_eval_tasks.haven import judge, sample_draw, sample_texts
from lmms_eval_tasks.haven.sample_stories import STORIES, TOP, Story
from lmms_eval_tasks.judges.geval_ratings import HIGHEST, SAMPLES
from lmms_eval_tasks.sample import render

# They decide the sample too: the budget, and what a judge is asked.
ALSO = ("options.py", "judge.py")
NAMED = ("summe", "tvsum")  # sources whose files name the original video
SHOTS_IN_JSON = ("youtube",)
STATUS = "success"
CRITERION = "haven_geval"  # what the judge's recordings answer (judge.py)
# For render.write_mp4: a key frame at least every 30 frames; no macroblock trees
# (sample/second_code.py says why).
X264 = {"g": "30", "mbtree": "0"}


def write(folder: Path) -> None:
    """Write the sample into an existing empty folder.

    Raises:
        MediaError: a video cannot be encoded.
    """
    (folder / "processed").mkdir()
    for source in dict.fromkeys(story.source for story in STORIES):
        stories = [story for story in STORIES if story.source == source]
        (folder / "videos" / source).mkdir(parents=True)
        (folder / source / "h5").mkdir(parents=True)
        for story in stories:
            write_video(story, folder / "videos" / source / f"{story.video}.mp4")
        annotations = {story.video: annotation(story) for story in stories}
        _write_json(folder / "processed" / f"{source}_data.json", annotations)
        _write_h5(folder / source / "h5" / f"{source}.h5", stories)
    _write_json(folder / "key.json", {"pictures": ["haven"]})
    _write(folder / "replay.jsonl", "".join(json.dumps(line) + "\n" for line in replay()))


def write_video(story: Story, path: Path) -> None:
    """Draw and encode one video."""
    render.write_mp4(path, sample_draw.frames(story), story.fps, None, 0, picture_options=X264)


def annotation(story: Story) -> dict[str, Any]:
    """A video's entry of the JSON file."""
    document = sample_texts.document(story)
    key_scenes = [story.scenes[number - 1] for number in story.key_shots]
    named = {"video_name": name(story)} if story.source in NAMED else {}
    keyed = {"shot_level_gt": shot_level_gt(story)} if story.source in SHOTS_IN_JSON else {}
    return {
        **named,
        "frames": list(_frames(story)),
        "clips": list(_clips(story)),
        "aligned_full_document": _block(document, story.document_shots),
        "aligned_text_summary": _block(
            sample_texts.summary(key_scenes), sample_texts.summary_shots(story.key_shots)
        ),
        **keyed,
    }


def replay() -> Iterator[dict[str, Any]]:
    """Recorded replies (judges/replay.py) about every reference summary, one for each sample."""
    for story in STORIES:
        texts = {
            "document": sample_texts.document(story),
            "summary": sample_texts.summary([story.scenes[shot - 1] for shot in story.key_shots]),
        }
        fields = {**judge.fields(texts), "candidate": " ".join(texts["summary"])}
        for sample in range(SAMPLES):
            reply = json.dumps({"score": HIGHEST})
            yield {
                "criterion": CRITERION,
                "fields": fields,
                "reply": reply,
                "sample": sample,
            }


def group(story: Story) -> dict[str, Any]:
    """A video's group of the HDF5 file: name of a dataset -> its value, as a numpy type.

    change_points (n_shots, 2), both ends inclusive, n_frame_per_seg (n_shots,) and picks (n_steps,)
    count frames of the video; gtscore (n_steps,) is in [0, 1]; gtframe (n_steps,) and shot_level_gt
    (n_shots,) are 0 or 1.
    """
    import numpy as np

    keyframes = [int(n in story.keyframes) for n in range(1, len(story.frames) + 1)]
    return {
        "change_points": np.array(story.change_points, dtype=np.int64),
        "gtframe": np.array(keyframes, dtype=np.int64),
        "gtscore": np.array([level / TOP for level in story.frames], dtype=np.float32),
        "n_frame_per_seg": np.array(
            [last - first + 1 for first, last in story.change_points], dtype=np.int64
        ),
        "n_frames": np.int64(story.n_frames),
        "n_steps": np.int64(len(story.frames)),
        "picks": np.array(story.picks, dtype=np.int64),
        "shot_level_gt": np.array(shot_level_gt(story), dtype=np.int64),
        **({"video_name": name(story)} if story.source in NAMED else {}),
    }


def name(story: Story) -> str:
    """The original video's name; this one is made up."""
    return f"Moving shapes {STORIES.index(story) + 1}"


def shot_level_gt(story: Story) -> list[int]:
    """1 for every key shot, 0 for every other."""
    return [int(number in story.key_shots) for number in range(1, len(story.shots) + 1)]


def _truth(story: Story, value: bool) -> bool | int:
    """As JSON has it: of every other video as a number."""
    return int(value) if STORIES.index(story) % 2 else value


def _frames(story: Story) -> Iterator[dict[str, Any]]:
    for number, (pick, level) in enumerate(zip(story.picks, story.frames, strict=True), 1):
        shot, _ = story.shown(pick)
        scene = story.scenes[shot - 1]
        yield {
            "frame_id": pick,
            "description": sample_texts.frame(scene, level, shot in story.key_shots),
            "is_gt": _truth(story, number in story.keyframes),
            "status": STATUS,
        }


def _clips(story: Story) -> Iterator[dict[str, Any]]:
    for number, (scene, frames) in enumerate(zip(story.scenes, story.shots, strict=True), 1):
        levels = [story.frames[frame - 1] for frame in frames]
        yield {
            "clip_id": number - 1,
            "summary": sample_texts.shot(scene, levels),
            "gt": _truth(story, number in story.key_shots),
            "frames": [story.picks[frame - 1] for frame in frames],
            "frame_count": len(frames),
            "status": STATUS,
        }


def _block(sentences: list[str], shots: list[list[int]]) -> dict[str, Any]:
    """Sentences with their alignment; shots count from 0 here."""
    return {
        "sentences": sentences,
        "alignments": [
            {"sentence_id": place, "shot_ids": [number - 1 for number in numbers]}
            for place, numbers in enumerate(shots)
        ],
        "raw_text": " ".join(sentences),
    }


def _write_h5(path: Path, stories: list[Story]) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        for story in stories:
            made = file.create_group(story.video)
            for dataset, value in group(story).items():
                made.create_dataset(dataset, data=value)


def _write_json(path: Path, content: Any) -> None:
    _write(path, json.dumps(content, ensure_ascii=False, indent=1) + "\n")


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
