"""The commands of docs/models.md are such as the host and the classes take."""

from __future__ import annotations

import re
import shlex
from importlib.resources import files
from pathlib import Path

import pytest

from lmms_eval_tasks import benchmarks
from lmms_eval_tasks.running import Model, class_table, plan
from tests.running.test_classes_host import frame_parameters, registered

ENGINE = Path(__file__).parents[1] / "cases" / "vllm_engine_arguments.txt"
# What the classes pass on: to vLLM's EngineArgs, to SGLang's ServerArgs (of which these two).
MORE = {
    **{name: {*ENGINE.read_text().split()} for name in ("vllm", "vllm_generate")},
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
    assert len(found) > 6
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
        if options.model in MORE:
            assert 64 <= int(options.batch_size) <= 256
            wanted = plan.Needs("maia_vsv", videos=True, frames=frozenset({32}))
            assert plan.of(model, [wanted]).arguments == {}


def test_the_engines_that_need_batches_are_known() -> None:
    told = {
        (name, kind)
        for name, entry in class_table.table().models.items()
        for kind, one in entry.classes()
        if one.media.batches
    }
    engines = {(name, "chat") for name in ("vllm", "vllm_generate", "sglang")}
    assert told == {*engines, ("vllm", "simple")}
