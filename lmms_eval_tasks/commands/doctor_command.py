"""The command `doctor`: checks, in a minute before a run, for all that would stop or spoil it."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from lmms_eval_tasks import sample, settings
from lmms_eval_tasks.command_options import ForceSimple, ModelArgs, with_settings
from lmms_eval_tasks.doctor.checks import Finding, Findings
from lmms_eval_tasks.notify import table_console
from lmms_eval_tasks.utils.json_files import JsonObject

_MARKS = {"ok": ("✔", "green"), "warning": ("!", "yellow"), "error": ("✘", "red")}


@with_settings(*(one for one in settings.TABLE.values() if one.is_option), checked=False)
def doctor_command(
    *,
    tasks: Annotated[
        str,
        typer.Option(
            help="Tasks or groups, separated by commas; default: all benchmarks with data."
        ),
    ] = "",
    model: Annotated[str | None, typer.Option(help="As in lmms_eval --model.")] = None,
    model_args: ModelArgs = "",
    force_simple: ForceSimple = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check everything that could stop a run. With --judge, send the judge one test question."""
    names = [name.strip() for name in tasks.split(",") if name.strip()]
    run = {"model": model, "model_args": model_args, "force_simple": force_simple}
    console, begun, found = table_console(), time.monotonic(), []
    for one in _findings(names, run):
        found.append(one)
        if not as_json:
            _show(console, one)
    counts = Counter(one.state for one in found)
    if as_json:
        findings = [
            {"state": one.state, "told": one.message, "mend": one.mend, "about": one.about}
            for one in found
        ]
        print(json.dumps({"ok": not counts["error"], "findings": findings}, indent=2))
    else:
        numbers = f"errors: {counts['error']}, warnings: {counts['warning']}, ok: {counts['ok']}"
        console.print(f"{numbers}; {time.monotonic() - begun:.0f} s", highlight=False)
    if counts["error"]:
        raise typer.Exit(1)


def _findings(names: list[str], run: JsonObject) -> Iterator[Finding]:
    from lmms_eval_tasks import context
    from lmms_eval_tasks.commands import uploads
    from lmms_eval_tasks.doctor import machine
    from lmms_eval_tasks.doctor.checks import DoctorCheck, Examination, carried_out
    from lmms_eval_tasks.host import model_class, needs
    from lmms_eval_tasks.models import model_capabilities

    host = DoctorCheck(
        "lmms-eval",
        needs.examined,
        f"pip install lmms-eval=={model_capabilities.capability_table().host}",
    )
    yield from carried_out([*machine.checks(), host])
    named = None
    with suppress(Exception):  # the check of the model will report this
        named = model_class.run_model(run)
    model = partial(model_class.examined, run) if run["model"] else None
    with machine.usable_cache(), context.begun(named):
        sent = (lambda asked: map(str, uploads.upload_lines(asked))) if run["model"] else None
        if settings.is_sample():
            yield from carried_out(
                [DoctorCheck("packaged sample", _sample, f"{settings.CACHE}=DIR")]
            )
        yield from carried_out(Examination(names, model, sent).checks())


def _sample() -> Findings:
    """Prepare the packaged sample, since later checks read its files; no findings."""
    sample.ready()
    yield from ()


def _show(console: Console, finding: Finding) -> None:
    """Print a finding as a line with a mark, and below it how to correct it."""
    mark, colour = _MARKS[finding.state]
    mark = mark if console.encoding.startswith("utf") else finding.state
    told = Text.assemble((f"{mark} ", colour), (f"{finding.about}: ", "bold"), finding.message)
    if finding.mend:
        told.append(f"\n    -> {finding.mend}", style=colour)
    console.print(told, soft_wrap=True)
