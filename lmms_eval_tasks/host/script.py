"""The `lmms_eval` command: the host's own command line, with what it leaves undone mended.

- finds our tasks in every subcommand, also when another package's broken entry point switched the
  host's plugins off;
- exits non-zero when a run failed (the host prints the error and exits with 0), and with 3 when
  more requests to the model, or verdicts of its judge, failed than `--max-failed` allows;
- a folder in the working directory that bears a task's name does not hijack `--tasks`;
- takes our options beside the host's, and prints the papers' tables below the host's table.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.console import say
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.host import needs, plugin
from lmms_eval_tasks.host.imports import when_imported
from lmms_eval_tasks.utils.json_files import check_folder

_OTHER_SUBCOMMANDS = {"tasks", "models", "ui", "serve", "power", "version", "tui", "mcp"}


def main() -> None:
    """Entry point of the console script `lmms_eval`."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] not in _OTHER_SUBCOMMANDS:
        arguments = _take_own_options(arguments)
    plugin.install()
    sys.argv = [sys.argv[0], *arguments]
    outcome = SimpleNamespace(failed=False)  # the host itself does not tell
    watch = functools.partial(_watch, outcome)
    when_imported("lmms_eval.__main__", watch, _unwatched)
    try:
        from lmms_eval.cli.dispatch import main as host
    except ImportError as error:
        sys.exit(f"lmms-eval is not usable here ({error}); pip install 'lmms-eval==0.7.3'")
    try:
        host()
    except KeyboardInterrupt:  # host/replies.py has said what is kept
        sys.exit(130)
    from lmms_eval_tasks.runs.invalid import INVALID

    invalid = _print_tables()
    if outcome.failed:
        sys.exit(1)
    if invalid:
        sys.exit(INVALID)


def _take_own_options(arguments: list[str]) -> list[str]:
    """Turn our options into their environment variables; returns the host's arguments."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for option, variable in OPTIONS.items():
        parser.add_argument(option, dest=variable, default=None)
    for option, variable in FLAGS.items():
        parser.add_argument(option, dest=variable, action="store_const", const="1", default=None)
    own, rest = parser.parse_known_args(arguments)
    for variable, value in vars(own).items():
        if value is not None:
            os.environ[variable] = value
    if "--help" in rest or "-h" in rest:
        print(_help())
    return rest


def _options(variables: Iterable[str]) -> dict[str, str]:
    """Option -> variable: `--max-cost` is LMMS_EVAL_TASKS_MAX_COST."""
    names = {one: one.removeprefix("LMMS_EVAL_TASKS_").lower() for one in variables}
    return {f"--{name.replace('_', '-')}": variable for variable, name in names.items()}


FLAGS = _options(settings.SWITCHES)
# Where the cache lies is a matter of the machine, not of a run.
OPTIONS = _options(
    one for one in settings.VARIABLES if one not in (*settings.SWITCHES, settings.CACHE)
)


def _help() -> str:
    lines = [f"  {option} VALUE  (same as {variable})" for option, variable in OPTIONS.items()]
    lines += [f"  {option}  (same as {variable}=1)" for option, variable in FLAGS.items()]
    return "Options of lmms-eval-tasks, for its own tasks:\n" + "\n".join(lines) + "\n"


def _watch(outcome: SimpleNamespace, module: ModuleType) -> None:
    """Wrap the host's `cli_evaluate_single`, whose exceptions the host swallows."""
    evaluate = module.cli_evaluate_single

    @functools.wraps(evaluate)
    def cli_evaluate_single(args: Any = None) -> Any:
        from lmms_eval.tasks import TaskManager

        from lmms_eval_tasks.host import kept_replies, replies

        told = {"output_path": None, "include_path": None, "tasks": "", **vars(args)}
        try:
            if told["output_path"]:
                check_folder(Path(told["output_path"]), "--output_path")
            if not (plugin.finds_tasks(TaskManager) or told["include_path"]):
                args.include_path = str(plugin.TASKS_PATH)
            if told["tasks"] is None:
                outcome.failed = True  # the host prints an error and exits with 0
            elif _is_hijacked(told["tasks"]):
                # A list of names is never taken for a folder, and the host drops repetitions.
                args.tasks = f"{args.tasks},{args.tasks}"
            with replies.logged("WARNING", _is_loss) as lost:
                found = evaluate(args)
            if lost:
                raise OSError(
                    f"the results were not saved ({lost[0]}); the replies are kept: the same "
                    "command goes on from there"
                )
            return found
        except TasksError as error:
            say(str(error))
            raise SystemExit(2) from None
        except SystemExit as stop:
            if outcome.failed and not stop.code:
                raise SystemExit(1) from None
            raise
        except BaseException:
            outcome.failed = True
            kept_replies.Kept.reopen()
            raise

    module.cli_evaluate_single = cli_evaluate_single  # type: ignore[attr-defined]


def _unwatched(_: str, error: Exception) -> None:
    needs.note(f"its command cannot be watched ({error!r})", "a run that failed exits with 0")


def _is_loss(record: Any) -> bool:
    """The host logs a warning of what it failed to write, and goes on."""
    return bool(record["message"].startswith("Could not save "))


def _is_hijacked(tasks: str) -> bool:
    """True if `tasks` is one registered name and also a folder here."""
    if os.sep in tasks or "," in tasks or not Path(tasks).is_dir():
        return False
    from lmms_eval.tasks import TaskManager

    return tasks in TaskManager("ERROR").all_tasks


def _print_tables() -> bool:
    """Print what belongs below the host's table; True if the run is invalid."""
    from lmms_eval_tasks.runs import after

    if after.last_results is None:
        return False
    after.print_tables(after.last_results)
    return bool(after.last_results["lmms_eval_tasks"].get("invalid"))
