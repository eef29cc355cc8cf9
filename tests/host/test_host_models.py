"""Models on the sample: the host's `openai` class, a tiny checkpoint, two language models.

An OpenAI-compatible endpoint of the test plays several models, by the name in the request. One
command line runs them all, one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import context, settings
from lmms_eval_tasks.cvrr_es.labels import JUDGE_TASKS
from lmms_eval_tasks.maia import sample as maia
from lmms_eval_tasks.maverix.labels import MODES
from lmms_eval_tasks.models import model_capabilities, tiny
from tests.checks import limits_of
from tests.conftest import HostRun, Launch, cvrr_study, launch_all, recorded_judge
from tests.cvrr_es import hosted
from tests.local_endpoint import LocalEndpoint, last_user_text

pytestmark = pytest.mark.host

N_DOCS = 2  # of each MAVERIX mode
PLAYED = 20  # answers of each round that the endpoint rates
INTERFACES = ("chat", "simple")
STUDY = ",".join(JUDGE_TASKS)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[LocalEndpoint]:
    known = [
        one for scene in maia.sample_scenes() for part in "AB" for one in maia.items(scene, part)
    ]
    true = {statement for one in known for statement, _ in one.pairs}

    def oracle(text: str) -> str:
        options = re.findall(r"^([AB])\. (.+)$", text, re.MULTILINE)
        right = [letter for letter, option in options if option in true]
        return right[0] if right else next(o.answers[0] for o in known if o.question in text)

    def play(request: dict[str, Any]) -> str:
        text = last_user_text(request)
        if request["model"] == "judge":
            return hosted.reply(request)
        return oracle(text) if request["model"] == "oracle" else "A"

    with LocalEndpoint(play) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def runs(
    endpoint: LocalEndpoint,
    sample_root: Path,
    launch: Launch,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, HostRun]:
    folder = tmp_path_factory.mktemp("endpoint-models")
    checkpoint = tiny.build_checkpoint("qwen2_5_vl", folder / "tiny-vlm")

    def served(tasks: str, model: str, frames: int = 4, **more: Any) -> dict[str, Any]:
        arguments = f"model={model},base_url={endpoint.url},api_key=no,max_frames_num={frames}"
        return {"model": "openai", "model_args": arguments, "tasks": tasks, **more}

    language = ",".join(
        str(tiny.build_checkpoint(kind, folder / kind)) for kind in ("llama", "gpt2")
    )
    dead = "model=m,base_url=http://127.0.0.1:9/v1,api_key=no,max_retries=1,timeout=1"
    qwen = f"pretrained={checkpoint},device=cpu,device_map=cpu,min_pixels=784,max_pixels=12544"
    modes = ",".join(f"maverix_{mode}" for mode in MODES)
    models: dict[str, dict[str, Any]] = {
        "oracle": served("maia", "oracle", limit=24),
        "dead": {"model": "openai", "model_args": dead, "tasks": "maia_1frame", "limit": 8},
        "judge": served(STUDY, "judge", frames=2, limit=PLAYED),
        "tiny": {
            "model": "qwen2_5_vl",
            "model_args": f"{qwen},max_num_frames=4",
            "tasks": STUDY,
            "limit": 3,
            "gen_kwargs": "max_new_tokens=8",
        },
        "lm_pairs": {
            "model": "lm_pairs",
            "model_args": f"pretrained={language},device=cpu",
            "tasks": "maia_unimodal",
            "limit": 96,
        },
        **{
            f"maverix {one}": served(modes, one, limit=N_DOCS, force_simple=one == "simple")
            for one in INTERFACES
        },
    }
    env = {settings.JUDGE: recorded_judge(sample_root), **cvrr_study(sample_root)}
    return launch_all(launch, folder, models, codes=(3,), env=env)  # of the dead endpoint


def test_oracle(runs: dict[str, HostRun], endpoint: LocalEndpoint) -> None:
    """Everything right, from the text that really went over the wire; four frames with each."""
    run = runs["oracle"]
    assert run.numbers["maia_vsv"]["pair_acc"] == 1.0
    assert run.numbers["maia_oevqa"]["judge_acc"] == 1.0
    maia = run.numbers["maia"]
    # 24 pairs are three questions, and --limit gives OEVQA 24: only what both cover is joined.
    assert (maia["agg_acc"], maia["agg_acc_n_joined"]) == (1.0, 3)
    chats = [chat.json for chat in endpoint.chats if chat.json["model"] == "oracle"]
    sent = [[part["type"] for part in one["messages"][-1]["content"]] for one in chats]
    assert {kinds.count("image_url") for kinds in sent} == {4}


def test_a_dead_endpoint_is_no_answer(runs: dict[str, HostRun]) -> None:
    """The host's text for a failed request must not be read, judged or compared as an answer."""
    vsv, oevqa = (runs["dead"].numbers[f"maia_{kind}_1frame"] for kind in ("vsv", "oevqa"))
    assert (vsv["pair_acc"], vsv["pair_acc_valid"], vsv["pair_acc_failed"]) == (0, None, 8)
    assert (oevqa["judge_acc"], oevqa["judge_acc_valid"], oevqa["judge_acc_failed"]) == (0, None, 8)
    assert oevqa["rouge_l"] == oevqa["meteor"] == 0
    item = runs["dead"].items("maia_oevqa_1frame")[0]
    assert (item["status"], item["verdicts"]) == ("model_error", {})


