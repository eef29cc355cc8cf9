"""The host's classes that ask a server, in this process, at a server in the form of their API."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.host import plugin
from tests.vendor_apis import Reply, VendorApis

TABLE: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "cases" / "endpoint_classes.json").read_text(encoding="utf-8")
)
ALL = os.environ.get("MODEL_CLASSES") == "all"
SLICE = ("openai", "openai simple", "async_openai", "gpt4v")  # whose package is installed with us
# Modules that wait so long between attempts, and take no argument for it.
_WAIT = ("claude", "gpt4v", "qwen_vl_api")


def required(package: str) -> None:
    """Skip a test whose package is not installed; with MODEL_CLASSES=all it fails."""
    try:
        found = importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # the package of the package
        found = False
    if not found and ALL:
        pytest.fail(f"needs the package {package}")
    if not found:
        pytest.skip(f"needs the package {package}, which is not installed")


@contextmanager
def serving(reply: Reply, monkeypatch: pytest.MonkeyPatch) -> Iterator[VendorApis]:
    """A server that every vendor's client of this process reaches; no class waits to try again."""
    with VendorApis(reply) as server:
        openai = f"{server.root}/v1"
        for name, value in {
            "ANTHROPIC_BASE_URL": server.root,
            "ANTHROPIC_API_KEY": "no",
            "GOOGLE_GEMINI_BASE_URL": server.root,
            "OPENAI_BASE_URL": openai,
            "OPENAI_API_KEY": "no",
            "DASHSCOPE_API_KEY": "no",
            "no_proxy": "127.0.0.1",
            settings.FRESH: "1",
            settings.JUDGE: "none",
        }.items():
            monkeypatch.setenv(name, value)
        for name in _WAIT:
            module = importlib.import_module(f"lmms_eval.models.simple.{name}")
            monkeypatch.setattr(module, "NUM_SECONDS_TO_SLEEP", 0)
        with contextlib.suppress(ImportError):
            dashscope = importlib.import_module("dashscope")
            monkeypatch.setattr(dashscope, "base_http_api_url", f"{server.root}/api/v1")
        yield server


def run(name: str, server: VendorApis, tasks: Sequence[str], limit: int, more: str = "") -> Any:
    """What the host's `simple_evaluate` returns for a class of the table at its defaults."""
    plugin.install()
    from lmms_eval import evaluator

    one = TABLE[name]
    return evaluator.simple_evaluate(
        model=one["model"],
        model_args=one["arguments"].format(root=server.root) + more,
        force_simple=one.get("simple", False),
        tasks=list(tasks),
        limit=limit,
        verbosity="ERROR",
    )
