"""The `lmms_eval` command: lmms-eval's command line with these corrections and additions.

- finds our tasks in every subcommand, also when another package's broken entry point switched
  lmms-eval's plugins off;
- exits non-zero when a run failed (lmms-eval prints the error and exits with 0), and with 3 when
  more requests to the model, or verdicts of its judge, failed than `--max-failed` allows;
- a folder in the working directory that bears a task's name does not hijack `--tasks`;
- takes our options beside lmms-eval's;
- where all tasks are ours, prints a first screen of our own in place of lmms-eval's table, which
  stands in a file with all of the papers' (`--tables all` prints them too).
"""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING

from lmms_eval_tasks import context, settings
from lmms_eval_tasks.errors import WRONG, TasksError, not_importable
from lmms_eval_tasks.host import arguments as command_arguments
from lmms_eval_tasks.host import discovery
from lmms_eval_tasks.models.host_types import CommandArguments, Function, Results
from lmms_eval_tasks.notify import UNSEEN, notify, table_console
from lmms_eval_tasks.utils import interrupts
from lmms_eval_tasks.utils.json_files import check_folder, write_text

if TYPE_CHECKING:
    from loguru import Record

_WATCHED = "_lmms_eval_tasks_watched"


def checked_arguments(arguments: list[str]) -> list[str]:
    """lmms-eval's arguments out of those of the command; exits with one line if one is wrong."""
    try:
        rest = command_arguments.take_own_options(arguments)
        command_arguments.check_configurations(rest)
        if rest and rest[0].startswith("-"):
            command_arguments.check(rest)
    except (TasksError, ImportError) as error:
        notify(str(not_importable(error) if isinstance(error, ImportError) else error))
        sys.exit(WRONG)
    return rest


def take_over(module: ModuleType, evaluate_all: Function) -> object:
    """Run lmms-eval's own command as ours does: `python -m lmms_eval`, torchrun, accelerate.

    Args:
        module: `lmms_eval.__main__`.
        evaluate_all: its `cli_evaluate`, which reads `sys.argv`.

    Returns:
        The result of `evaluate_all`; None for a command that names a task or an option of ours.

    Raises:
        SystemExit: a run of ours failed or is invalid, with the code of our command.
    """
    arguments = sys.argv[1:]
    if _WATCHED in vars(module) or not command_arguments.names_ours(arguments):
        return evaluate_all()
    before = {name: vars(module).get(name) for name in ("cli_evaluate_single", "print", _WATCHED)}
    outcome = new_outcome()
    with interrupts.ending(exits=True):
        sys.argv[1:] = checked_arguments(arguments)
        watch(outcome, module)
        try:
            code = end(evaluate_all, outcome)
        finally:  # a program may call it again
            for name, own in before.items():
                if own is None:
                    vars(module).pop(name, None)
                else:
                    setattr(module, name, own)
    if code:
        sys.exit(code)
    return None


def new_outcome() -> SimpleNamespace:
    """What lmms-eval itself does not report of its runs: filled by `watch`."""
    return SimpleNamespace(failed=False, runs=[], printed=[])


def end(host: Function, outcome: SimpleNamespace) -> str | int:
    """Call lmms-eval's command and show its runs; return the exit code that it should have."""
    code: str | int | None = None
    try:
        host()
    except interrupts.InterruptedRunError:  # which has said what is kept
        raise
    except SystemExit as end:  # also of a list of runs of which one was wrong
        code = end.code
    invalid = [_show(*run) for run in outcome.runs]
    code = code or int(outcome.failed)
    if any(invalid):
        from lmms_eval_tasks.report.invalid import INVALID

        code = code or INVALID
    return code


def watch(outcome: SimpleNamespace, module: ModuleType) -> None:
    """Wrap lmms-eval's `cli_evaluate_single`, whose exceptions lmms-eval swallows."""
    evaluate = module.cli_evaluate_single
    plain: Function = print

    @functools.wraps(evaluate)
    def cli_evaluate_single(args: CommandArguments) -> object:
        from lmms_eval_tasks.host.requests import host_log, kept_replies

        unsaid = {"output_path": None, "tasks": "", "log_samples": False}
        told = {**unsaid, **vars(args)}
        try:
            saves = told["output_path"] and told["log_samples"]
            if settings.value(settings.REPORT) and not saves:
                raise TasksError(
                    "--report requires saved samples: add --log_samples --output_path out"
                )
            if told["output_path"]:
                check_folder(Path(told["output_path"]), "--output_path")
            if told["tasks"] is None:
                raise TasksError(command_arguments.NO_TASKS)
            _settle_tasks(args, told["tasks"])
            unsaved = context.outside().instance_of(kept_replies.Unsaved)
            unsaved.clear()
            own_second = _own_second(module, told["output_path"])
            saving: list[str] = []
            hearing = host_log.logged("INFO", _is_of_saving, saving.append)
            with host_log.audible(), hearing, own_second:
                found = evaluate(args)
            if lost := _not_saved(saving):
                outcome.failed = True
                notify(
                    f"--output_path {told['output_path']}: the results were not "
                    f"saved ({lost}); replies and verdicts are kept: free space "
                    "there, or name another folder, and run the same command "
                    "again to continue"
                )
                return None, None
            unsaved.put_away()
            if found[0] and "lmms_eval_tasks" in found[0]:
                run = found[0], outcome.printed, told["output_path"]
                outcome.runs.append(run)
            return found
        except (TasksError, SystemExit):  # told by plugin.py; the end of a list of tasks
            raise
        except BaseException:
            outcome.failed = True
            raise

    def print_lines(*args: object, **kwargs: object) -> None:
        """Keep lmms-eval's lines after its runs; print them if our first screen does not."""
        if outcome.runs:
            outcome.printed += map(str, args)
            wanted = settings.value(settings.TABLES)
            if wanted != "all" and all(_all_ours(results) for results, *_ in outcome.runs):
                return
        plain(*args, **kwargs)

    vars(module)[_WATCHED] = True
    module.cli_evaluate_single = cli_evaluate_single  # type: ignore[attr-defined]
    module.print = print_lines  # type: ignore[attr-defined]


