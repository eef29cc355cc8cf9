"""Every command, option, variable, task and model that a user can name."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import yaml

from tests.conftest import REPOSITORY

FILE = Path(__file__).with_name("interface.json")
CHANGELOG = REPOSITORY / "docs" / "changelog.md"


def now() -> dict[str, list[str]]:
    """What there is today, sorted."""
    from lmms_eval_tasks import settings
    from lmms_eval_tasks.sample import models

    return {
        "lmms-eval-tasks": sorted(_commands()),
        "lmms_eval": sorted(one.option for one in settings.TABLE.values() if one.is_option),
        "variables": sorted(settings.TABLE),
        "tasks": sorted(_tasks()),
        "models": sorted(manifest["model_id"] for manifest in models.MANIFESTS),
    }


def removed() -> set[str]:
    """First column of the changelog's tables of what was removed."""
    lines = CHANGELOG.read_text(encoding="utf-8").splitlines()
    return {match[1] for line in lines if (match := re.match(r"\| `([^`]+)` \| \S", line))}


def save() -> None:
    """Write interface.json."""
    parts = [f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in now().items()]
    FILE.write_text("{" + ",\n".join(parts) + "}\n", encoding="utf-8")


def _commands() -> Iterator[str]:
    """`command`, and `command --option`."""
    import typer

    (script, *_) = entry_points(group="console_scripts", name="lmms-eval-tasks")
    app = sys.modules[script.load().__module__].app

    def walk(command: Any, name: str) -> Iterator[str]:
        yield name
        options = [one for p in command.params for one in (*p.opts, *p.secondary_opts)]
        yield from (f"{name} {one}" for one in options if one.startswith("-"))
        for part, own in getattr(command, "commands", {}).items():
            yield from walk(own, f"{name} {part}")

    yield from walk(typer.main.get_command(app), "lmms-eval-tasks")


def _tasks() -> Iterator[str]:
    for file in (REPOSITORY / "lmms_eval_tasks").rglob("*.yaml"):
        # Tags such as !function are the host's.
        lines = file.read_text(encoding="utf-8").splitlines()
        found = [line for line in lines if re.match(r"(task|group): *\w", line)]
        yield from (str(value) for line in found for value in yaml.safe_load(line).values())
