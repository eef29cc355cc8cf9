"""Shared by all tests: the packaged sample, the real data where it is, the host as a process."""

from __future__ import annotations

import dataclasses
import gc
import importlib.util
import itertools
import json
import os
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from unittest import mock

import hypothesis
import pytest

from lmms_eval_tasks import context, settings
from lmms_eval_tasks.cvrr_es.settings import CVRR_CANDIDATES, CVRR_RATINGS, CVRR_REFERENCE
from lmms_eval_tasks.host import plugin
from lmms_eval_tasks.utils import saved_runs
from tests import warm
from tests.utils.metrics import tiny_nltk

if TYPE_CHECKING:
    from tests.golden.run import Golden

REPOSITORY = Path(__file__).resolve().parent.parent
SHARED = REPOSITORY.parent / "shared"
SECONDS = REPOSITORY / "out" / "test_seconds.txt"  # what pytest_terminal_summary writes
BIN = Path(sys.executable).parent
HOST = Path(getattr(importlib.util.find_spec("lmms_eval"), "origin", "")).parent

OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_NUM_THREADS": "1",
    "NO_COLOR": "1",
    "COLUMNS": "200",
}

# Before torch and datasets are imported: what asks a hub waits for it, and of threads that wait for
# each other one uses the core of the other worker.
for variable in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, OFFLINE[variable])
plugin.when_imported("lmms_eval.utils", warm.remember_yamls, plugin.missed)


def leave_garbage(model: ModuleType) -> None:
    """Let a run of this process clean up without two collections, 0.5 s each among all tests."""
    clean = model.lmms.clean

    def cleaned(lm: Any) -> None:
        with mock.patch.object(gc, "collect", return_value=0):
            clean(lm)

    model.lmms.clean = cleaned


plugin.when_imported("lmms_eval.api.model", leave_garbage, plugin.missed)