def _settle_tasks(args: CommandArguments, tasks: str | None) -> None:
    """Have lmms-eval find our tasks, and take names for names; a TasksError for a wrong name."""
    from lmms_eval.tasks import TaskManager

    paths = getattr(args, "include_path", None)
    if not (discovery.finds_tasks(TaskManager) or paths):
        (args.include_path,) = paths = discovery.task_folders()
    discovery.check_names((tasks or "").split(","), paths)
    if tasks and discovery.our_tasks([tasks]) and Path(tasks).is_dir():
        # A list of names is never taken for a folder, and lmms-eval drops repetitions.
        args.tasks = f"{tasks},{tasks}"


@contextmanager
def _own_second(module: ModuleType, output_path: str | None) -> Iterator[None]:
    """Context manager within which lmms-eval's next run gets a second of its own in this folder.

    lmms-eval names files by the second and adds samples to a file that is there: of two runs of one
    model in the same second, the results of one were lost and their samples mixed.
    """
    second = getattr(getattr(module, "utils", None), "get_datetime_str", None)
    # Another rank saves nothing; another lmms-eval may name them otherwise.
    if not output_path or second is None or os.environ.get("RANK", "0") != "0":
        yield
        return
    taken: list[Path] = []

    @functools.wraps(second)
    def with_second(*args: object, **kwargs: object) -> object:
        while True:
            named = second(*args, **kwargs)
            claim = Path(output_path, f".{named}.run".replace(":", "-"))
            try:
                claim.touch(exist_ok=False)  # also between machines
            except FileExistsError:
                time.sleep(0.1)
            except OSError:  # saving will tell it
                return named
            else:
                taken.append(claim)
                return named

    module.utils.get_datetime_str = with_second
    try:
        yield
    finally:
        module.utils.get_datetime_str = second
        for claim in taken:
            claim.unlink(missing_ok=True)


def _is_of_saving(record: Record) -> bool:
    return (record["name"] or "").endswith("evaluation_tracker")


def _not_saved(logged: Sequence[str]) -> str:
    """The file that lmms-eval failed to write, and the reason; "" if it wrote all.

    lmms-eval logs both, one after the other, and goes on. Only the first rank saves and logs.
    """
    for place, said in enumerate(logged):
        if "Could not save " in said:
            return ": ".join(logged[place : place + 2])
    return ""


def _all_ours(results: Results) -> bool:
    """Return True if our section has all of a run's tasks, and none is lmms-eval's own."""
    sections = [own for own in results["lmms_eval_tasks"].values() if isinstance(own, dict)]
    told = {task for own in sections for task in own.get("details", ())}
    return told.issuperset(results["configs"])


def _show(results: Results, printed: Sequence[str], output_path: str | None) -> bool:
    """Print a run's first screen, and write all of its tables; True if it is invalid."""
    from rich.console import Console

    from lmms_eval_tasks.runs import screen

    # lmms-eval does not report where it wrote its results; its rule for file names is known.
    stamp = str(results.get("date", "run")).replace(":", "-")
    name = Path(str(results.get("model_name_sanitized", "")), f"{stamp}_results.json")
    files = [Path(output_path, name)] if output_path and Path(output_path, name).is_file() else []
    tables = settings.cache_dir() / "tables" / f"{stamp}.txt"
    for file in files:
        tables = file.with_name(file.name.replace("_results.json", "_tables.txt"))
    try:
        tables.parent.mkdir(parents=True, exist_ok=True)
        with tables.open("w", encoding="utf-8") as out:
            whole = Console(file=out, width=UNSEEN)
            screen.first(results, whole, files)
            screen.full(results, whole, every=True)
            out.write("\n".join(printed) + "\n")
        files.append(tables)
    except OSError as error:
        notify(f"{tables}: the tables cannot be written ({error.strerror})")
    if settings.value(settings.REPORT):
        files += filter(None, map(_report, files[:1]))
    console = table_console()
    if wanted := settings.value(settings.TABLES):
        screen.full(results, console, every=wanted == "all")
    screen.first(results, console, files)
    return bool(results["lmms_eval_tasks"].get("invalid"))


def _report(results: Path) -> Path | None:
    """Write the page of a run beside its results; nothing of the run is lost if that fails."""
    from lmms_eval_tasks.report import compared_runs, run_page

    page = results.with_name(results.name.replace("_results.json", "_report.html"))
    try:
        write_text(page, run_page.html(compared_runs.read_sides([results])))
    except Exception as error:
        notify(
            f"{page}: cannot be written ({error}); to try again: lmms-eval-tasks "
            f"report {results.parent}"
        )
        return None
    return page
