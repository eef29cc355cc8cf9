"""Whole commands with a real engine: one that is killed, and the recipes of docs/models.md.

The recipes are run as they are written, but for a tiny checkpoint in place of a released one, a few
docs, and what an engine on a CPU needs.
"""

from __future__ import annotations

import json
import re
import shlex
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.models import tiny
from tests import page_commands
from tests.conftest import BIN, HostRun, environment, host, launcher
from tests.engine import checkpoints, figures
from tests.engine.by_vllm import ENGINE, SMALL

PAGE = Path("docs/models.md")
# What a class needs where there is no GPU.
CPU = dict.fromkeys(("tasks_vllm", "vllm"), ",enforce_eager=True,dtype=float32")
CPU["qwen2_5_vl"] = ",device=cpu,device_map=cpu"
SERVED = ("--enforce-eager", "--dtype", "float32")
TINY = {"Qwen/Qwen2.5-VL-7B-Instruct": "qwen2_5_vl", "Qwen/Qwen2.5-Omni-7B": "qwen2_5_omni"}
UNRUN = ("sglang", "torchrun")  # not to be had here: a GPU, several
LIMIT = 3


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The tiny checkpoints that stand for the released ones, by these."""
    checkpoints.add()
    root = tmp_path_factory.mktemp("checkpoints")
    made = {name: tiny.build_checkpoint(kind, root / kind) for name, kind in TINY.items()}
    config = made["Qwen/Qwen2.5-VL-7B-Instruct"] / "config.json"
    told = json.loads(config.read_text())
    told["text_config"]["max_position_embeddings"] = 128000  # as the released one's
    config.write_text(json.dumps(told))
    return made


@pytest.fixture(scope="module")
def run(cache: Path, sample_root: Path) -> Callable[..., HostRun]:
    """Run a command line on the sample."""
    return launcher(cache)


def recipes() -> Iterator[list[str]]:
    """The commands of the page's blocks that this machine can run."""
    for one in page_commands.of(PAGE):
        words = shlex.split(one.text) if one.whole else []
        if words[:1] in (["lmms_eval"], ["vllm"]) and not {*words} & {*UNRUN}:
            yield words


def adapted(words: list[str], folders: dict[str, Path], out: Path) -> list[str]:
    """A command of the page with tiny checkpoints, few docs and its own folder."""
    line = shlex.join(words)
    for name, folder in folders.items():
        line = line.replace(name, str(folder))
    made = shlex.split(line)
    if "--output_path" in made:
        made[made.index("--output_path") + 1] = str(out)
        made += ["--limit", str(LIMIT), "--gen_kwargs", "max_new_tokens=4"]
        made[made.index("--model_args") + 1] += CPU.get(made[made.index("--model") + 1], "")
    return [str(BIN / made[0]), *made[1:]]


BY_CLASS = [one for one in recipes() if one[0] == "lmms_eval" and "openai" not in one]
BY_SERVER = [one for one in recipes() if one not in BY_CLASS]


@pytest.mark.parametrize("words", BY_CLASS, ids=lambda words: f"{words[2]}-{words[-1][:60]}")
def test_a_recipe_runs_as_it_is_written(
    words: list[str], run: Callable[..., HostRun], folders: dict[str, Path], tmp_path: Path
) -> None:
    done = run(adapted(words, folders, tmp_path), tmp_path)
    assert done.code == 0, done.stderr[-3000:]
    check(done, words)


def check(done: HostRun, words: list[str]) -> str:
    """All requests were answered; says what arrived, and writes a line of the table."""
    files = sorted(done.out.rglob("*_samples_*.jsonl"))
    samples = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    arrived = [one["failed"].get("arrived") or {} for one in samples]
    reasons = [one["failed"].get("reason") or "" for one in samples]
    failed = sum("failed" in reason or "error" in reason for reason in reasons)
    assert samples
    assert not failed, reasons
    told = sorted({f"{a.get('frames', 0)}+{a.get('pictures', 0)}" for a in arrived})
    line = shlex.join(words)[:110].replace("|", " ")
    figures.write(f"| `{line}` | {len(samples)} | {', '.join(told)} |")
    return line


