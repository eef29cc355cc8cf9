"""Shared by all tests: the packaged sample, the real data where it is, the host as a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.local_endpoint import LocalEndpoint

REPOSITORY = Path(__file__).resolve().parent.parent
SHARED = REPOSITORY.parent / "shared"
BIN = Path(sys.executable).parent

OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_NUM_THREADS": "1",
    "NO_COLOR": "1",
    "COLUMNS": "200",
}


@pytest.fixture(autouse=True)
def clean_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """No test sees the developer's own settings, keys, proxies, judges' replies or cache."""
    from lmms_eval_tasks.judges import run

    for name in list(os.environ):
        if name.startswith(("LMMS_EVAL_", "OPENAI_", "AZURE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("LMMS_EVAL_TASKS_JUDGE_CACHE", "off")
    monkeypatch.setenv("LMMS_EVAL_TASKS_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    yield
    run.forget()


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The suite's cache folder: clips and the sample are made once for all tests."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def sample_root(cache: Path) -> Path:
    """A data root with the packaged sample."""
    from lmms_eval_tasks import sample

    return sample.build(cache / "sample")


@pytest.fixture(scope="session")
def maia_data() -> Path:
    """The real part of MAIA's public sample, which never enters the repository."""
    folder = SHARED / "data" / "maia"
    if not (folder / "data.json").is_file():
        pytest.skip(f"no real MAIA data at {folder}")
    return folder


@dataclass(frozen=True)
class HostRun:
    """A finished host process."""

    code: int
    stdout: str
    stderr: str
    out: Path

    @property
    def results(self) -> dict[str, Any]:
        """The results file of the run."""
        (file,) = sorted(self.out.rglob("*_results.json"))
        return json.loads(file.read_text(encoding="utf-8"))

    def samples(self, task: str) -> list[dict[str, Any]]:
        """The saved samples of a task."""
        (file,) = sorted(self.out.rglob(f"*_samples_{task}.jsonl"))
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


Launch = Callable[..., HostRun]


@pytest.fixture(scope="session")
def launch(cache: Path) -> Launch:
    """Run a command line in a process of its own, on the sample and with the offline judge."""
    return launcher(cache)


def launcher(cache: Path) -> Launch:
    """The same for a given cache folder; for what records outside pytest."""

    def run(
        command: list[str],
        out: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout: float = 600,
    ) -> HostRun:
        environment = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("LMMS_EVAL_", "OPENAI_"))
        }
        environment |= {
            **OFFLINE,
            "LMMS_EVAL_TASKS_CACHE": str(cache),
            "LMMS_EVAL_TASKS_DATA": "sample",
            "LMMS_EVAL_TASKS_JUDGE": "offline",
            "HF_HOME": str(cache / "huggingface"),
        }
        for key, value in (env or {}).items():
            if value:
                environment[key] = value
            else:
                environment.pop(key, None)
        out.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            command,
            env=environment,
            cwd=cwd or out,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return HostRun(done.returncode, done.stdout, done.stderr, out)

    return run


@pytest.fixture(scope="session")
def golden_judge() -> Iterator[LocalEndpoint]:
    """The judge of `golden_runs`: draws its replies by what it is asked."""
    from tests.golden import judge

    with LocalEndpoint(judge.reply, model="drawn") as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def golden_runs(
    golden_judge: LocalEndpoint,
    launch: Launch,
    cache: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Mapping[str, HostRun]:
    """All benchmarks through the host, once a session: the runs of golden/run.py by name."""
    from tests.golden import run

    env = run.environment(cache, golden_judge.url)
    return run.run_all(launch, tmp_path_factory.mktemp("golden"), env)


def host(*arguments: str) -> list[str]:
    """Our console script."""
    return [str(BIN / "lmms_eval"), *arguments]


def torchrun(processes: int, *arguments: str) -> list[str]:
    """The host's module under torchrun."""
    flags = ["--standalone", "--nproc_per_node", str(processes)]
    return [str(BIN / "torchrun"), *flags, "-m", "lmms_eval", *arguments]
