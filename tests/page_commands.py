"""The commands on the pages of the documentation, and what of each can be said without running it.

A page's code is a block, fenced or indented, or a text between backticks that starts with the name
of a program. What a block is, is known by its first word: a block or a program that nobody listed
here is an error, so that no command comes in unseen.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import build_site
import typer
import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from lmms_eval_tasks import registry, settings
from lmms_eval_tasks.commands import cli
from lmms_eval_tasks.host import arguments
from tests.conftest import BIN, OFFLINE, REPOSITORY
from tests.models.test_classes_host import parameters, registered

ENGINE = REPOSITORY / "tests" / "models" / "stub_vllm" / "engine_arguments.txt"
# What classes pass on: to vLLM's EngineArgs, to SGLang's ServerArgs (of which these two).
MORE = {
    **{name: {*ENGINE.read_text().split()} for name in ("tasks_vllm", "vllm", "vllm_generate")},
    "sglang": {"mm_process_config", "dp_size"},
}
SERVE = {"trust_request_mm_kwargs"}  # of `vllm serve` beyond its engine's
NO_COMMANDS = (  # how indented blocks start that are none
    *(
        "ROOT/",
        "lmms_eval_tasks/",
        "commands, host",
        "MAIA: VALID",
        "judge none: ",
        ".../segments.json (data",
        "answers of ",
    ),
    *("model: ", "panel: ", "debate: ", "date: ", '{"videoId"'),
)
OTHERS = (  # options of pip, hf, whisper, sbatch, accelerate, inspect, `lmms-eval tasks`
    *("--config-settings", "--local-dir", "--repo-type", "--output_dir", "--output_format"),
    *("--array", "--gres", "--time", "--include-path", "--num_processes"),
    *("--cpu", "--multi_gpu", "--epochs", "--no-log-images", "--no-fail-on-error"),
    *("--time-limit", "--score-on-error"),
)
PAST = {Path("CHANGELOG.md")}  # names what was removed: tests/golden/test_interface.py


class Command(NamedTuple):
    """One command of a page."""

    page: Path
    text: str  # in one line
    whole: bool  # of a block; between backticks it may lack what it needs

    @property
    def parts(self) -> list[list[str]]:
        """The words of each command between operators of the shell; no comments."""
        text = re.sub(r"\$\(\(.*?\)\)|\$\w+", "1", self.text)  # what a variable may hold
        lexer = shlex.shlex(text, posix=True, punctuation_chars="&|;<>")
        lexer.whitespace_split = True
        found: list[list[str]] = [[]]
        for word in lexer:
            if set(word) <= {*"&|;<>"}:
                found.append([])
            elif found[-1] or len(found) == 1 or word in PROGRAMS:  # not the file behind `>`
                found[-1].append(word)
        return [words for words in found if words]


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """Each block of code: its language ("" of an indented one), and its text."""
    for token in tokens(page):
        if token.type == "fence":
            assert token.info, f"{page}: a block without a language: {token.content}"
            yield token.info, token.content
        if token.type == "code_block":  # several, where blank lines stand between them
            yield from (("", text) for text in re.split(r"\n\s*\n", token.content))


def of(page: Path) -> Iterator[Command]:
    """All commands of a page, without what they print."""
    for language, text in blocks(page):
        if language in ("", "bash"):
            for line in text.replace("\\\n", " ").splitlines():
                if not language and line.lstrip().startswith(NO_COMMANDS):
                    break
                if line.strip() and not line.startswith("#"):
                    yield Command(page, line, whole=True)
    if page not in PAST:
        inline = (one for token in tokens(page) for one in token.children or ())
        for text in (one.content for one in inline if one.type == "code_inline"):
            if text.partition(" ")[0] in PROGRAMS and " " in text:
                yield Command(page, text, whole=False)


@cache
def tokens(page: Path) -> list[Token]:
    """A page, read as markdown."""
    reads = MarkdownIt("commonmark").enable("table")
    return reads.parse((REPOSITORY / page).read_text(encoding="utf-8"))


def unknown_options(page: Path) -> set[str]:
    """What reads as an option, in a command, in what one prints or alone, and is none."""
    code = ("code_inline", "code_block", "fence")
    each = (one for token in tokens(page) for one in (token, *(token.children or ())))
    text = "\n".join(one.content for one in each if one.type in code)
    return {*re.findall(r"(?<![\w-])--[a-z][\w-]*", text)} - options()


def check(command: Command) -> None:
    """Raise if a command cannot be what it says."""
    for words in command.parts:
        while re.match(r"\w+=", words[0]):
            name = words[0].partition("=")[0]
            assert not name.startswith("LMMS_") or name in settings.TABLE, name
            words = words[1:]  # noqa: PLW2901
            if not words:
                break
        else:
            known = words[0] in PROGRAMS
            assert known, f"{command.page}: nobody knows how to check: {command.text}"
            PROGRAMS[words[0]](without_dots(words[1:]), command.whole)


def without_dots(words: list[str]) -> list[str]:
    """Without `...`, an option whose value it is, and what stands in brackets."""
    kept: list[str] = []
    for word in words:
        if word == "..." and kept and kept[-1].startswith("--"):
            kept.pop()
        elif word not in ("...", "...]") and not word.startswith("["):
            kept.append(word.removesuffix("..."))
    return kept


# --- what each program takes ----------------------------------------------------------------------


@cache
def tasks() -> set[str]:
    """All that `--tasks` may name."""
    each = registry.NAMES
    return {x for one in each for x in (*registry.load_benchmark(one).tasks, *registry.groups(one))}


@cache
def options() -> frozenset[str]:
    """All that the programs of these pages take, the host's and ours above all."""
    from lmms_eval import __main__ as host

    def of_click(command: Any) -> Iterator[str]:
        yield from (name for one in command.params for name in (*one.opts, *one.secondary_opts))
        for each in getattr(command, "commands", {}).values():
            yield from of_click(each)

    told = io.StringIO()
    asked = mock.patch.object(sys, "argv", ["lmms_eval", "--help"])
    with asked, redirect_stdout(told), suppress(SystemExit):
        host.parse_eval_args()
    files = (REPOSITORY / "benchmarks").glob("*.py")
    scripts = (file.read_text(encoding="utf-8") for file in files)
    named = re.findall(r"--[a-z][\w-]*", "\n".join((told.getvalue(), *scripts)))
    own = (one.option for one in settings.TABLE.values())
    served = (f"--{name.replace('_', '-')}" for name in MORE["vllm"] | MORE["sglang"] | SERVE)
    ours = of_click(typer.main.get_command(cli.app))
    return frozenset((*named, *own, *ours, *served, *OTHERS))


