"""`lmms-eval-tasks haven build` and `picture`, through the commands against a scripted endpoint."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import h5py
import pytest
from typer.testing import CliRunner

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError, TasksError
from lmms_eval_tasks.haven.options import HavenOptions
from lmms_eval_tasks.haven.records import release as released
from tests.haven.records.desk import SCORES, Desk, F, app, open_desk
from tests.local_endpoint import refused

ALL = {"frame": 30, "shot": 4, "document": 1, "summary": 1}


def test_a_video_becomes_a_record_of_the_released_form(desk: Desk) -> None:
    """Its JSON is in tests/golden."""
    done = desk.run(*desk.judge)
    assert done.exit_code == 0, done.exception
    video = desk.written()["video_1"]
    # The only key shot is shown as number 1 and is the second one of the video.
    assert video["aligned_text_summary"]["alignments"] == [{"sentence_id": 0, "shot_ids": [1]}]
    with h5py.File(desk.arrays) as content:
        group = content["video_1"]
        assert group["change_points"][()].tolist() == [[0, 59], [60, 74], [75, 124], [125, 149]]
        assert group["n_frame_per_seg"][()].tolist() == [60, 15, 50, 25]
        assert group["picks"][()].tolist() == list(range(0, 150, 5))
        assert (group["n_frames"][()], group["n_steps"][()]) == (150, F)
        assert group["gtscore"][()].tolist() == SCORES
        assert group["gtframe"][()].nonzero()[0].tolist() == [12, 13, 14, 25]
        assert group["shot_level_gt"][()].tolist() == [0, 1, 0, 0]
        assert group["video_name"][()] == b"holiday"
    assert desk.writer.asked == ALL
    release = released.read_haven(desk.out, HavenOptions(sources=("own",)))
    (record,) = release.records
    assert (release.problems, record.gaps) == ({}, {})
    assert record.path.resolve() == desk.video.resolve()
    assert record.importance == pytest.approx([1, 14 / 3, 2, 3])
    # The page of it, with every picture; one that is not there.
    page = desk.folder / "record.html"
    for name, code in (("own/video_1", 0), ("own/video_9", 1)):
        command = ["haven", "picture", str(desk.out), name, "--out", str(page)]
        done = CliRunner().invoke(app, command, env=desk.env)
        assert done.exit_code == code
    assert page.read_text(encoding="utf-8").count("data:image/jpeg") == 30
    told = "no usable video own/video_9; it has own/video_1"
    assert isinstance(done.exception, DataError)
    assert told in str(done.exception)


def test_a_second_run_asks_nothing_and_changes_nothing(desk: Desk) -> None:
    desk.run(*desk.judge)
    written = [desk.json, desk.arrays]
    before, calls = [file.read_bytes() for file in written], len(desk.endpoint.chats)
    assert "36 from the cache" in desk.run(*desk.judge).output
    assert [file.read_bytes() for file in written] == before
    shutil.rmtree(desk.out)
    assert "36 from the cache" in desk.run(*desk.judge).output
    assert len(desk.endpoint.chats) == calls
    assert desk.json.read_bytes() == before[0]


def test_without_a_model_everything_but_the_texts_is_there(desk: Desk) -> None:
    """Of several videos, which are found again by their keys."""
    other = desk.folder / "other.mov"
    shutil.copyfile(desk.video, other)
    scores = desk.folder / "scores"
    scores.mkdir()
    for name in ("holiday", "other"):
        shutil.copyfile(desk.scores, scores / f"{name}.json")
    done = desk.run(str(other), "--scores", str(scores), scores=False)
    assert done.exit_code == 0, done.exception
    assert not desk.endpoint.chats
    assert "missing: 30 of 30 frame descriptions, 4 of 4 shot descriptions, the doc" in done.output
    assert [video["video_name"] for video in desk.written().values()] == ["holiday", "other"]
    records = released.read_haven(desk.out, HavenOptions(sources=("own",))).records
    assert [one.path.resolve() for one in records] == [desk.video.resolve(), other.resolve()]
    assert {"v2t", "temporal_doc", "grounding", "saliency_text"} <= records[0].gaps.keys()
    assert not {"v2v", "temporal", "saliency"} & records[0].gaps.keys()
    # One of them alone would lose the other.
    assert "holds another video than these: name another folder" in str(desk.run().exception)


def test_a_document_that_cannot_be_aligned_fails(tmp_path: Path, holiday: Path) -> None:
    for number, (sentence, shots, why) in enumerate(
        (
            ("a", [5], "sentence 1 names shots [5] of 4"),
            ("a", [0], "sentence 1 names shots [0] of 4"),
            ("a", [1, 1], "sentence 1 names shots [1, 1] of 4"),
            ("a", [], "an empty list"),
            ("  ", [1], "an empty text"),
        )
    ):
        (tmp_path / str(number)).mkdir()
        with open_desk(tmp_path / str(number), holiday) as desk:
            told = {"sentences": [{"sentence": sentence, "shots": shots}]}
            desk.writer.change = lambda step, usual, _, told=told: (  # type: ignore[misc]
                told if step == "document" else usual
            )
            done = desk.run(*desk.judge)
            assert done.exit_code == 1
            assert "failed: holiday: document: parse_failure: " in done.output
            assert why in done.output
            assert desk.writer.asked["document"] == 2  # one repair


def test_what_failed_is_missing(desk: Desk) -> None:
    desk.writer.change = lambda step, usual, _: refused() if step == "document" else usual
    first = desk.run(*desk.judge)
    assert first.exit_code == 1
    assert "failed: holiday: document: refused: " in first.output
    assert desk.written()["video_1"]["build"]["missing"] == ["the document"]
    for option in ("another model", f"{settings.JUDGE_CACHE}=off"):
        assert option in first.output
    desk.writer.change = None
    calls = desk.writer.asked.copy()
    assert desk.run(*desk.judge).exit_code == 1
    assert desk.writer.asked == calls
    uncached = desk.run(*desk.judge, **{settings.JUDGE_CACHE: "off"})
    assert uncached.exit_code == 0, uncached.output
    assert desk.writer.asked - calls == ALL
    assert desk.written()["video_1"]["build"]["missing"] == []


# --- bad options and files ------------------------------------------------------------------------


def test_bad_options_are_one_line(desk: Desk) -> None:
    twin = desk.folder / "holiday.mov"
    shutil.copyfile(desk.video, twin)
    for options, why in (
        (["--dry-run"], "name the model that writes them with --judge"),
        (["--judge", "none"], "the texts require one model that takes pictures"),
        (["nowhere.mp4"], "nowhere.mp4"),
        ([*desk.judge, "--max-cost", "1"], "price"),
        ([str(twin)], "two videos have the name holiday"),
        (["--out", str(desk.scores)], "not a folder"),
    ):
        done = desk.run(*options)
        assert isinstance(done.exception, TasksError), done.output
        assert why in str(done.exception)
        assert "\n" not in str(done.exception)
        assert not desk.out.exists()
    for options in (["--fps", "3"], ["--shots", "0"]):
        assert desk.run(*options).exit_code == 2
    assert desk.run(scores=False).exit_code == 2


def test_files_that_are_not_as_they_were_written(desk: Desk) -> None:
    desk.run()
    content = desk.written()
    content["video_1"]["frames"][0]["description"] = "Written by hand."
    for changed in (content, {"video_1": {}}, []):
        text = json.dumps(changed)
        desk.json.write_text(text, encoding="utf-8")
        if changed:
            assert "changed by hand" in str(desk.run().exception)
            assert desk.json.read_text(encoding="utf-8") == text
    desk.json.unlink()
    desk.arrays.unlink()
    desk.arrays.mkdir()
    assert f"{desk.arrays}: cannot be written" in str(desk.run().exception)
