"""The arguments of an `lmms_eval` command, checked before lmms-eval imports torch.

lmms-eval imports torch before it reads its arguments: a misspelt one took it 7 s and more to find.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from lmms_eval_tasks import registry, settings
from lmms_eval_tasks.errors import TasksError, nearest
from lmms_eval_tasks.host import discovery

NO_TASKS = "no --tasks: lmms_eval tasks list shows all that there are"


class _Parser(argparse.ArgumentParser):
    """A parser that never ends the process."""

    def error(self, message: str) -> NoReturn:
        raise argparse.ArgumentError(None, message)


def names_ours(arguments: Sequence[str]) -> bool:
    """Return True if the arguments of lmms-eval's own command have a task or an option of ours."""
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--tasks", nargs="?")
    try:
        tasks = parser.parse_known_args(list(arguments))[0].tasks or ""
    except argparse.ArgumentError:
        return False
    options = {argument.partition("=")[0] for argument in arguments}
    return any(map(registry.of_task_name, tasks.split(","))) or not options.isdisjoint(
        one.option for one in settings.TABLE.values() if one.is_option
    )


def check(arguments: Sequence[str]) -> None:
    """Check all arguments that can be checked without lmms-eval's own parser.

    Args:
        arguments: of `lmms_eval`, without our options.

    Raises:
        TasksError: an option that neither lmms-eval nor this suite has; no task, or one of ours
            that does not exist; tasks of ours without a model, with one that does not exist, or
            with a setting that is not of its form.
    """
    if {"-h", "--help"}.intersection(arguments):
        return
    flags, source = _options_of_lmms_eval()
    parser = _Parser(add_help=False)
    for names in flags:
        parser.add_argument(*names, nargs="?", const="")
    try:
        given, rest = parser.parse_known_args(list(arguments))
    except argparse.ArgumentError:  # an abbreviation that fits two, which lmms-eval says
        return
    for argument in rest:
        option = argument.partition("=")[0]
        if option.startswith("--") and flags and option not in source:
            own = [one.option for one in settings.TABLE.values() if one.is_option]
            near = nearest(option, [*own, *(name for names in flags for name in names)])
            raise TasksError(f"there is no option {option}{near} (lmms_eval --help lists all)")
    if not flags or given.config:
        return
    if not given.tasks:
        raise TasksError(NO_TASKS)
    names = [name.strip() for name in given.tasks.split(",")]
    discovery.check_names(names, given.include_path)
    if any(registry.of_task_name(name) for name in names):
        settings.check_settings()
        check_model(given.model)


def _options_of_lmms_eval() -> tuple[list[list[str]], str]:
    """lmms-eval's options, each with its other names, and the text of the file that has them.

    Both are empty if the file is not as in 0.7.3.
    """
    # The package alone is imported, and not the module, which imports torch.
    spec = importlib.util.find_spec("lmms_eval")
    for place in spec.submodule_search_locations or () if spec else ():
        try:
            source = Path(place, "__main__.py").read_text(encoding="utf-8")
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
    """Check that lmms-eval has the model of a run of ours.

    Raises:
        TasksError: there is no model, with an example for this machine; or none of this name.
    """
    if not model:
        raise TasksError(f"no --model: for example {_example()} (lmms_eval models lists all)")
    from lmms_eval.models import list_available_models

    if model not in (known := list_available_models(include_aliases=True)):
        raise TasksError(no_model(model, known))


def no_model(model: str, models: Sequence[str]) -> str:
    """The message that lmms-eval does not have a model."""
    return f"lmms-eval has no model {model!r}{nearest(model, models)} (lmms_eval models lists all)"


def _example() -> str:
    """A model that this machine can run, as the arguments that name it."""
    if shutil.which("nvidia-smi"):
        return "--model qwen2_5_vl --model_args pretrained=Qwen/Qwen2.5-VL-7B-Instruct"
    return (
        "--model openai --model_args base_url=http://localhost:8000/v1,model_version=NAME for an "
        "endpoint, since this machine has no NVIDIA GPU"
    )


def check_configurations(arguments: Sequence[str]) -> None:
    """Exit if the runs of a `--config` list set our variables in `env` in different ways.

    lmms-eval puts the `env` of all of them into the environment before the first one begins, so
    that each would be made with the last one's.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config")
    if not (file := parser.parse_known_args(arguments)[0].config):
        return
    import yaml

    try:
        read = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return  # which lmms-eval says
    if not isinstance(read, list) or not all(isinstance(one, dict) for one in read):
        return
    envs = [one.get("env") if isinstance(one.get("env"), dict) else {} for one in read]
    for name in {name for env in envs for name in env if str(name).startswith(settings.PREFIX)}:
        if len({str(env.get(name)) for env in envs}) > 1:
            sys.exit(
                f"lmms-eval-tasks: {file}: its runs set {name} in `env` to different values, "
                "and lmms-eval gives all runs the last one: write one file for each run"
            )


def take_own_options(arguments: list[str]) -> list[str]:
    """Take our options out of the command line; return lmms-eval's arguments."""
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
