"""The packaged sample: the release's schema to the letter, and frames show what is written."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from lmms_eval_tasks import judges
from lmms_eval_tasks import sample as samples
from lmms_eval_tasks.haven import (
    judge,
    options,
    sample,
    sample_texts,
    schema,
)
from lmms_eval_tasks.haven.options import PAPER_COUNTS, budget
from lmms_eval_tasks.haven.sample_stories import STORIES, TOP, Story, best_sets
from tests.haven.sample_requests import annotation, arrays, build

BY_STORY = pytest.mark.parametrize("story", STORIES, ids=lambda s: f"{s.source}/{s.video}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("sample"))


# --- files ------------------------------------------------------------------------------------


def test_all_sources_and_nothing_else(folder: Path) -> None:
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


def test_two_builds_are_equal(folder: Path, tmp_path: Path) -> None:
    again = build(tmp_path)
    for path in (path for path in folder.rglob("*") if path.is_file()):
        assert path.read_bytes() == (again / path.relative_to(folder)).read_bytes(), path


def test_it_is_registered_and_what_decides_it_is_named() -> None:
    assert samples.BENCHMARKS["haven"] == sample.__name__
    for name in sample.ALSO:
        assert (Path(sample.__file__).parent / name).is_file()


def test_the_schema_takes_it(folder: Path) -> None:
    release = schema.read(folder, options.Options())
    assert not release.problems
    assert [record.gaps for record in release.records] == [{}] * len(STORIES)
    by_id = {record.id: record for record in release.records}
    for story in STORIES:
        record = by_id[f"{story.source}/{story.video}"]
        assert record.picks == story.picks
        assert record.keyframes == story.keyframes
        assert [list(shot.frames) for shot in record.shots] == story.shots
        assert [n for n, shot in enumerate(record.shots, 1) if shot.key] == story.key_shots
        assert record.importance == pytest.approx([float(v / TOP) for v in story.importance])
        assert record.n_frames == story.n_frames


def test_recorded_ratings_are_read_as_a_judges(folder: Path) -> None:
    assert judge.criterion().name == sample.CRITERION
    rater = judges.make(judge.config(f"replay:{folder / 'replay.jsonl'}", {}))
    for record in schema.read(folder, options.Options()).records:
        reference, document = (
            " ".join(sentence.text for sentence in block)
            for block in (record.summary, record.document)
        )
        rated = judge.rate_summary(rater, reference, document, reference)
        assert (rated["score"], rated["mode"], rated["status"]) == (5.0, "samples", "ok")
        rated = judge.rate_summary(rater, reference, document, "Something else.")
        assert rated["score"] is None


# --- schema -----------------------------------------------------------------------------------


@BY_STORY
def test_hdf5(folder: Path, story: Story) -> None:
    found = arrays(folder, story)
    n_shots, n_steps = len(story.shots), len(story.frames)
    shapes = {
        "change_points": (n_shots, 2),
        "gtframe": (n_steps,),
        "gtscore": (n_steps,),
        "n_frame_per_seg": (n_shots,),
        "n_frames": (),
        "n_steps": (),
        "picks": (n_steps,),
        "shot_level_gt": (n_shots,),
    }
    named = {"video_name"} if story.source in sample.NAMED else set()
    assert set(found) == {*shapes, *named}
    for name, shape in shapes.items():
        assert np.shape(found[name]) == shape, name
        assert found[name].dtype == (np.float32 if name == "gtscore" else np.int64), name
    points = found["change_points"].tolist()
    assert points[0][0] == 0
    assert points[-1][1] == found["n_frames"] - 1
    assert all(before[1] + 1 == after[0] for before, after in pairwise(points))
    assert found["n_frame_per_seg"].tolist() == [last - first + 1 for first, last in points]
    assert len(set(found["n_frame_per_seg"].tolist())) > 1
    picks = found["picks"].tolist()
    assert found["n_steps"] == len(picks)
    assert 20 <= len(picks) <= 40
    (step,) = {after - before for before, after in pairwise(picks)}
    assert step > 1
    assert picks[0] == 0
    assert found["n_frames"] - step < picks[-1] < found["n_frames"]
    assert found["n_frames"] % step
    assert all(0 <= score <= 1 for score in found["gtscore"])


@BY_STORY
def test_json(folder: Path, story: Story) -> None:
    found, numbers = annotation(folder, story), arrays(folder, story)
    blocks = ("aligned_full_document", "aligned_text_summary")
    named = {"video_name"} if story.source in sample.NAMED else set()
    keyed = {"shot_level_gt"} if story.source in sample.SHOTS_IN_JSON else set()
    assert set(found) == {"frames", "clips", *blocks, *named, *keyed}
    assert 5 <= len(found["clips"]) <= 8
    assert [frame["frame_id"] for frame in found["frames"]] == numbers["picks"].tolist()
    assert [frame["is_gt"] for frame in found["frames"]] == numbers["gtframe"].tolist()
    assert [clip["gt"] for clip in found["clips"]] == numbers["shot_level_gt"].tolist()
    if keyed:
        assert found["shot_level_gt"] == numbers["shot_level_gt"].tolist()
    if named:
        assert found["video_name"] == numbers["video_name"].decode()
    for frame in found["frames"]:
        assert set(frame) == {"frame_id", "description", "is_gt", "status"}
    for place, (clip, (first, last)) in enumerate(
        zip(found["clips"], numbers["change_points"].tolist(), strict=True)
    ):
        assert set(clip) == {"clip_id", "summary", "gt", "frames", "frame_count", "status"}
        assert clip["clip_id"] == place
        assert clip["frames"] == [p for p in numbers["picks"].tolist() if first <= p <= last]
        assert clip["frame_count"] == len(clip["frames"]) > 0
    for name in blocks:
        block = found[name]
        assert block["raw_text"] == " ".join(block["sentences"])
        assert [one["sentence_id"] for one in block["alignments"]] == list(
            range(len(block["sentences"]))
        )
    document = [one["shot_ids"] for one in found["aligned_full_document"]["alignments"]]
    assert [shot for shots in document for shot in shots] == list(range(len(found["clips"])))
    summary = [one["shot_ids"] for one in found["aligned_text_summary"]["alignments"]]
    assert len(summary) == sample_texts.N_SUMMARY
    key_shots = np.flatnonzero(numbers["shot_level_gt"]).tolist()
    assert sorted({shot for shots in summary for shot in shots}) == key_shots


def test_forms_that_the_release_has_two_of(folder: Path) -> None:
    kinds = {type(annotation(folder, story)["frames"][0]["is_gt"]) for story in STORIES}
    assert kinds == {bool, int}


# --- truth, computed again from the files alone -----------------------------------------------


@BY_STORY
def test_keyframes_are_the_highest_and_the_earlier_of_a_tie(folder: Path, story: Story) -> None:
    numbers = arrays(folder, story)
    scores = numbers["gtscore"].tolist()
    k = budget(len(scores))
    cut = sorted(scores, reverse=True)[k - 1]
    above = [place for place, score in enumerate(scores) if score > cut]
    tied = [place for place, score in enumerate(scores) if score == cut]
    assert len(above) < k < len(above) + len(tied), "no tie at the cut"
    chosen = sorted(above + tied[: k - len(above)])
    assert np.flatnonzero(numbers["gtframe"]).tolist() == chosen
    shots = [
        next(n for n, (first, last) in enumerate(story.change_points) if first <= pick <= last)
        for pick in (story.picks[place] for place in tied)
    ]
    assert len(set(shots)) > 1, "the tie is inside one shot"


@BY_STORY
def test_key_shots_are_the_only_best_and_shots_tie(folder: Path, story: Story) -> None:
    numbers, clips = arrays(folder, story), annotation(folder, story)["clips"]
    level = dict(zip(numbers["picks"].tolist(), numbers["gtscore"].tolist(), strict=True))
    scores = [[level[frame] for frame in clip["frames"]] for clip in clips]
    means = [sum(map(Fraction, own)) / len(own) for own in scores]
    weights = [len(own) for own in scores]
    capacity = len(level) * 15 // 100
    chosen = tuple(np.flatnonzero(numbers["shot_level_gt"]).tolist())
    assert best_sets(means, weights, capacity) == [chosen]
    # Also by sums, another way to aggregate (the paper names none).
    assert best_sets([sum(map(Fraction, own)) for own in scores], weights, capacity) == [chosen]
    ties = [
        (a, b)
        for a in range(len(means))
        for b in range(a)
        if means[a] == means[b] and weights[a] != weights[b]
    ]
    assert ties, "no two shots of unlike length tie"
    floats = [sum(own) / len(own) for own in scores]
    assert all(floats[a] == floats[b] for a, b in ties)
    assert len(set(means)) > 3


def test_keyframes_and_key_shots_are_two_things() -> None:
    for story in STORIES:
        inside = {frame for shot in story.key_shots for frame in story.shots[shot - 1]}
        assert set(story.keyframes) - inside
    assert {len(story.key_shots) for story in STORIES} == {1, 2, 3}


def test_the_knapsack_of_utils_chooses_the_same() -> None:
    keyframes = pytest.importorskip("lmms_eval_tasks.utils.keyframes")
    for story in STORIES:
        weights = [len(shot) for shot in story.shots]
        values = [round(value * 10**6) for value in story.importance]
        chosen = keyframes.knapsack(values, weights, len(story.frames) * 15 // 100)
        assert [place + 1 for place in chosen] == story.key_shots
