"""The commands of docs/models.md are such as the host and the classes take."""

from __future__ import annotations

import re
import shlex
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import benchmarks
from lmms_eval_tasks.running import Model, class_table, plan
from tests.checks import table
from tests.running.test_classes_host import frame_parameters, registered

ENGINE = Path(__file__).parents[1] / "models" / "stub_vllm" / "engine_arguments.txt"
# What the classes pass on: to vLLM's EngineArgs, to SGLang's ServerArgs (of which these two).
MORE = {
    **{name: {*ENGINE.read_text().split()} for name in ("tasks_vllm", "vllm", "vllm_generate")},
    "sglang": {"mm_process_config", "dp_size"},
}


def commands() -> list[list[str]]:
    """The words of each command of the host; its launcher is left out."""
    page = files("lmms_eval_tasks.running").joinpath("recipes.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```bash\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    words = [shlex.split(line) for line in lines]
    return [one[one.index("lmms_eval") :] for one in words if "lmms_eval" in one]


def test_every_command_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    from lmms_eval import __main__ as host
    from lmms_eval.utils import simple_parse_args_string

    found = commands()
    assert len(found) > 8
    names = {x for one in benchmarks.NAMES for x in benchmarks.load(one).tasks}
    names |= {x for one in benchmarks.NAMES for x in benchmarks.groups(one)}
    for words in found:
        monkeypatch.setattr("sys.argv", words)
        _, options = host.parse_eval_args()  # as the host reads them
        assert set(options.tasks.split(",")) <= names
        arguments = simple_parse_args_string(options.model_args)
        known = frame_parameters(registered()[options.model].chat_class_path)
        known |= MORE.get(options.model, set())
        assert set(arguments) <= known
        model = Model(options.model, "chat", arguments)
        assert class_table.advice(model, int(options.batch_size)) == []
        if options.model in MORE:
            assert 64 <= int(options.batch_size) <= 256
            wanted = plan.Needs("maia_vsv", videos=True, frames=frozenset({32}))
            assert plan.of(model, [wanted]).arguments == {}


@table(
    "name, interface, arguments, batch_size, said",
    [
        ("vllm", "chat", {}, 1, ["pass --batch_size 64", "max_new_tokens: at least 4096"]),
        ("vllm", "chat", {"max_new_tokens": 128}, 1, ["pass --batch_size 64"]),
        ("vllm", "simple", {}, 64, ["at least 1024"]),
        ("sglang", "chat", {}, 1, ["one request at a time"]),
        ("sglang", "chat", {}, 64, []),
        ("tasks_vllm", "chat", {}, 1, ["it takes 64"]),
        ("tasks_vllm", "chat", {}, 64, []),
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
    found = class_table.advice(Model(name, interface, arguments), batch_size)
    assert len(found) == len(said)
    for line, words in zip(found, said, strict=True):
        assert words in line
        assert line.endswith(f"(lmms-eval-tasks models {name})")


def test_the_engines_that_need_batches_are_known() -> None:
    told = {
        (name, kind)
        for name, entry in class_table.table().models.items()
        for kind, one in entry.classes()
        if one.media.batches
    }
    engines = {(name, "chat") for name in ("vllm", "vllm_generate", "sglang", "tasks_vllm")}
    assert told == {*engines, ("vllm", "simple")}
