"""The commands about judges: `estimate` before a run, `cache` for replies that were paid for."""

from __future__ import annotations

import json
import sys
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from lmms_eval_tasks import registry, settings
from lmms_eval_tasks.command_options import ForceSimple, ModelArgs, environment, with_settings
from lmms_eval_tasks.errors import JudgeError, TasksError
from lmms_eval_tasks.notify import table_console
from lmms_eval_tasks.tables.terminal_tables import show

cache_app = typer.Typer(help="Export and import judges' replies.", no_args_is_help=True)
Folder = Annotated[
    Path | None,
    typer.Option("--cache", help="Folder of the cache; default: LMMS_EVAL_TASKS_JUDGE_CACHE."),
]


@with_settings(settings.JUDGE, settings.MODEL_PICTURES)
def estimate_command(
    *,
    tasks: Annotated[str, typer.Option(help="Tasks or groups, separated by commas.")],
    limit: Annotated[int | None, typer.Option(help="As in lmms_eval --limit.")] = None,
    rate: Annotated[
        float | None, typer.Option(help="Judge calls per second, to estimate the time.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="As in lmms_eval --model; adds what a run uploads to the model's server."
        ),
    ] = None,
    model_args: ModelArgs = "",
    force_simple: ForceSimple = False,
) -> None:
    """Estimate the generations, judgements, cost and time of a run; sends no request."""
    from lmms_eval_tasks.judges import costs, run
    from lmms_eval_tasks.runs import estimate, prepare

    chosen = registry.selected([name.strip() for name in tasks.split(",") if name.strip()])
    if rate is not None and rate <= 0:
        raise TasksError(f"--rate {rate:g}: expected a number above 0")
    found = []
    for task in chosen:
        benchmark = registry.of(task)
        asks, env = benchmark.tasks[task].judgements, environment(dry_run=True)
        config = prepare.judge_config(benchmark, env=env) if asks else None
        found.append(estimate.estimate(task, config, limit))
    assumed, why = costs.default_rate()
    show(table_console(), estimate.estimate_tables(found, rate or assumed))
    notes = [note for one in found for note in one.notes]
    notes.append(
        f"time of judging: {rate or assumed:g} calls per second"
        + ("" if rate else f" ({why}; to change it: --rate)")
    )
    notes.append(f"cost: {run.current().prices.origin}; verdicts in the cache are free")
    if model:
        from lmms_eval_tasks.commands import uploads

        run_of = {"model": model, "model_args": model_args, "force_simple": force_simple}
        notes += [f"uploads: {line}" for line in uploads.of_run(run_of, chosen, limit)]
    for note in dict.fromkeys(notes):
        print(note)


@cache_app.command()
def export(
    cache: Folder = None,
    out: Annotated[
        Path | None, typer.Option(help="JSONL file to write; default: standard output.")
    ] = None,
) -> None:
    """Write all replies as JSON lines: request, reply, judge, task, time."""
    from lmms_eval_tasks.judges.cache import cached_replies

    folder = _folder(cache)
    files = sorted(folder.glob("*.sqlite3"))
    if not files:
        raise JudgeError(f"{folder}: no cache of judges' replies in this folder")
    try:
        with out.open("w", encoding="utf-8") if out else nullcontext(sys.stdout) as stream:
            for file in files:
                for line in cached_replies(file):
                    print(json.dumps(line), file=stream)
    except OSError as error:
        raise JudgeError(f"{out}: cannot be written ({error.strerror})") from None


@cache_app.command()
def load(
    file: Annotated[Path, typer.Argument(help="Cache file of another machine or node (.sqlite3).")],
    cache: Folder = None,
) -> None:
    """Add the replies of another cache to this one; can be run again."""
    from lmms_eval_tasks.judges.cache import COMMON, Cache

    if not file.is_file():
        raise JudgeError(f"{file}: no such file")
    with closing(Cache(_folder(cache) / COMMON)) as opened:
        print(f"{opened.load(file):,} new replies")


def _folder(path: Path | None) -> Path:
    folder = path or settings.judge_cache()
    if folder is None:
        raise JudgeError(
            f"{settings.JUDGE_CACHE}=off, so there is no cache: name its folder with --cache DIR"
        )
    return folder
