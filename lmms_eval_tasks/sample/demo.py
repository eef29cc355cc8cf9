"""`lmms-eval-tasks demo`: the packaged sample through the real host, four models, one last screen.

An oracle that has the sample's key, a coin, a witness that sees and hears MAVERIX's videos, and a
tiny random vision-language model (a real model class of the host on real video files). The oracle
must get everything right, the coin about chance, the witness what its eyes and ears decide: if not,
the demo fails. What oracle and coin can say in open answers is known beforehand, so its verdicts
are recorded with the sample and read as a judge's replies are: they test the way to the score, not
a judge. The tiny model's own words stay unjudged.
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
from lmms_eval_tasks.notify import say
from lmms_eval_tasks.runs import messages, prepare
from lmms_eval_tasks.utils import extras
from lmms_eval_tasks.utils import saved_runs as saved
from lmms_eval_tasks.utils.json_files import Json, JsonObject

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

T = TypeVar("T")

ORACLE, COIN, WITNESS, TINY = "oracle", "coin", "witness", "tiny"
STANDARD_ERRORS = 4  # how far from chance a mean may be
CHECKPOINT = "tiny-qwen2_5_vl"
# One task with a video and open answers, one with a video and its sound.
TINY_TASKS = ("cvrr_es_partial_actions", "maverix_av")
_TINY = "device=cpu,device_map=cpu,min_pixels=784,max_pixels=12544,max_num_frames=8"
_BUILD = (
    "import sys; from lmms_eval_tasks.models import tiny; tiny.build('qwen2_5_vl', sys.argv[1])"
)


class ExpectedNumber(NamedTuple):
    """A number that was expected, and whether it came out so."""

    model: str
    benchmark: str
    text: str
    good: bool


class DemoRun(NamedTuple):
    """The model and tasks that one process of the host runs."""

    name: str
    model: str
    arguments: str
    tasks: Sequence[str]
    judge: str
    more: Sequence[str] = ()


def run(out: Path, console: Console) -> bool:
    """Build what is needed, run the models, print the last screen; whether all numbers are right.

    Each piece of work has a line with its time while it works.

    Raises:
        TasksError: the sample cannot be built, or a process of the host failed; says where its log
            is.
    """
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    started = time.monotonic()
    settings.say({settings.DATA: settings.SAMPLE, settings.JUDGE: NONE})
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    there = [name for name in registry.NAMES if not extras.missing(name)]
    for name in {*registry.NAMES} - {*there}:
        say(f"{name} is skipped; to run it: pip install 'lmms-eval-tasks[{name}]'")
    played = {name: sample.module(name).PLAYED for name in there}
    lines = (SpinnerColumn(finished_text="✓"), TextColumn("{task.description}"))
    with (
        Progress(*lines, TimeElapsedColumn(), console=console) as progress,
        ThreadPoolExecutor(min(os.cpu_count() or 1, 4)) as pool,
    ):

        def stage(name: str, work: Callable[..., T], *given: object) -> T:
            line = progress.add_task(name, total=1)
            made = work(*given)
            progress.update(line, completed=1)
            return made

        # In a process of its own, since it needs torch.
        build = [sys.executable, "-c", _BUILD, str(out / CHECKPOINT)]
        log = out / "checkpoint.log"
        tiny = pool.submit(stage, "tiny random checkpoint", lambda: _process(build, log))
        root = stage("packaged sample", sample.build, settings.data_root())
        known = [task for one in played.values() for task in one.oracle]
        stage("key of all requests", write_key, out / "key.json", known)
        texts = (file.read_text(encoding="utf-8") for file in sorted(root.glob("*/replay.jsonl")))
        (out / "replay.jsonl").write_text("".join(texts), encoding="utf-8")  # a run has one judge
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
    for line in (
        f"\n{verdict}  {sum(good)} of {len(good)} numbers as expected, {seconds:.0f} s",
        f"results  {out}/MODEL/, with all tables; lmms-eval's output is in host.log",
        f"page     {page}: the four models side by side, and every item"
        if page
        else r"page     none: pip install 'lmms-eval-tasks\[report]'",
        "next     lmms_eval --tasks maia --data YOUR_DATA --log_samples --output_path out \\",
        "           --model qwen2_5_vl --model_args pretrained=Qwen/Qwen2.5-VL-7B-Instruct",
    ):
        console.print(line, highlight=False, soft_wrap=True)
    return all(good)


def models(out: Path, tasks: Sequence[str]) -> list[DemoRun]:
    """The runs of the demo, in this order."""
    key, replay = f"key={out / 'key.json'}", f"{REPLAY}:{out / 'replay.jsonl'}"
    checkpoint = f"pretrained={out / CHECKPOINT},{_TINY}"
    short = ("--gen_kwargs", "max_new_tokens=16")  # it does not know when to stop
    return [
        DemoRun(ORACLE, "tasks_oracle", key, tasks, replay),
        DemoRun(COIN, "tasks_coin", f"{key},seed=0", tasks, replay),
        DemoRun(WITNESS, "tasks_witness", "", ("maverix_table3",), NONE),
        DemoRun(TINY, "qwen2_5_vl", checkpoint, TINY_TASKS, NONE, short),
    ]


def write_report(out: Path) -> Path:
    """The page of the runs in `out`, the oracle's first."""
    from lmms_eval_tasks.report import compared_runs, run_page

    found = compared_runs.read([out / name for name in (ORACLE, COIN, WITNESS, TINY)])
    page = out / "report.html"
    page.write_text(run_page.html(found), encoding="utf-8")
    return page


