"""The arguments of an `lmms_eval` command, checked before lmms-eval imports torch.

lmms-eval imports torch before it reads its arguments, so that it needs at least 7 s to find a
misspelt one.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import os
import shutil
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import TasksError, nearest
from lmms_eval_tasks.host import discovery

NO_TASKS = "no --tasks: lmms_eval tasks list shows all that there are"


class _Parser(argparse.ArgumentParser):
    """A parser that raises an `ArgumentError` and never ends the process."""

    def error(self, message: str) -> NoReturn:
        raise argparse.ArgumentError(None, message)


def names_ours(arguments: Sequence[str]) -> bool:
    """Return True if the arguments of an lmms-eval command name a task or an option of ours.

    The tasks of a `--config` file count, too.
    """
    if not _own_options().isdisjoint(argument.partition("=")[0] for argument in arguments):
        return True
    given, _ = _read(arguments)
    runs = [{"tasks": given.tasks}, *_configured(given.config)]
    return any(_has_our_tasks(run) for run in runs)


def _own_options() -> set[str]:
    return {one.option for one in settings.TABLE.values() if one.is_option}


def check_arguments(arguments: Sequence[str]) -> None:
    """Check all arguments that can be checked without lmms-eval's own parser.

    Args:
        arguments: arguments of `lmms_eval`, without our options.

    Raises:
        TasksError: an option is unknown to lmms-eval and to this package; there is no task; a
            task's name looks like one of ours and does not exist; or, for our tasks: there is no
            model, the model does not exist, or a setting's text does not fit its form.
    """
    flags, source = _options_of_lmms_eval()
    given, rest = _read(arguments)
    if not flags or given.help is not None:
        return
    for argument in rest:
        option = argument.partition("=")[0]
        if option.startswith("--") and option not in source:
            near = nearest(option, [*_own_options(), *(n for names in flags for n in names)])
            raise TasksError(f"there is no option {option}{near} (lmms_eval --help lists all)")
    # Commands without a run, and runs whose arguments stand in a file.
    others = ("config", "power_analysis", "tui")
    if any(getattr(given, name, None) is not None for name in others):
        return
    if not given.tasks:
        raise TasksError(NO_TASKS)
    names = [name.strip() for name in given.tasks.split(",")]
    discovery.check_names(names, given.include_path)
    if discovery.names_ours(names):
        settings.check_settings()
        check_model(given.model)


def _read(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return lmms-eval's options among the arguments, and the arguments that are none.

    An option that is absent is None, one without a value is "". If an abbreviation fits two
    options, which lmms-eval reports, the arguments count as `--help` alone.
    """
    needed = [["-h", "--help"], ["--config"], ["--model"], ["--tasks"], ["--include_path"]]
    flags = _options_of_lmms_eval()[0]
    known = {name for names in flags for name in names}
    parser = _Parser(add_help=False)
    for names in [*flags, *(names for names in needed if known.isdisjoint(names))]:
        parser.add_argument(*names, nargs="?", const="")
    try:
        return parser.parse_known_args(list(arguments))
    except argparse.ArgumentError:
        return parser.parse_known_args(["--help"])


def _configured(file: str | None) -> list[dict[str, Any]]:
    """Return the runs of a `--config` file; [] if there is none, or lmms-eval cannot read it."""
    if not file:
        return []
    import yaml

    try:
        content = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return []  # lmms-eval reports the error
    runs = content if isinstance(content, list) else [content]
    return runs if all(isinstance(run, dict) for run in runs) else []


def _has_our_tasks(run: Mapping[str, Any]) -> bool:
    """Return True if a run's `tasks`, a text or a list, names a task of ours."""
    tasks = run.get("tasks") or ""
    names = tasks.split(",") if isinstance(tasks, str) else [str(name) for name in tasks]
    return discovery.names_ours([name.strip() for name in names])


@functools.cache
def _options_of_lmms_eval() -> tuple[list[list[str]], str]:
    """Return lmms-eval's options, and the source text of the file that defines them.

    Each option is a list of its names, such as ["--tasks"] or ["--verbosity", "-v"]. Both results
    are empty if the file is unlike that of lmms-eval 0.7.3.
    """
    # Only the package is imported. Its module `__main__`, which is only read, would import torch.
    for place in discovery.package_folders("lmms_eval"):
        try:
            source = (place / "__main__.py").read_text(encoding="utf-8")
            calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
        except (OSError, ValueError, SyntaxError):
            continue
        names = [
            [str(arg.value) for arg in call.args if isinstance(arg, ast.Constant)]
            for call in calls
            if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"
        ]
        flags = [own for own in names if own and all(name.startswith("-") for name in own)]
        if {"--config", "--model", "--tasks", "--include_path"} <= {
            n for own in flags for n in own
        }:
            return flags, source
    return [], ""


