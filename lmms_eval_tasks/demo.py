"""`lmms-eval-tasks demo`: the packaged sample through the real host, three models side by side.

A tiny random-weight vision-language model (a real host model class on real video files), an oracle
that knows the sample's key, and a coin. The oracle must get everything right and the coin about
chance: if not, the demo fails.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks import benchmarks, rescore, settings
from lmms_eval_tasks.errors import TasksError

if TYPE_CHECKING:
    from rich.console import Console

GROUPS = ("maia",)  # one group per benchmark with a sample
TINY = "tiny random VLM"
ORACLE, COIN = "oracle", "coin"
POOL_CHANCE = 0.5**8  # a pool is eight independent pairs (metrics.md)


def run(out: Path, console: Console) -> None:
    """Build what is needed, run the three models, print the tables and check them.

    Raises:
        TasksError: a run failed, or the oracle or the coin did not get what they must.
    """
    from lmms_eval_tasks import sample, tiny

    started = time.monotonic()
    os.environ[settings.DATA] = settings.SAMPLE
    out = out.resolve()
    root = sample.build(settings.data_root())
    console.print(f"[1/5] packaged sample: {root} ({_megabytes(root):.1f} MB)")
    checkpoint = tiny.build("qwen2_5_vl", out / "tiny-qwen2_5_vl")
    console.print(f"[2/5] tiny random-weight checkpoint: {checkpoint}")
    key = root / "maia" / "key.json"
    models = {
        TINY: (
            "qwen2_5_vl",
            f"pretrained={checkpoint},device=cpu,device_map=cpu,min_pixels=784,"
            "max_pixels=12544,max_num_frames=32",
        ),
        ORACLE: ("tasks_oracle", f"key={key}"),
        COIN: ("tasks_coin", f"key={key},seed=0"),
    }
    results = {}
    for step, (label, (model, arguments)) in enumerate(models.items(), 3):
        folder = out / label.replace(" ", "-")
        console.print(f"[{step}/5] {label}")
        results[label] = _run_host(folder, model, arguments, console)
    rows = [(label, rescore.numbers(result)) for label, result in results.items()]
    console.print("\nSide by side, in the papers' layout (packaged sample, offline judge):\n")
    for name in benchmarks.NAMES:
        for table in benchmarks.load(name).numbers_tables(rows):
            console.print(table)
    _check_oracle(dict(rows)[ORACLE])
    for line in _check_coin(results[COIN]):
        console.print(line)
    console.print(_check_lures(out / COIN, key))
    console.print(f"logs: {out}; {time.monotonic() - started:.0f} s in all")


def _run_host(folder: Path, model: str, arguments: str, console: Console) -> dict[str, Any]:
    """Run the host's command line in a process of its own; returns the run's results."""
    started = time.time()
    command = [
        str(Path(sys.executable).with_name("lmms_eval")),
        *("--model", model, "--model_args", arguments, "--tasks", ",".join(GROUPS)),
        *("--batch_size", "1", "--log_samples", "--output_path", str(folder)),
        *("--judge", "offline", "--data", settings.SAMPLE, "--verbosity", "WARNING"),
    ]
    console.print("  $ " + " ".join(["lmms_eval", *command[1:]]), soft_wrap=True)
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "host.log"
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    with log.open("w", encoding="utf-8") as sink:
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, stderr=sink, text=True, check=False
        )
    if done.returncode != 0:
        tail = "\n".join(log.read_text(encoding="utf-8").splitlines()[-15:])
        raise TasksError(f"the host exited with {done.returncode}; {log} ends with:\n{tail}")
    print(done.stdout)
    found = [p for p in folder.rglob("*_results.json") if p.stat().st_mtime >= started - 1]
    if not found:
        raise TasksError(f"the host wrote no results file under {folder}; see {log}")
    console.print(f"  {time.time() - started:.0f} s")
    newest = max(found, key=lambda p: p.stat().st_mtime)
    results: dict[str, Any] = json.loads(newest.read_text(encoding="utf-8"))
    return results


def _check_oracle(numbers: dict[str, Any]) -> None:
    expected = {
        "maia_vsv": ("pair_acc", "pool_acc"),
        "maia_oevqa": ("judge_acc",),
        "maia": ("agg_acc",),
    }
    for task, metrics in expected.items():
        for metric in metrics:
            if numbers[task].get(metric) != 1.0:
                raise TasksError(
                    f"the oracle got {metric} = {numbers[task].get(metric)} on {task}, not 1: "
                    "the scores of this installation cannot be trusted"
                )


def _check_coin(results: dict[str, Any]) -> list[str]:
    """The coin beside chance; pairs more than four standard errors from one half are an error."""
    numbers = rescore.plain_names(results["results"]["maia_vsv"])
    details = results["lmms_eval_tasks"]["maia"]["details"]["maia_vsv"]
    pairs, pools = details["items"], details["pools"]
    if abs(numbers["pair_acc"] - 0.5) > 4 * 0.5 / math.sqrt(pairs):
        raise TasksError(f"the coin got {numbers['pair_acc']:.1%} of {pairs} pairs, not about 50 %")
    return [
        f"coin: {numbers['pair_acc']:.1%} of {pairs} pairs (chance 50 %)",
        f"coin: {numbers['pool_acc'] * pools:.0f} of {pools} pools = {numbers['pool_acc']:.2%} "
        f"(closed form 0.5^8 = {POOL_CHANCE:.2%}, {POOL_CHANCE * pools:.2f} pools expected)",
    ]


def _check_lures(folder: Path, key: Path) -> str:
    """Every wrong answer that looks right and that the coin gave must have scored 0."""
    lures = json.loads(key.read_text(encoding="utf-8"))["lures"]
    newest = max(folder.rglob("*_samples_maia_oevqa.jsonl"), key=lambda p: p.stat().st_mtime)
    items = [sample["judge_acc"] for sample in rescore.read(newest).samples]
    # By question: what is wrong for one may be right for another.
    given = [item for item in items if item["candidate"] == lures[item["question"]]]
    if not given:
        raise TasksError(f"{newest}: the coin gave none of the wrong answers that look right")
    accepted = [item["id"] for item in given if item["right"]]
    if accepted:
        raise TasksError(f"the judge accepted wrong answers that look right: {accepted}")
    return f"coin: gave {len(given)} wrong answers that look right, all judged wrong"


def _megabytes(folder: Path) -> float:
    return math.fsum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) / 1e6
