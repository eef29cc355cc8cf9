"""What a run would cost, before it is started; what the command prints: tests/golden."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lmms_eval_tasks import registry, settings
from lmms_eval_tasks.commands import cli
from lmms_eval_tasks.commands.leaderboard_command import leaderboard_app
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges import costs, resolve
from lmms_eval_tasks.maia import judge as judge_of_maia
from lmms_eval_tasks.models import recipes
from lmms_eval_tasks.runs import estimate, reproduce
from tests.checks import table

TASK = "maia_oevqa"


@pytest.fixture(autouse=True)
def sample(sample_root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv(settings.CACHE, str(sample_root.parent))
    monkeypatch.setenv(settings.DATA, str(sample_root))
    monkeypatch.setenv(settings.JUDGE_CACHE, str(tmp_path))


def judge(spec: str = "gpt-4o"):
    return resolve(spec, {"OPENAI_API_KEY": "x"}, default_model="gpt-4o")


def estimated(spec: str = "gpt-4o", limit: int | None = None) -> costs.CostEstimate:
    """The judge's part of the task's cost."""
    with settings.use_options({settings.JUDGE: spec}):
        return estimate.estimate(TASK, limit=limit).judge


def test_dollars_follow_from_tokens_and_a_batch_is_half() -> None:
    found = estimated()
    assert found.verdicts == found.calls == 48
    assert found.reply_tokens == found.calls * 16  # MAIA's limit, below REPLY_TOKENS
    expected = (found.judge_tokens * 2.5 + found.reply_tokens * 10) / 1e6
    assert found.cost == pytest.approx(expected)
    assert found.batch_cost == pytest.approx(expected / 2)
    assert estimated("m@http://localhost/v1").cost is None


def test_a_debate_asks_each_agent_twice_at_most(tmp_path: Path) -> None:
    file = tmp_path / "debate.yml"
    file.write_text("debate: [gpt-4o, gpt-4.1]\nconsolidator: o3\n")
    found = estimated(str(file), limit=2)
    assert (found.verdicts, found.calls) == (2, 2 * 5)
    assert "twice the tokens" in found.notes[-1]


def test_a_panels_members_are_all_asked(tmp_path: Path) -> None:
    file = tmp_path / "panel.yml"
    file.write_text("panel: [gpt-4o, gpt-4.1, o3]\n")
    found = estimated(str(file), limit=2)
    assert (found.verdicts, found.calls, len(found.notes)) == (2, 6, 3)
    asked = [
        (
            judge_of_maia.agreement_criterion(),
            {"question": "", "references": [], "candidate": ""},
            "x",
        )
    ]
    one, three = (costs.plan(judge(spec), asked) for spec in ("gpt-4o", str(file)))
    assert (one.calls, three.calls) == (1, 3)  # also of a check of a judge, whose replies are known


# --- without data, and what is unknown -----------------------------------------------------------

QWEN = ("--model", "qwen2_5_vl", "--model_args", "pretrained=Qwen/Qwen2.5-VL-7B-Instruct")


def command(*words: object) -> tuple[int, str]:
    """The exit code of `estimate` and its output."""
    done = CliRunner().invoke(cli.app, ["estimate", *map(str, words)], env={"COLUMNS": "120"})
    is_ours = isinstance(done.exception, TasksError)
    return (2 if is_ours else done.exit_code), f"{done.output}{done.exception if is_ours else ''}"


def numbers(*words: object) -> dict[str, Any]:
    """What `estimate --format json` prints."""
    _, output = command(*words, "--format", "json")
    made: dict[str, Any] = json.loads(output)
    return made


@pytest.mark.parametrize("benchmark", registry.NAMES)
@pytest.mark.parametrize("engine", [None, "vllm"])
def test_a_plan_and_an_estimate_without_data_are_one(
    benchmark: str, engine: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(settings.DATA, str(tmp_path))
    for recipe in recipes.of(benchmark):
        form = recipes.on_vllm(recipe) if engine else recipe
        if isinstance(form, str):
            continue
        with settings.use_options(form.settings):
            tasks = registry.selected(form.tasks)
            each = [estimate.estimate(task, form.model, form.batch) for task in tasks]
        found = estimate.sum_costs(each, form.path.stem)
        assert found == reproduce.cost(form)
        assert all(one.why == f"no data at {tmp_path / benchmark}" for one in each if one.why)
        assert found.basis == estimate.PAPER


def test_the_commands_print_one_figure(tmp_path: Path) -> None:
    """`leaderboard maia --plan` says it for a recipe, `estimate` for the same options."""
    plan = CliRunner().invoke(leaderboard_app, ["maia", "--plan"]).stdout
    tasks = "maia,maia_1frame,maia_black"
    found = numbers("--tasks", tasks, "--data", tmp_path, *QWEN, "--judge", "gpt-4o")["all"]
    (line,) = (one for one in plan.splitlines() if one.startswith("# qwen2_5_vl_7b_instruct: "))
    assert f": {found['requests']:,} requests, {found['tokens_in'] / 1e6:,.1f} + " in line
    assert f" about {found['gpu_hours']:,.1f} GPU hours (1 of 80 GB)" in line
    judge = f"{found['judge_requests']:,} calls, ${found['judge_dollars']:.2f};"
    assert judge in line
    assert (found["videos"], found["minutes_of_video"]) == (100, 50.0)


def _empty(root: Path, data: Path) -> None: ...


def _folder(root: Path, data: Path) -> None:
    (root / "maia").mkdir()


def _damaged(root: Path, data: Path) -> None:
    _folder(root, data)
    (root / "maia" / "data.json").write_text('{"1": ')


def _sample(root: Path, data: Path) -> None:
    (root / "maia").symlink_to(data / "maia")


@table(
    "tasks, prepare, code, requests, said",
    [
        ("maia", _empty, 0, [19_200, 2_400], "maia: counted with the paper's sizes: no data at {}"),
        ("maia_vsv", _folder, 0, [19_200], "maia: counted with the paper's sizes: {}"),
        ("maia_vsv", _damaged, 0, [19_200], "maia: counted with the paper's sizes: {}/data.json"),
        ("maia", _sample, 0, [384, 48], "maia: counted on {}"),
        (
            "maia_vsv,maverix_long_v,maverix_long_s",
            _sample,
            1,
            [384],
            "maverix_long_v, maverix_long_s: not counted: no data at ",
        ),
        ("maverix_long_v", _empty, 1, [], "maverix_long_v: not counted: no data at "),
        ("maia_vsv --limit 100", _empty, 0, [100], "no data at {}"),
        ("maya", _empty, 2, None, "did you mean maia?"),
        ("maia --rate 0", _empty, 2, None, "--rate 0: expected a number above 0"),
        ("maia --model qwen9", _empty, 2, None, "qwen9"),
    ],
)
def test_every_task_is_counted_or_named(
    tasks: str, prepare: Any, code: int, requests: list[int] | None, said: str,
    sample_root: Path, tmp_path: Path,
) -> None:  # fmt: skip
    root = tmp_path / "root"
    root.mkdir()
    prepare(root, sample_root)
    words = ["--tasks", *tasks.split(), "--data", root]
    found, output = command(*words)
    assert found == code, output
    assert said.format(root / "maia") in output
    if requests is not None:
        assert [one["requests"] for one in numbers(*words)["tasks"]] == requests


@table(
    "model, arguments, hours, dollars, uploaded, tokens",
    [
        ("", "", "unknown", "unknown", "unknown", "unknown"),
        ("qwen2_5_vl", "pretrained=Qwen/Qwen2.5-VL-7B-Instruct", "known", 0, 0, "known"),
        ("qwen2_5_vl", "pretrained=/models/Qwen2.5-VL-7B-Instruct", "known", 0, 0, "known"),
        ("qwen2_5_vl", "pretrained=me/finetuned", "unknown", 0, 0, "unknown"),
        ("openai", "model=gpt-4o", 0, "known", "known", "known"),
        ("openai", "model=xai/grok-4", 0, "unknown", "known", "known"),
        ("openai", "model=gpt-4o,base_url=http://127.0.0.1:1/v1", 0, "unknown", "known", "known"),
        ("openai", "model=mystery", "unknown", "unknown", "known", "unknown"),
        # The server's GPUs are the user's, its batches are not known.
        (
            "openai",
            "model=Qwen/Qwen2.5-VL-7B-Instruct,base_url=http://127.0.0.1:1/v1",
            *("unknown", "unknown", "known", "known"),
        ),
        ("claude", "model_version=mystery", "unknown", "unknown", "unknown", "unknown"),
    ],
)
def test_what_is_not_known_is_not_zero(
    model: str, arguments: str, hours: object, dollars: object, uploaded: object, tokens: object,
    tmp_path: Path,
) -> None:  # fmt: skip
    named = ["--model", model, "--model_args", arguments] if model else []
    words = ["--tasks", "maia_vsv,maia_oevqa", "--data", tmp_path, *named]
    found = numbers(*words)
    for one in [*found["tasks"], found["all"]]:
        keys = ("gpu_hours", "model_dollars", "uploaded_bytes", "tokens_in")
        states = ["unknown" if (n := one[key]) is None else "known" if n else 0 for key in keys]
        assert states == [hours, dollars, uploaded, tokens]
    _, output = command(*words)
    expected = "unknown" if model else "name the model with --model and --model_args"
    assert (expected in output) == ("unknown" in (hours, dollars, uploaded, tokens))
    assert "prices of 20" in output


@table(
    "model, mend",
    [
        (
            "qwen2_5_vl",
            "add --model_args pretrained=Qwen/Qwen2.5-VL-7B-Instruct (or pretrained=Qwen/Qwen2.5-VL"
            "-72B-Instruct)",
        ),
        ("internvl3", "add --model_args pretrained=OpenGVLab/InternVL3-78B"),
        ("vora", "name it with --model_args"),
    ],
)
def test_a_model_without_a_checkpoint(model: str, mend: str, tmp_path: Path) -> None:
    _, output = command("--tasks", "maia_vsv", "--data", tmp_path, "--model", model)
    assert f"are unknown without a checkpoint: {mend}\n" in output


def test_no_task_is_an_error() -> None:
    assert command("--tasks", " , ")[1].startswith("--tasks ' , ': names no task")


def test_frames_are_those_of_the_protocol(tmp_path: Path) -> None:
    """`openai` takes 10 by itself; a run of MAIA sets 32, and the user's number goes before."""
    words = ["--tasks", "maia_vsv", "--data", tmp_path, "--model", "openai", "--model_args"]
    sizes = [
        numbers(*words, f"model=gpt-4o{frames}")["all"]["uploaded_bytes"]
        for frames in ("", ",max_frames_num=16", ",max_frames_num=64")
    ]
    assert sizes[0] == sizes[2] == pytest.approx(2 * sizes[1], rel=0.01)
    assert sizes[0] == pytest.approx(19_200 * 32 * 337_500, rel=0.01)
