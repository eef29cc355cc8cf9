"""HAVEN's packaged sample in the release's schema: eight videos of all six sources, and a key.

    haven/processed/SOURCE_data.json   frames, clips, document and summary with their alignment
    haven/SOURCE/h5/SOURCE.h5          one group per video: shots, picks, importance
    haven/videos/SOURCE/video_N.mp4    20 to 40 sampled frames, 5 to 10 frames a second, no sound
    haven/key.json                     {"pictures": ["haven"]}: the oracle reads the requests'
                                       pictures and texts (sample_players.py) and needs no answers
    haven/replay.jsonl                 G-Eval's highest rating for the reference summaries, for
                                       `--judge replay:FILE`: it shows the way to the score, and
                                       nothing about a judge

Every frame says what is true of it in a strip of light and dark cells below its scene, every text
what it describes (sample_stories.py). Where the release has two forms of a thing, the sample has
both: `is_gt` and `gt` as true or false and as 1 or 0; `video_name` in two sources, `shot_level_gt`
in the JSON of one. No task reads the key.

The strip, ROWS x COLUMNS cells, bears the frame's number in time, its level of importance, its
shot's importance as a fraction (sum of levels, number of sampled frames), its scene, whether its
shot is a key shot, and a check sum: a picture says nothing about its video, and a reader needs no
file and no key. It stands H.264, JPEG and other sizes.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lmms_eval_tasks.haven import sample_stories as stories
from lmms_eval_tasks.haven.sample_stories import STORIES, TOP, Scene, Story
from lmms_eval_tasks.judges.geval import HIGHEST, SAMPLES
from lmms_eval_tasks.sample import render, second_code
from lmms_eval_tasks.sample.render import Canvas
from lmms_eval_tasks.sample.second_code import PALETTE
from lmms_eval_tasks.utils.json_files import write_json, write_lines

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ALSO = ("options.py",)  # it decides the sample too: the capacity
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
        own = [story for story in STORIES if story.source == source]
        (folder / "videos" / source).mkdir(parents=True)
        (folder / source / "h5").mkdir(parents=True)
        for story in own:
            write_video(story, folder / "videos" / source / f"{story.video}.mp4")
        annotations = {story.video: annotation(story) for story in own}
        write_json(folder / "processed" / f"{source}_data.json", annotations)
        _write_h5(folder / source / "h5" / f"{source}.h5", own)
    write_json(folder / "key.json", {"pictures": ["haven"]})
    write_lines(folder / "replay.jsonl", replay())


def write_video(story: Story, path: Path) -> None:
    """Draw and encode one video."""
    render.write_mp4(path, frames(story), story.fps, None, 0, picture_options=X264)


def annotation(story: Story) -> dict[str, Any]:
    """A video's entry of the JSON file."""
    document = stories.document(story)
    key_scenes = [story.scenes[number - 1] for number in story.key_shots]
    named = {"video_name": name(story)} if story.source in NAMED else {}
    keyed = {"shot_level_gt": shot_level_gt(story)} if story.source in SHOTS_IN_JSON else {}
    return {
        **named,
        "frames": list(_frames(story)),
        "clips": list(_clips(story)),
        "aligned_full_document": _block(document, story.document_shots),
        "aligned_text_summary": _block(
            stories.summary(key_scenes), stories.summary_shots(story.key_shots)
        ),
        **keyed,
    }


def replay() -> Iterator[dict[str, Any]]:
    """Recorded replies (replay.py) about every reference summary, one for each sample."""
    for story in STORIES:
        summary = " ".join(stories.summary([story.scenes[n - 1] for n in story.key_shots]))
        fields = {
            "reference": summary,
            "document": " ".join(stories.document(story)),
            "candidate": summary,
        }
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
            "description": stories.frame(scene, level, shot in story.key_shots),
            "is_gt": _truth(story, number in story.keyframes),
            "status": STATUS,
        }


