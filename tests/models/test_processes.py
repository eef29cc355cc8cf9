"""Our models and the tiny checkpoint through the host's evaluator, in one and in two processes.

The two are told what torchrun tells its processes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.sample import tiny

pytestmark = pytest.mark.host

N = 7  # odd: one of two ranks gets a padding request

FUNCTIONS = """
import os

def visual(doc):
    return [doc["video"]]

def text(doc, lmms_eval_specific_kwargs=None):
    return "Quale?\\nA. {}\\nB. {}".format(*doc["options"])

def messages(doc, lmms_eval_specific_kwargs=None):
    parts = [{"type": "video", "url": doc["video"]}, {"type": "text", "text": text(doc)}]
    return [{"role": "user", "content": parts}]

def process(doc, results):
    rank = os.environ.get("RANK", "0")
    right = results[0] == doc["answer"]
    return {"acc": {"id": doc["id"], "right": right, "reply": results[0], "rank": rank}}

def mean(items):
    return sum(item["right"] for item in items) / len(items)
"""

TASK = """
task: tiny_pairs
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: generate_until
doc_to_visual: !function functions.visual
doc_to_text: !function functions.text
doc_to_messages: !function functions.messages
doc_to_target: answer
generation_kwargs: {{max_new_tokens: 4, until: []}}
process_results: !function functions.process
metric_list: [{{metric: acc, aggregation: !function functions.mean, higher_is_better: true}}]
metadata: {{version: 1}}
"""


def write_video(path: Path, shade: int) -> None:
    """Twelve frames of growing brightness, 64 x 48."""
    import av
    import numpy as np

    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for i in range(12):
            pixels = np.full((48, 64, 3), shade + 8 * i, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, "rgb24")))
        container.mux(stream.encode())


@pytest.fixture(scope="module")
def replies(
    launch: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("processes")
    for kind in ("qwen2_5_vl", "gpt2", "llama"):
        tiny.build(kind, folder / kind)
    pairs = [(f"La scatola {i} è blu.", f"La scatola {i} è rossa, no?") for i in range(N)]
    docs = []
    for i, pair in enumerate(pairs):
        video = folder / f"{i % 2}.mp4"
        if i < 2:
            write_video(video, 120 * i)
        options, answer = (pair, "A") if i % 3 else (pair[::-1], "B")
        docs.append({"id": f"v/{i}", "options": options, "answer": answer, "video": str(video)})
    data = folder / "docs.jsonl"
    data.write_text("\n".join(map(json.dumps, docs)), encoding="utf-8")
    (folder / "key.json").write_text(json.dumps({"pairs": pairs}), encoding="utf-8")
    (folder / "tasks").mkdir()
    (folder / "tasks" / "functions.py").write_text(FUNCTIONS, encoding="utf-8")
    (folder / "tasks" / "tiny_pairs.yaml").write_text(TASK.format(data=data), encoding="utf-8")

    script = [sys.executable, str(Path(__file__).with_name("processes_script.py")), str(folder)]
    commands = {
        "one": ([*script, "one"], 1),
        "two": ([*script, "two"], 2),
        "api": ([*script, "api", "oracle", "lm_pairs"], 2),
    }
    found = {}
    for name, (command, processes) in commands.items():
        done = launch(command, folder / f"run-{name}", processes=processes)
        assert done.code == 0, done.stderr[-3000:]
        found[name] = json.loads((folder / f"{name}.json").read_text("utf-8"))
    return found


def without_rank(run: dict[str, Any]) -> list[dict[str, Any]]:
    return [{k: v for k, v in item.items() if k != "rank"} for item in run["items"]]


LABELS = ["oracle", "oracle simple", "coin", "scripted", "lm_pairs", "qwen chat", "qwen simple"]


@pytest.mark.parametrize("label", LABELS)
def test_two_processes_share_the_work_and_reply_the_same(
    label: str, replies: dict[str, dict[str, dict[str, Any]]]
) -> None:
    one, two = replies["one"][label], replies["two"][label]
    assert [item["rank"] for item in one["items"]] == ["0"] * N
    assert [item["rank"] for item in two["items"]] == ["0", "1", "0", "1", "0", "1", "0"]
    assert without_rank(one) == without_rank(two)
    assert one["acc"] == two["acc"]


def test_simple_evaluate_alone_under_torchrun(
    replies: dict[str, dict[str, dict[str, Any]]],
) -> None:
    assert list(replies["api"]) == ["oracle", "lm_pairs"]
    for label, run in replies["api"].items():
        assert run["items"] == replies["two"][label]["items"]
        assert run["acc"] == replies["two"][label]["acc"]


def test_what_they_reply(replies: dict[str, dict[str, dict[str, Any]]]) -> None:
    one = replies["one"]
    assert list(one) == LABELS
    assert one["oracle"]["acc"] == one["oracle simple"]["acc"] == 1
    assert {item["reply"] for item in one["coin"]["items"]} == {"A", "B"}
    for label in ("qwen chat", "qwen simple"):
        # Not one reply to everything: what it is given does reach the model.
        assert len({item["reply"] for item in one[label]["items"]}) > 1
    for item in one["lm_pairs"]["items"]:
        assert len(json.loads(item["reply"])["lm_pairs"]["scores"]) == 2
