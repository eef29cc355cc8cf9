"""CVRR-ES through the host: simple and chat, one and two processes, the same numbers.

One command line (`--config`) runs four models on the packaged sample, and torchrun the same again
in two processes: the scripted model as a simple and as a chat class, on the benchmark's eleven
tasks and the three of the judge study; a tiny checkpoint with random weights and the host's
`openai` class, on the study's. The scripted model is right on about 70 % of the items and
unreadable on 5 %, by item id; as a judge it is called as one of the sample's first judges, which is
also a candidate. A local endpoint judges answers, and rates them in the forms that judges write, by
a hash of what it is asked.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.cvrr_es import data, metrics, release, sample, sample_answers
from lmms_eval_tasks.cvrr_es.labels import ANSWERS, DIMENSIONS, JUDGE_TASKS
from lmms_eval_tasks.cvrr_es.sample_answers import CAREFUL, FLAT, HASTY, MODELS, VAGUE
from lmms_eval_tasks.cvrr_es.tasks import BENCHMARK
from lmms_eval_tasks.runs import rescore
from lmms_eval_tasks.runs.rescoring import rescore_saved
from lmms_eval_tasks.sample import tiny
from tests.conftest import HostRun, Launch, host, torchrun
from tests.cvrr_es.hosted import (
    FORMS,
    NO_REASON,
    OFF_SCALE,
    PLAYED,
    host_models,
    items,
    numbers,
    rated,
    reply,
    sklearn_kappas,
)
from tests.local_endpoint import LocalEndpoint, last_user_text

pytestmark = pytest.mark.host

QUESTIONS = [f"{ANSWERS}{one}" for one in DIMENSIONS]
NAMES = (*MODELS, FLAT, "Invented")
ITEMS = 3 * 25  # candidates and questions of the sample
MEANS = ("acc", "acc_valid", "acc_skip_empty", "score_valid", "score_skip_empty")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[LocalEndpoint]:
    with LocalEndpoint(reply, model="local") as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def folder(sample_root: Path) -> Path:
    return sample_root / "cvrr_es"


@pytest.fixture(scope="module")
def given(endpoint: LocalEndpoint, folder: Path) -> dict[str, str]:
    """What the user names for these tasks."""
    return {
        settings.JUDGE: f"checker@{endpoint.url}",
        settings.MAX_FAILED: "1",
        settings.CVRR_CANDIDATES: str(folder / sample.PREDICTIONS),
        settings.CVRR_RATINGS: str(folder / sample.FIRST),
        settings.CVRR_REFERENCE: str(folder / sample.REFERENCE),
        settings.CVRR_NAME: "Invented Hasty",
    }


@pytest.fixture(scope="module")
def runs(
    endpoint: LocalEndpoint,
    given: dict[str, str],
    launch: Launch,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, HostRun]:
    """By model and number of processes."""
    checkpoint = tiny.build("qwen2_5_vl", tmp_path_factory.mktemp("tiny") / "tiny-vlm")
    models = host_models(checkpoint, endpoint.url)
    made = {}
    for processes in (1, 2):
        folder = tmp_path_factory.mktemp(f"runs-{processes}")
        out = {name: folder / name for name in models}
        config = [
            {**arguments, "log_samples": True, "output_path": str(out[name])}
            for name, arguments in models.items()
        ]
        (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
        own = ["--config", str(folder / "config.yaml")]
        done = launch(host(*own) if processes == 1 else torchrun(2, *own), folder, env=given)
        assert done.code == 0, done.stderr[-3000:]
        for name in models:
            made[f"{name} {processes}"] = dataclasses.replace(done, out=out[name])
    return made


def test_every_task_ran(runs: dict[str, HostRun]) -> None:
    assert set(numbers(runs["chat 1"])) == {"cvrr_es", *QUESTIONS, *JUDGE_TASKS}


@pytest.mark.parametrize(
    ("name", "same"),
    [(one, "simple 1") for one in ("simple 2", "chat 1", "chat 2")]
    + [(f"{one} 2", f"{one} 1") for one in ("tiny", "openai")],
)
def test_same_numbers_in_every_run(name: str, same: str, runs: dict[str, HostRun]) -> None:
    assert numbers(runs[name]) == numbers(runs[same])
    for task in numbers(runs[name]).keys() - {"cvrr_es"}:
        texts = [
            {one["id"]: one["input"] for one in items(runs[run], task)} for run in (name, same)
        ]
        assert texts[0] == texts[1]


@pytest.mark.parametrize("name", ["chat 2", "openai 1"])
@pytest.mark.parametrize("task", JUDGE_TASKS)
def test_kappas_are_those_of_the_saved_ratings(
    task: str, name: str, runs: dict[str, HostRun]
) -> None:
    """Computed again by scikit-learn: of each candidate and dimension, then the means."""
    found = numbers(runs[name])[task]
    for metric, value in sklearn_kappas(items(runs[name], task)).items():
        assert found[metric] == (None if value is None else pytest.approx(value, abs=1e-12)), metric


def test_an_endpoint_as_judge(runs: dict[str, HostRun], endpoint: LocalEndpoint) -> None:
    """What is saved is what was sent, and every form that it replied in was read."""
    sent = {last_user_text(request.json) for request in endpoint.chats}
    forms = set()
    for task in JUDGE_TASKS:
        played = items(runs["openai 1"], task)
        assert len(played) == PLAYED
        for item in played:
            assert item["input"] in sent
            form, rating = rated(item["input"])
            forms.add(form)
            assert item["rating"] == (None if form == OFF_SCALE else rating)
            assert ("no_reason" in item["notes"]) == (form == NO_REASON)
        failed = sum(item["rating"] is None for item in played)
        assert numbers(runs["openai 1"])[task]["rating_failed"] == failed
    assert forms == set(range(len(FORMS)))


def test_a_checkpoint_as_judge(runs: dict[str, HostRun]) -> None:
    """Random weights rate nothing: failures, each with its reply and its video, and no kappa."""
    for task in JUDGE_TASKS:
        saved = items(runs["tiny 2"], task)
        assert len(saved) == 3
        assert {item["media"]["kind"] for item in saved} == {"video"}
        found = numbers(runs["tiny 2"])[task]
        assert (found["kappa"], found["rating_valid"], found["rating_failed"]) == (None, None, 3)


def test_main_numbers_lie_strictly_inside(runs: dict[str, HostRun]) -> None:
    """So that a number that is stuck at an end would show."""
    found = numbers(runs["chat 1"])
    kappas = [found[task]["kappa"] for task in JUDGE_TASKS]
    assert len(set(kappas)) == 3
    for task, kappa in zip(JUDGE_TASKS, kappas, strict=True):
        own = found[task]
        assert 0 < kappa < 1
        assert own["kappa_percent"] == 100 * kappa
        assert 0 < own["kappa_pooled"] < 1
        assert own["kappa_pooled"] != kappa
        assert 0 < own["rating_failed"] < ITEMS / 5
        assert own["rating_coverage"] == pytest.approx(1 - own["rating_failed"] / ITEMS)
        assert sum(own[f"rating_share_{n}"] for n in range(1, 6)) == pytest.approx(1)
        assert own["empty_rated"] + own["empty_failed"] == 1
        of_candidates = {name for name in own if name.startswith("kappa_of_")}
        assert of_candidates == {f"kappa_of_{metrics.slug(name)}" for name in MODELS}


def test_the_groups_means(runs: dict[str, HostRun]) -> None:
    found = numbers(runs["chat 1"])
    for name in ("acc", "score_valid"):
        own = [found[task][name] for task in QUESTIONS]
        assert found["cvrr_es"][f"mean_{name}"] == pytest.approx(sum(own) / 11)
        assert len(set(own)) > 1
        assert not [metric for metric in found[QUESTIONS[0]] if metric.startswith("mean_")]
    assert set(found["cvrr_es"]) == {f"mean_{name}" for name in MEANS}


@pytest.mark.parametrize("run", ["chat 1", "openai 1"])
def test_no_truth_and_no_name_reaches_a_judge(run: str, runs: dict[str, HostRun]) -> None:
    """But for the answers that say the reference themselves."""
    kinds = {f"{one.id}/{name}": one for name in MODELS for one in sample_answers.answered(name)}
    searched = 0
    for task in JUDGE_TASKS:
        for item in items(runs[run], task):
            made = kinds[item["id"]]
            assert made.asked.question in item["input"]
            assert not [
                name for name in (*MODELS, FLAT, "invented", "Hasty") if name in item["input"]
            ]
            if made.asked.reference not in made.text:
                searched += 1
                assert made.asked.reference not in item["input"]
    assert searched > (ITEMS if run == "chat 1" else PLAYED)


def test_what_each_round_is_shown(runs: dict[str, HostRun]) -> None:
    """The model bears a first judge's name: its own ratings are not among the others'."""
    run = runs["chat 1"]
    shown = {
        task: {other["judge"] for item in items(run, task) for other in item["others"]}
        for task in JUDGE_TASKS
    }
    assert shown["cvrr_judge"] == set()
    assert shown["cvrr_judge_collective"] == {CAREFUL, FLAT}
    assert shown["cvrr_judge_mixture"] <= {CAREFUL, FLAT}
    for item in items(run, "cvrr_judge_collective"):
        told = [letter for letter in "ABC" if f"Judge {letter} rated" in item["input"]]
        assert told == list("ABC")[: len(item["others"])]
        assert item["judge"] == "Invented Hasty"
    section = run.results["lmms_eval_tasks"]["cvrr_es"]
    assert section["first_ratings"]["cvrr_judge_collective"]["own_not_shown"] == ITEMS
    assert section["first_ratings"]["cvrr_judge_collective"]["judges"] == {CAREFUL: 75, FLAT: 75}
    chosen = section["selected"]["cvrr_judge_mixture"].values()
    assert any(CAREFUL in one["judges"] for one in chosen)


def test_empty_answers_are_items(runs: dict[str, HostRun]) -> None:
    for task in JUDGE_TASKS:
        (empty,) = (item for item in items(runs["chat 1"], task) if item["empty"])
        assert (empty["candidate"], empty["answer"]) == (HASTY, "")
        assert "The assistant's reply is empty" in empty["input"]


def test_rescore_gives_the_same_numbers(
    runs: dict[str, HostRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without any of the files that the run was given."""
    monkeypatch.setenv(settings.DATA, "/nowhere")
    saved = [rescore.read(file) for file in rescore.find([runs["chat 2"].out])]
    found = numbers(runs["chat 1"])
    again = rescore_saved(BENCHMARK, saved, None)
    assert again.numbers == found
    details = runs["chat 1"].results["lmms_eval_tasks"]["cvrr_es"]["details"]
    assert json.loads(json.dumps(again.sidecar)) == details