def test_recipes_of_a_server(
    run: Callable[..., HostRun], folders: dict[str, Path], tmp_path: Path, cache: Path
) -> None:
    """`vllm serve` as the page says, and each command that asks it; by frames, too."""
    (serve,) = (one for one in BY_SERVER if one[0] == "vllm")
    asking = [one for one in BY_SERVER if one[0] == "lmms_eval"]
    assert asking
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [*adapted(serve, folders, tmp_path), *SERVED, "--port", port]
    log = (tmp_path / "server.log").open("w")
    server = subprocess.Popen(command, env=environment(cache), stdout=log, stderr=log, cwd=tmp_path)
    try:
        wait_for(f"http://127.0.0.1:{port}/health", server, tmp_path / "server.log")
        for number, words in enumerate([*asking, *map(by_frames, asking)]):
            out = tmp_path / str(number)
            asked = [one.replace(":8000/", f":{port}/") for one in adapted(words, folders, out)]
            begun = time.monotonic()
            done = run(asked, out, timeout=300)
            seconds = time.monotonic() - begun
            assert done.code == 0, done.stderr[-3000:]
            line = check(done, words)
            figures.write(f"<!-- {seconds:.0f} s: {line[-60:]} -->")
    finally:
        server.terminate()
        server.wait(60)
        log.close()


def by_frames(words: list[str]) -> list[str]:
    """The same command that sends pictures in place of the file."""
    return [one.replace(",pass_video_url=True", "") for one in words]


def wait_for(url: str, server: subprocess.Popen[Any], log: Path) -> None:
    """Until the server answers.

    Raises:
        AssertionError: it ended, or did not answer in ten minutes.
    """
    for _ in range(600):
        assert server.poll() is None, log.read_text()[-3000:]
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(1)
    raise AssertionError("no answer in ten minutes")


def test_an_engine_that_is_killed_ends_the_run_and_the_same_command_goes_on(
    run: Callable[..., HostRun],
    folders: dict[str, Path],
    tmp_path: Path,
    cache: Path,
    sample_root: Path,
) -> None:
    arguments = {"pretrained": folders["Qwen/Qwen2.5-VL-7B-Instruct"], **ENGINE, **SMALL}
    model_args = ",".join(f"{name}={value}" for name, value in arguments.items())
    own = ("--tasks", "maia_vsv,maia_vsv_1frame", "--log_samples", "--output_path", str(tmp_path))
    command = host("--model", "tasks_vllm", "--model_args", model_args, *own)
    with (tmp_path / "stderr").open("w") as stderr:
        process = subprocess.Popen(
            command, env=environment(cache), stdout=stderr, stderr=stderr, cwd=tmp_path
        )
        count = kept(cache, process)
        engine = ["-P", str(process.pid), "-f", "VLLM::EngineCore"]
        subprocess.run(["pkill", "-KILL", *engine], check=True)
        begun = time.monotonic()
        while "vLLM's engine has stopped" not in (tmp_path / "stderr").read_text():
            assert time.monotonic() - begun < 60
            time.sleep(0.1)
        told = time.monotonic() - begun
        code = process.wait(120)
    ended = time.monotonic() - begun
    said = (tmp_path / "stderr").read_text()
    assert code == 2, said[-3000:]
    (line,) = re.findall(r"lmms-eval-tasks: (.*vLLM's engine has stopped.*)", said)
    assert "Traceback" not in said[said.index(line) - 200 :]
    done = run(command, tmp_path)
    assert done.code == 0, done.stderr[-3000:]
    (number, of) = re.findall(r"(\d+) of (\d+) replies are taken", done.stderr)[0]
    assert int(number) >= count
    figures.write(
        f"killed: told after {told:.1f} s, ended after {ended:.1f}; kept {number} of {of}"
    )


def kept(cache: Path, process: subprocess.Popen[Any]) -> int:
    """Wait until some replies are kept; how many."""
    for _ in range(6000):
        assert process.poll() is None, f"exit code {process.returncode}"
        files = (cache / "replies").rglob("*.jsonl")
        if (found := sum(len(one.read_text().splitlines()) for one in files)) > 20:
            return found
        time.sleep(0.05)
    raise AssertionError("no replies in five minutes")
