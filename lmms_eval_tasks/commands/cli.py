"""The `lmms-eval-tasks` command: the demo, the user's data, and saved runs."""

from __future__ import annotations

import io
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lmms_eval_tasks import __version__, registry, settings
from lmms_eval_tasks.command_options import with_settings
from lmms_eval_tasks.commands import (
    agreement_command,
    doctor_command,
    judge_commands,
    leaderboard_command,
    report_command,
    saved_runs,
    watch_command,
)
from lmms_eval_tasks.errors import WRONG, DataError, TasksError, about_file, nearest
from lmms_eval_tasks.notify import notify, table_console, visible
from lmms_eval_tasks.tables.terminal_tables import show
from lmms_eval_tasks.utils import interrupts

app = typer.Typer(
    help="Published video benchmarks as lmms-eval tasks. Run them with `lmms_eval --tasks ...`.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="Show, check and install a benchmark's files.", no_args_is_help=True)
prompts_app = typer.Typer(
    help="Show or replace the prompts for models and judges.", no_args_is_help=True
)
app.add_typer(data_app, name="data")
app.add_typer(prompts_app, name="prompts")


def main() -> None:
    """Run the command; an error for the user prints one message and exits with code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal in Latin-1 has no "…"
            stream.reconfigure(errors="replace")
    try:
        with interrupts.ending(exits=True):
            sys.exit(app(standalone_mode=False))  # typer's exceptions are raised, not printed
    except _WrongUsageError as error:
        print_wrong_usage(error)
        sys.exit(2)
    except TasksError as error:
        notify(str(error))
        sys.exit(2)
    except OSError as error:
        if not (told := about_file(error)):
            raise
        notify(told)
        sys.exit(2)


# The class of all errors in a command's arguments: typer's, or click's for older versions of typer.
_WrongUsageError: Any = typer.BadParameter.__base__


def print_wrong_usage(error: Any) -> None:
    """Print one line about wrong arguments, with the nearest option; the help if there are none.

    Args:
        error: a `UsageError` of typer.
    """
    message = error.format_message()
    if "\n" in message:  # the help of a group of commands
        error.show()
        return
    path = error.ctx.command_path if error.ctx is not None else "lmms-eval-tasks"
    more = f"see {path} --help"
    # Only an option that does not exist has `possibilities`; a wrong one has just its name.
    option = getattr(error, "option_name", "") if hasattr(error, "possibilities") else ""
    if option and error.ctx is not None:
        options = [name for param in error.ctx.command.params for name in param.opts]
        message = f"there is no option {option}{nearest(option, [*options, '--help'])}"
        more = f"{path} --help lists all"
    notify(f"{message.rstrip('.')} ({more})")


def _print_version(is_set: bool) -> None:
    if is_set:
        from lmms_eval_tasks.models.model_capabilities import host_version

        host = host_version() or "not installed"
        print(f"lmms-eval-tasks {__version__}, lmms-eval {host}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - printed by its callback
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the versions of lmms-eval-tasks and lmms-eval.",
        ),
    ] = False,
) -> None:
    if context.invoked_subcommand != "doctor":  # doctor reports this with its other findings
        settings.check_names()


@app.command("list")
def list_tasks() -> None:
    """Print the tasks and groups, by benchmark."""
    console = table_console()
    for benchmark in registry.usable_benchmarks():
        tasks, groups = benchmark.tasks, registry.groups(benchmark.name)
        console.print(f"[bold]{benchmark.title}[/] ({len(tasks)} tasks)")
        for kind, names in (("groups", groups), ("tasks", tasks)):
            console.print(Padding(f"{kind}: {', '.join(names)}", (0, 0, 0, 2)), highlight=False)


@app.command()
def path() -> None:
    """Print the folder of the task files, for lmms_eval `--include_path`."""
    print(Path(__file__).resolve().parent.parent)


@app.command("settings")
def list_settings() -> None:
    """Print every option and variable, as in docs/settings.md."""
    print(settings.markdown(), end="")


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for runs, logs and the tiny checkpoint.")
    ] = Path("out/demo"),
) -> None:
    """Run the packaged sample end to end on this machine, with four small models."""
    from lmms_eval_tasks.sample import demo as demonstration

    if not demonstration.run(out, table_console()):
        raise typer.Exit(1)


@data_app.command()
@with_settings(settings.DATA)
def status(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[BENCHMARK]...", help="Default: all.")
    ] = None,
) -> None:
    """Show each benchmark's data: where it is, and which videos are missing or unreadable."""
    root = settings.data_root()
    if settings.value(settings.DATA) and not root.is_dir():
        raise DataError(f"{root}: no such folder ({settings.DATA.option} ROOT, {settings.DATA})")
    wanted = [registry.find_benchmark(name) for name in dict.fromkeys(names or ())]
    left = ("benchmark", "found", "where", "version")
    table = Table(
        *left,
        title=f"Data root: {root} (to change it: {settings.DATA.option} ROOT, "
        f"or {settings.DATA}=ROOT)",
        title_justify="left",
    )
    for column in ("questions", "pools", "videos present", "missing", "unreadable"):
        table.add_column(column, justify="right")
    details = []
    for benchmark in wanted or registry.usable_benchmarks():
        name, found = benchmark.name, benchmark.status(root)
        counts = [str(found.counts.get(key, "-")) for key in ("questions", "pools")]
        kinds = [why.partition(":")[0] for why in found.bad.values()]
        counts += map(str, (found.videos, kinds.count("missing"), kinds.count("unreadable")))
        there = "no" if found.problem else "yes"
        where = Text(visible(str(found.where)))  # its brackets are no markup of rich
        table.add_row(name, there, where, found.version or "-", *counts)
        details += [f"{name}: {line}" for line in (found.problem, *found.notes) if line]
        details += [f"{name}: {video} {why}" for video, why in found.bad.items()]
    show(table_console(), [table])
    for line in details:
        print(line)


def _root() -> Path:
    """Return the data root for a command that writes there: the sample is never changed."""
    settings.check_settings()
    if settings.is_sample():
        raise DataError(
            f"{settings.DATA}=sample stands for the packaged sample, which cannot take data: "
            "unset it, or set it to a folder"
        )
    return settings.data_root()


@data_app.command()
@with_settings(settings.DATA, checked=False)
def get(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="BENCHMARK...", help=f"Of: {', '.join(registry.NAMES)}."),
    ] = None,
) -> None:
    """Download what is public of a benchmark, and put it under the data root; can be resumed."""
    if not names:
        raise DataError(f"name a benchmark to download: {', '.join(registry.NAMES)}")
    root, problems = _root(), 0
    for benchmark in [registry.find_benchmark(name) for name in dict.fromkeys(names)]:
        try:
            benchmark.get(root, partial(print, flush=True))
        except DataError as error:
            problems += 1
            notify(f"{benchmark.name}: {error}")
    if problems:
        raise typer.Exit(WRONG)


