"""`lmms-eval-tasks demo`: four models on the packaged sample, and one screen with the results.

The models run in the real lmms-eval. The oracle has the sample's key. The coin draws replies. The
witness sees and hears MAVERIX's videos. The tiny model is a random vision-language model, in a real
model class of lmms-eval on real video files.

The oracle must get everything right, the coin about chance, and the witness every question that its
media decide; else the demo fails. The open answers of oracle and coin are known beforehand, so
their verdicts are recorded with the sample and read like a judge's replies: they test the scoring,
not a judge. Open answers of the tiny model stay unjudged.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from lmms_eval_tasks import registry, sample, settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges.verdict import NONE, REPLAY
from lmms_eval_tasks.models import fake_replies
from lmms_eval_tasks.models.fake_replies import Chance, Played
from lmms_eval_tasks.notify import notify
from lmms_eval_tasks.runs import messages, prepare
from lmms_eval_tasks.utils import extras
from lmms_eval_tasks.utils import saved_runs as saved
from lmms_eval_tasks.utils.json_files import Json, JsonObject

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

T = TypeVar("T")

ORACLE, COIN, WITNESS, TINY = "oracle", "coin", "witness", "tiny"
STANDARD_ERRORS = 4  # largest distance of a mean from chance, in standard errors
CHECKPOINT = "tiny-qwen2_5_vl"
# A task with a video and open answers, and one with a video and its sound.
TINY_TASKS = ("cvrr_es_partial_actions", "maverix_av")
_TINY = "device=cpu,device_map=cpu,min_pixels=784,max_pixels=12544,max_num_frames=8"
_BUILD = (
    "import sys; from lmms_eval_tasks.models.tiny import build_checkpoint; "
    "build_checkpoint('qwen2_5_vl', sys.argv[1])"
)


class ExpectedNumber(NamedTuple):
    """An expected number in words, and if the run got it."""

    model: str
    benchmark: str
    text: str
    good: bool


class DemoRun(NamedTuple):
    """The model, tasks and options of one process of lmms-eval."""

    name: str
    model: str
    arguments: str
    tasks: Sequence[str]
    judge: str
    more: Sequence[str] = ()


def run(out: Path, console: Console) -> bool:
    """Build what is needed, run the models, print the last screen.

    Each step shows a line with its time while it runs.

    Returns:
        True if all numbers are as expected.

    Raises:
        TasksError: the sample cannot be built, or a process of lmms-eval failed; names its log.
    """
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    started = time.monotonic()
    settings.set_options({settings.DATA: settings.SAMPLE, settings.JUDGE: NONE})
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    there = [name for name in registry.NAMES if not extras.missing(name)]
    for name in {*registry.NAMES} - {*there}:
        notify(f"{name} is skipped; to run it: pip install 'lmms-eval-tasks[{name}]'")
    played = {name: sample.module(name).PLAYED for name in there}
    lines = (SpinnerColumn(finished_text="✓"), TextColumn("{task.description}"))
    with (
        Progress(*lines, TimeElapsedColumn(), console=console) as progress,
        ThreadPoolExecutor(min(os.cpu_count() or 1, 4)) as pool,
    ):

        def stage(name: str, work: Callable[..., T], *args: object) -> T:
            line = progress.add_task(name, total=1)
            made = work(*args)
            progress.update(line, completed=1)
            return made

        # A separate process, since it needs torch.
        build = [sys.executable, "-c", _BUILD, str(out / CHECKPOINT)]
        log = out / "checkpoint.log"
        tiny = pool.submit(stage, "tiny random checkpoint", lambda: _process(build, log))
        root = stage("packaged sample", sample.build_sample, settings.data_root())
        known = [task for one in played.values() for task in one.expected]
        stage("key of all requests", write_key, out / "key.json", known)
        texts = (file.read_text(encoding="utf-8") for file in sorted(root.glob("*/replay.jsonl")))
        # One file, since a run has one judge.
        (out / "replay.jsonl").write_text("".join(texts), encoding="utf-8")
        runs = {}
        for model in models(out, [task for one in played.values() for task in one.tasks]):
            if model.name == TINY:
                tiny.result()
            runs[model.name] = pool.submit(stage, model.name, _run_host, out / model.name, model)
        results = {name: one.result() for name, one in runs.items()}
        page = None if extras.missing("report") else stage("report", write_report, out)
    checks = list(checked(played, results, out / COIN))
    for line in screen(played, results, checks):
        console.print(line, highlight=False)
    good = [check.good for check in checks]
    verdict = "[bold green]PASS[/]" if all(good) else "[bold red]FAIL[/]"
    seconds = time.monotonic() - started
    from rich.markup import escape

    for line in (
        f"\n{verdict}  {sum(good)} of {len(good)} numbers as expected, {seconds:.0f} s",
        f"results  {escape(str(out))}/MODEL/, with all tables; lmms-eval's output is in host.log",
        f"page     {escape(str(page))}: the four models side by side, and every item"
        if page
        else r"page     none: pip install 'lmms-eval-tasks\[report]'",
        "next     lmms_eval --tasks maia --data YOUR_DATA --log_samples --output_path out \\",
        "           --model qwen2_5_vl --model_args pretrained=Qwen/Qwen2.5-VL-7B-Instruct",
    ):
        console.print(line, highlight=False, soft_wrap=True)
    return all(good)


def models(out: Path, tasks: Sequence[str]) -> list[DemoRun]:
    """The runs of the demo, in order."""
    key, replay = f"key={out / 'key.json'}", f"{REPLAY}:{out / 'replay.jsonl'}"
    checkpoint = f"pretrained={out / CHECKPOINT},{_TINY}"
    short = ("--gen_kwargs", "max_new_tokens=16")  # a random model does not end its replies
    return [
        DemoRun(ORACLE, "tasks_oracle", key, tasks, replay),
        DemoRun(COIN, "tasks_coin", f"{key},seed=0", tasks, replay),
        DemoRun(WITNESS, "tasks_witness", "", ("maverix_table3",), NONE),
        DemoRun(TINY, "qwen2_5_vl", checkpoint, TINY_TASKS, NONE, short),
    ]


def write_report(out: Path) -> Path:
    """Write the report page of the runs in `out`, the oracle's first, and return its path."""
    from lmms_eval_tasks.report import compared_runs, run_page

    found = compared_runs.read_sides([out / name for name in (ORACLE, COIN, WITNESS, TINY)])
    page = out / "report.html"
    page.write_text(run_page.html(found), encoding="utf-8")
    return page


