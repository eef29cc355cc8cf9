"""Every benchmark's packaged sample: the same twice, true by construction, in the released form."""

from __future__ import annotations

import io
import json
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from lmms_eval_tasks import judges, sample
from lmms_eval_tasks.benchmarks import NAMES
from lmms_eval_tasks.cvrr_es import release as cvrr_release
from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS
from lmms_eval_tasks.haven import sample as haven
from lmms_eval_tasks.haven.sample_stories import STORIES
from lmms_eval_tasks.maia import sample as maia
from lmms_eval_tasks.maia.judge import criterion
from lmms_eval_tasks.maverix import release as maverix_release
from lmms_eval_tasks.maverix.labels import LETTERS, SPLITS
from lmms_eval_tasks.sample import scenes
from lmms_eval_tasks.sample.players import UNKNOWN
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
    sample.write(name, again)
    files = {p.relative_to(again).as_posix() for p in again.rglob("*") if p.is_file()}
    made = sample.module(name)
    assert files == {*made.videos(), *made.files()}
    for file in files:
        assert (folder / file).read_bytes() == (again / file).read_bytes(), file
    assert sum((again / file).stat().st_size for file in files) < BYTES[name]


# --- MAIA ----------------------------------------------------------------------------------------


def folded(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.lower())
    return "".join(c if c.isalnum() else " " for c in plain if c.isascii()).strip()


EVERY = [one for scene in maia.told() for part in "AB" for one in maia.items(scene, part)]


def test_maia_texts_are_unique_and_never_true_and_false() -> None:
    assert len({one.question for one in EVERY}) == 48
    pairs = [pair for one in EVERY for pair in one.pairs]
    trues, falses = ({folded(pair[side]) for pair in pairs} for side in (0, 1))
    assert len(trues) == len(set(pairs)) == 384
    assert not trues & falses
    assert all(len({folded(answer) for answer in one.answers}) == 8 for one in EVERY)


def test_maia_recorded_judge_accepts_answers_and_rejects_lures(sample_root: Path) -> None:
    judge = judges.make(judges.resolve(recorded_judge(sample_root), {}, default_model=""))
    for one in EVERY:
        given = {"question": one.question, "references": one.answers}
        for candidates, score in ((one.answers, 1.0), ((one.lure, UNKNOWN), 0.0)):
            for candidate in candidates:
                found = judge.verdict(criterion(), {**given, "candidate": candidate})
                assert (found.score, found.status) == (score, "ok"), (given, candidate)


def test_maia_no_sentence_is_copied_from_the_release(maia_data: Path) -> None:
    def sentences(videos: list[dict[str, Any]]) -> set[str]:
        fields = ("answer", "true_statement", "false_statement")
        asked = [q for v in videos for part in "AB" for q in v[f"question_categories_{part}"]]
        texts = {folded(t) for q in asked for f in fields for t in (*q[f], q["question"])}
        return {text for text in texts if len(text.split()) > 3}

    released = json.loads((maia_data / "data.json").read_text(encoding="utf-8"))
    ours = [maia.entry(scene) for scene in maia.told()]
    assert sentences(ours) & sentences(released) == set()


@pytest.mark.parametrize("place", [0, 1])
def test_maia_clips_show_and_sound_what_is_said_of_them(place: int, sample_root: Path) -> None:
    """Hidden for the seconds that are said, the fall at the second that is said, beeps after it."""
    scene = maia.told()[place]
    path = sample_root / "maia" / "videos" / f"{scene['video']}.mp4"
    frames, words = decoded(path).astype(int), scene["words"]
    assert frames.shape == (scene["seconds"] * maia.FPS, 240, 384, 3)
    colours = {"mover": ((214, 30, 38), (60, 200, 70)), "target": ((250, 250, 248), (255, 122, 0))}
    near = {name: abs(frames - both[place]).max(axis=3) < 40 for name, both in colours.items()}
    rolling = near["mover"][:, 160:189].any(axis=(1, 2))
    hidden = int(words["hidden_digit"][0])
    assert abs((~rolling).sum() / maia.FPS - hidden) < 0.6
    x = (296, 72)[place]
    upright = near["target"][:, 148:156, x - 4 : x + 5].any(axis=(1, 2))
    assert np.flatnonzero(~upright)[0] / maia.FPS == pytest.approx(
        int(words["hit_digit"][0]), abs=0.4
    )
    bird = scene["actors"][(11, 14)[place]]
    seen = (abs(frames - bird["colour"]).max(axis=3) < 20)[:, 50:, 100:300].any(axis=(1, 2))
    gone = np.flatnonzero(seen)[-1] / maia.FPS
    assert (gone > int(words["hit_digit"][0])) == (words["when"][0] == "dopo")
    with av.open(str(path)) as clip:
        sound = np.concatenate([block.to_ndarray()[0] for block in clip.decode(audio=0)])
    loud = [np.sqrt(np.mean(part**2)) > 0.1 for part in np.split(sound[:112_000], 140)]
    starts = [n / 20 for n in range(1, 140) if loud[n] and not loud[n - 1]]
    assert starts == pytest.approx([start for start, *_ in scene["tones"]][: len(starts)], abs=0.06)
    assert len(starts) >= len(scene["tones"]) - 1


# --- the others ----------------------------------------------------------------------------------


def test_maverix_schema_accepts_it(sample_root: Path) -> None:
    """Every label occurs, every letter is right about as often, every question is asked once."""
    release = maverix_release.read(sample_root / "maverix")
    assert (len(release.videos), len(release.items), release.problems) == (4, 20, {})
    for split in SPLITS.keys() - {"duration"}:
        assert {getattr(item, split) for item in release.items} == set(SPLITS[split]), split
    found = Counter(item.answer for item in release.items)
    assert sorted(found) == list(LETTERS)
    assert max(found.values()) <= 3
    asked = [text for item in release.items for text in (item.question, item.paraphrase)]
    assert len(set(asked)) == 40


def test_cvrr_es(sample_root: Path) -> None:
    """Every dimension on two clips; one question repeats; a face smiles and then does not."""
    found = cvrr_release.read(sample_root / "cvrr_es")
    assert list(found.places) == list(DIMENSIONS)
    assert (found.counts["videos"], found.counts["questions"]) == (22, 25)
    assert len({one.question for one in found.questions}) == 24
    frames = decoded(next((sample_root / "cvrr_es").rglob("face.mp4")))
    dark = [np.flatnonzero(frame[76:96, 58:62].max(axis=2).max(axis=1) < 90) for frame in frames]
    middle = [float(rows.mean()) for rows in dark]
    assert middle[10] > middle[-1] + 5  # the middle of the mouth hangs, then stands


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


def test_templates_have_one_choice() -> None:
    assert scenes.chosen(["It [rises|falls].", "So it is."]) == (
        ["It rises.", "So it is."],
        "It falls.",
    )
    for bad in (["none"], ["[a|b]", "[a|b]"], ["[a|b] [c|d]"]):
        with pytest.raises(ValueError, match=r"unpack|exactly one"):
            scenes.chosen(bad)
