"""Settings as options of our own commands, from the same table as the options of `lmms_eval`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from lmms_eval_tasks import sample, settings

Command = Callable[..., None]
LIMITS = (
    settings.MAX_CALLS,
    settings.MAX_COST,
    settings.JUDGE_CONCURRENCY,
    settings.JUDGE_TIMEOUT,
    settings.JUDGE_PATIENCE,
)
ModelArgs = Annotated[str, typer.Option("--model_args", help="As in lmms_eval --model_args.")]
ForceSimple = Annotated[
    bool, typer.Option("--force_simple", help="As in lmms_eval --force_simple.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Send no request; print what it would cost.")
]


def with_settings(*variables: str, checked: bool = True) -> Callable[[Command], Command]:
    """Return a decorator that adds the options of these settings to a command.

    During the command, `settings` has the values of these options. All settings are checked before
    the command begins; `checked=False` leaves the check to the command.
    """
    names = {one.removeprefix(settings.PREFIX).lower(): settings.TABLE[one] for one in variables}

    def over(command: Command) -> Command:
        @functools.wraps(command)
        def with_options(**option_values: Any) -> None:
            setting_values: dict[str, Any] = {
                setting: option_values.pop(name) or None for name, setting in names.items()
            }
            with settings.use_options(setting_values):
                if checked:
                    settings.check_settings()
                    sample.ready()
                command(**option_values)

        own = list(inspect.signature(command, eval_str=True).parameters.values())
        for name, one in names.items():
            is_switch = one.form is bool
            shown = typer.Option(one.option, help=one.help, metavar=one.metavar or None)
            form: Any = Annotated[bool if is_switch else str | None, shown]
            default = False if is_switch else None
            own.append(
                inspect.Parameter(
                    name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=form
                )
            )
        with_options.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
        with_options.__annotations__ = {one.name: one.annotation for one in own}
        return with_options

    return over
