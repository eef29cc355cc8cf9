"""The console script `lmms_eval`: lmms-eval's command line with what script.py adds to it."""

from __future__ import annotations

import functools
import sys

from lmms_eval_tasks.host import plugin, script
from lmms_eval_tasks.notify import notify
from lmms_eval_tasks.utils import interrupts

_OTHER_SUBCOMMANDS = {"tasks", "models", "ui", "serve", "power", "version", "tui", "mcp"}


def main() -> None:
    """Entry point of the console script `lmms_eval`."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] not in _OTHER_SUBCOMMANDS:
        with interrupts.ending(exits=True):
            _run(script.checked_arguments(arguments))
    else:
        _run(arguments)


def _run(arguments: list[str]) -> None:
    """Run lmms-eval with these arguments, and exit with the code that it should have."""
    plugin.install()
    sys.argv = [sys.argv[0], *arguments]
    outcome = script.new_outcome()
    watch = functools.partial(script.watch, outcome)
    plugin.when_imported("lmms_eval.__main__", watch, _unwatched)
    try:
        from lmms_eval.cli.dispatch import main as host
    except ImportError as error:
        sys.exit(f"lmms-eval cannot be used ({error}): pip install 'lmms-eval==0.7.3'")
    sys.exit(script.end(host, outcome))


def _unwatched(name: str, error: Exception) -> None:
    notify(f"could not hook {name} ({error!r}): a failed run exits with 0, no summary is printed")
