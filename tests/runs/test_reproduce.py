"""What a paper's rows would cost to make again, and the scripts that make them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lmms_eval_tasks import context, registry, settings
from lmms_eval_tasks.commands.leaderboard_command import leaderboard_app
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.models import recipes
from lmms_eval_tasks.models.recipes import ModelFacts, TaskWorkload
from lmms_eval_tasks.runs import estimate, reproduce
from tests.checks import table


def configs(benchmark: str) -> list[str]:
    return [str(one.path.resolve()) for one in recipes.of(benchmark)]


@pytest.fixture
def echo(tmp_path: Path) -> dict[str, str]:
    """An environment in which `lmms_eval` prints its arguments."""
    command = tmp_path / "lmms_eval"
    command.write_text('#!/bin/sh\necho "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}


def run(script: str, *arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = ["bash", "-s", *arguments]
    return subprocess.run(
        command, input=script, env=env, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("benchmark", registry.NAMES)
def test_the_script_runs_every_recipe(
    benchmark: str, echo: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # recipes elsewhere are named in full
    script = "\n".join(reproduce.script_lines(benchmark, slurm=False))
    done = run(script, env=echo)
    assert done.stdout.splitlines() == [f"--config {path}" for path in configs(benchmark)]
    assert "# Counts are the published ones" in script
    for name in recipes.missing(benchmark):
        assert f"# no recipe for {name}: " in script


def test_a_job_of_the_array_runs_one_recipe(
    echo: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = list(reproduce.script_lines("maverix", slurm=True))
    found, script = configs("maverix"), "\n".join(lines)
    assert lines[0] == "#!/bin/bash"
    first = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    directives = [line for line in lines[:first] if line.startswith("#SBATCH ")]
    assert [line for line in lines if line.startswith("#SBATCH")] == directives
    assert f"#SBATCH --array=0-{len(found) - 1}" in directives
    assert "#SBATCH --gres=gpu:1" in directives
    for number, path in enumerate(found):
        job = run(script, env={**echo, "SLURM_ARRAY_TASK_ID": str(number)})
        assert (job.returncode, job.stdout.split()) == (0, ["--config", path])
        assert run(script, str(number), env=echo).stdout == job.stdout
    assert run(script, str(len(found)), env=echo).returncode == 2
    assert run(script, env=echo).returncode != 0  # outside of Slurm, and no recipe named


HOUR = 3600 * estimate.SHARE
ONE = ModelFacts(billions=1)


@table(
    "facts, work, tokens, hours",
    [
        # As many prompt tokens as an A100 computes in an hour for 1e9 parameters.
        (ONE, TaskWorkload(docs=1, text=estimate.OPERATIONS * HOUR / 2e9, reply=0), None, 1.0),
        # As many of a reply as its memory is read through for them; two GPUs take turns.
        (ONE, TaskWorkload(docs=2, text=0, reply=estimate.BANDWIDTH * HOUR / 4e9), None, 1.0),
        (
            ModelFacts(billions=1, gpus=2),
            TaskWorkload(docs=1, text=estimate.OPERATIONS * HOUR / 2e9, reply=0),
            None,
            2.0,
        ),
        # 32 frames of a video, of whatever length; pictures; an uploaded video by its seconds.
        (ModelFacts(frame=10), TaskWorkload(docs=3, text=5, reply=2, video=99), (3 * 325, 6), 0.0),
        (
            ModelFacts(frame=10, picture=7),
            TaskWorkload(docs=1, text=0, reply=0, pictures=4),
            (28, 0),
            0.0,
        ),
        (ModelFacts(frame=10), TaskWorkload(docs=1, text=0, reply=0, pictures=4), (40, 0), 0.0),
        (
            ModelFacts(frame=10, second=3, sound=2),
            TaskWorkload(docs=1, text=0, reply=0, video=9, sound=4),
            (35, 0),
            0.0,
        ),
        (ModelFacts(thinks=100), TaskWorkload(docs=2, text=1, reply=1), (2, 202), 0.0),
    ],
)
def test_tokens_and_hours(
    facts: ModelFacts,
    work: TaskWorkload,
    tokens: tuple[int, int] | None,
    hours: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recipes, "facts", lambda _: facts)
    monkeypatch.setattr(recipes, "work", lambda _: work)
    recipe = next(one for one in recipes.of("maia") if one.path.stem == "qwen2_5_vl_7b_instruct")
    cost = reproduce.cost(recipe._replace(tasks=["maia_vsv"]))
    assert cost.hours == pytest.approx(hours, rel=1e-6)
    served = 0 if facts.billions else work.docs / 8 / 3600  # at 8 requests a second
    assert cost.wall == pytest.approx(hours / facts.gpus + served, rel=1e-6)
    assert tokens is None or (cost.prompt, cost.reply) == tokens
    assert cost.gpus == (facts.gpus if facts.billions else 0)


def _by_vllm() -> recipes.RowRecipe:
    (own,) = (one for one in recipes.of("maia") if one.path.stem == "qwen2_5_vl_7b_instruct")
    form = recipes.on_vllm(own)
    assert isinstance(form, recipes.RowRecipe)
    return form._replace(tasks=["maia_vsv"])


IN_AN_HOUR = estimate.OPERATIONS * HOUR / 2e9  # prompt tokens of 1e9 parameters


@table(
    "facts, work, batch, cached, hours",
    [
        # All docs have the media of 2 clips before their texts: 8 of 10 find theirs computed.
        (
            ModelFacts(billions=1, picture=1000),
            TaskWorkload(docs=10, clips=2, text=0, reply=0, pictures=1),
            64,
            8000,
            2000 / IN_AN_HOUR,
        ),
        # Texts are computed for each.
        (
            ModelFacts(billions=1, picture=1000),
            TaskWorkload(docs=10, clips=2, text=500, reply=0, pictures=1),
            64,
            8000,
            7000 / IN_AN_HOUR,
        ),
        (
            ModelFacts(billions=1, picture=1000),
            TaskWorkload(docs=10, text=0, reply=0, pictures=1),
            64,
            0,
            10_000 / IN_AN_HOUR,
        ),
        # A batch shares the reading of the weights, up to where its operations take as long.
        (ONE, TaskWorkload(docs=1, text=0, reply=estimate.BANDWIDTH * HOUR / 2e9), 64, 0, 1 / 64),
        (ONE, TaskWorkload(docs=1, text=0, reply=IN_AN_HOUR), 1000, 0, 1.0),
        # All GPUs work at once.
        (
            ModelFacts(billions=1, gpus=4),
            TaskWorkload(docs=1, text=IN_AN_HOUR, reply=0),
            64,
            0,
            1.0,
        ),
    ],
)
def test_an_engine_computes_shared_media_once(
    facts: ModelFacts,
    work: TaskWorkload,
    batch: int,
    cached: int,
    hours: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    form = _by_vllm()
    monkeypatch.setattr(recipes, "facts", lambda _: facts)
    monkeypatch.setattr(recipes, "work", lambda _: work)
    cost = reproduce.cost(form._replace(batch=batch))
    assert (cost.cached, cost.gpus) == (cached, facts.gpus)
    assert cost.hours == pytest.approx(hours, rel=1e-6)
    assert cost.wall == pytest.approx(hours / facts.gpus, rel=1e-6)


def test_the_share_is_the_one_that_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """192 questions on one MAIA clip: prompts of 3,733 tokens, 3,536 of them the clip's; 94.2 %."""
    form = _by_vllm()
    clip = 3536  # 16 groups of 13 x 17 tokens
    monkeypatch.setattr(recipes, "facts", lambda _: ModelFacts(billions=1, picture=clip))
    work = TaskWorkload(docs=192, clips=1, text=3733 - clip, reply=2, pictures=1)
    monkeypatch.setattr(recipes, "work", lambda _: work)
    cost = reproduce.cost(form)
    assert f"({0.942:.1%} of the prompts' cached)" in str(cost)


