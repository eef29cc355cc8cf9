"""The packaged sample's files and its strips. That they fit each other the oracle shows, which
reads frames and texts of the released form (test_players.py)."""

from __future__ import annotations

import io
import json
from pathlib import Path

import av
from PIL import Image

from lmms_eval_tasks.haven import sample
from lmms_eval_tasks.haven.options import PAPER_COUNTS
from lmms_eval_tasks.haven.sample_stories import STORIES


def test_all_sources_and_nothing_else(tmp_path: Path) -> None:
    folder, again = tmp_path / "one", tmp_path / "other"
    for place in (folder, again):
        place.mkdir()
        sample.write(place)
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert found == {
        "key.json",
        "replay.jsonl",
        *(f"processed/{source}_data.json" for source in PAPER_COUNTS),
        *(f"{source}/h5/{source}.h5" for source in PAPER_COUNTS),
        *(f"videos/{story.source}/{story.video}.mp4" for story in STORIES),
    }
    assert len(STORIES) == 8
    assert json.loads((folder / "key.json").read_text()) == {"pictures": ["haven"]}
    assert sum(path.stat().st_size for path in folder.rglob("*")) < 1_000_000
    for name in found:
        assert (folder / name).read_bytes() == (again / name).read_bytes(), name
    texts = [json.loads(file.read_text()) for file in (folder / "processed").iterdir()]
    kinds = {type(video["frames"][0]["is_gt"]) for text in texts for video in text.values()}
    assert kinds == {bool, int}  # the release has both


def test_every_picture_says_what_it_shows(tmp_path: Path) -> None:
    """Between the sampled frames too, so that a pick that is off by one shows."""
    for story in (STORIES[0], STORIES[4]):
        sample.write_video(story, tmp_path / "v.mp4")
        with av.open(str(tmp_path / "v.mp4")) as container:
            frames = [frame.to_image() for frame in container.decode(video=0)]
        assert len(frames) == story.n_frames
        assert frames[0].size == story.size
        assert [sample.read(frame) for frame in frames] == [
            sample.mark(story, place) for place in range(len(frames))
        ]
        stored = io.BytesIO()
        frames[0].save(stored, "JPEG", quality=95)
        half = (story.size[0] // 2, story.size[1] // 2)
        for other in (Image.open(stored), frames[0].resize(half), frames[0].resize((512, 512))):
            assert sample.read(other) == sample.mark(story, 0)
