"""Every subcommand of `lmms-eval-tasks`: wrong arguments are one line and exit code 2."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import typer.main

from lmms_eval_tasks.commands import cli
from tests.checks import table


def commands(command: Any, path: Sequence[str] = ()) -> Iterator[tuple[Sequence[str], list[str]]]:
    """The words of each command, and its long options."""
    yield path, ["--help", *(n for p in command.params for n in p.opts if n.startswith("--"))]
    for name, sub in getattr(command, "commands", {}).items():
        yield from commands(sub, (*path, name))


EVERY = list(commands(typer.main.get_command(cli.app)))


def ending(
    words: Sequence[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[object, str]:
    """The exit code and the text on stderr."""
    monkeypatch.setattr(sys, "argv", ["lmms-eval-tasks", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return end.value.code, capsys.readouterr().err


def test_all_commands_are_there() -> None:
    assert len(EVERY) > 30
    assert {("watch",), ("leaderboard", "maia"), ("haven", "build")} <= {path for path, _ in EVERY}


@table("path, options", EVERY)
def test_a_misspelt_option(
    path: Sequence[str],
    options: Sequence[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for option in options:
        wrong = f"{option[:-2]}{option[-1]}{option[-2]}"
        wrong = f"{option}x" if wrong == option else wrong
        if wrong in options:
            continue
        code, text = ending([*path, wrong], monkeypatch, capsys)
        assert code == 2
        assert text.count("\n") == 1
        name = " ".join(["lmms-eval-tasks", *path])
        assert text.startswith(f"lmms-eval-tasks: there is no option {wrong}; did you mean --")
        assert text.endswith(f"? ({name} --help lists all)\n")


@table(
    "words, line",
    [
        (["report", "--ouput", "x"], "there is no option --ouput; did you mean --output?"),
        (["report", "--qqq"], "there is no option --qqq (lmms-eval-tasks report --help lists all)"),
        (["rescore"], "Missing argument 'logs' (see lmms-eval-tasks rescore --help)"),
        (["report", "x", "--format", "pdf"], "Invalid value for '--format': "),
        (["watch", "x", "--every"], "Option '--every' requires an argument"),
        (["raport"], "No such command 'raport'"),
        (["leaderboard", "maja"], "No such command 'maja'. Did you mean 'maia'?"),
    ],
)
def test_wrong_arguments(
    words: Sequence[str],
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, text = ending(words, monkeypatch, capsys)
    assert code == 2
    assert text.count("\n") == 1
    assert line in text


@table("words", [[], ["leaderboard"], ["data"]])
def test_no_arguments_print_the_help(
    words: Sequence[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["lmms-eval-tasks", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2
    told = capsys.readouterr()
    assert "Usage: lmms-eval-tasks" in told.out + told.err


def test_the_exit_code_of_a_command_stays(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("lmms_eval_tasks.sample.demo.run", lambda *_: False)
    assert ending(["demo"], monkeypatch, capsys)[0] == 1
    assert ending(["path"], monkeypatch, capsys)[0] in (0, None)