@data_app.command()
@with_settings(settings.DATA, checked=False)
def prepare(
    benchmark: Annotated[str, typer.Argument(help=f"One of: {', '.join(registry.NAMES)}.")],
    *,
    source: Annotated[
        Path, typer.Option("--from", help="The data file, or the folder that holds it.")
    ],
    link: Annotated[bool, typer.Option(help="Make links instead of copies.")] = False,
) -> None:
    """Validate a benchmark's release and put it under the data root."""
    print(registry.find_benchmark(benchmark).prepare(source, _root(), link))


@app.command()
def models(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Names of models, as in lmms_eval --model."),
    ] = None,
    *,
    whole: Annotated[
        bool, typer.Option("--all", help="With a name: also the stored entry, as YAML.")
    ] = False,
    form: Annotated[
        Literal["text", "md"],
        typer.Option("--format", help="md: all classes, as the page docs/models.md."),
    ] = "text",
) -> None:
    """Print a page about a model of lmms-eval; without a name, a table of all model classes."""
    from lmms_eval_tasks.models import capability_pages

    if (names and form == "md") or (whole and not names):
        raise TasksError("--all requires the name of a model, and --format md takes none")
    console = table_console()
    for name in names or ():
        print("\n".join(capability_pages.page(name, min(console.width, 100))))
        if whole:
            print(f"\n{capability_pages.stored_entry(name)}")
    if form == "md":
        print(capability_pages.markdown(), end="")
    elif not names:
        console.print(capability_pages.class_table(console.width))
        none = ", ".join(capability_pages.others())
        console.print(f"No videos or pictures: {none}", highlight=False)
        console.print("More about one: lmms-eval-tasks models NAME", highlight=False)


@prompts_app.callback()
def _group() -> None:
    """Keep `import` a command of its own: typer merges a single command into its group."""


@prompts_app.command("import")
def import_prompts(
    benchmark: Annotated[str, typer.Argument(help="The benchmark.")],
    clone: Annotated[
        Path, typer.Option("--from", help="Folder with your clone of the authors' repository.")
    ],
    to: Annotated[Path, typer.Option(help="Folder to write, for use with --prompts.")] = Path(
        "prompts"
    ),
) -> None:
    """Write the authors' prompts, taken from your clone of their repository, for --prompts."""
    from lmms_eval_tasks.commands import authors_prompts

    for line in authors_prompts.write_prompts(registry.find_benchmark(benchmark).name, clone, to):
        print(line)


app.command("estimate")(judge_commands.estimate_command)
app.command("rescore")(saved_runs.rescore_command)
app.command("judge")(saved_runs.judge_command)
app.command("doctor")(doctor_command.doctor_command)
app.command("agreement")(agreement_command.agreement_command)
app.command("watch")(watch_command.watch_command)
app.command("report")(report_command.report_command)
app.add_typer(leaderboard_command.leaderboard_app, name="leaderboard")
app.add_typer(judge_commands.cache_app, name="cache")


def _add_commands_of_benchmarks() -> None:
    taken = set(map(_name_of, [*app.registered_commands, *app.registered_groups]))
    for name in registry.NAMES:
        if not registry.has_part(name, "commands"):
            continue
        own = typer.Typer()
        try:
            registry.part(name, "commands").add(own)
        except registry.ERRORS as error:
            notify(f"the commands of {name} are not available ({error!r})")
        for known in ("registered_commands", "registered_groups"):
            for one in getattr(own, known):
                if (called := _name_of(one)) in taken:
                    notify(
                        f"the command {called} of {name} is skipped: another command has this name"
                    )
                else:
                    taken.add(called)
                    getattr(app, known).append(one)


def _name_of(command: Any) -> str:
    """Return the name of a command or of a group of commands."""
    return str(command.name or command.callback.__name__.replace("_", "-"))


_add_commands_of_benchmarks()