@pytest.mark.parametrize("slurm", [False, True])
def test_by_an_engine_its_forms_are_run_and_the_others_explained(
    slurm: bool, echo: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    script = "\n".join(reproduce.script_lines("maia", slurm=slurm, engine="vllm"))
    own = recipes.of("maia")
    forms = [form for one in own if not isinstance(form := recipes.on_vllm(one), str)]
    wanted = [" ".join(["--config", str(one.path.resolve()), *one.options]) for one in forms]
    numbers = range(len(forms)) if slurm else [""]
    ran = [run(script, str(number), env=echo).stdout.splitlines() for number in numbers]
    assert [line for lines in ran for line in lines] == wanted
    assert script.count("differs from the paper: pictures (not videos)") == 2
    assert "vLLM 0.32 for CPUs cached 94.2%" in script
    assert "A formula, not measured on a GPU." in script
    for one in own:
        assert (f"# {one.path.stem} cannot run with vllm: " in script) == (
            isinstance(recipes.on_vllm(one), str)
        )
    without = "\n".join(reproduce.script_lines("maia", slurm=slurm))
    (total,) = re.findall(r"7 recipes, about ([\d,.]+) hours", without)
    (mine, rest) = re.findall(r"own classes these are about (.+) hours, .* run with it (.+)\.$",
                              script, re.MULTILINE)[0]  # fmt: skip
    assert sum(float(one.replace(",", "")) for one in (mine, rest)) == pytest.approx(
        float(total.replace(",", "")), abs=0.2
    )


def test_no_recipe_by_an_engine() -> None:
    with pytest.raises(TasksError, match="no recipes for cvrr_es with vllm") as caught:
        list(reproduce.script_lines("cvrr_es", slurm=False, engine="vllm"))
    assert "llama_vid cannot run with vllm: vLLM has no class for it" in str(caught.value)


def test_prices_are_the_user_s_where_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that nobody knows is said to be unknown, and is not 0."""
    before = "\n".join(reproduce.script_lines("maverix", slurm=False))
    assert "grok_4: 7,668 requests" in before
    assert "its server: unknown price" in before
    assert " and 2 unknown prices for the models' servers" in before
    prices = tmp_path / "prices.yml"
    prices.write_text("models:\n  xai/grok-4: {input: 0, output: 1}\n", encoding="utf-8")
    monkeypatch.setenv(settings.PRICES, str(prices))
    with context.begun():
        after = "\n".join(reproduce.script_lines("maverix", slurm=False))
    assert " and 1 unknown prices for the models' servers" in after


def test_a_benchmark_without_recipes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipes, "of", lambda _: [])
    with pytest.raises(TasksError, match="no recipes for maia"):
        list(reproduce.script_lines("maia", slurm=False))


def test_a_command_can_be_pasted() -> None:
    commands = [
        one for one in reproduce.script_lines("haven", slurm=False) if one.startswith("lmms_eval")
    ]
    assert [Path(shlex.split(one)[2]).is_file() for one in commands] == [True] * 5


def test_an_engine_is_of_a_plan() -> None:
    done = CliRunner().invoke(leaderboard_app, ["maia", "--engine", "vllm"])
    assert "--engine works only with --plan: add" in str(done.exception)


@table(
    "options", [("--plan",), ("--slurm",), ("--plan", "--slurm"), ("--plan", "--engine", "vllm")]
)
def test_the_command_prints_it(options: tuple[str, ...]) -> None:
    done = CliRunner().invoke(leaderboard_app, ["maia", *options])
    assert done.exit_code == 0
    assert done.stdout.splitlines() == list(
        reproduce.script_lines(
            "maia", slurm="--slurm" in options, engine="vllm" if "vllm" in options else None
        )
    )
