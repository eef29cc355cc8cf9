"""`lmms-eval-tasks demo`: the packaged sample through the real host, three models side by side.

A tiny random-weight vision-language model (a real host model class on real video files), an oracle
that knows the sample's key, and a coin. The oracle must get everything right and the coin about
chance: if not, the demo fails. What these two can say in open answers is known beforehand, so its
verdicts are recorded with the sample and read as a judge's replies are: they test the way to the
score, not a judge. The tiny model's own words stay unjudged, and so does what has no recording.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from lmms_eval_tasks import benchmarks, settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges.verdict import NONE, REPLAY
from lmms_eval_tasks.report.fold import show
from lmms_eval_tasks.runs import screen
from lmms_eval_tasks.utils import saved_runs as saved

if TYPE_CHECKING:
    from rich.console import Console

TINY = "tiny random VLM"
ORACLE, COIN = "oracle", "coin"
_SHORT = "max_new_tokens=32"  # of the tiny model, which does not know when to stop


class Part(Protocol):
    """What each `lmms_eval_tasks.<name>.demo` module offers.

    Attributes:
        TASKS: what is run, tasks or groups; no task is in the TASKS of two benchmarks.
        ORACLE: task or group -> what the oracle must have in each metric.
    """

    TASKS: tuple[str, ...]
    ORACLE: Mapping[str, Mapping[str, float]]

    def check_coin(self, results: Mapping[str, Any], samples: Path, key: Path) -> list[str]:
        """What the coin got, in lines to print.

        Args:
            results: the run's results file.
            samples: the folder with its saved samples.
            key: the key of the benchmark's sample.

        Raises:
            TasksError: it is not what a coin gets.
        """


def check_chance(share: float, chance: float, draws: int, what: str) -> str:
    """A line with the coin's share of right draws beside chance.

    Raises:
        TasksError: they differ by more than four standard errors.
    """
    if abs(share - chance) > 4 * math.sqrt(chance * (1 - chance) / draws):
        raise TasksError(f"the coin got {share:.1%} of {draws} {what}, not about {chance:.1%}")
    return f"coin: {share:.1%} of {draws} {what} (chance {chance:.1%})"


def run(out: Path, console: Console) -> None:
    """Build what is needed, run the three models, print the tables and check them.

    Raises:
        TasksError: a run failed, or the oracle or the coin did not get what they must.
    """
    from lmms_eval_tasks import sample
    from lmms_eval_tasks.sample import tiny

    started = time.monotonic()
    settings.say({settings.DATA: settings.SAMPLE})
    out = out.resolve()
    root = sample.build(settings.data_root())
    console.print(f"[1/5] packaged sample: {root} ({_megabytes(root):.1f} MB)")
    checkpoint = tiny.build("qwen2_5_vl", out / "tiny-qwen2_5_vl")
    console.print(f"[2/5] tiny random-weight checkpoint: {checkpoint}")
    parts = {name: _part(name) for name in benchmarks.NAMES}
    key = _joined_key(root, out / "key.json")
    replay = f"{REPLAY}:{_joined_recordings(root, out / 'replay.jsonl')}"
    models = {
        TINY: (
            "qwen2_5_vl",
            f"pretrained={checkpoint},device=cpu,device_map=cpu,min_pixels=784,"
            "max_pixels=12544,max_num_frames=32",
        ),
        ORACLE: ("tasks_oracle", f"key={key}"),
        COIN: ("tasks_coin", f"key={key},seed=0"),
    }
    tasks = [task for part in parts.values() for task in part.TASKS]
    found: dict[str, dict[str, Any]] = {}
    for step, (label, model) in enumerate(models.items(), 3):
        console.print(f"[{step}/5] {label}")
        judge = NONE if label == TINY else replay
        found[label] = _run_host(out / label.replace(" ", "-"), model, tasks, judge, console)
    rows = [(label, saved.numbers(results)) for label, results in found.items()]
    console.print("\nSide by side, in the papers' layout (packaged sample):\n")
    for name in benchmarks.NAMES:
        show(console, screen.chosen(benchmarks.load(name), rows))
    for name, part in parts.items():
        _check_oracle(dict(rows)[ORACLE], part.ORACLE)
        for line in part.check_coin(found[COIN], out / COIN, root / name / "key.json"):
            console.print(line)
    console.print(f"logs: {out}; {time.monotonic() - started:.0f} s in all")


def _part(name: str) -> Part:
    return cast(Part, importlib.import_module(f"lmms_eval_tasks.{name}.demo"))


def _joined_key(root: Path, path: Path) -> Path:
    """One key file of all samples, since a run has one: questions and statements are all unlike."""
    joined: dict[str, Any] = {}
    for name in benchmarks.NAMES:
        key = json.loads((root / name / "key.json").read_text(encoding="utf-8"))
        for part, entries in key.items():
            before = joined.get(part, type(entries)())
            joined[part] = before + entries if isinstance(entries, list) else before | entries
    path.write_text(json.dumps(joined, ensure_ascii=False), encoding="utf-8")
    return path


def _joined_recordings(root: Path, path: Path) -> Path:
    """One file of all samples' recorded verdicts, since a run has one judge."""
    texts = (file.read_text(encoding="utf-8") for file in sorted(root.glob("*/replay.jsonl")))
    path.write_text("".join(texts), encoding="utf-8")
    return path


def _run_host(
    folder: Path, model: tuple[str, str], tasks: Sequence[str], judge: str, console: Console
) -> dict[str, Any]:
    """Run the host's command line in a process of its own; returns the run's results."""
    started = time.time()
    command = [
        str(Path(sys.executable).with_name("lmms_eval")),
        *("--model", model[0], "--model_args", model[1], "--tasks", ",".join(tasks)),
        *("--batch_size", "1", "--log_samples", "--output_path", str(folder)),
        # The coin's summaries are not recorded: nobody could know them.
        *("--judge", judge, "--max-failed", "1"),
        *("--data", settings.SAMPLE, "--verbosity", "WARNING"),
        *(() if model[0].startswith("tasks_") else ("--gen_kwargs", _SHORT)),
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
    # The host's table has a line for each of hundreds of metrics: the papers' tables follow.
    tables = folder / "host-tables.txt"
    tables.write_text(done.stdout, encoding="utf-8")
    found = [p for p in folder.rglob("*_results.json") if p.stat().st_mtime >= started - 1]
    if not found:
        raise TasksError(f"the host wrote no results file under {folder}; see {log}")
    console.print(
        f"  {time.time() - started:.0f} s; the host's own table: {tables}", soft_wrap=True
    )
    newest = max(found, key=lambda p: p.stat().st_mtime)
    results: dict[str, Any] = json.loads(newest.read_text(encoding="utf-8"))
    return results


def _check_oracle(numbers: Mapping[str, Any], expected: Mapping[str, Mapping[str, float]]) -> None:
    for task, metrics in expected.items():
        for metric, value in metrics.items():
            got = numbers[task].get(metric)
            # A mean of correlations may differ in its last bits.
            if not isinstance(got, float | int) or not math.isclose(got, value, rel_tol=1e-9):
                raise TasksError(
                    f"the oracle got {metric} = {got} on {task}, not {value:g}: the scores of this "
                    "installation cannot be trusted"
                )


def _megabytes(folder: Path) -> float:
    return math.fsum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) / 1e6