def test_saved_answers_are_a_candidate(
    runs: dict[str, HostRun], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(settings.CVRR_CANDIDATES, str(runs["simple 2"].out))
    (candidate,) = data.aligned(release.read(folder))
    assert (candidate.candidate, candidate.ways) == ("Invented Hasty", {"id": 25})


def test_a_reference_can_come_later(
    runs: dict[str, HostRun], folder: Path, given: dict[str, str], launch: Launch, tmp_path: Path
) -> None:
    """Until then kappa is None, with the reason. The first ratings are a saved run's, --limit."""
    both = ["cvrr_judge", "cvrr_judge_collective"]
    env = {**given, settings.CVRR_RATINGS: str(runs["chat 1"].out)}
    env |= {settings.CVRR_REFERENCE: "", settings.CVRR_NAME: "another"}
    own = ["--model", "tasks_scripted", "--tasks", ",".join(both), "--limit", "20", "--log_samples"]
    done = launch(host(*own, "--output_path", str(tmp_path)), tmp_path, env=env)
    assert done.code == 0, done.stderr[-3000:]
    found = numbers(done)
    section = done.results["lmms_eval_tasks"]["cvrr_es"]
    for task in both:
        assert found[task]["kappa"] is None is found[task]["leniency"]
        assert 1 < found[task]["rating_valid"] < 5
        assert len(done.samples(task)) == 20
        reason = section["details"][task]["kappa"]["mean"]["reason"]
        assert reason == "there is no reference yet"
    assert any("no reference ratings were named" in line for line in section["warnings"])
    judges = {other["judge"] for item in items(done, both[1]) for other in item["others"]}
    assert judges == {"Invented Hasty"}  # its first ratings, and none of its other rounds

    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(settings.CVRR_REFERENCE, str(folder / sample.REFERENCE))
        files = [rescore.read(file) for file in rescore.find([tmp_path])]
        again = rescore_saved(BENCHMARK, files, None).numbers
    for task in both:
        assert again[task]["kappa"] not in (None, 0)  # about 0: without it the model gave 3
        assert again[task]["rating_valid"] == found[task]["rating_valid"]


def test_tables_and_provenance(runs: dict[str, HostRun]) -> None:
    printed = " ".join(runs["chat 1"].stdout.split())
    for text in ("CVRR-ES: answers by dimension", "Tables 5-7", "Table 4", "packaged sample"):
        assert text in printed
    section = runs["chat 1"].results["lmms_eval_tasks"]["cvrr_es"]
    assert section["model"] == "Invented Hasty"
    assert section["judge"]["model"] == "checker"
    assert set(section["candidates"]) == {CAREFUL, HASTY, VAGUE}
    assert section["selection"] == "theta=0.08,fallback=all,cross_fit=yes"
    assert set(section["details"]) == {*QUESTIONS, *JUDGE_TASKS}
