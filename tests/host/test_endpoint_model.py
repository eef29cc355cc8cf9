"""A model of the host's that talks to an OpenAI-compatible endpoint, which plays three models."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.runs import rescore
from lmms_eval_tasks.sample import players
from tests.conftest import HostRun, Launch, host
from tests.local_endpoint import LocalEndpoint

pytestmark = pytest.mark.host


def text_of(request: dict[str, Any]) -> str:
    """The text parts of the last message, as a model would read them."""
    content = request["messages"][-1]["content"]
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def images_of(request: dict[str, Any]) -> int:
    content = request["messages"][-1]["content"]
    return sum(part["type"] == "image_url" for part in content)


@pytest.fixture
def play(launch: Launch, tmp_path: Path) -> Callable[..., tuple[HostRun, LocalEndpoint]]:
    def run(player: Callable[[str], str], tasks: str, *more: str) -> tuple[HostRun, LocalEndpoint]:
        with LocalEndpoint(lambda request: player(text_of(request))) as endpoint:
            arguments = f"model=played,base_url={endpoint.url},api_key=unused,max_frames_num=4"
            command = ["--model", "openai", "--model_args", arguments, "--tasks", tasks, *more]
            done = launch(host(*command, "--log_samples", "--output_path", str(tmp_path)), tmp_path)
        assert done.code == 0, done.stderr[-2000:]
        return done, endpoint

    return run


def numbers(run: HostRun, name: str) -> dict[str, Any]:
    return rescore.numbers(run.results)[name]


def test_oracle(play: Any, sample_root: Path) -> None:
    """Everything right, from the text that really went over the wire; four frames with each."""
    key = players.AnswerKey.load(sample_root / "maia" / "key.json")
    run, endpoint = play(lambda text: players.oracle(text, key), "maia", "--limit", "48")
    assert numbers(run, "maia_vsv")["pair_acc"] == 1.0
    assert numbers(run, "maia_oevqa")["judge_acc"] == 1.0
    maia = numbers(run, "maia")
    assert maia["agg_acc"] == 1.0
    # 48 pairs are six questions, and --limit gives OEVQA all 48: only what both cover is joined.
    assert maia["agg_acc_n_joined"] == 6
    assert {images_of(request.json) for request in endpoint.chats} == {4}


def test_always_a_solves_no_pool(play: Any) -> None:
    run, endpoint = play(players.always_a, "maia_vsv_1frame")
    found = numbers(run, "maia_vsv_1frame")
    assert found["pair_acc"] == 0.5  # exactly four of each pool's eight
    assert found["pool_acc"] == 0.0
    assert found["pair_acc_failed"] == 0
    assert {images_of(request.json) for request in endpoint.chats} == {1}


def test_coin(play: Any) -> None:
    run, _ = play(players.coin, "maia_vsv_1frame")
    found = numbers(run, "maia_vsv_1frame")
    assert 0.4 < found["pair_acc"] < 0.6  # four standard errors of 384 fair tosses
    assert found["pool_acc"] <= 2 / 48


def test_a_dead_endpoint_is_no_answer(launch: Launch, tmp_path: Path) -> None:
    """The host's text for a failed request must not be read, judged or compared as an answer."""
    arguments = "model=played,base_url=http://127.0.0.1:9/v1,api_key=unused,max_retries=1,timeout=1"
    command = ["--model", "openai", "--model_args", arguments, "--tasks", "maia_1frame"]
    run = launch(
        host(*command, "--limit", "8", "--log_samples", "--output_path", str(tmp_path)), tmp_path
    )
    assert run.code == 0, run.stderr[-2000:]
    vsv, oevqa = numbers(run, "maia_vsv_1frame"), numbers(run, "maia_oevqa_1frame")
    assert (vsv["pair_acc"], vsv["pair_acc_valid"], vsv["pair_acc_failed"]) == (0, None, 8)
    assert (oevqa["judge_acc"], oevqa["judge_acc_valid"], oevqa["judge_acc_failed"]) == (0, None, 8)
    assert oevqa["rouge_l"] == oevqa["meteor"] == 0
    item = run.samples("maia_oevqa_1frame")[0]["judge_acc"]
    assert item["status"] == "model_error"
    assert item["verdict"] is None
    json.dumps(item)
