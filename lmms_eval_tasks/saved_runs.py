"""The commands on saved runs: `rescore` computes every metric again, `judge` completes verdicts."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmms_eval_tasks import benchmarks, rescore, settings
from lmms_eval_tasks.console import say, wide_console
from lmms_eval_tasks.errors import DataError, TasksError

if TYPE_CHECKING:
    from lmms_eval_tasks.judges.run import Run as JudgeRun

Saved = Sequence[tuple[str, list[rescore.Run]]]  # saved runs by benchmark

Logs = Annotated[list[Path], typer.Argument(help="Sample files, or folders with them.")]
Output = Annotated[Path | None, typer.Option(help="Write numbers and verdicts as JSON.")]
MaxCalls = Annotated[int | None, typer.Option(help="Pay for at most so many replies.")]
MaxCost = Annotated[float | None, typer.Option(help="Pay at most so many dollars.")]
Concurrency = Annotated[
    int | None, typer.Option("--judge-concurrency", help="Requests in flight at most.")
]


def add_commands(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("rescore")(rescore_command)
    app.command("judge")(judge_command)
    app.command("submit")(submit_command)


def rescore_command(
    logs: Logs,
    *,
    judge: Annotated[
        str | None, typer.Option(help="Judge all answers with this judge (docs/judges.md).")
    ] = None,
    output: Output = None,
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    concurrency: Concurrency = None,
) -> None:
    """Compute every metric again from samples saved with `--log_samples`.

    With `--judge`, both judges stand side by side: agreement, flips, cost.
    """
    set_limits(max_calls, max_cost, concurrency)
    saved = _read(logs)
    with _judge_run() as run:
        score_again(saved, judge, output, run)


def judge_command(
    logs: Logs,
    *,
    judge: Annotated[
        str | None, typer.Option(help="The judge; LMMS_EVAL_TASKS_JUDGE or the paper's if unset.")
    ] = None,
    batch: Annotated[
        Path | None,
        typer.Option(help="Ask nobody: write the requests as an OpenAI batch (half the price)."),
    ] = None,
    batch_results: Annotated[
        Path | None, typer.Option(help="Take the replies from a batch's results.")
    ] = None,
    output: Output = None,
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    concurrency: Concurrency = None,
) -> None:
    """Give saved answers the verdicts they lack; those of this judge are kept."""
    if batch is not None and batch_results is not None:
        raise TasksError("either --batch writes a file or --batch-results reads one, not both")
    if (batch or batch_results) and (max_calls, max_cost) != (None, None):
        raise TasksError("--max-calls and --max-cost are no limits of a batch: it pays for nothing")
    set_limits(max_calls, max_cost, concurrency)
    saved = _read(logs)
    spec = judge or _the_judge(saved)
    if batch is not None:
        _write_batch(saved, spec, batch)
    elif batch_results is not None:
        _read_batch(saved, spec, batch_results, output)
    else:
        with _judge_run() as run:
            score_again(saved, spec, output, run, missing_only=True)


def submit_command(
    logs: Logs,
    *,
    output: Annotated[Path, typer.Option(help="The submission file.")] = Path("submission.json"),
) -> None:
    """Write a model's answers for data whose truth is withheld."""
    _check_output(output)
    for name, own in _read(logs):
        made = benchmarks.load(name).submission(own)
        output.write_text(json.dumps(made, indent=1, ensure_ascii=False), encoding="utf-8")
        print(f"{output}: {len(made['answers']):,} answers of {made['model']} to {name}")


def set_limits(max_calls: int | None, max_cost: float | None, concurrency: int | None) -> None:
    """Options of a command are the variables that a run of the host reads."""
    given = {
        settings.MAX_CALLS: max_calls,
        settings.MAX_COST: max_cost,
        settings.JUDGE_CONCURRENCY: concurrency,
    }
    for variable, value in given.items():
        if value is not None:
            os.environ[variable] = str(value)
    settings.check()


