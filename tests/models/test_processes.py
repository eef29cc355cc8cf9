"""Our model classes through the host in one process and in two: the same replies to the sample."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.models import fake_replies, tiny
from lmms_eval_tasks.sample import demo
from tests.checks import table
from tests.conftest import HostRun, Launch, launch_all

pytestmark = pytest.mark.host

N = 7  # odd: one of two ranks gets a padding request
FIRST = 189  # of 192 pairs of each of two videos
COUNTS = {"one": 1, "two": 2}
LABELS = {
    "oracle": "maia_vsv",
    "scripted": "maia_vsv",
    "witness simple": "maverix_av",
    "lm_pairs": "maia_unimodal",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of all runs."""
    return tmp_path_factory.mktemp("processes")


@pytest.fixture(scope="module")
def runs(
    launch: Launch, sample_root: Path, cache: Path, folder: Path
) -> dict[str, dict[str, HostRun]]:
    """By the number of processes, by model."""
    language = ",".join(
        str(tiny.build_checkpoint(kind, folder / kind)) for kind in ("gpt2", "llama")
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(settings.CACHE, str(cache))
        patch.setenv(settings.DATA, settings.SAMPLE)
        key = f"key={demo.write_key(folder / 'key.json', ['maia_vsv'])}"
    given = {
        "oracle": ("tasks_oracle", key),
        "scripted": ("tasks_scripted", ""),
        "witness simple": ("tasks_witness", ""),
        "lm_pairs": ("lm_pairs", f"pretrained={language},dtype=float32"),
    }
    models: dict[str, dict[str, Any]] = {
        label: {"model": model, "model_args": arguments, "tasks": LABELS[label], "limit": N}
        for label, (model, arguments) in given.items()
    }
    models["witness simple"]["force_simple"] = True
    models["scripted"]["offset"] = FIRST
    found = {}
    for name, processes in COUNTS.items():
        (folder / name).mkdir()
        found[name] = launch_all(launch, folder / name, models, processes=processes)
    return found


@table("label", LABELS)
def test_two_processes_reply_as_one(label: str, runs: dict[str, dict[str, HostRun]]) -> None:
    one, two = (
        {item["id"]: item["reply"] for item in runs[name][label].items(LABELS[label])}
        for name in COUNTS
    )
    assert one == two
    assert len(one) == N
    assert len(set(one.values())) > 1  # what it is given does reach the model
    assert fake_replies.UNKNOWN not in one.values()


def test_of_four_processes_one_may_have_no_doc(launch: Launch, folder: Path) -> None:
    """Three docs for four: no number depends on how they are dealt."""
    model = {"model": "tasks_scripted", "tasks": LABELS["scripted"], "offset": FIRST, "limit": 3}
    runs = {}
    for name, processes in (("four", 4), ("alone", 1)):
        (folder / name).mkdir()
        runs |= launch_all(launch, folder / name, {name: model}, processes=processes)
    assert len(runs["four"].items(LABELS["scripted"])) == model["limit"]
    assert runs["four"].numbers == runs["alone"].numbers


def test_a_video_belongs_to_one_process_and_the_numbers_to_none(
    runs: dict[str, dict[str, HostRun]],
) -> None:
    for name, processes in COUNTS.items():
        run = runs[name]["scripted"]
        assert run.numbers == runs["one"]["scripted"].numbers
        seen = {
            (sample["failed"]["video"], (sample["doc_id"] - FIRST) % processes)
            for sample in run.samples(LABELS["scripted"])
        }
        assert len({video for video, _ in seen}) == 2
        assert len(seen) <= 2 + processes - 1
