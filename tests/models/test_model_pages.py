"""The commands of docs/models.md are such as the host and the classes take."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lmms_eval_tasks.commands import cli
from lmms_eval_tasks.context import RunModel
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.models import capability_pages, model_capabilities, plan
from tests import page_commands
from tests.checks import table

PAGE = Path("docs/models.md")


def test_a_class_gets_what_it_takes_and_nothing_is_advised() -> None:
    """Beyond what test_page_commands.py finds in every command."""
    from lmms_eval.utils import simple_parse_args_string

    found = [
        one.parts[0] for one in page_commands.of(PAGE) if one.whole and "lmms_eval" in one.text
    ]
    assert len(found) > 8
    for words in found:
        options = page_commands.host_options(words[words.index("lmms_eval") + 1 :])
        arguments = simple_parse_args_string(options.model_args)
        model = RunModel(options.model, "chat", arguments)
        assert model_capabilities.advice(model, int(options.batch_size)) == []
        if options.model in page_commands.MORE:
            assert options.model == "tasks_vllm" or 64 <= int(options.batch_size) <= 256
            wanted = plan.MediaNeeds("maia_vsv", videos=True, frames=frozenset({32}))
            assert plan.of(model, [wanted]).arguments == {}


@table(
    "name, interface, arguments, batch_size, said",
    [
        ("vllm", "chat", {}, 1, ["pass --batch_size 64", "max_new_tokens: at least 4096"]),
        ("vllm", "chat", {"max_new_tokens": 128}, 1, ["pass --batch_size 64"]),
        ("vllm", "simple", {}, 64, ["at least 1024"]),
        ("sglang", "chat", {}, 1, ["one request at a time"]),
        ("sglang", "chat", {}, 64, []),
        ("tasks_vllm", "chat", {}, 1, []),  # 256 at once
        ("qwen2_5_vl", "chat", {}, 1, []),
        ("aria", "simple", {}, 1, ["ignored, always 1024"]),
        ("lm_pairs", "simple", {}, 1, []),
        ("async_hf_model", "chat", {}, 1, []),  # does not work at all, which is said elsewhere
        ("someone_elses", "chat", {}, 1, []),
    ],
)
def test_advice(
    name: str, interface: Any, arguments: dict[str, Any], batch_size: int, said: list[str]
) -> None:
    found = model_capabilities.advice(RunModel(name, interface, arguments), batch_size)
    assert len(found) == len(said)
    for line, words in zip(found, said, strict=True):
        assert words in line
        assert line.endswith(f"(lmms-eval-tasks models {name})")


def test_the_engines_that_need_batches_are_known() -> None:
    told = {
        (name, kind)
        for name, entry in model_capabilities.capability_table().models.items()
        for kind, one in entry.classes()
        if one.media.batches
    }
    engines = {(name, "chat") for name in ("vllm", "vllm_generate", "sglang")}
    assert told == {*engines, ("vllm", "simple")}


def models(*words: str, columns: int = 80) -> tuple[int, str]:
    """The exit code of `models` and its output; 2 with our message."""
    done = CliRunner().invoke(cli.app, ["models", *words], env={"COLUMNS": str(columns)})
    is_ours = isinstance(done.exception, TasksError)
    return (2 if is_ours else done.exit_code), f"{done.output}{done.exception if is_ours else ''}"


@pytest.mark.parametrize("columns", [80, 100, 200])
def test_the_table_fits_the_terminal_and_has_every_class(columns: int) -> None:
    code, output = models(columns=columns)
    assert code == 0
    assert max(map(len, output.splitlines())) <= columns
    for name, entry in model_capabilities.capability_table().models.items():
        rows = [line for line in output.splitlines() if line.startswith(f"{name} ")]
        taken = [one for _, one in entry.classes() if not one.media.none]
        assert len(rows) == len(taken) or not taken
        assert rows or re.search(rf"\b{name}\b", output)


def test_every_model_has_a_page_that_fits_and_a_command_that_is_right() -> None:
    for name, entry in model_capabilities.capability_table().models.items():
        lines = capability_pages.page(name, 80)
        text = "\n".join(lines)
        assert max(len(one) for one in lines if not one.startswith("    ")) <= 80
        assert text.count(" class") >= len([*entry.classes()])
        for kind, one in entry.classes():
            assert one.media.none or "  run with" in lines
            for fault in (one.media.broken, one.media.mixes, one.media.batch):
                assert one.media.none or fault.split(" ")[0] in text, (name, kind)
        command = " ".join(
            text.partition("\n  run with\n")[2].split("\n\n")[0].replace("\\", "").split()
        )
        if command:
            options = page_commands.host_options(shlex.split(command)[1:])
            assert (options.model, options.tasks) == (name, "maia")


@table(
    "words, code, said",
    [
        (
            ["qwen2_5_vl"],
            0,
            "checkpoints  Qwen/Qwen2.5-VL-7B-Instruct, Qwen/Qwen2.5-VL-72B-Instruct",
        ),
        (["qwen2_5_vl"], 0, "runs         in lmms-eval's process, by transformers"),
        (["openai"], 0, "a run sets   openai: max_frames_num=32 set for maia_vsv"),
        (["openai"], 0, "runs         on a server"),
        (["vllm"], 0, "--model_args model=MODEL"),
        (["aria"], 0, "failure      a request that fails: the previous request's reply again"),
        (["whisper"], 0, "takes        no videos or pictures: Sound only."),
        (["qwen2_5_vl", "--all"], 0, "code: process_vision_info("),
        (["qwen9_vl"], 2, "no such model in lmms-eval"),
        (["--all"], 2, "--all requires the name of a model"),
        (["aria", "--format", "md"], 2, "--format md takes none"),
    ],
)
def test_a_page_says(words: list[str], code: int, said: str) -> None:
    found, output = models(*words)
    assert (found, said in " ".join(output.split()) or said in output) == (code, True), output
    assert ("evidence:" in output) == ("--all" in words and code == 0)