def check_model(model: str | None) -> None:
    """Check the model of a run with our tasks.

    Raises:
        TasksError: no model is named (the message has an example for this machine), or lmms-eval
            has no model of that name.
    """
    if not model:
        raise TasksError(f"no --model: for example {_example()} (lmms_eval models lists all)")
    try:
        from lmms_eval.models import list_available_models
    except Exception:  # of a plugin that LMMS_EVAL_PLUGINS names: lmms-eval reports it
        return
    if model not in (known := list_available_models(include_aliases=True)):
        raise TasksError(no_model(model, known))


def no_model(model: str, models: Sequence[str]) -> str:
    """Return the message that lmms-eval has no model of that name."""
    return f"lmms-eval has no model {model!r}{nearest(model, models)} (lmms_eval models lists all)"


def _example() -> str:
    """Return arguments that name a model which this machine can run."""
    if shutil.which("nvidia-smi"):
        return "--model qwen2_5_vl --model_args pretrained=Qwen/Qwen2.5-VL-7B-Instruct"
    return (
        "--model openai --model_args base_url=http://localhost:8000/v1,model_version=NAME for an "
        "endpoint, since this machine has no NVIDIA GPU"
    )


def check_configurations(arguments: Sequence[str]) -> None:
    """Check that our runs of a `--config` list give each of our variables one value in `env`.

    lmms-eval sets the variables of all runs before the first run begins. Every run would then use
    the values of the last one.

    Raises:
        TasksError: two runs give a variable different values, or one of them gives it none.
    """
    given, _ = _read(arguments)
    file, runs = given.config, _configured(given.config)
    ours = [_has_our_tasks({"tasks": given.tasks or run.get("tasks")}) for run in runs]
    found = [run.get("env") for run in runs]
    envs: list[dict[str, Any]] = [env if isinstance(env, dict) else {} for env in found]
    for name in {name for env in envs for name in env if str(name).startswith(settings.PREFIX)}:
        pairs = zip(ours, envs, strict=True)
        values = {str(env.get(name)) for is_ours, env in pairs if is_ours or name in env}
        if any(ours) and len(values) > 1:
            raise TasksError(
                f"{file}: its runs set {name} in `env` to different values, or one does not set "
                "it, and lmms-eval gives all runs the last one: write one file for each run"
            )


def names_timezone(arguments: Sequence[str]) -> bool:
    """Return True if the arguments of a command, or its `--config` file, have a `--timezone`."""
    given, _ = _read(arguments)
    runs = _configured(given.config)
    return getattr(given, "timezone", None) is not None or any("timezone" in run for run in runs)


def local_timezone() -> str:
    """Return the name of this machine's time zone, in a form that lmms-eval's `--timezone` takes.

    If the name is unknown, it is that of a zone with the same time at present.
    """
    import pytz

    try:
        now = datetime.now().astimezone()
    except ValueError:  # no zone is a day away from UTC
        return "UTC"
    links = (os.environ.get("TZ", ""), os.path.realpath("/etc/localtime"))
    names = [link.lstrip(":").rpartition("zoneinfo/")[2] for link in links]
    hours = -(now.utcoffset() or timedelta()) // timedelta(hours=1)
    every: list[str] = [*names, "UTC", f"Etc/GMT{hours:+d}", *pytz.common_timezones]
    for name in every:
        with contextlib.suppress(pytz.UnknownTimeZoneError):
            if now.astimezone(pytz.timezone(name)).utcoffset() == now.utcoffset():
                return name
    return "UTC"


def take_own_options(arguments: list[str]) -> list[str]:
    """Set our options that are among the arguments, and return the other arguments.

    For `--help`, this also prints the help on our options.
    """
    parser = argparse.ArgumentParser(
        add_help=False, allow_abbrev=False, usage=argparse.SUPPRESS, prog="lmms_eval"
    )
    own = parser.add_argument_group("options of lmms-eval-tasks, for its tasks")
    for one in settings.TABLE.values():
        if one.is_option:
            form = (
                {"metavar": one.metavar} if one.metavar else {"action": "store_const", "const": "1"}
            )
            text = f"{one.help} [{one}]".replace("%", "%%")
            own.add_argument(one.option, dest=one, help=text, **form)  # type: ignore[arg-type]
    found, rest = parser.parse_known_args(arguments)
    settings.set_options(vars(found))
    if "--help" in rest or "-h" in rest:
        parser.print_help()
        print()
    return rest
