"""The command `watch`: a view of a run, while it runs and afterwards.

It reads the files that the processes of the run write (runs/progress.py), and changes nothing.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.host.requests import kept_replies
from lmms_eval_tasks.judges.report import duration, price
from lmms_eval_tasks.notify import table_console, visible
from lmms_eval_tasks.runs import progress
from lmms_eval_tasks.runs.progress import ProcessProgress, TaskProgress
from lmms_eval_tasks.tables import terminal_tables
from lmms_eval_tasks.tables.paper_tables import NONE, empty
from lmms_eval_tasks.utils import interrupts

if TYPE_CHECKING:
    from rich.console import RenderableType

Run = Sequence[ProcessProgress]
_QUIET = 15.0  # seconds without news after which a process may have ended
_LOST = 300.0  # seconds without news after which a process on another machine counts as ended
_ENDED = ("scored", "stopped")


def watch_command(
    out: Annotated[Path, typer.Argument(help="The run's --output_path.")],
    *,
    once: Annotated[bool, typer.Option("--once", help="Print the state once, and exit.")] = False,
    every: Annotated[
        float, typer.Option("--every", metavar="SECONDS", min=0.1, help="Time between two views.")
    ] = progress.EVERY,
) -> None:
    """Show a run from another terminal: progress, speed, failures, the judge and last replies.

    Ctrl-C ends the view and leaves the run alone.
    """
    runs = _shown_runs(out)
    console = table_console()
    if once or not sys.stdout.isatty() or console.is_dumb_terminal:  # where nothing can be redrawn
        for part in (one for run in runs for one in view(run, out, time.time(), console.width)):
            console.print(part, soft_wrap=isinstance(part, Text), highlight=False)
        return
    from rich.console import Group
    from rich.live import Live

    def now() -> Group:
        return Group(*(part for run in runs for part in view(run, out, time.time(), console.width)))

    with interrupts.as_usual():
        try:
            with Live(now(), console=console, auto_refresh=False) as live:
                while any(_is_live(process) for run in runs for process in run):
                    time.sleep(every)
                    runs = _shown_runs(out)
                    live.update(now(), refresh=True)
        except KeyboardInterrupt:
            return


def _shown_runs(out: Path) -> Sequence[Run]:
    """Return the runs that go on; else the last one.

    Raises:
        TasksError: there is no run.
    """
    runs = progress.read_progress(out)
    if not runs:
        if parts := sorted(folder.parent for folder in out.glob(f"*/{progress.FOLDER}")):
            raise TasksError(
                f"{out}: its runs have folders of their own: lmms-eval-tasks watch {parts[-1]} (of "
                f"{', '.join(part.name for part in parts)})"
            )
        if _results(out, "*"):
            raise TasksError(
                f"{out}: only results of runs that do not tell their progress: lmms-eval-tasks "
                f"report {out} shows them"
            )
        raise TasksError(
            f"{out}: no run of our tasks began with this --output_path; for lmms_eval ... "
            "--output_path out: lmms-eval-tasks watch out (some seconds after its start)"
        )
    return [run for run in runs if any(map(_is_live, run))] or runs[-1:]


# --- one run --------------------------------------------------------------------------------------


def view(run: Run, out: Path, now: float, width: int) -> list[RenderableType]:
    """Return the lines and the table about a run.

    Args:
        run: the processes of the run.
        out: its `--output_path`.
        now: the present time, in seconds of Unix.
        width: columns of the terminal; replies are cut there, and tables are split.
    """
    phase = _phase(run)
    at = max(process.at for process in run)
    begun = min(process.begun for process in run)
    ended = not any(map(_is_live, run))
    took = duration(max(0.0, (at if ended else now) - begun))
    several = f", {run[0].processes} processes" if run[0].processes > 1 else ""
    begins = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(begun))
    state = _PHASES[phase]
    if _is_killed(run):
        is_sure = None not in map(_is_there, run)
        state = f"{'killed' if is_sure else 'no longer heard of'} while {state}"
    lines = [
        _cut(run[0].model, width),
        f"{state}, {took} since {begins}{several} on {_machines(run)}",
        *_table(run, phase, width),
        *_judge(run),
    ]
    last = sorted((one for p in run for one in p.last), key=lambda reply: reply.at)
    last = last[-progress.N_LAST :]
    lines += ["last replies:"] if last else []
    lines += [_cut(f"{one.task} {one.doc}: {one.text}", width, "  ") for one in last]
    if phase == "generating" and last and not ended and (age := now - last[-1].at) > _QUIET:
        lines.append(f"no reply for {duration(age)}")
    lines += [*_news(run, now), *_end(run, phase, out), ""]
    # A text is printed as it is: a plain string might contain rich's markup.
    return [Text(line) if isinstance(line, str) else line for line in lines]


def _cut(text: str, width: int, indent: str = "") -> RenderableType:
    """Return a text from outside as one line of at most `width` columns."""
    line = Text(indent + " ".join(visible(text).split()))
    line.truncate(width, overflow="ellipsis")
    return line


_PHASES = {
    "preparing": "preparing (data, media, the model)",
    "generating": "generating",
    "scoring": "scoring",
    "scored": "finished",
    "stopped": "stopped",
}


def _phase(run: Run) -> progress.Phase:
    """Return the phase of a run: that of its slowest process, or stopped if a process is."""
    phases = [process.phase for process in run]
    return "stopped" if "stopped" in phases else min(phases, key=list(_PHASES).index)


def _machines(run: Run) -> str:
    return ", ".join(dict.fromkeys(visible(process.machine) for process in run))


def _table(run: Run, phase: progress.Phase, width: int) -> Sequence[RenderableType]:
    """Return the table of the tasks' counts, in parts if the terminal is narrow."""
    names = list(dict.fromkeys(task for process in run for task in process.tasks))
    rows = {name: _sum([p.tasks[name] for p in run if name in p.tasks]) for name in names}
    if all(process.asked_at is None for process in run):
        return [f"tasks: {', '.join(map(visible, names))}"]
    if _is_killed(run) and (folder := run[0].replies_in):
        for name, row in rows.items():  # of the last seconds, nothing else tells the replies
            saved = kept_replies.count_replies(Path(folder), [name]) - row.earlier
            row.replies = max(row.replies, min(saved, row.requests - row.earlier))
    if len(rows) > 1:
        whole = _sum(list(rows.values()))
        rows["all"] = whole.model_copy(update={"speed": sum(process.speed for process in run)})
    columns: dict[str, Callable[[TaskProgress], str]] = {
        "replies": lambda row: f"{row.earlier + row.replies:,} of {row.requests:,}",
        "%": lambda row: f"{100 * _answered(row) / row.requests:.0f}" if row.requests else NONE,
    }
    if phase == "generating" and not _is_killed(run):
        columns["replies/s"] = lambda row: f"{row.speed:.2f}" if _remaining(row) else NONE
        columns["time left"] = _left
    columns["failed"] = lambda row: f"{row.failed:,}"
    if any(row.scored for row in rows.values()):
        columns["not read"] = lambda row: f"{row.unparsed:,} of {row.scored:,}"
    if any(row.earlier for row in rows.values()):
        columns["earlier run"] = lambda row: f"{row.earlier:,}"
    table = empty("")
    table.title = None
    table.add_column("task", overflow="fold")
    for heading in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, row in rows.items():
        table.add_row(Text(visible(name)), *(text(row) for text in columns.values()))
    return terminal_tables.parts(table, width)


