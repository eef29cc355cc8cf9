"""The commands of docs/models.md are such as the host and the classes take."""

from __future__ import annotations

import re
import shlex
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import benchmarks, running
from lmms_eval_tasks.running import Model, class_table, plan
from tests.checks import table
from tests.running.test_classes_host import frame_parameters, module_file, registered

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


def parsed(words: list[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """As the host reads them."""
    from lmms_eval import __main__ as host

    monkeypatch.setattr("sys.argv", words)
    _, options = host.parse_eval_args()
    return options


def test_every_command_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    from lmms_eval.utils import simple_parse_args_string

    found = commands()
    assert len(found) > 8
    names = {name for one in benchmarks.NAMES for name in tasks_of(one)}
    for words in found:
        options = parsed(words, monkeypatch)
        assert set(options.tasks.split(",")) <= names
        arguments = simple_parse_args_string(options.model_args)
        path = registered()[options.model].chat_class_path.rpartition(".")[0]
        known = frame_parameters(module_file(path))
        known |= MORE.get(options.model, set())
        assert set(arguments) <= known
        model = Model(options.model, "chat", arguments)
        with running.model(model):
            assert running.advice(int(options.batch_size)) == []
        if options.model in MORE:
            assert 64 <= int(options.batch_size) <= 256
            wanted = plan.Needs("maia_vsv", videos=True, frames=frozenset({32}))
            assert plan.of(model, [wanted]).arguments == {}


def tasks_of(benchmark: str) -> set[str]:
    folder = files("lmms_eval_tasks").joinpath(benchmark)
    return {Path(str(one)).stem for one in folder.iterdir() if str(one).endswith(".yaml")}


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
    with running.model(Model(name, interface, arguments)):
        found = running.advice(batch_size)
    assert len(found) == len(said)
    for line, words in zip(found, said, strict=True):
        assert words in line
        assert line.endswith(f"(lmms-eval-tasks models {name})")
    assert running.advice(batch_size) == []  # nothing is run


def test_the_engines_that_need_batches_are_known() -> None:
    told = {
        (name, kind)
        for name, entry in class_table.table().models.items()
        for kind, one in (("chat", entry.chat), ("simple", entry.simple))
        if one and isinstance(one.media, class_table.Media) and one.media.batches
    }
    assert told == {
        *(("vllm", "chat"), ("vllm", "simple"), ("vllm_generate", "chat")),
        *(("sglang", "chat"), ("tasks_vllm", "chat")),
    }
