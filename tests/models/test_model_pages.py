"""The commands of docs/models.md are such as the host and the classes take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lmms_eval_tasks.context import RunModel
from lmms_eval_tasks.models import model_capabilities, plan
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