def write_key(path: Path, names: Sequence[str]) -> Path:
    """Write the fingerprint and the replies of each request of tasks, the right reply first.

    The fingerprint of a request covers its media (fake_replies.Key), so they are made here, and
    kept for the run that follows. Groups among the names are skipped.

    Args:
        path: the file to write.
        names: tasks and groups.

    Returns:
        `path`.

    Raises:
        TasksError: the data cannot be used.
    """
    found = {}
    for name in names:
        benchmark = registry.of(name)
        for doc in prepare.usable_docs(benchmark, name) if name in benchmark.tasks else ():
            known, parts = fake_replies.known_replies(doc), benchmark.tasks[name].prompt(doc)
            chat = fake_replies.of_messages(messages.messages_of(parts))
            simple = fake_replies.of_visuals(messages.visuals_of(parts), messages.text_of(parts))
            for asked in (chat, simple):
                found[fake_replies.fingerprint(asked)] = [known.right, *known.random_replies]
    path.write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")
    return path


def _run_host(folder: Path, model: DemoRun) -> JsonObject:
    """Run a process of lmms-eval, and return the content of its results file."""
    shutil.rmtree(folder, ignore_errors=True)  # the folder of an earlier demo
    folder.mkdir()
    command = [
        str(Path(sys.executable).with_name("lmms_eval")),
        *("--model", model.model, "--model_args", model.arguments),
        *("--tasks", ",".join(model.tasks), "--batch_size", "1", *model.more),
        *("--log_samples", "--output_path", str(folder), "--verbosity", "WARNING"),
        # The recordings have no verdicts on the coin's summaries, which nobody could know.
        *("--data", settings.SAMPLE, "--judge", model.judge, "--max-failed", "1"),
    ]
    _process(command, folder / "host.log")
    (file,) = folder.rglob("*_results.json")
    results: JsonObject = json.loads(file.read_text(encoding="utf-8"))
    return results


def _process(command: Sequence[str], log: Path) -> None:
    """Run a command with all its output in the file `log`.

    Raises:
        TasksError: it failed; has the last 15 lines.
    """
    quiet = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    # Two processes at a time share the cores, where torch's threads would wait for each other.
    quiet |= {"OMP_NUM_THREADS": "1", settings.JUDGE: "", settings.TABLES: ""}
    with log.open("w", encoding="utf-8") as sink:
        done = subprocess.run(
            command, env={**os.environ, **quiet}, stdout=sink, stderr=sink, check=False
        )
    if done.returncode != 0:
        tail = "\n".join(log.read_text(encoding="utf-8").splitlines()[-15:])
        raise TasksError(f"{command[0]} exited with {done.returncode}; {log} ends with:\n{tail}")


