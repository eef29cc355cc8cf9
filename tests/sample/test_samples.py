"""Every benchmark's packaged sample: the same twice, true by construction, in the released form."""

from __future__ import annotations

import io
import json
import unicodedata
from pathlib import Path
from typing import Any

import av
import numpy as np
from PIL import Image

from lmms_eval_tasks import judges, sample
from lmms_eval_tasks.haven import sample as haven
from lmms_eval_tasks.haven.sample_stories import STORIES
from lmms_eval_tasks.maia import sample as maia
from lmms_eval_tasks.maia.judge import agreement_criterion
from lmms_eval_tasks.models.fake_replies import UNKNOWN
from lmms_eval_tasks.registry import NAMES
from tests.checks import table
from tests.conftest import recorded_judge
from tests.haven import strip

BYTES = {"maia": 700_000, "maverix": 2_500_000, "movierecapsqa": 2_000_000}
BYTES |= {"haven": 1_000_000, "cvrr_es": 400_000}


def decoded(path: Path) -> Any:
    """Frames, (n, height, width, 3)."""
    with av.open(str(path)) as clip:
        return np.stack([frame.to_ndarray(format="rgb24") for frame in clip.decode(video=0)])


@table("name", NAMES)
def test_two_builds_are_the_same(name: str, sample_root: Path, tmp_path: Path) -> None:
    """Byte by byte: x264 with macroblock trees was seen to differ in every second build."""
    folder, again = sample_root / name, tmp_path / "again"
    sample.write_sample(name, again)
    files = {p.relative_to(again).as_posix() for p in again.rglob("*") if p.is_file()}
    made = sample.module(name)
    assert files == {*made.sample_videos(), *made.sample_files(), sample.VERSION}
    for file in files:
        assert (folder / file).read_bytes() == (again / file).read_bytes(), file
    assert sum((again / file).stat().st_size for file in files) < BYTES[name]


# --- MAIA ----------------------------------------------------------------------------------------


def folded(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.lower())
    return "".join(c if c.isalnum() else " " for c in plain if c.isascii()).strip()


def test_maia_recorded_judge_accepts_answers_and_rejects_lures(sample_root: Path) -> None:
    judge = judges.make_judge(judges.resolve(recorded_judge(sample_root), {}, default_model=""))
    items = (
        one for scene in maia.sample_scenes() for part in "AB" for one in maia.items(scene, part)
    )
    for one in items:
        given = {"question": one.question, "references": one.answers}
        for candidates, score in ((one.answers, 1.0), ((one.lure, UNKNOWN), 0.0)):
            for candidate in candidates:
                found = judge.verdict(agreement_criterion(), {**given, "candidate": candidate})
                assert (found.score, found.status) == (score, "ok"), (given, candidate)


def test_maia_no_sentence_is_copied_from_the_release(maia_data: Path) -> None:
    def sentences(videos: list[dict[str, Any]]) -> set[str]:
        fields = ("answer", "true_statement", "false_statement")
        asked = [q for v in videos for part in "AB" for q in v[f"question_categories_{part}"]]
        texts = {folded(t) for q in asked for f in fields for t in (*q[f], q["question"])}
        return {text for text in texts if len(text.split()) > 3}

    released = json.loads((maia_data / "data.json").read_text(encoding="utf-8"))
    ours = [maia.entry(scene) for scene in maia.sample_scenes()]
    assert sentences(ours) & sentences(released) == set()


# --- the others ----------------------------------------------------------------------------------


def test_every_picture_of_haven_says_what_it_shows(sample_root: Path) -> None:
    """Between the sampled frames too, so that a pick that is off by one shows."""
    texts = [
        json.loads(file.read_text()) for file in (sample_root / "haven" / "processed").iterdir()
    ]
    kinds = {type(video["frames"][0]["is_gt"]) for text in texts for video in text.values()}
    assert kinds == {bool, int}  # the release has both
    for story in (STORIES[0], STORIES[4]):
        path = sample_root / "haven" / "videos" / story.source / f"{story.video}.mp4"
        frames = [Image.fromarray(frame) for frame in decoded(path)]
        marks = [haven.mark(story, place) for place in range(story.n_frames)]
        assert [strip.read(frame) for frame in frames] == marks
        stored = io.BytesIO()
        frames[0].save(stored, "JPEG", quality=95)
        half = (story.size[0] // 2, story.size[1] // 2)
        for other in (Image.open(stored), frames[0].resize(half), frames[0].resize((512, 512))):
            assert strip.read(other) == marks[0]
