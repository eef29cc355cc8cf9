"""The overhead of our tasks in lmms-eval: 19,200 pairs with its `dummy` model.

The plain task has 20 lines. Both have the same docs and texts of one made-up release (100 videos,
links to one clip). They run in turn, each in its own process. The output has seconds and bytes of
the sample log, and their ratios.

    python benchmarks/host_overhead.py [--rounds 2] [--videos 100]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PLAIN = """
task: plain_pairs
dataset_path: json
dataset_kwargs:
  data_files:
    test: {docs}
test_split: test
output_type: generate_until
doc_to_visual: !function plain.visual
doc_to_text: !function plain.text
doc_to_target: answer
process_results: !function plain.score
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
generation_kwargs:
  max_new_tokens: 64
  until: []
"""
FUNCTIONS = """
def visual(doc):
    return [doc["video_path"]]


def text(doc, lmms_eval_specific_kwargs=None):
    return doc["text"]


def score(doc, results):
    return {"acc": float(results[0].strip() == doc["answer"])}
"""


def release(root: Path, videos: int) -> None:
    """Write a release in MAIA's layout, made of the packaged sample's questions."""
    from lmms_eval_tasks import sample

    made = sample.build_sample(root / "sample") / "maia"
    first, *_ = json.loads((made / "data.json").read_text(encoding="utf-8"))
    folder = root / "data" / "maia"
    (folder / "videos").mkdir(parents=True)
    content = [{**first, "video": f"video{n}"} for n in range(1, videos + 1)]
    (folder / "data.json").write_text(json.dumps(content), encoding="utf-8")
    for n in range(1, videos + 1):
        os.link(made / "videos" / "1.mp4", folder / "videos" / f"{n}.mp4")


def plain_task(root: Path, environment: dict[str, str]) -> None:
    """Write the same docs as a JSON lines file, and the task of 20 lines."""
    folder = root / "plain"
    folder.mkdir()
    code = (
        "import json,sys\n"
        "from lmms_eval_tasks import registry\n"
        "from lmms_eval_tasks.runs import messages, prepare\n"
        "maia = registry.load_benchmark('maia')\n"
        "for doc in prepare.usable_docs(maia, 'maia_vsv'):\n"
        "    text = messages.text_of(maia.tasks['maia_vsv'].prompt(doc))\n"
        "    print(json.dumps({**doc, 'text': text}))\n"
    )
    made = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    (folder / "docs.jsonl").write_text(made.stdout, encoding="utf-8")
    (folder / "plain.py").write_text(FUNCTIONS, encoding="utf-8")
    text = PLAIN.format(docs=folder / "docs.jsonl")
    (folder / "plain.yaml").write_text(text, encoding="utf-8")


def run(task: str, root: Path, number: int, environment: dict[str, str]) -> tuple[float, int]:
    """Return the seconds of one run, and the bytes of its sample log."""
    out = root / "out" / f"{task}-{number}"
    command = [
        *(sys.executable, "-m", "lmms_eval", "--model", "dummy", "--tasks", task),
        *("--include_path", str(root / "plain"), "--batch_size", "1", "--log_samples"),
        *("--output_path", str(out), "--verbosity", "ERROR"),
    ]
    started = time.perf_counter()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    seconds = time.perf_counter() - started
    return seconds, sum(file.stat().st_size for file in out.rglob("*_samples_*.jsonl"))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--videos", type=int, default=100)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        release(root, given.videos)
        environment = {
            **os.environ,
            "LMMS_EVAL_TASKS_DATA": str(root / "data"),
            "LMMS_EVAL_TASKS_CACHE": str(root / "cache"),
            "HF_HUB_OFFLINE": "1",
            "HF_HOME": str(root / "huggingface"),
        }
        plain_task(root, environment)
        found: dict[str, list[tuple[float, int]]] = {"plain_pairs": [], "maia_vsv": []}
        for number in range(given.rounds):
            for task, runs in found.items():
                runs.append(run(task, root, number, environment))
        for task, runs in found.items():
            shown = ", ".join(f"{seconds:.0f}" for seconds, _ in runs)
            print(f"{task}: {shown} s, {runs[0][1] / 1e6:.1f} MB of samples")
        ours, theirs = found["maia_vsv"], found["plain_pairs"]
        ratios = [one[0] / other[0] for one, other in zip(ours, theirs, strict=True)]
        print(f"time {statistics.median(ratios):.2f} x, log {ours[0][1] / theirs[0][1]:.2f} x")


if __name__ == "__main__":
    main()