@cache
def _contributed(name: str) -> bool:
    """Whether a contribution to the host, or its test, has this name."""
    sources = (REPOSITORY / "upstream").rglob("*.py")
    return any(name in file.read_text(encoding="utf-8") for file in sources)


@cache
def models() -> dict[str, Any]:
    """Manifests by each name that `--model` may have."""
    found = registered()
    return {name: one for key, one in found.items() for name in (key, *one.aliases)}


def host_options(words: list[str]) -> argparse.Namespace:
    """What the host reads of the words behind `lmms_eval`, once ours are taken out."""
    from lmms_eval import __main__ as host

    with settings.use_options({}):
        rest = arguments.take_own_options(words)
        for variable in settings.TABLE:
            if settings.TABLE[variable].form is not settings.paths:  # of files that are not here
                settings.value(variable)
    with mock.patch.object(sys, "argv", ["lmms_eval", *rest]):
        return host.parse_eval_args()[1]


def _lmms_eval(words: list[str], whole: bool) -> None:
    from lmms_eval.utils import simple_parse_args_string

    if words[:1] == ["tasks"]:
        assert words == ["tasks", "list"]
        return
    options = host_options(words)
    if options.config:
        assert (REPOSITORY / options.config).is_file(), options.config
        return
    for task in (options.tasks or "").split(","):
        assert task in ("", "list") or task in tasks() or _contributed(task), task
    if any(one.startswith("--model") for one in words):
        manifest = models()[options.model]
        known = parameters(manifest.chat_class_path or manifest.simple_class_path)
        text = options.model_args
        if options.model == "lm_pairs":  # reads it itself: its value has commas
            text = text.replace(",", "+")
        given = simple_parse_args_string(text)
        assert {*given} <= known.keys() | MORE.get(options.model, set()), options.model_args


def _ours(words: list[str], whole: bool) -> None:
    command: Any = typer.main.get_command(cli.app)  # typer may bring a click of its own
    context = None
    name = "lmms-eval-tasks"
    while hasattr(command, "commands"):
        if not words:
            assert not whole, f"{name}: which of its commands?"
            return
        context = command.context_class(command, parent=context, info_name=name)
        name, *words = words
        name = registry.NAMES[0] if name in ("BENCHMARK", "NAME") else name
        assert name in command.commands, f"{context.command_path} {name}: no such command"
        command = command.commands[name]
    try:
        parsed = command.make_context(name, words, parent=context)
    except Exception as error:
        if whole or type(error).__name__ != "MissingParameter":
            raise
        return
    given = parsed.params
    assert {*(given.get("tasks") or "").split(",")} - {""} <= tasks(), words
    if isinstance(benchmark := given.get("benchmark"), str) and not benchmark.isupper():
        assert benchmark in (*registry.NAMES, "results", "check"), benchmark
    if isinstance(model := given.get("model"), str) and name == "doctor":
        assert model in models()


class _ParsedError(Exception):
    """The arguments were taken."""