# --- expected numbers -----------------------------------------------------------------------------


def checked(
    played: Mapping[str, Played], results: Mapping[str, Mapping[str, Json]], folder: Path
) -> Iterator[ExpectedNumber]:
    """Yield every expected number."""
    numbers = {name: saved.numbers(one) for name, one in results.items()}
    for name, one in played.items():
        yield from check_right_replies(name, one, numbers[ORACLE])
        for chance in one.chances:
            files = [
                file for task in chance.tasks for file in folder.rglob(f"*_samples_{task}.jsonl")
            ]
            items = [
                sample["failed"] for file in files for sample in saved.read_saved_run(file).samples
            ]
            yield check_chance(name, chance, items)
    for task, decided in sample.module("maverix").DECIDED.items():
        n = results[WITNESS]["n-samples"][task]["effective"]
        yield check_probe(task, decided, numbers[WITNESS][task]["acc"], n)


def check_right_replies(
    name: str, played: Played, numbers: Mapping[str, Json]
) -> Iterator[ExpectedNumber]:
    """Yield every number of a benchmark that the oracle must get."""
    for task, metrics in played.expected.items():
        for metric, value in metrics.items():
            got = numbers.get(task, {}).get(metric)
            # A mean of correlations may differ in its last bits.
            good = isinstance(got, float | int) and math.isclose(got, value, rel_tol=1e-9)
            yield ExpectedNumber(ORACLE, name, f"{task} {metric} = {got}, not {value:g}", good)


def check_chance(name: str, chance: Chance, items: Sequence[Mapping[str, Json]]) -> ExpectedNumber:
    """Check that the coin's mean is within STANDARD_ERRORS of the mean that chance gives."""
    values, expected = list(map(chance.value, items)), list(map(chance.expected, items))
    off = [value - mean for value, mean in zip(values, expected, strict=True)]
    good = abs(fmean(off)) <= STANDARD_ERRORS * stdev(off) / math.sqrt(len(off))
    text = f"{chance.label} {fmean(values):.3f} (chance {fmean(expected):.3f}, n {len(items)})"
    return ExpectedNumber(COIN, name, text, good)


def check_probe(mode: str, decided: int, share: float, n: int) -> ExpectedNumber:
    """Check the witness: its media decide `decided` of n items, the others are 1 in 8 guesses."""
    guessed, others = share * n - decided, n - decided
    good = -1e-9 <= guessed <= others / 8 + STANDARD_ERRORS * math.sqrt(others * 7 / 64)
    text = f"{mode:11} acc {share:.2f} ({decided} of {n} decided by what reached it)"
    return ExpectedNumber(WITNESS, "maverix", text, good)


# --- the last screen ------------------------------------------------------------------------------


def screen(
    played: Mapping[str, Played],
    results: Mapping[str, Mapping[str, Json]],
    checks: Sequence[ExpectedNumber],
) -> Iterator[RenderableType]:
    """The last screen: the runs, the benchmarks' headline numbers, and the expected numbers."""
    from rich.table import Table

    said = {
        ORACLE: "gives the right reply to every request, from the sample's key",
        COIN: "gives a random reply of the key",
        WITNESS: "sees, hears and reads the coded seconds of MAVERIX's videos",
        TINY: "random weights in Qwen2.5-VL's class; open answers stay unjudged",
    }
    ran = Table("model", "what it does", "tasks", "items", box=None, pad_edge=False)
    for name, result in results.items():
        counts = [count["effective"] for count in result["n-samples"].values()]
        ran.add_row(name, said[name], str(len(counts)), f"{sum(counts):,}")
    yield ran
    yield ""
    columns = ("benchmark", "headline number", "oracle", "coin", "the oracle's numbers")
    found = Table(*columns, box=None, pad_edge=False)
    numbers = {name: saved.numbers(one) for name, one in results.items()}
    for name, one in played.items():
        task, metric = one.headline
        values = (f"{numbers[model][task][metric]:.3f}" for model in (ORACLE, COIN))
        own = [check.good for check in checks if (check.model, check.benchmark) == (ORACLE, name)]
        tick = f"{_mark(all(own))} {sum(own)} of {len(own)} as expected"
        found.add_row(registry.load_benchmark(name).title, f"{task} {metric}", *values, tick)
    yield found
    yield ""
    for check in checks:
        if check.model != ORACLE or not check.good:
            yield f"{_mark(check.good)} {check.model:8} {check.benchmark:14} {check.text}"


def _mark(good: bool) -> str:
    return "[green]✓[/]" if good else "[red]✗[/]"
