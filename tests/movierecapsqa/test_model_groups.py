"""Open-source and proprietary models: the map of names, and their rows in the paper's tables."""

from __future__ import annotations

import pytest

from lmms_eval_tasks.console import table_console
from lmms_eval_tasks.movierecapsqa import model_groups, published, report

QWEN = "qwen2_5_vl (pretrained=Qwen/Qwen2.5-VL-7B-Instruct,max_num_frames=32)"
LLAVA = "llava_vid (pretrained=lmms-lab/LLaVA-Video-7B-Qwen2)"
GPT = "openai (model_version=gpt-4o-2024-11-20)"


@pytest.mark.parametrize(
    ("model", "group"),
    [
        (QWEN, "open-source"),
        (LLAVA, "open-source"),
        (GPT, "proprietary"),
        ("openai (model_version=Qwen/Qwen2.5-VL-72B,base_url=http://gpu)", "open-source"),
        ("gemini_api (model_version=gemini-2.5-flash)", "proprietary"),
        ("my_variant (pretrained=x)", None),
        ("tasks_oracle", None),
    ],
)
def test_group_of(model: str, group: str | None) -> None:
    assert model_groups.group_of(model) == group


def test_the_paper_s_own_models() -> None:
    for group, models in published.groups().items():
        for model in models:
            assert model_groups.group_of(model) == group, model


def test_means_need_every_model_s_number() -> None:
    one = {"factuality_valid": 3.0, "factuality_var": 1.0, "relevance_valid": 4.0}
    two = {"factuality_valid": 4.0, "factuality_var": 2.0, "relevance_valid": None}
    assert model_groups.mean_of([one, two]) == {"factuality_valid": 3.5, "relevance_valid": None}


def test_rows_of_groups_and_their_differences() -> None:
    def numbers(both: float, frames: float) -> dict[str, dict[str, float]]:
        return {
            "movierecapsqa_segment": {"factuality_valid": both},
            "movierecapsqa_segment_frames": {"factuality_valid": frames},
        }

    rows = [(QWEN, numbers(3.0, 2.0)), (LLAVA, numbers(4.0, 2.5)), (GPT, numbers(5.0, 1.0))]
    console = table_console()
    with console.capture() as captured:
        for table in report.tables(rows):
            console.print(table)
    lines = [" ".join(line.split()) for line in captured.get().splitlines()]
    text = " ".join(lines)
    assert "mean of 2 open-source models" in text.replace("open- source", "open-source")
    assert "proprietary" not in text  # one model is no group
    assert any("3.50" in line for line in lines)
    assert any("-1.25" in line for line in lines)
