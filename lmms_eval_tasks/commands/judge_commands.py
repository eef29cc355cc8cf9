"""The commands about judges: `estimate` before a run, `cache` for replies that were paid for."""

from __future__ import annotations

import json
import sys
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Annotated, Literal

import typer

from lmms_eval_tasks import registry, settings
from lmms_eval_tasks.command_options import ForceSimple, ModelArgs, with_settings
from lmms_eval_tasks.errors import DataError, JudgeError, TasksError
from lmms_eval_tasks.notify import table_console
from lmms_eval_tasks.tables.terminal_tables import show

cache_app = typer.Typer(help="Export and import judges' replies.", no_args_is_help=True)
Folder = Annotated[
    Path | None,
    typer.Option("--cache", help="Folder of the cache; default: LMMS_EVAL_TASKS_JUDGE_CACHE."),
]


@with_settings(settings.DATA, settings.JUDGE, settings.MODEL_PICTURES)
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
            help="As in lmms_eval --model; adds GPU hours, the bytes that a run uploads to the "
            "model's server, and the server's price."
        ),
    ] = None,
    model_args: ModelArgs = "",
    batch_size: Annotated[
        int, typer.Option("--batch_size", help="As in lmms_eval --batch_size.")
    ] = 1,
    force_simple: ForceSimple = False,
    form: Annotated[Literal["text", "json"], typer.Option("--format", help="Format.")] = "text",
) -> None:
    """Estimate requests, tokens, GPU hours, bytes, dollars and time of a run; sends no request.

    Tasks without data are counted with the papers' sizes. The exit code is 1 if a task could not be
    counted, which a line says, and 2 if an option is wrong.
    """
    from lmms_eval_tasks.host import model_class
    from lmms_eval_tasks.judges import costs, run
    from lmms_eval_tasks.models import model_capabilities
    from lmms_eval_tasks.runs import estimate

    chosen = registry.selected([name.strip() for name in tasks.split(",") if name.strip()])
    if not chosen:
        raise TasksError(f"--tasks {tasks!r}: names no task (all tasks: lmms-eval-tasks list)")
    if rate is not None and rate <= 0:
        raise TasksError(f"--rate {rate:g}: expected a number above 0")
    run_of = {"model": model, "model_args": model_args, "force_simple": force_simple}
    named = model_class.run_model(run_of) if model else None
    found, lost = [], dict[tuple[str, str], list[str]]()
    for task in chosen:
        try:
            found.append(estimate.estimate(task, named, batch_size, limit=limit))
        except DataError as error:
            lost.setdefault((registry.of(task).name, str(error)), []).append(task)
    notes = estimate.describe_basis(found, named)
    if named:
        from lmms_eval_tasks.commands import uploads

        sent = uploads.of_run(run_of, [one.name for one in found], limit) if found else []
        notes += [f"uploads: {line}" for line in sent]
        totals = {one.task: one.total for one in sent if isinstance(one, uploads.Upload)}
        is_local = model_capabilities.name_of(named.name) not in model_capabilities.SERVED
        for one in found:
            one.uploaded = 0.0 if is_local else totals.get(one.name)
    assumed, why = costs.default_rate()
    notes.append(
        f"time of judging: {rate or assumed:g} calls per second"
        + ("" if rate else f" ({why}; to change it: --rate)")
    )
    notes.append(f"dollars: {run.current().prices.origin}; verdicts in the cache are free")
    notes += [f"{', '.join(names)}: not counted: {why}" for (_, why), names in lost.items()]
    if form == "json":
        each = [one.as_dict(rate or assumed) for one in [*found, estimate.sum_costs(found)]]
        gone = {name: why for (_, why), names in lost.items() for name in names}
        tables = {"tasks": each[:-1], "all": each[-1], "not_counted": gone, "notes": notes}
        print(json.dumps(tables, indent=1, ensure_ascii=False))
    else:
        show(table_console(), estimate.estimate_tables(found, rate or assumed, named is not None))
        for note in notes:
            print(note)
    if lost:
        raise typer.Exit(1)


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
