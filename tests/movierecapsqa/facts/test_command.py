"""The options of `lmms-eval-tasks facts`: estimates, drafts, instructions, and bad ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.movierecapsqa import schema
from lmms_eval_tasks.movierecapsqa.facts import build
from tests.movierecapsqa.facts.desk import SRT, Desk


def test_a_transcript_becomes_a_draft_and_the_draft_a_recap(desk: Desk) -> None:
    srt = "1\n00:00:00,000 --> 00:01:10,000\nAnn opens doors.\n\n"
    srt += "2\n00:01:10,000 --> 00:02:20,000\nBob sinks boats.\n"
    file = desk.write("talk.srt", srt)
    draft = desk.folder / "draft.json"
    options = ("--video-id", "vid")
    for code in (0, 1):  # a draft is never written over
        done = desk.run(*options, "--draft", str(draft), recap=file)
        assert done.exit_code == code
    assert "there already" in str(done.exception)
    movie = desk.write("movie.srt", f"{SRT}00:10:02,500 --> 00:10:04,000\nIt is me.\n")
    done = desk.run("--dialogue", str(movie), recap=draft)
    assert "no segment without srt has a window in the movie" in str(done.exception)
    recap = json.loads(draft.read_text(encoding="utf-8"))
    recap["movieId"] = "boats"
    recap["segments"][1] |= {"movieStartTime": 601.5, "movieEndTime": 700}
    desk.write("draft.json", recap)
    done = desk.run("--dialogue", str(movie), recap=draft)
    assert done.exit_code == 0, done.exception
    first, second = schema.read(desk.out).segments
    assert (first.dialogue, second.dialogue) == ("", "Who is there?\nIt is me.")
    assert "00:10:02,500 --> 00:10:04,000" in desk.written()[1]["srt"]
    assert (second.movie_id, second.movie_start, second.movie_end) == ("boats", 601.5, 700)
    # Without a draft: the transcript itself.
    desk.out.unlink()
    desk.run(*options, "--movie", "Boats", recap=file)
    assert [(one["id"], one["movie"]) for one in desk.written()] == [
        ("vid.1", "Boats"),
        ("vid.2", "Boats"),
    ]


def test_bad_options_are_one_line(desk: Desk) -> None:
    for options, why in (
        (("--movie", "9"), "--video-id and --movie are for transcripts"),
        (("--draft", "d.json", "--dry-run"), "not both"),
        (("--model", "none"), "one language model writes the facts"),
        (("--model", "gpt-4.1"), "needs a key: set OPENAI_API_KEY"),
        (("--model", "two words"), "--model takes MODEL"),
        (("--out", "/nowhere/at/all.json"), "not a file in a folder that is there"),
    ):
        done = desk.run(*options)
        assert isinstance(done.exception, TasksError)
        assert why in str(done.exception)
        assert "\n" not in str(done.exception)
    assert not desk.endpoint.chats


def test_own_instructions_take_the_place_of_ours(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = Path(schema.__file__).with_name("prompts") / "facts.yml"
    folder = desk.folder / "own" / "movierecapsqa"
    folder.mkdir(parents=True)
    text = ours.read_text(encoding="utf-8").replace("You read the narration", "Read the narration")
    (folder / "facts.yml").write_text(text, encoding="utf-8")
    assert desk.run().exit_code == 0
    monkeypatch.setenv("LMMS_EVAL_TASKS_PROMPTS", str(folder.parent))
    assert "made with other instructions" in str(desk.run().exception)
    desk.out.unlink()
    assert desk.run().exit_code == 0
    systems = [r["messages"][0]["content"] for step, r in desk.writer.requests if step == "facts"]
    assert [s.startswith("Read the narration") for s in systems] == [False] * 3 + [True] * 3
    (folder / "facts.yml").write_text(text.replace("{narration}", ""), encoding="utf-8")
    desk.out.unlink()
    assert "{narration} is missing" in str(desk.run().exception)


def test_replies_have_room_and_time(tmp_path: Path) -> None:
    env = {"OPENAI_API_KEY": "x"}
    ours = build.model(None, env)
    assert (ours.model, ours.comparable, ours.sampling.temperature) == ("gpt-4.1", True, 0)
    assert (ours.sampling.max_tokens, ours.timeout) == (4096, 300)
    assert build.model("o4-mini", env).sampling.max_tokens == 8192  # it thinks first
    file = tmp_path / "model.yml"
    file.write_text("model: gpt-4.1\nmax_tokens: 900\ntimeout: 900\n", encoding="utf-8")
    own = build.model(str(file), env)
    assert (own.sampling.max_tokens, own.timeout) == (900, 900)