def write_key(path: Path, names: Sequence[str]) -> Path:
    """Write the fingerprint and the replies of each request of tasks, the right reply first.

    Made with the data at hand, media included, which are kept for the run that follows: whoever
    looks up what was handed to it (fake_replies.Key) has to be handed the same. Groups among the
    names are passed over.

    Raises:
        TasksError: the data cannot be used.
    """
    found = {}
    for name in names:
        benchmark = registry.of(name)
        for doc in prepare.docs(benchmark, name) if name in benchmark.tasks else ():
            known, parts = fake_replies.known(doc), benchmark.tasks[name].prompt(doc)
            chat = fake_replies.of_messages(messages.messages_of(parts))
            simple = fake_replies.of_visuals(messages.visuals_of(parts), messages.text_of(parts))
            for asked in (chat, simple):
                found[fake_replies.fingerprint(asked)] = [known.right, *known.drawn]
    path.write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")
    return path


def _run_host(folder: Path, model: DemoRun) -> JsonObject:
    """The results of the host's command line, run in a process of its own."""
    shutil.rmtree(folder, ignore_errors=True)  # of an earlier demo
    folder.mkdir()
    command = [
        str(Path(sys.executable).with_name("lmms_eval")),
        *("--model", model.model, "--model_args", model.arguments),
        *("--tasks", ",".join(model.tasks), "--batch_size", "1", *model.more),
        *("--log_samples", "--output_path", str(folder), "--verbosity", "WARNING"),
        # The coin's summaries are not recorded: nobody could know them.
        *("--data", settings.SAMPLE, "--judge", model.judge, "--max-failed", "1"),
    ]
    _process(command, folder / "host.log")
    (file,) = folder.rglob("*_results.json")
    results: JsonObject = json.loads(file.read_text(encoding="utf-8"))
    return results


def _process(command: Sequence[str], log: Path) -> None:
    """Run a command; all that packages print goes into a file."""
    quiet = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    # Two at a time share the cores; torch's threads would wait for each other.
    quiet |= {"OMP_NUM_THREADS": "1", settings.JUDGE: "", settings.TABLES: ""}
    with log.open("w", encoding="utf-8") as sink:
        done = subprocess.run(
            command, env={**os.environ, **quiet}, stdout=sink, stderr=sink, check=False
        )
    if done.returncode != 0:
        tail = "\n".join(log.read_text(encoding="utf-8").splitlines()[-15:])
        raise TasksError(f"{command[0]} exited with {done.returncode}; {log} ends with:\n{tail}")


# --- what is expected -----------------------------------------------------------------------------


def checked(
    played: Mapping[str, Played], results: Mapping[str, Mapping[str, Json]], coin: Path
) -> Iterator[ExpectedNumber]:
    """Every number that is expected."""
    numbers = {name: saved.numbers(one) for name, one in results.items()}
    for name, one in played.items():
        yield from oracle_checks(name, one, numbers[ORACLE])
        for chance in one.coin:
            files = [
                file for task in chance.tasks for file in coin.rglob(f"*_samples_{task}.jsonl")
            ]
            items = [sample["failed"] for file in files for sample in saved.read(file).samples]
            yield coin_check(name, chance, items)
    for task, decided in sample.module("maverix").DECIDED.items():
        n = results[WITNESS]["n-samples"][task]["effective"]
        yield witness_check(task, decided, numbers[WITNESS][task]["acc"], n)


def oracle_checks(
    name: str, played: Played, numbers: Mapping[str, Json]
) -> Iterator[ExpectedNumber]:
    """Every number of a benchmark that the oracle must have."""
    for task, metrics in played.oracle.items():
        for metric, value in metrics.items():
            got = numbers.get(task, {}).get(metric)
            # A mean of correlations may differ in its last bits.
            good = isinstance(got, float | int) and math.isclose(got, value, rel_tol=1e-9)
            yield ExpectedNumber(ORACLE, name, f"{task} {metric} = {got}, not {value:g}", good)


def coin_check(name: str, chance: Chance, items: Sequence[Mapping[str, Json]]) -> ExpectedNumber:
    """The coin's mean beside chance, within STANDARD_ERRORS of their differences."""
    values, expected = list(map(chance.value, items)), list(map(chance.expected, items))
    off = [value - mean for value, mean in zip(values, expected, strict=True)]
    good = abs(fmean(off)) <= STANDARD_ERRORS * stdev(off) / math.sqrt(len(off))
    text = f"{chance.what} {fmean(values):.3f} (chance {fmean(expected):.3f}, n {len(items)})"
    return ExpectedNumber(COIN, name, text, good)


def witness_check(mode: str, decided: int, share: float, n: int) -> ExpectedNumber:
    """Check the witness: its eyes and ears decide so many of n; of others it guesses 1 in 8."""
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
    """The last screen: what was run, what was expected and what came out."""
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
        found.add_row(registry.load(name).title, f"{task} {metric}", *values, tick)
    yield found
    yield ""
    for check in checks:
        if check.model != ORACLE or not check.good:
            yield f"{_mark(check.good)} {check.model:8} {check.benchmark:14} {check.text}"


def _mark(good: bool) -> str:
    return "[green]✓[/]" if good else "[red]✗[/]"
