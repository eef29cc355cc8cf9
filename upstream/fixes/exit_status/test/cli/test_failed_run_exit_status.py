"""A failed evaluation is visible in the command's exit status."""

import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from lmms_eval import __main__ as cli


def _evaluate(monkeypatch, outcome, is_main_process=True):
    accelerator = SimpleNamespace(is_main_process=is_main_process, wait_for_everyone=lambda: None, state=MagicMock())
    monkeypatch.setattr(sys, "argv", ["lmms_eval", "--model", "dummy", "--tasks", "anything"])
    monkeypatch.setattr(cli, "Accelerator", lambda **options: accelerator)
    monkeypatch.setattr(cli, "cli_evaluate_single", outcome)
    cli.cli_evaluate()


def test_a_failed_run_exits_with_one(monkeypatch):
    def fail(args):
        raise RuntimeError("no such data")

    with pytest.raises(SystemExit) as stopped:
        _evaluate(monkeypatch, fail)
    assert stopped.value.code == 1


def test_a_rank_without_results_is_no_failure(monkeypatch):
    _evaluate(monkeypatch, lambda args: (None, None), is_main_process=False)
