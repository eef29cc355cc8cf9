"""Command lines in forked processes that find the heavy imports done.

A fresh process of the host spends 13 s of CPU before its first request: 8 on other packages'
imports, 4 on parsing the YAMLs of the host's own tasks. Here a server pays that once. For each
command line it forks a child, which gets its own environment, folder and output files, and does
what Python would: it runs the script, the module or the `-c` code. Before the fork nothing of
`lmms_eval_tasks` is imported, and of the host only `utils` and `filters`, which no hook waits for:
the hooks, and whatever a process of ours keeps, start from nothing. What only a real start shows is
launched `fresh`.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import importlib.util
import json
import os
import pickle
import re
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from unittest import mock

import yaml

# `evaluate` brings torch, transformers, datasets and scipy. Not openai, which reads its variables.
# The host's filters look through all of Unicode when they are imported, 0.6 s.
PRELOADED = (
    *("accelerate", "aiohttp", "av", "bert_score", "decord", "evaluate", "nltk", "pydantic"),
    *("pytablewriter", "rich", "rouge_score", "sacrebleu", "tenacity", "lmms_eval.filters"),
)


class Done(NamedTuple):
    """A process that ended: its exit code as `subprocess` gives it, and what it wrote."""

    code: int
    stdout: str
    stderr: str


class Server:
    """The process that forks."""

    def __init__(self, env: Mapping[str, str]) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=pipe, stdout=pipe, env=env, text=True
        )

    def run(
        self, command: Sequence[str], envs: Sequence[Mapping[str, str]], cwd: Path, timeout: int
    ) -> list[Done]:
        """Run `command` (Python or a script) in each of whole `envs`, side by side; wait for all.

        After `timeout` seconds a child ends by SIGALRM.
        """
        ask, told = self._process.stdin, self._process.stdout
        assert ask is not None
        assert told is not None
        with tempfile.TemporaryDirectory() as name:
            outputs = [(f"{name}/{n}.out", f"{name}/{n}.err") for n in range(len(envs))]
            both = zip(envs, outputs, strict=True)
            jobs = [(list(command), env, str(cwd), files, timeout) for env, files in both]
            ask.write(json.dumps(jobs) + "\n")
            ask.flush()
            codes = json.loads(told.readline())
            said = [[Path(one).read_text("utf-8", errors="replace") for one in o] for o in outputs]
        return [Done(code, *texts) for code, texts in zip(codes, said, strict=True)]

    def close(self) -> None:
        """End it, when its last children have ended."""
        self._process.communicate()


def main() -> None:
    for name in PRELOADED:
        importlib.import_module(name)
    from lmms_eval import utils

    remember_yamls(utils)
    for folder in yaml_folders():
        for file in Path(folder).rglob("*.yaml"):
            utils.load_yaml_config(str(file), mode="simple")
    remember_patterns()
    gc.collect()
    gc.freeze()  # each run of the host collects garbage; in all this there is none
    for line in sys.stdin:
        children = [fork(*job) for job in json.loads(line)]
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        print(json.dumps(codes), flush=True)
    os._exit(0)


class OwnYaml(yaml.CFullLoader):
    """The host's way to read YAML, in C: a tenth of the time."""


def yaml_folders() -> tuple[str, str]:
    """Where the host's tasks are, and ours; imports neither."""
    specs = (importlib.util.find_spec(name) for name in ("lmms_eval", "lmms_eval_tasks"))
    host, ours = (Path(spec.origin or "").resolve().parent for spec in specs if spec)
    return str(host / "tasks"), str(ours)


def remember_yamls(utils: ModuleType) -> None:
    """Let the host read each YAML of its tasks and ours once: a task manager reads all."""
    OwnYaml.add_constructor("!function", utils.ignore_constructor)
    full_load = functools.partial(yaml.load, Loader=OwnYaml)
    load, known = utils.load_yaml_config, {}
    folders = yaml_folders()

    @functools.wraps(load)
    def load_yaml_config(yaml_path: Any = None, **given: Any) -> Any:
        path = str(yaml_path)
        if given != {"mode": "simple"} or not path.startswith(folders):
            return load(yaml_path, **given)
        if path not in known:
            with mock.patch.object(yaml, "full_load", full_load):
                known[path] = pickle.dumps(load(path, mode="simple"))
        return pickle.loads(known[path])

    utils.load_yaml_config = load_yaml_config


# Those by which replies are read: each process that reads one compiles all.
PATTERNS = """
import json
from lmms_eval_tasks.utils.replies import forms

found = [one for rank in forms.RANKS for form in forms.of_rank(rank) for one in form[2:4] if one]
found += [one for file in ("forms", "text") for one in forms.guards(file).values()]
print(json.dumps([one.pattern for one in found]))
"""


def remember_patterns() -> None:
    """Compile what `forms` does, which `re` then finds among those that it keeps."""
    done = subprocess.run([sys.executable, "-c", PATTERNS], capture_output=True, check=True)
    for pattern in json.loads(done.stdout):
        re.compile(pattern, re.IGNORECASE)


def fork(
    command: Sequence[str], env: Mapping[str, str], cwd: str, outputs: Sequence[str], timeout: int
) -> int:
    """The id of a child that runs the command and ends."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        signal.alarm(timeout)
        for descriptor, path in enumerate(("/dev/null", *outputs)):
            flags = os.O_RDONLY if descriptor == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            os.dup2(os.open(path, flags, 0o644), descriptor)
        os.environ.clear()
        os.environ.update(env)
        os.chdir(cwd)
        sys.path[1:1] = filter(None, env.get("PYTHONPATH", "").split(os.pathsep))
        execute(*command)
        code = 0
    except SystemExit as stop:
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def execute(program: str, *arguments: str) -> None:
    """As Python does, in a namespace of its own."""
    first, *rest = arguments if program == sys.executable else (program, *arguments)
    what = rest.pop(0) if first in ("-c", "-m") else ""
    sys.argv, sys.path[0] = [first, *rest], "" if what else str(Path(first).parent)
    if first == "-c":
        exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
    elif first == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    main()
