"""The `lmms_eval` command: lmms-eval's command line with these corrections and additions.

- Every subcommand finds our tasks, even if a broken entry point of another package keeps lmms-eval
  from loading its plugins.
- A failed run gives an exit code other than 0; lmms-eval prints the error and exits with 0. The
  code is 3 if more requests to the model, or more verdicts of the judge, failed than `--max-failed`
  allows.
- `--tasks NAME` means the task, even if the working directory has a folder of that name.
- Our options (settings.py) are accepted in addition to lmms-eval's.
- If all tasks are ours, a short summary (runs/screen.py) is printed in place of lmms-eval's table.
  A file gets lmms-eval's table and all tables of the papers; `--tables all` also prints them.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

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
    """Return the command's arguments without our options, after a check.

    Raises:
        SystemExit: an argument is wrong; the reason is printed in one line.
    """
    try:
        rest = command_arguments.take_own_options(arguments)
        command_arguments.check_configurations(rest)
        if rest and rest[0].startswith("-"):
            command_arguments.check_arguments(rest)
    except (TasksError, ImportError) as error:
        notify(str(not_importable(error) if isinstance(error, ImportError) else error))
        sys.exit(WRONG)
    return rest


def take_over(module: ModuleType, evaluate_all: Function) -> object:
    """Run a command that did not start through our console script, with the same corrections.

    Such commands are `python -m lmms_eval`, torchrun and accelerate.

    Args:
        module: `lmms_eval.__main__`.
        evaluate_all: the module's `cli_evaluate`, which reads `sys.argv`.

    Returns:
        The result of `evaluate_all` if the command names no task and no option of ours. Otherwise
        None.

    Raises:
        SystemExit: a run with our tasks failed or is invalid. The code is that of our console
            script.
    """
    arguments = sys.argv[1:]
    if _WATCHED in vars(module) or not command_arguments.names_ours(arguments):
        return evaluate_all()
    before = {name: vars(module).get(name) for name in ("cli_evaluate_single", "print", _WATCHED)}
    outcome = new_outcome()
    # All is put back afterwards: a program may call the command again, with other options.
    with settings.use_options({}), interrupts.ending(exits=True):
        sys.argv[1:] = checked_arguments(arguments)
        watch(outcome, module)
        try:
            code = end(evaluate_all, outcome)
        finally:
            sys.argv[1:] = arguments
            for name, own in before.items():
                if own is None:
                    vars(module).pop(name, None)
                else:
                    setattr(module, name, own)
    if code:
        sys.exit(code)
    return None


def new_outcome() -> SimpleNamespace:
    """Return an empty record of a command's runs, which `watch` fills and `end` shows.

    Its fields are `failed` (True if a run failed), `runs` (for each run with our tasks: results,
    printed lines, `--output_path`) and `printed` (lines that lmms-eval printed after its runs).
    """
    return SimpleNamespace(failed=False, runs=[], printed=[])


def end(host: Function, outcome: SimpleNamespace) -> str | int:
    """Call lmms-eval's command, then print the summaries of its runs.

    Args:
        host: lmms-eval's command.
        outcome: the record of the command's runs (`new_outcome`).

    Returns:
        The exit code that the command should have.
    """
    code: str | int | None = None
    try:
        host()
    except interrupts.InterruptedRunError:  # the user already knows which replies are kept
        raise
    except SystemExit as end:  # also after a list of runs (--config), one of which was wrong
        code = end.code
    invalid = [_show(*run) for run in outcome.runs]
    code = code or int(outcome.failed)
    if any(invalid):
        from lmms_eval_tasks.report.invalid import INVALID

        code = code or INVALID
    return code


def watch(outcome: SimpleNamespace, module: ModuleType) -> None:
    """Wrap lmms-eval's function for one run, and its `print`, so that they fill `outcome`.

    lmms-eval swallows the exceptions of that function, `cli_evaluate_single`.

    Args:
        outcome: the record of the command's runs (`new_outcome`).
        module: `lmms_eval.__main__`, which is changed.
    """
    evaluate = module.cli_evaluate_single
    plain: Function = print
    has_zone = command_arguments.names_timezone(sys.argv[1:])

    @functools.wraps(evaluate)
    def cli_evaluate_single(args: CommandArguments) -> object:
        from lmms_eval_tasks.host.requests import host_log, kept_replies

        unsaid = {"output_path": None, "tasks": "", "log_samples": False}
        told = {**unsaid, **vars(args)}
        try:
            _prepare_arguments(args, told)
            if not has_zone and discovery.our_tasks(told["tasks"].split(",")):
                args.timezone = command_arguments.local_timezone()
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
        except (TasksError, SystemExit):  # plugin.py prints a TasksError; lists of tasks exit
            raise
        except BaseException:
            outcome.failed = True
            raise

    def print_lines(*args: object, **kwargs: object) -> None:
        """Keep the lines that lmms-eval prints after a run; print them unless our summary does."""
        if outcome.runs:
            outcome.printed += map(str, args)
            wanted = settings.value(settings.TABLES)
            if wanted != "all" and all(_all_ours(results) for results, *_ in outcome.runs):
                return
        plain(*args, **kwargs)

    vars(module)[_WATCHED] = True
    module.cli_evaluate_single = cli_evaluate_single  # type: ignore[attr-defined]
    module.print = print_lines  # type: ignore[attr-defined]


def _prepare_arguments(args: CommandArguments, by_name: Mapping[str, Any]) -> None:
    """Check a run's arguments, and change `args` so that lmms-eval finds our tasks.

    Args:
        args: arguments of lmms-eval's `cli_evaluate_single`.
        by_name: the same by name, with defaults.

    Raises:
        TasksError: an argument is wrong.
    """
    output_path, tasks = by_name["output_path"], by_name["tasks"]
    saves = output_path and by_name["log_samples"]
    if settings.value(settings.REPORT) and not saves:
        raise TasksError("--report requires saved samples: add --log_samples --output_path out")
    if output_path:
        check_folder(Path(output_path), "--output_path")
    if tasks is None:
        raise TasksError(command_arguments.NO_TASKS)
    _settle_tasks(args, tasks)


def _settle_tasks(args: CommandArguments, tasks: str | None) -> None:
    """Change `args` so that lmms-eval finds our tasks and does not take a name for a folder.

    Raises:
        TasksError: the name of a task is wrong.
    """
    from lmms_eval.tasks import TaskManager

    paths = getattr(args, "include_path", None)
    if not (discovery.finds_tasks(TaskManager) or paths):
        (args.include_path,) = paths = discovery.task_folders()
    discovery.check_names((tasks or "").split(","), paths)
    if tasks and discovery.our_tasks([tasks]) and Path(tasks).is_dir():
        # lmms-eval never takes a list of names for a folder, and it ignores repetitions.
        args.tasks = f"{tasks},{tasks}"


@contextmanager
def _own_second(module: ModuleType, output_path: str | None) -> Iterator[None]:
    """Return a context manager in which the names of a run's files have a second of their own.

    lmms-eval names files by the second, and appends samples to a file that exists. If two runs of
    one model begin in the same second, the results of one are lost and the samples are mixed.

    Args:
        module: `lmms_eval.__main__`.
        output_path: `--output_path`; None if nothing is saved.
    """
    second = getattr(getattr(module, "utils", None), "get_datetime_str", None)
    # Only rank 0 saves files. Other versions of lmms-eval may name files in another way.
    if not output_path or second is None or os.environ.get("RANK", "0") != "0":
        yield
        return
    claims: list[Path] = []

    @functools.wraps(second)
    def with_second(*args: object, **kwargs: object) -> object:
        while True:
            named = second(*args, **kwargs)
            claim = Path(output_path, f".{named}.run".replace(":", "-"))
            try:
                claim.touch(exist_ok=False)  # works between machines, too
            except FileExistsError:
                time.sleep(0.1)
            except OSError:  # saving will fail, too, and report the error
                return named
            else:
                claims.append(claim)
                return named

    module.utils.get_datetime_str = with_second
    try:
        yield
    finally:
        module.utils.get_datetime_str = second
        for claim in claims:
            claim.unlink(missing_ok=True)


def _is_of_saving(record: Record) -> bool:
    return (record["name"] or "").endswith("evaluation_tracker")


def _not_saved(logged: Sequence[str]) -> str:
    """Return the file that lmms-eval could not write, and the reason; "" if it wrote all files.

    lmms-eval logs the file and the reason in two lines, and continues. Only rank 0 saves and logs.
    """
    for place, said in enumerate(logged):
        if "Could not save " in said:
            return ": ".join(logged[place : place + 2])
    return ""


def _all_ours(results: Results) -> bool:
    """Return True if all tasks of a run are ours, and none is lmms-eval's own."""
    sections = [own for own in results["lmms_eval_tasks"].values() if isinstance(own, dict)]
    told = {task for own in sections for task in own.get("details", ())}
    return told.issuperset(results["configs"])


def _show(results: Results, printed: Sequence[str], output_path: str | None) -> bool:
    """Print the summary of a run, write all of its tables, and return True if it is invalid."""
    from rich.console import Console

    from lmms_eval_tasks.runs import screen

    # lmms-eval does not report the path of its results, so its rule for file names is applied here.
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
    """Write a run's page beside its results, and return the page's path.

    None if the page cannot be written; a line says why, and the results are not affected.
    """
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
