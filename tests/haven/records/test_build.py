"""`lmms-eval-tasks haven build`, end to end through the command against a scripted endpoint."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import h5py
import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.haven.options import Options
from lmms_eval_tasks.haven.records import build
from lmms_eval_tasks.haven.records import release as released
from tests.haven.records.desk import SCORES, Desk, F, open_desk
from tests.local_endpoint import last_user_text, refused
from tests.writing import Change

ALL = {"frame": 30, "shot": 4, "document": 1, "summary": 1}


def test_a_video_becomes_a_record_of_the_released_form(desk: Desk) -> None:
    """Its JSON is in tests/golden."""
    done = desk.run(*desk.judge)
    assert done.exit_code == 0, done.exception
    video = desk.written()["video_1"]
    # The only key shot is shown as number 1 and is the second one of the video.
    assert video["aligned_text_summary"]["alignments"] == [{"sentence_id": 0, "shot_ids": [1]}]
    with h5py.File(build.h5_file(desk.out, "own")) as content:
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
    assert "36 verdicts (36 ok), 36 calls paid" in done.output
    release = released.read(desk.out, Options(sources=("own",)))
    (record,) = release.records
    assert (release.problems, record.gaps) == ({}, {})
    assert record.path is not None
    assert record.path.resolve() == desk.video.resolve()
    assert record.importance == pytest.approx([1, 14 / 3, 2, 3])


def test_a_second_run_asks_nothing_and_changes_nothing(desk: Desk) -> None:
    desk.run(*desk.judge)
    written = [build.json_file(desk.out, "own"), build.h5_file(desk.out, "own")]
    before, calls = [file.read_bytes() for file in written], len(desk.endpoint.chats)
    done = desk.run(*desk.judge)
    assert done.exit_code == 0
    assert "kept as it was" in done.output
    # Also where only the replies are left.
    shutil.rmtree(desk.out)
    assert "36 from the cache" in desk.run(*desk.judge).output
    assert len(desk.endpoint.chats) == calls
    assert written[0].read_bytes() == before[0]


def test_without_a_model_everything_but_the_texts_is_there(desk: Desk) -> None:
    done = desk.run()
    assert done.exit_code == 0, done.exception
    assert not desk.endpoint.chats
    assert "missing: 30 of 30 frame descriptions, 4 of 4 shot descriptions, the doc" in done.output
    (record,) = released.read(desk.out, Options(sources=("own",))).records
    assert {"v2t", "temporal_doc", "grounding", "saliency_text"} <= record.gaps.keys()
    assert not {"v2v", "temporal", "saliency"} & record.gaps.keys()
    assert "kept as it was; missing: 30 of 30" in desk.run().output


def test_texts_that_are_there_are_kept_and_the_others_asked_for(desk: Desk) -> None:
    desk.run()
    file = build.json_file(desk.out, "own")
    content = desk.written()
    video = content["video_1"]
    video["frames"][0]["description"] = "Written by hand."
    video["clips"][1]["summary"] = "A blue wall."
    video["aligned_full_document"] = {
        "sentences": ["All of it."],
        "alignments": [{"sentence_id": 0, "shot_ids": [0, 1, 2, 3]}],
    }
    file.write_text(json.dumps(content), encoding="utf-8")
    assert desk.run(*desk.judge).exit_code == 0
    assert desk.writer.asked == {"frame": 29, "shot": 3, "summary": 1}
    video = desk.written()["video_1"]
    assert video["frames"][0]["description"] == "Written by hand."
    assert video["clips"][1]["summary"] == "A blue wall."
    assert video["aligned_full_document"]["sentences"] == ["All of it."]
    assert "1. A blue wall." in last_user_text(
        next(request for step, request in desk.writer.requests if step == "summary")
    )


def test_made_otherwise_is_refused_and_replaced_when_told(desk: Desk) -> None:
    desk.run(*desk.judge)
    before = build.json_file(desk.out, "own").read_bytes()
    other = ("--scores", str(desk.write("other.json", [1] * 30)))
    fifteen = ("--fps", "1", "--scores", str(desk.write("fifteen.json", [1] * 15)))
    for options, what in (
        (fifteen, "frames"),
        (("--shots", "3", "--scores", str(desk.scores)), "shots"),
        (other, "keyframes"),
    ):
        done = desk.run(*options, scores=False)
        assert isinstance(done.exception, TasksError)
        told = f"video_1 (holiday): is there already, with other {what} than are found now: --repl"
        assert told in str(done.exception)
    assert build.json_file(desk.out, "own").read_bytes() == before
    done = desk.run(*fifteen, "--replace", scores=False)
    assert done.exit_code == 0, done.exception
    assert len(desk.written()["video_1"]["frames"]) == 15


def test_videos_are_added_beside_each_other(desk: Desk) -> None:
    other = desk.folder / "other.mov"
    shutil.copyfile(desk.video, other)
    scores = desk.folder / "scores"
    scores.mkdir()
    for name in ("holiday", "other"):
        shutil.copyfile(desk.scores, scores / f"{name}.json")
    done = desk.run(str(other), "--scores", str(scores), scores=False)
    assert done.exit_code == 0, done.exception
    assert [video["video_name"] for video in desk.written().values()] == ["holiday", "other"]
    release = released.read(desk.out, Options(sources=("own",)))
    assert [record.path.resolve() for record in release.records if record.path] == [
        desk.video.resolve(), other.resolve()
    ]  # fmt: skip
    with h5py.File(build.h5_file(desk.out, "own")) as content:
        assert list(content) == ["video_1", "video_2"]
    # Making one again leaves the other.
    kept = desk.written()["video_2"]
    assert desk.run("--shots", "5", "--replace").exit_code == 0
    assert desk.written()["video_2"] == kept
    assert len(desk.written()["video_1"]["clips"]) == 5


def only(step: str, reply: Any) -> Change:
    """Another reply to one step, whatever is asked."""
    return lambda asked, usual, request: reply if asked == step else usual


def test_a_document_that_cannot_be_aligned_fails(tmp_path: Path, holiday: Path) -> None:
    for number, (sentence, shots, why) in enumerate(
        (
            ("a", [5], "sentence 1 names shot 5 of 4"),
            ("a", [0], "sentence 1 names shot 0 of 4"),
            ("a", [1, 1], "sentence 1 names a shot twice"),
            ("a", [], "an empty list"),
            ("  ", [1], "an empty text"),
        )
    ):
        (tmp_path / str(number)).mkdir()
        with open_desk(tmp_path / str(number), holiday) as desk:
            told = {"sentences": [{"sentence": sentence, "shots": shots}]}
            desk.writer.change = only("document", told)
            done = desk.run(*desk.judge)
            assert done.exit_code == 1
            assert "failed: holiday: document: parse_failure: " in done.output
            assert why in done.output
            assert desk.writer.asked["document"] == 2  # one repair


def test_a_record_is_kept_back_until_it_is_whole(desk: Desk) -> None:
    """What is advised asks for the missing text alone."""
    desk.writer.change = only("document", refused())
    first = desk.run(*desk.judge)
    assert "own/- (holiday): not written" in first.output
    assert "failed: holiday: document: refused: " in first.output
    for option in ("another model", f"{settings.JUDGE_CACHE}=off", "--keep-gaps"):
        assert option in first.output
    desk.writer.change = None
    calls = desk.writer.asked.copy()
    assert desk.run(*desk.judge, "--keep-gaps").exit_code == 1
    assert desk.writer.asked == calls
    assert desk.written()["video_1"]["build"]["missing"] == ["the document"]
    uncached = desk.run(*desk.judge, **{settings.JUDGE_CACHE: "off"})
    assert uncached.exit_code == 0, uncached.output
    assert desk.writer.asked - calls == {"document": 1}
    assert desk.written()["video_1"]["build"]["missing"] == []


# --- what is told ---------------------------------------------------------------------------------


def test_what_to_look_at_is_told_and_not_changed(desk: Desk) -> None:
    told = [{"sentence": "Late.", "shots": [3]}, {"sentence": "Early.", "shots": [1]}]

    def change(step: str, reply: object, request: object) -> object:
        if step == "document":
            return {"sentences": told}
        return {"description": "word " * 51} if step == "shot" else reply

    desk.writer.change = change
    done = desk.run(*desk.judge)
    assert done.exit_code == 0
    assert "no sentence of the document tells of shots 2, 4" in done.output
    assert "sentences of the document that begin before the one before: 2" in done.output
    assert "shots described in more than 50 words: 1, 2, 3, 4" in done.output
    assert desk.written()["video_1"]["aligned_full_document"]["sentences"] == ["Late.", "Early."]


def test_a_kill_between_the_two_files_leaves_no_trace(desk: Desk) -> None:
    """HDF5 is written first: without the JSON entry the video is made again under the same key."""
    desk.run(*desk.judge)
    before = desk.written()
    build.json_file(desk.out, "own").unlink()
    assert desk.run(*desk.judge).exit_code == 0
    assert desk.written() == before
    with h5py.File(build.h5_file(desk.out, "own")) as content:
        assert list(content) == ["video_1"]
    assert not list(desk.out.rglob("*.part"))


# --- asking nobody, and bad options -------------------------------------------------------------


def test_bad_options_are_one_line(desk: Desk) -> None:
    for options, why in (
        (["--source", "mine"], "sources=mine: expected some of summe+"),
        (["--dry-run"], "name who writes them with --judge"),
        (["--judge", "none"], "one model that sees writes the texts"),
        (["--features", "nowhere.npy"], "--features nowhere.npy: no such file"),
        (["nowhere.mp4"], "nowhere.mp4"),
        ([*desk.judge, "--max-cost", "1"], "price"),
    ):
        done = desk.run(*options)
        assert isinstance(done.exception, TasksError), done.output
        assert why in str(done.exception)
        assert "\n" not in str(done.exception)
        assert not desk.out.exists()
    for options in (["--fps", "3"], ["--shots", "0"], ["--size", "8"]):
        assert desk.run(*options).exit_code == 2
    assert desk.run(scores=False).exit_code == 2
    twin = desk.folder / "holiday.mov"
    shutil.copyfile(desk.video, twin)
    assert "two videos are called holiday" in str(desk.run(str(twin)).exception)
    assert "not a folder" in str(desk.run("--out", str(desk.scores)).exception)


def test_damaged_files_are_named(desk: Desk) -> None:
    file, arrays = build.json_file(desk.out, "own"), build.h5_file(desk.out, "own")
    arrays.parent.mkdir(parents=True)
    arrays.write_text("no HDF5", encoding="utf-8")
    assert f"{arrays}: cannot be written or added to" in str(desk.run().exception)
    assert arrays.read_text(encoding="utf-8") == "no HDF5"
    arrays.unlink()
    desk.run()
    content = desk.written()
    content["video_1"]["clips"][0]["summary"] = 7
    file.write_text(json.dumps(content), encoding="utf-8")
    done = desk.run(*desk.judge)
    assert "clips, entry 1, summary: expected a text, found 7; mend it" in str(done.exception)
    content["video_1"]["clips"].pop(0)
    file.write_text(json.dumps(content), encoding="utf-8")
    done = desk.run(*desk.judge)
    assert "with other shots than are found now" in str(done.exception)
    file.write_text("[]", encoding="utf-8")
    assert "expected an object" in str(desk.run().exception)