def test_two_language_models_alone(runs: dict[str, HostRun]) -> None:
    """The unimodal baseline: scores are kept, and the best of all makes the choice."""
    items = runs["lm_pairs"].items("maia_unimodal")
    assert len(items) == 96
    for item in items:
        assert len(item["lm_scores"]) == 2
        best = max((score, i) for own in item["lm_scores"].values() for i, score in enumerate(own))
        assert item["letter"] == "AB"[best[1]]
        assert item["right"] == int(item["letter"] == item["answer"])
    found = runs["lm_pairs"].numbers["maia_unimodal"]
    assert 0 < found["pair_acc"] < 1
    assert found["pair_acc_failed"] == 0


def test_an_endpoint_as_judge(runs: dict[str, HostRun], endpoint: LocalEndpoint) -> None:
    """What is saved is what was sent, and every form that it replied in was read."""
    chats = [chat.json for chat in endpoint.chats if chat.json["model"] == "judge"]
    sent = {last_user_text(chat) for chat in chats}
    forms = set()
    for task in JUDGE_TASKS:
        items = runs["judge"].items(task)
        assert len(items) == PLAYED
        for item in items:
            assert item["input"] in sent
            form, rating = hosted.rated(item["input"])
            forms.add(form)
            assert item["rating"] == (None if form == hosted.OFF_SCALE else rating)
            if item["rating"] is not None:
                assert (not item["reason"]) == (form == hosted.NO_REASON)
        failed = sum(item["rating"] is None for item in items)
        assert runs["judge"].numbers[task]["rating_failed"] == failed
    assert forms == set(range(len(hosted.FORMS)))


def test_a_checkpoint_as_judge(runs: dict[str, HostRun]) -> None:
    """Random weights rate nothing: failures, each with its reply and its video, and no kappa."""
    for task in JUDGE_TASKS:
        items = runs["tiny"].items(task)
        assert [item["media"]["kind"] for item in items] == ["video"] * 3
        found = runs["tiny"].numbers[task]
        assert (found["kappa"], found["rating_valid"], found["rating_failed"]) == (None, None, 3)


@pytest.mark.parametrize("interface", INTERFACES)
def test_a_run_says_whether_the_sound_arrived(interface: Any, runs: dict[str, HostRun]) -> None:
    run = runs[f"maverix {interface}"]
    alone, both = "delivered", "delivered" if interface == "chat" else "not delivered"
    if model_capabilities.of_another_host():
        alone = both = "unknown"
    section = run.results["lmms_eval_tasks"]["maverix"]
    assert section["sound"] == {"maverix_a": alone, "maverix_av": both}
    for mode, status in {"a": alone, "av": both, "v": "", "s": "", "vs": ""}.items():
        assert [item["sound"] for item in run.items(f"maverix_{mode}")] == [status] * N_DOCS
    _, warning = model_capabilities.sound_state(
        context.RunModel("openai", interface), with_picture=True
    )
    assert (warning is None) == (both == "delivered")
    if warning is not None:
        assert warning in limits_of(section)
        if interface == INTERFACES[-1]:  # only of the last run our tables are printed
            assert warning in " ".join(run.stdout.split())