# A machine that is busy is no failure of a property.
PATIENT = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("patient", **PATIENT)
hypothesis.settings.load_profile("patient")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with runs of the host first, so that workers end at about one time: the longest before
    all, and at their end those that wait for its runs.
    """
    waiting = {item.path for item in items if "golden_once" in getattr(item, "fixturenames", ())}

    def place(item: pytest.Item) -> tuple[bool, ...]:
        if item.nodeid.startswith("tests/golden/test_golden.py"):
            return (False,)
        return (True, item.get_closest_marker("host") is None, item.path in waiting)

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """Leave all modules and collected tests out of every collection of garbage from here on.

    The host makes two of them a run, which took a second each.
    """
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let the end of the process find everything: bindings in C++ tell of what is left."""
    gc.unfreeze()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """With `--durations N`: the N slowest tests and all files by seconds, in SECONDS.

    What several tests share is counted with the first of them, and with those that wait for it.
    """
    if not (most := config.getoption("durations")):
        return
    tests: Counter[str] = Counter()
    for report in itertools.chain.from_iterable(terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport):
            tests[report.nodeid] += report.duration
    files: Counter[str] = Counter()
    for name, seconds in tests.items():
        files[name.partition("::")[0]] += seconds
    by_file = [f"{seconds:8.1f} s {name}" for name, seconds in files.most_common()]
    by_test = [f"{seconds:8.1f} s {name}" for name, seconds in tests.most_common(most)]
    SECONDS.parent.mkdir(exist_ok=True)
    SECONDS.write_text("\n".join([*by_file, "", *by_test, ""]), encoding="utf-8")
    terminalreporter.section(f"slowest files (all: {SECONDS.relative_to(REPOSITORY)})")
    terminalreporter.write_line("\n".join(by_file[: most // 2]))


@pytest.fixture(autouse=True)
def options_end_with_their_test() -> Iterator[None]:
    """Nothing that a test does in its process is known to the next one."""
    with context.begun():
        yield


@pytest.fixture(autouse=True)
def clean_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """No test sees the developer's own settings, keys, proxies, judges' replies or cache."""
    for name in list(os.environ):
        if name.startswith(("LMMS_EVAL_", "OPENAI_", "AZURE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("LMMS_EVAL_TASKS_JUDGE_CACHE", "off")
    monkeypatch.setenv("LMMS_EVAL_TASKS_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of this session have in common."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture(scope="session")
def cache(shared: Path) -> Path:
    """A cache folder for clips and the sample, which are made once for all tests.

    Not the one that a test has by default: there it may keep what it pretends.
    """
    folder = shared / "shared-cache"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def sample_root(cache: Path) -> Path:
    """A data root with the packaged sample."""
    from lmms_eval_tasks import sample

    return sample.build_sample(cache / "sample")


def cvrr_study(sample_root: Path) -> dict[str, str]:
    """What the study of judges is given, of the sample."""
    from lmms_eval_tasks.cvrr_es import sample

    places = {
        CVRR_CANDIDATES: sample.PREDICTIONS,
        CVRR_RATINGS: sample.FIRST,
        CVRR_REFERENCE: sample.REFERENCE,
    }
    return {name: str(sample_root / "cvrr_es" / place) for name, place in places.items()}


def recorded_judge(sample_root: Path) -> str:
    """MAIA's judge, as recorded with the sample."""
    return f"replay:{sample_root / 'maia' / 'replay.jsonl'}"


@pytest.fixture
def on_sample(sample_root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process has the sample as its data, and MAIA's recorded judge."""
    given = {settings.CACHE: str(cache), settings.DATA: "sample", **cvrr_study(sample_root)}
    for name, value in {**given, settings.JUDGE: recorded_judge(sample_root)}.items():
        monkeypatch.setenv(name, value)


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

    def items(self, task: str) -> list[dict[str, Any]]:
        """What we saved of each of a task's samples, and its request's text."""
        return [{**sample["failed"], "input": sample["input"]} for sample in self.samples(task)]

    @property
    def numbers(self) -> dict[str, dict[str, Any]]:
        """Every number by task or group: those of our section, which are more, or the table's."""
        return saved_runs.numbers(self.results)


Launch = Callable[..., HostRun]


@pytest.fixture(scope="session")
def server(cache: Path) -> Iterator[warm.Server]:
    """Forks processes of the host that start in a second; this worker's only one."""
    running = warm.Server(environment(cache))
    yield running
    running.close()


@pytest.fixture(scope="session")
def launch(cache: Path, server: warm.Server) -> Launch:
    """Run a command line in a process of its own, on the sample, judged by nobody."""
    return launcher(cache, server)


def environment(cache: Path) -> dict[str, str]:
    """What every process of the tests is given."""
    ours = ("LMMS_EVAL_", "OPENAI_", "AZURE_")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    return environment | {
        **OFFLINE,
        "LMMS_EVAL_TASKS_CACHE": str(cache),
        "LMMS_EVAL_TASKS_DATA": "sample",
        "LMMS_EVAL_TASKS_JUDGE": "none",
        "LMMS_EVAL_TASKS_TABLES": "all",
        "HF_HOME": str(cache / "huggingface"),
        "NLTK_DATA": str(tiny_nltk.build(cache / "nltk")),  # before the developer's own
    }


def launcher(cache: Path, server: warm.Server | None = None) -> Launch:
    """The same for a given cache folder; without a server every process is a fresh one."""

    def run(
        command: list[str],
        out: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout: float = 600,
        fresh: bool = False,
        processes: int = 1,
    ) -> HostRun:
        """`processes` ranks are given what torchrun would tell them; an empty value unsets one."""
        given = {
            key: value for key, value in (environment(cache) | {**(env or {})}).items() if value
        }
        out.mkdir(parents=True, exist_ok=True)
        if fresh or server is None:
            options = {"env": given, "cwd": cwd or out, "timeout": timeout, "text": True}
            done = subprocess.run(command, capture_output=True, check=False, **options)
            return HostRun(done.returncode, done.stdout, done.stderr, out)
        ranks = [given] if processes == 1 else [given | rank for rank in ranks_of(processes)]
        ended = server.run(command, ranks, cwd or out, int(timeout))
        code = next((one.code for one in ended if one.code), 0)
        stdout, stderr = ("".join(texts) for texts in zip(*(one[1:] for one in ended), strict=True))
        return HostRun(code, stdout, stderr, out)

    return run


def ranks_of(processes: int) -> list[dict[str, str]]:
    """What torchrun tells each of so many processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    size = str(processes)
    together = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    together |= {"WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size}
    return [together | {"RANK": str(n), "LOCAL_RANK": str(n)} for n in range(processes)]


def launch_all(
    launch: Launch,
    folder: Path,
    runs: Mapping[str, Mapping[str, Any]],
    processes: int = 1,
    codes: Sequence[int] = (0,),
    by_torchrun: bool = False,
    **options: Any,
) -> dict[str, HostRun]:
    """Make all `runs` (the host's arguments by a name of ours) in one command line.

    Each has an output folder; several processes are forked, if not started by torchrun; `codes` are
    no failure.
    """
    out = {name: folder / name.replace(" ", "-") for name in runs}
    config = [
        {**arguments, "log_samples": True, "output_path": str(out[name])}
        for name, arguments in runs.items()
    ]
    file = folder / "config.yaml"
    file.write_text(json.dumps(config), encoding="utf-8")
    own = ("--config", str(file))
    if by_torchrun:
        done = launch(torchrun(processes, *own), folder, **options)
    else:
        done = launch(host(*own), folder, processes=processes, **options)
    assert done.code in codes, done.stderr[-5000:]
    return {name: dataclasses.replace(done, out=out[name]) for name in runs}


@pytest.fixture(scope="session")
def golden_once(launch: Launch, cache: Path, shared: Path) -> Golden:
    """All benchmarks through the host in one process."""
    from tests.golden import run

    return run.once(launch, cache, shared / "golden-once", processes=1)


@pytest.fixture(scope="session")
def golden_twice(launch: Launch, cache: Path, shared: Path) -> Golden:
    """The same, less of it, in two processes."""
    from tests.golden import run

    return run.once(launch, cache, shared / "golden-twice", processes=2)


@pytest.fixture(scope="session")
def golden_runs(golden_once: Golden, golden_twice: Golden) -> Mapping[str, HostRun]:
    """All of them by name; those of two processes end with 2."""
    return {**golden_once.runs, **golden_twice.runs}


def host(*arguments: str) -> list[str]:
    """Our console script."""
    return [str(BIN / "lmms_eval"), *arguments]


def torchrun(processes: int, *arguments: str) -> list[str]:
    """The host's module under torchrun, which starts fresh processes."""
    flags = ["--standalone", "--nproc_per_node", str(processes)]
    return [sys.executable, "-m", "torch.distributed.run", *flags, "-m", "lmms_eval", *arguments]
