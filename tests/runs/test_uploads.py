"""What a run uploads to its model's server, as said before it and as it goes over the wire."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lmms_eval_tasks import registry, settings
from lmms_eval_tasks.commands import cli, uploads
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.host import discovery, plugin
from lmms_eval_tasks.runs import messages
from tests.checks import refused, table
from tests.local_endpoint import LocalEndpoint

TASKS = ["maia_vsv", "maia_vsv_1frame", "maverix_av", "haven_v2t"]
LIMIT = uploads.SAMPLED  # so that all docs that are asked are looked at


@table(
    "model, arguments, simple, pictures, tasks",
    [
        ("openai", "", False, "", TASKS),
        ("openai", "", False, "jpeg:60", TASKS),
        ("openai", "max_frames_num=8", True, "", TASKS),
        ("openai", "pass_video_url=True", False, "", TASKS[2:]),
        ("async_openai", "", False, "", TASKS[:3]),
    ],
)
def test_as_many_bytes_as_are_sent(
    model: str,
    arguments: str,
    simple: bool,
    pictures: str,
    tasks: list[str],
    on_sample: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from lmms_eval.evaluator import simple_evaluate
    from lmms_eval.tasks import TaskManager

    plugin.install()
    monkeypatch.setenv(settings.MODEL_PICTURES, pictures)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with LocalEndpoint(lambda _: "A") as endpoint:
        named = f"model_version=m,base_url={endpoint.url},api_key=no"
        run: dict[str, Any] = {
            "model": model,
            "model_args": f"{named},{arguments}".rstrip(","),
            "force_simple": simple,
        }
        lines = list(uploads.of_run(run, tasks, LIMIT))
        assert endpoint.requests == []
        said = [str(line) for line in lines]
        each = [line for line in lines if isinstance(line, uploads.Upload)]
        simple_evaluate(
            **run,
            tasks=tasks,
            task_manager=TaskManager(include_path=discovery.task_folders(), include_defaults=False),
            limit=LIMIT,
        )
        sent = [int(one.headers["content-length"]) for one in endpoint.chats]
    assert len(sent) == LIMIT * len(tasks)
    assert sum(one.total or 0 for one in each) == pytest.approx(sum(sent), rel=0.1)
    by_address = [line for line in said if "sends the address of a video" in line]
    assert len(by_address) == ("pass_video_url" in arguments)
    assert [line.split(":")[0] for line in said if line not in by_address][:-1] == sorted(
        tasks, key=registry.of_task_name
    )
    assert ("--model-pictures jpeg" in said[-1]) == (not simple and not pictures and not arguments)


def _each(run: dict[str, Any], tasks: list[str], limit: int | None = LIMIT) -> list[uploads.Upload]:
    """The numbers behind the lines."""
    return [one for one in uploads.of_run(run, tasks, limit) if isinstance(one, uploads.Upload)]


def test_files_are_uploaded_once_and_sound_with_each_request(on_sample: None) -> None:
    """Gemini: each clip of the sample, whatever the number of its questions."""
    (vsv,) = _each({"model": "gemini"}, ["maia_vsv"], None)
    (sound,) = _each({"model": "gemini"}, ["maverix_a"])  # of lengths that differ: of these alone
    docs = _docs("maia_vsv")
    assert (vsv.requests, vsv.files) == (len(docs), len({one["video"] for one in docs}))
    assert vsv.each is not None
    assert 0 < vsv.each < 1000  # the text
    clips = [_media(one)["video"] for one in {one["video"]: one for one in docs}.values()]
    # Five of the six videos are encoded, and the sixth is of the smaller ones.
    assert vsv.total == pytest.approx(sum(one.stat().st_size for one in clips), rel=0.25)
    assert (sound.files, sound.file) == (0, 0)
    wavs = [_media(one)["audio"].stat().st_size * 4 / 3 for one in _docs("maverix_a")[:LIMIT]]
    assert sound.each == pytest.approx(sum(wavs) / len(wavs), rel=0.1)


def _docs(task: str) -> list[dict[str, Any]]:
    benchmark = registry.of(task)
    docs = benchmark.docs(benchmark.load([task], videos=False), task)
    return [{**one, "task": task} for one in docs]


def _media(doc: dict[str, Any]) -> dict[str, Path]:
    parts = registry.of(doc["task"]).tasks[doc["task"]].prompt(doc)
    (message,) = messages.messages_of(parts)
    return {one["type"]: Path(one["url"]) for one in message["content"] if one["type"] != "text"}


@table(
    "model, said",
    [
        ("qwen2_5_vl", "nothing: qwen2_5_vl (chat) runs on this machine"),
        (
            "claude",
            "unknown: claude (simple) sends requests to a server, and its code was not examined",
        ),
    ],
)
def test_classes_that_are_not_counted(model: str, said: str, on_sample: None) -> None:
    assert uploads.of_run({"model": model}, ["maia_vsv"]) == [said]


@table(
    "task, arguments, said",
    [
        # The doc of a clip names the movie's file once it was looked at.
        ("movierecapsqa_segment", "", r": 24 requests of [\d.]+ kB \(estimated from 5 requests, "),
        ("maia_vsv", ",max_frames_num=-1", r"maia_vsv: unknown \("),
    ],
)
def test_what_can_be_counted_is(on_sample: None, task: str, arguments: str, said: str) -> None:
    run = {"model": "openai", "model_args": f"model_version=m{arguments}"}
    assert re.search(said, str(uploads.of_run(run, [task])[0]))


def test_a_number_that_is_none(on_sample: None) -> None:
    run = {"model": "openai", "model_args": "model_version=m,max_frames_num=abc"}
    refused(TasksError, "max_frames_num=abc: expected a whole", uploads.of_run, run, ["maia_vsv"])


def test_without_videos_nothing_is_known(
    maia_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "maia").mkdir()
    shutil.copy(maia_data / "data.json", tmp_path / "maia")
    monkeypatch.setenv(settings.DATA, str(tmp_path))
    monkeypatch.setenv(settings.CACHE, str(tmp_path / "cache"))
    run = {"model": "openai", "model_args": "model_version=m"}
    vsv, unimodal, total = map(str, uploads.of_run(run, ["maia_vsv", "maia_unimodal"], 100))
    assert vsv.startswith("maia_vsv: unknown (")
    assert "100 requests of" in unimodal
    assert " in all, without 1 tasks whose size is unknown; " in total


def test_real_clips_are_about_as_the_constants_say(
    maia_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "maia").symlink_to(maia_data)
    monkeypatch.setenv(settings.DATA, str(tmp_path))
    run = {"model": "openai", "model_args": "model_version=m"}
    sent = {}
    for pictures in ("png", "jpeg"):
        monkeypatch.setenv(settings.MODEL_PICTURES, pictures)
        (upload,) = _each(run, ["maia_vsv"])
        sent[pictures] = upload.each or 0
    assert 8e6 < sent["png"] < 15e6
    assert 6 < sent["png"] / sent["jpeg"] < 9


def test_estimate_says_it(on_sample: None, monkeypatch: pytest.MonkeyPatch) -> None:
    call = ["estimate", "--tasks", "maia_vsv,maia_vsv_1frame", "--limit", "5"]
    model = ["--model", "openai", "--model_args", "model_version=m", "--model-pictures", "jpeg"]
    done = CliRunner().invoke(cli.app, [*call, *model])
    assert done.exit_code == 0, done.output
    lines = [line for line in done.output.splitlines() if line.startswith("uploads: ")]
    assert [line.split(": ")[1] for line in lines[:2]] == ["maia_vsv", "maia_vsv_1frame"]
    assert ": 5 requests of " in lines[0]
    assert "(estimated from 5 requests" in lines[0]
    assert lines[0].endswith(", as JPEG of quality 85)")
    assert lines[-1].endswith(" in all")
    assert "uploads: " not in CliRunner().invoke(cli.app, call).output


def test_doctor_says_it(on_sample: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    model = ["--model", "openai", "--model_args", "model_version=m"]
    done = CliRunner().invoke(cli.app, ["doctor", "--tasks", "maia_vsv", *model])
    assert "uploads: maia_vsv: " in done.output
    assert "requests of " in done.output