def _sum(rows: Sequence[TaskProgress]) -> TaskProgress:
    fields = TaskProgress.model_fields
    return TaskProgress(**{name: sum(getattr(row, name) for row in rows) for name in fields})


def _answered(row: TaskProgress) -> int:
    """Return the number of requests that have a reply or have failed."""
    return row.earlier + row.replies + row.failed


def _remaining(row: TaskProgress) -> int:
    return max(0, row.requests - _answered(row))


def _left(row: TaskProgress) -> str:
    """Return the time left in words, by the speed of the last minute."""
    return duration(_remaining(row) / row.speed) if _remaining(row) and row.speed else NONE


def _judge(run: Run) -> Iterator[str]:
    """Yield a line about the judges' work, if there is any."""
    work = [process.judge for process in run if process.judge is not None]
    verdicts, failed = sum(one.verdicts for one in work), sum(one.failed for one in work)
    tokens = sum(one.tokens for one in work)
    skipped = sum(one.skipped for one in work)
    if not verdicts and not tokens and not skipped:
        return
    costs = [one.cost for one in work]
    cost = None if None in costs else sum(one for one in costs if one is not None)
    why = next((f" (such as: {visible(one.reason)})" for one in work if one.reason), "")
    more = f", {skipped:,} skipped" if skipped else ""
    yield (
        f"judge: {verdicts:,} verdicts, {failed:,} failed{why}{more}, {tokens:,} tokens, "
        f"{price(cost)}"
    )