def _clips(story: Story) -> Iterator[dict[str, Any]]:
    for number, (scene, frames) in enumerate(zip(story.scenes, story.shots, strict=True), 1):
        levels = [story.frames[frame - 1] for frame in frames]
        yield {
            "clip_id": number - 1,
            "summary": stories.shot(number - 1, scene, levels),
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


def _write_h5(path: Path, own: list[Story]) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        for story in own:
            made = file.create_group(story.video)
            for dataset, value in group(story).items():
                made.create_dataset(dataset, data=value)


# --- pictures ------------------------------------------------------------------------------------

HALF = 0.18  # half of a shape's size, as a share of the picture's height
_MARGIN = 0.25  # of the way across where a shape starts and ends


def frames(story: Story) -> Iterator[NDArray[np.uint8]]:
    """Every frame of a video in order, (height, width, 3)."""
    for frame in range(story.n_frames):
        shot, _ = story.shown(frame)
        first, last = story.change_points[shot - 1]
        share = (frame - first) / max(last - first, 1)
        scene = _scene(story.scenes[shot - 1], share, story.size)
        yield striped(scene, mark(story, frame))


def mark(story: Story, frame: int) -> Mark:
    """What the strip of frame `frame` of the video says."""
    shot, sampled = story.shown(frame)
    levels = [story.frames[number - 1] for number in story.shots[shot - 1]]
    return Mark(
        frame=frame,
        level=story.frames[sampled - 1],
        total=sum(levels),
        sampled=len(levels),
        scene=story.scenes[shot - 1].number,
        key=shot in story.key_shots,
    )


def _scene(scene: Scene, share: float, size: tuple[int, int]) -> NDArray[np.uint8]:
    """The shape after `share` (0 to 1) of its way from left to right."""
    width, height = size
    canvas = Canvas(width, height, PALETTE[scene.ground])
    fill, half = PALETTE[scene.colour], HALF * height
    x = width * (_MARGIN + (1 - 2 * _MARGIN) * share)
    y = height * TOP_EDGE / 2
    if scene.shape == "circle":
        canvas.ellipse((x, y), half, half, fill)
    elif scene.shape == "square":
        canvas.rectangle(x - half, y - half, x + half, y + half, fill)
    elif scene.shape == "triangle":
        canvas.polygon([(x - half, y + half), (x + half, y + half), (x, y - half)], fill)
    else:
        canvas.polygon([(x - half, y), (x, y - half), (x + half, y), (x, y + half)], fill)
    return canvas.pixels()


# --- the strip -----------------------------------------------------------------------------------

ROWS, COLUMNS = 2, 20
TOP_EDGE = 0.875  # the strip's upper edge, as a share of the picture's height
CHECK_BITS = 9
_SURE = 60  # how far from half of full scale a cell's mean must be


class Mark(NamedTuple):
    """What a picture says."""

    frame: int  # its place among all frames of its video, from 0
    level: int  # its importance
    total: int  # of the levels of its shot's sampled frames
    sampled: int  # number of its shot's sampled frames
    scene: int  # of sample_stories.SCENES
    key: bool  # whether its shot is a key shot

    @property
    def importance(self) -> Fraction:
        """Of its shot: the mean of the levels."""
        return Fraction(self.total, self.sampled)


WIDTHS = (8, 4, 7, 4, 7, 1)  # of a Mark's fields in bits; 31 in all
_PAYLOAD = sum(WIDTHS)


def bits(mark: Mark) -> list[int]:
    """The strip's cells row by row, 0 (dark) or 1 (light).

    Raises:
        ValueError: a number has more bits than its field.
    """
    value = 0
    for name, number, width in zip(Mark._fields, mark, WIDTHS, strict=True):
        if not 0 <= number < 1 << width:
            raise ValueError(f"{name}={number} does not fit into {width} bits")
        value = value << width | int(number)
    whole = value << CHECK_BITS | _check(value)
    return [whole >> place & 1 for place in reversed(range(_PAYLOAD + CHECK_BITS))]


def striped(picture: NDArray[np.uint8], mark: Mark) -> NDArray[np.uint8]:
    """A picture, (height, width, 3), with the strip drawn over its lower edge."""
    import numpy as np

    height, width = picture.shape[:2]
    top = round(TOP_EDGE * height)
    cells = np.array(bits(mark), dtype=np.uint8).reshape(ROWS, COLUMNS) * 255
    rows = np.arange(height - top) * ROWS // (height - top)
    columns = np.arange(width) * COLUMNS // width
    marked: NDArray[np.uint8] = picture.copy()
    marked[top:] = cells[rows][:, columns][..., None]
    return marked


def read(picture: Any) -> Mark | None:
    """What a picture says; None if it is not one of the sample's, or cannot be read.

    Args:
        picture: a PIL image, or red, green and blue of 0 to 255, (height, width, 3); of any size.
    """
    import numpy as np

    pixels = np.asarray(picture.convert("RGB") if hasattr(picture, "convert") else picture)
    found = 0
    for place in range(ROWS * COLUMNS):
        row, column = divmod(place, COLUMNS)
        y0, y1 = (TOP_EDGE + (1 - TOP_EDGE) * (row + share) / ROWS for share in (0.3, 0.7))
        x0, x1 = ((column + share) / COLUMNS for share in (0.3, 0.7))
        mean = float(second_code.part(pixels, x0, x1, y0, y1).mean())
        if abs(mean - 127.5) < _SURE:
            return None
        found = found << 1 | (mean > 127.5)
    value, check = found >> CHECK_BITS, found & (1 << CHECK_BITS) - 1
    if check != _check(value):
        return None
    fields = []
    for width in reversed(WIDTHS):
        fields.append(value & (1 << width) - 1)
        value >>= width
    frame, level, total, sampled, scene, key = reversed(fields)
    return Mark(frame, level, total, sampled, scene, bool(key)) if sampled else None


def _check(value: int) -> int:
    """A check sum that neither a dark nor a light strip has."""
    return zlib.crc32(value.to_bytes(4, "big")) & (1 << CHECK_BITS) - 1