@contextmanager
def _judge_run(**changes: Any) -> Iterator[JudgeRun]:
    from lmms_eval_tasks.judges import run

    with run.use(run.from_settings(**changes)) as made:
        yield made


def _read(logs: Sequence[Path]) -> Saved:
    """Saved runs by benchmark.

    Raises:
        DataError: nothing of ours is there.
    """
    runs = [rescore.read(file) for file in rescore.find(logs)]
    found = [
        (name, own)
        for name in benchmarks.NAMES
        if (own := [run for run in runs if benchmarks.of_task_name(run.task) == name])
    ]
    if not found:
        raise DataError(f"no tasks of this suite in {', '.join(str(run.file) for run in runs)}")
    return found


def _the_judge(saved: Saved) -> str:
    """The user's setting, or the paper's judge."""
    if spec := settings.judge_spec():
        return spec
    return benchmarks.load(saved[0][0]).judge_config(env=os.environ).model


def score_again(
    saved: Saved,
    judge: str | None,
    output: Path | None,
    run: JudgeRun,
    *,
    missing_only: bool = False,
) -> None:
    """Compute, print and write the numbers of saved runs.

    Raises:
        TasksError: a judge that cannot be used, or no folder to write to.
        typer.Exit: code 3 if more verdicts failed than the user allows.
    """
    from lmms_eval_tasks import judges, preflight, two_judges
    from lmms_eval_tasks.judges.ledger import lines

    if output is not None:
        _check_output(output)
    console = wide_console()
    written: dict[str, Any] = {}
    labels: set[str] = set()
    statuses: list[dict[str, Any]] = []
    for name, own in saved:
        benchmark = benchmarks.load(name)
        if judge:
            config = benchmark.judge_config(judge)
            labels.add(config.label)
            say(judges.announcement(config, benchmark.judge_prompt()))
        done = benchmark.rescore_saved(own, judge, missing_only=missing_only)
        run.progress.close()
        for table in benchmark.numbers_tables([("", done.numbers)]):
            console.print(table)
        label = config.label if judge else None  # the short form may hold a password
        for line in [*done.notes, *_compared(own, done.numbers, label)]:
            print(line)
        statuses += [
            _statuses(task, config.label, pairs) for task, pairs in done.verdicts.items() if judge
        ]
        found = {
            task: two_judges.compared(pairs, run.prices) for task, pairs in done.verdicts.items()
        }
        side_by_side = {task: values for task, values in found.items() if values is not None}
        if judge and not missing_only and side_by_side:
            console.print(two_judges.table(side_by_side))
        written[name] = {
            "numbers": done.numbers,
            "details": done.sidecar,
            "notes": done.notes,
            "judge": judges.describe(config) if judge else None,
            "judges_compared": side_by_side if judge else {},
            "verdicts": {
                task: [
                    {"id": pair.id, **(pair.after.as_dict() if pair.after else {})}
                    for pair in pairs
                ]
                for task, pairs in done.verdicts.items()
            },
        }
    rows = [row for row in run.ledger.rows() if row.judge != "none"]
    written["usage"] = [row.as_dict() for row in rows]
    if output is not None:
        output.write_text(json.dumps(written, indent=2, ensure_ascii=False), encoding="utf-8")
    for line in [*lines(rows, run.prices.origin), *run.stopped()]:
        print(line)
    if problems := preflight.invalid(preflight.Work(tuple(statuses), frozenset(labels))):
        for line in problems.values():
            say(f"INVALID: {line}")
        raise typer.Exit(preflight.INVALID)


def _check_output(output: Path) -> None:
    if output.is_dir() or not output.absolute().parent.is_dir():
        raise TasksError(f"{output}: not a file in a folder that is there to write to")