# --- its end --------------------------------------------------------------------------------------


def _is_live(process: ProcessProgress) -> bool:
    """Return True if a process may still be running."""
    if process.phase in _ENDED:
        return False
    is_there = _is_there(process)
    return time.time() - process.at < _LOST if is_there is None else is_there


def _is_killed(run: Run) -> bool:
    """Return True if all processes of a run are gone, and one of them has not told its end."""
    return not any(map(_is_live, run)) and any(one.phase not in _ENDED for one in run)


def _is_there(process: ProcessProgress) -> bool | None:
    """Return True if a process exists on this machine; None if that cannot be told."""
    if process.machine != platform.node() or os.name != "posix":
        return None
    try:
        os.kill(process.pid, 0)  # sends nothing
    except ProcessLookupError:
        return False
    except OSError:  # of another user
        return True
    return True


def _news(run: Run, now: float) -> Iterator[str]:
    """Yield a line for each process without news, and one for processes that never wrote any."""
    for process in run:
        age = now - process.at
        if process.phase in _ENDED or (age < _QUIET + process.every and _is_live(process)):
            continue
        is_there = _is_there(process)
        state = {
            True: f"process {process.pid} still exists",
            False: f"process {process.pid} is gone",
            None: f"{visible(process.machine)} is another machine, see there",
        }[is_there]
        rank = f"rank {process.rank}: " if process.processes > 1 else ""
        yield f"{rank}no news for {duration(max(0.0, age))}: {state}"
    if (missing := run[0].processes - len(run)) > 0:
        yield f"{missing} of {run[0].processes} processes have not written anything yet"


def _results(out: Path, stamp: str) -> list[Path]:
    """Return results files: in the model's folder, or in `out` if the model has no name."""
    return [file for depth in ("", "*/") for file in out.glob(f"{depth}{stamp}_results.json")]


def _end(run: Run, phase: progress.Phase, out: Path) -> Iterator[str]:
    """Yield lines about the results of a run that ended, or about the way to continue it."""
    if phase == "scored":
        files = _results(out, run[0].stamp) if run[0].stamp else []
        yield from (f"results: {file}" for file in files)
        if not files:
            yield f"{out}: its results are not saved (yet)"
        elif any(files[0].parent.glob(f"{run[0].stamp}_samples_*")):
            yield f"all numbers: lmms-eval-tasks report {out}"
        else:
            yield "its samples are not saved: report and judge need a run with --log_samples"
    elif not any(map(_is_live, run)):
        reasons = {process.reason: None for process in run if process.reason}
        yield from (f"stopped by: {visible(reason)}" for reason in reasons)
        folder = Path(run[0].replies_in)
        tasks = [name for process in run for name in process.tasks]
        saved = kept_replies.count_replies(folder, tasks) if run[0].replies_in else 0
        if saved:
            yield f"{saved:,} replies are saved in {folder}: run the same command again to continue"
        elif not reasons:
            yield "no reply is saved: run the same command again"
