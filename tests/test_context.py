"""Which model is running, what that says of its sound, and which docs each process gets."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from typer.testing import CliRunner

from lmms_eval_tasks import context
from lmms_eval_tasks.commands.cli import app
from lmms_eval_tasks.context import RunModel
from lmms_eval_tasks.models import model_capabilities as sound
from tests.checks import table


def test_the_model_is_known_inside_and_forgotten_after_errors() -> None:
    assert context.current().model is None
    for picture in (True, False):  # without our hook nothing is known
        status, said = sound.sound_state(context.current().model, picture)
        assert (status, "not known" in str(said)) == ("unknown", True)
    outer, inner = RunModel("a", "chat"), RunModel("b", "simple", {"x": 1})
    with context.begun(outer):
        context.current().go_by(context.ClassPlan("simple", {"n": 1}, videos_as_pictures=True))
        assert context.current().model == RunModel("a", "simple", {"n": 1})
        with contextlib.suppress(ZeroDivisionError), context.begun(inner):
            assert context.current().model is inner
            assert context.current().plan == context.ClassPlan()
            raise ZeroDivisionError
        assert context.current().plan.videos_as_pictures
    assert context.current().model is None
    assert context.current().plan == context.ClassPlan()


# --- sound ----------------------------------------------------------------------------------------


@table(
    "name, interface, way, arguments, status",
    [
        ("qwen2_5_omni", "chat", "a", {}, "delivered"),
        ("qwen2_5_omni", "simple", "a", {}, "delivered"),  # as samples
        ("qwen2_5_omni", "simple", "av", {"max_num_frames": 8}, "raises"),
        ("qwen2_5_omni", "simple", "av", {"use_custom_video_loader": True}, "not delivered"),
        ("gemini_api", "chat", "av", {}, "delivered"),  # an alias
        ("gemini", "simple", "a", {"interleave": "True"}, "not delivered"),
        ("gemini", "simple", "a", {"interleave": False}, "delivered"),
        ("gemini", "simple", "a", {"interleave": "0"}, "delivered"),
        ("gemini", "simple", "a", {"interleave": None}, "delivered"),
        ("gemini", "simple", "a", {"interleave": "yes"}, "not delivered"),
        ("minicpm_o", "chat", "a", {"init_audio": "false"}, "not delivered"),
        ("openai", "chat", "av", {}, "delivered"),  # endpoints.py sees to it
        ("openai", "simple", "av", {}, "not delivered"),
        ("omnivinci", "chat", "av", {}, "unknown"),
        ("omnivinci", "chat", "av", {"load_audio_in_video": False}, "delivered"),
        ("batch_gpt4", "simple", "av", {}, "raises"),
        ("batch_gpt4", "simple", "av", {"modality": "video"}, "not delivered"),
        ("tasks_oracle", "chat", "av", {}, "not delivered"),
        ("qwen2_audio", "chat", "a", {}, "unknown"),  # has no chat class
        ("someone_elses", "chat", "a", {}, "unknown"),
    ],
)
def test_whether_it_arrives(
    name: str, interface: Any, way: str, arguments: Any, status: str
) -> None:
    with context.begun(RunModel(name, interface, arguments)):
        found, said = sound.sound_state(context.current().model, way == "av")
        assert found == status == sound.hears(context.current().model)[way]
    assert (said is None) == (status == "delivered")
    assert said is None or name in said


@table(
    "name, interface, form",
    [
        *((name, "simple", "samples") for name in ("qwen2_5_omni", "gpt4o_audio", "qwen3_omni")),
        *((name, "simple", "path") for name in ("openai", "gemini_api", "tasks_coin")),
        ("aero_realtime_vllm", "chat", "track"),
        *((name, "chat", "path") for name in ("openai", "someone_elses")),
    ],
)
def test_in_which_form_a_class_takes_it(name: str, interface: Any, form: str) -> None:
    assert sound.sound_form(context.current().model) == "path"
    with context.begun(RunModel(name, interface)):
        assert sound.sound_form(context.current().model) == form


def test_of_another_host_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sound, "host_version", lambda: "0.9.0")
    status, said = sound.sound_state(RunModel("qwen2_5_omni", "chat"), with_picture=False)
    assert status == "unknown"
    assert "was made for lmms-eval 0.7.3, but 0.9.0 is installed." in str(said)


def test_what_is_told_of_a_model() -> None:
    def told(*words: str) -> str:
        found = CliRunner().invoke(app, ["models", *words])
        return found.output if found.exception is None else str(found.exception)

    assert "\n  32 frames    max_frames_num=32" in told("openai_compatible")  # an alias
    assert "\nglm4v: a model of lmms-eval 0.7.3" in told("gemma3", "glm4v")
    assert "no videos or pictures: Sound only." in told("whisper")
    assert told("qwen_2_5_vl").endswith(
        "no such model in lmms-eval 0.7.3; did you mean qwen2_5_vl?"
    )


# --- docs of each process: the host deals them out, we say in which order -------------------------

DOCS = [f"{video}/{question}" for video in "abcde" for question in range(7)]


def ranks(processes: int, limit: float | None, offset: int) -> list[list[str]]:
    """The docs of each rank, as the host takes them."""
    from lmms_eval.utils import create_iterator

    number = -(-len(DOCS) * limit // 1) if limit and limit < 1 else limit
    with context.begun(limit=limit, offset=offset):
        docs = context.by_rank(DOCS)
    assert sorted(docs) == DOCS
    given = (int(number) if number else None, offset)
    return [list(create_iterator(iter(docs), one, processes, *given)) for one in range(processes)]


@table("processes", [1, 2, 3, 4, 8, 40])
@table("limit, offset", [(None, 0), (20, 0), (20, 5), (999, 3), (None, 8), (3, 99), (0, 0)])
def test_each_rank_gets_neighbours_and_together_the_same(
    processes: int, limit: int | None, offset: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", str(processes))
    asked = DOCS[offset : offset + limit if limit else None]
    found = ranks(processes, limit, offset)
    assert [doc for own in found for doc in own] == asked
    videos = [{doc[0] for doc in own} for own in found]
    split = sum(len(own) for own in videos) - len(set().union(*videos))
    assert split <= min(processes, len(asked) or 1) - 1


def test_a_share_of_the_docs_is_the_same_whatever_the_number_of_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert sorted(doc for own in ranks(2, 0.5, 0) for doc in own) == DOCS[:18]