def _statuses(task: str, label: str, pairs: Sequence[rescore.Pair]) -> dict[str, Any]:
    """How a task's verdicts stand now, kept ones included (preflight.invalid)."""
    found = Counter(pair.after.status for pair in pairs if pair.after is not None)
    return {"task": task, "judge": label, "verdicts": found.total(), "by_status": dict(found)}


def _compared(
    runs: Sequence[rescore.Run], numbers: Mapping[str, Mapping[str, Any]], judge: str | None
) -> list[str]:
    """Whether the saved numbers came out again, to the last digit."""
    lines = []
    for run in runs:
        pairs = {run.task: run.saved, **run.saved_groups}
        for name, values in pairs.items():
            if not values or name not in numbers:
                continue
            differing = rescore.difference(values, numbers[name])
            shared = len(values.keys() & numbers[name].keys())
            same = f"{shared - len(differing)} of {shared} numbers equal the saved ones"
            why = f", differing: {', '.join(differing)}" if differing else ""
            with_judge = f" (judged by {judge})" if judge else ""
            lines.append(f"{name}: {same}{why}{with_judge}")
    return list(dict.fromkeys(lines))


# --- offline batches --------------------------------------------------------------------------


# A batch pays for nothing while it is written or read, and asks no endpoint.
_NO_LIMITS: dict[str, Any] = {
    "requests_per_minute": None,
    "tokens_per_minute": None,
    "max_calls": None,
    "max_cost": None,
    "stop_after": 0,  # its failed requests say nothing about an endpoint
}


def _shown_batch_judge(saved: Saved, spec: str) -> str:
    """How to show the judge that a batch is for: without a password in its URL.

    Raises:
        TasksError: it is not asked through an OpenAI-compatible endpoint.
    """
    from lmms_eval_tasks.judges.config import OPENAI

    config = benchmarks.load(saved[0][0]).judge_config(spec, os.environ)  # no run yet
    models = config.endpoints
    if not models or any(model.provider != OPENAI for model in models):
        raise TasksError(f"the judge {spec} has no batches: name a model at an endpoint (--judge)")
    return spec if spec.endswith((".yml", ".yaml")) else config.label


def _write_batch(saved: Saved, spec: str, path: Path) -> None:
    from lmms_eval_tasks.judges import run
    from lmms_eval_tasks.judges.batch import Writer

    partial = path.with_name(f".{path.name}.part")
    shown = _shown_batch_judge(saved, spec)
    try:
        with partial.open("w", encoding="utf-8") as out:
            writer = Writer(out)
            with run.use(run.from_settings(wrap=writer.wrap, progress=False, **_NO_LIMITS)):
                for name, own in saved:
                    benchmarks.load(name).rescore_saved(own, spec, missing_only=True)
        if writer.count:
            partial.replace(path)
    except OSError as error:
        raise TasksError(f"{path}: the batch cannot be written ({error.strerror})") from None
    finally:
        partial.unlink(missing_ok=True)
    if not writer.count:
        print("every verdict is there already: nothing to put into a batch")
        return
    print(
        f"{path}: {writer.count:,} requests to {', '.join(sorted(writer.models))}. Upload it as a "
        "batch for /v1/chat/completions, then: lmms-eval-tasks judge LOGS "
        f"--judge {shown} --batch-results RESULTS.jsonl"
    )
    if len(writer.models) > 1:
        say("OpenAI takes one model in a batch: split the file by `body.model`")


def _read_batch(saved: Saved, spec: str, path: Path, output: Path | None) -> None:
    from lmms_eval_tasks.judges import run
    from lmms_eval_tasks.judges.batch import Results

    results = Results(path)
    _shown_batch_judge(saved, spec)
    with run.use(run.from_settings(wrap=results.wrap, **_NO_LIMITS)) as made:
        try:
            score_again(saved, spec, output, made, missing_only=True)
        finally:
            print(
                f"{path}: {len(results.used):,} of {len(results):,} results used; what still has "
                "no verdict goes into the next batch (--batch)"
            )