def _python(words: list[str], whole: bool) -> None:
    if words[0] == "-m":
        module, *rest = words[1:]
        if module == "lmms_eval":
            _lmms_eval(rest, whole)
        elif module == "pytest":  # of a contribution, in the host's repository
            assert list((REPOSITORY / "upstream").rglob(rest[0])), rest
        else:
            file = REPOSITORY / f"{module.replace('.', '/')}.py"
            assert module == "nltk.downloader" or '"__main__"' in file.read_text("utf-8"), module
        return
    file = REPOSITORY / words[0]
    source = file.read_text(encoding="utf-8")
    assert words[0].startswith("benchmarks/")
    if len(words) > 1:
        assert "ArgumentParser" in source, f"{words[0]} takes no arguments"
    reads = argparse.ArgumentParser.parse_args

    def parse(self: argparse.ArgumentParser, *given: Any) -> Any:
        reads(self, *given)
        raise _ParsedError

    if "ArgumentParser" in source:
        code = compile(source, str(file), "exec")
        with (
            mock.patch.object(sys, "argv", words),
            mock.patch.object(argparse.ArgumentParser, "parse_args", parse),
            mock.patch.object(sys, "path", [str(file.parent), *sys.path]),
        ):
            try:
                exec(code, {"__name__": "__main__", "__file__": str(file)})
            except _ParsedError:
                return
            raise AssertionError(f"{words[0]} read no arguments")


def _torchrun(words: list[str], whole: bool) -> None:
    from torch.distributed.run import get_args_parser

    given = get_args_parser().parse_args(words)
    assert given.module
    assert given.training_script == "lmms_eval"
    _lmms_eval(given.training_script_args, whole)


def _make(words: list[str], whole: bool) -> None:
    subprocess.run(["make", "-n", *words], cwd=REPOSITORY, check=True, capture_output=True)


def _vllm(words: list[str], whole: bool) -> None:
    options = {word[2:].replace("-", "_") for word in words if word.startswith("--")}
    assert words[0] == "serve"
    assert options <= MORE["vllm"] | SERVE


def _pip(words: list[str], whole: bool) -> None:
    assert words[0] == "install"
    text = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    for name, extra in re.findall(r"([\w-]+)\[(\w+)\]", " ".join(words)):
        assert name == "lmms-eval-tasks"
        assert re.search(rf"^{extra} = \[", text, re.M), extra


def _hub(words: list[str], whole: bool) -> None:
    # Its parser is made when it is called, and differs between versions.
    asked = [BIN / "hf", words[0], "--help"]
    done = subprocess.run(
        asked, check=True, capture_output=True, text=True, env={**os.environ, **OFFLINE}
    )
    for option in (word for word in words if word.startswith("--")):
        assert re.search(rf"{option}\b", done.stdout), option


def _export(words: list[str], whole: bool) -> None:
    for name in (word.partition("=")[0] for word in words):
        assert name in ("OPENAI_API_KEY", *settings.TABLE) or _contributed(name), name


def _of_others(words: list[str], whole: bool) -> None:
    """Of a program that is not here: read by people."""


def _inspect(words: list[str], whole: bool) -> None:
    """Tasks of this package, by Inspect's own parser."""
    from inspect_ai._cli.main import inspect

    command = inspect.commands[words[0]]
    given = command.make_context(words[0], words[1:]).params
    assert {one.removeprefix("lmms_eval_tasks/") for one in given.get("tasks") or ()} <= tasks()


PROGRAMS: dict[str, Callable[[list[str], bool], None]] = {
    "lmms_eval": _lmms_eval,
    "lmms-eval-tasks": _ours,
    "python": _python,
    "torchrun": _torchrun,
    "make": _make,
    "vllm": _vllm,
    "pip": _pip,
    "hf": _hub,
    "export": _export,
    "inspect": _inspect,
    **dict.fromkeys(("accelerate", "git", "sbatch", "set", "whisper"), _of_others),
}


def check_block(language: str, text: str) -> None:
    """Raise if a block is not of its language."""
    if language == "python":
        ast.parse(text)
    elif language == "yaml":
        yaml.compose(text)
    elif language == "json":
        json.loads(text)
    elif language == "bash":
        subprocess.run(["bash", "-n"], input=text, text=True, check=True)
        for line in re.findall(r"^#SBATCH (.*)$", text, re.M):
            assert re.fullmatch(r"--(array=\d+-\d+|gres=gpu:\d+|time=\d-\d\d:\d\d:\d\d)", line)
    elif language:
        assert language in ("bibtex", "text", "toml"), language
    elif not text.lstrip().startswith(NO_COMMANDS):
        first = shlex.split(text.replace("\\\n", " ").splitlines()[0], comments=True)
        programs = [word for word in first if not re.match(r"[A-Z_]+=", word)]
        assert programs[0] in PROGRAMS, f"neither commands nor listed: {text}"


PAGES = [
    *build_site.pages(),
    *sorted(file.relative_to(REPOSITORY) for file in REPOSITORY.glob("upstream/*/**/*.md")),
]
PRESENT = [page for page in PAGES if page not in PAST]
