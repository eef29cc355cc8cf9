"""A user's folder in which a command is run, broken and repeated, and what was lost in it."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.utils import saved_runs
from tests import warm
from tests.conftest import BIN, environment, ranks_of
from tests.faults import injected
from tests.golden import judge
from tests.local_endpoint import Fault, Json, LocalEndpoint, last_user_text

SAID = "lmms-eval-tasks: "  # how a line of ours begins
# Said in any run, of no trouble.
USUAL = ("judge: ", "asked in ", "written")


def reply(request: Json) -> str | Fault:
    """What the endpoint of these runs says: as their judge, or as their model, which takes time."""
    if request["model"] != "asked":
        return judge.reply(request)
    return Fault(content=f"A. {judge.drawn(last_user_text(request))}", delay=0.3)


@dataclass(frozen=True)
class Subject:
    """What is run: tasks of a benchmark, and how many of their docs."""

    tasks: str
    limit: int = 48

    @property
    def command(self) -> list[str]:
        own = ["--tasks", self.tasks, "--limit", str(self.limit), "--model", "tasks_scripted"]
        return ["lmms_eval", *own, "--log_samples", "--output_path", "out"]


@dataclass
class Run:
    """A process that ended, and what it asked."""

    code: int
    stdout: str
    stderr: str
    requests: list[str] = field(default_factory=list)  # to the model, in their order
    verdicts: list[str] = field(default_factory=list)  # keys of replies that the judge's cache took

    @property
    def lines(self) -> list[str]:
        """What it told the user of trouble."""
        # A bar may stand before it in the same line.
        found = [line.partition(SAID) for line in re.split("[\r\n]", self.stderr)]
        return [told for _, said, told in found if said and not told.startswith(USUAL)]


class Home:
    """A folder with a cache, data and output of its own."""

    def __init__(self, folder: Path, prepared: Path, server: warm.Server, spec: str) -> None:
        """Take over clips, probes and the sample from a `prepared` cache, and nothing else."""
        self.folder, self._server, self._prepared = folder, server, prepared
        for name in ("media", "probes", "datasets", "nltk", "huggingface", "sample"):
            if (prepared / name).is_dir():
                place = folder / ("data" if name == "sample" else f"cache/{name}")
                # What another test is making there has a name with a dot until it is whole.
                shutil.copytree(prepared / name, place, ignore=shutil.ignore_patterns(".*"))
        self._env = environment(prepared) | {
            settings.CACHE: str(folder / "cache"),
            settings.DATA: str(folder / "data"),
            settings.JUDGE: spec,
            "OPENAI_API_BASE": spec.partition("@")[2],  # of a model at the judge's endpoint
            "OPENAI_API_KEY": "no",
        }

    def run(
        self,
        command: Sequence[str],
        fault: dict[str, Any] | None = None,
        processes: int = 1,
        twice: bool = False,
        **env: str,
    ) -> list[Run]:
        """Run `command`, broken as told; as ranks of one run, or `twice` at the same time."""
        events = self.folder / "events"
        events.unlink(missing_ok=True)
        program = [sys.executable, injected.__file__, str(BIN / command[0]), *command[1:]]
        given = {
            **self._env,
            **env,
            "FAULT": json.dumps({"home": str(self.folder), **(fault or {})}),
        }
        given = {name: value for name, value in given.items() if value}
        ranks = ranks_of(processes) if processes > 1 else [{}] * (1 + twice)
        ended = self._server.run(program, [given | rank for rank in ranks], self.folder, 300)
        told = events.read_text().splitlines() if events.exists() else []
        by_kind: dict[str, list[str]] = {"request": [], "verdict": []}
        for line in told:
            kind, _, what = line.partition(" ")
            by_kind[kind].append(what)
        runs = [Run(*one) for one in ended]
        runs[0].requests, runs[0].verdicts = by_kind["request"], by_kind["verdict"]
        return runs

    @contextmanager
    def judged_by(self, how: str, number: int) -> Iterator[Callable[[], None]]:
        """Within it the judge does not do as it should, until what this yields is called.

        Args:
            how: `never answers`, after `number` questions; `trickles`, at every so many-th one; ""
                for the usual judge.
        """
        asked: list[str] = []
        mended: list[bool] = []

        def reply(request: dict[str, Any]) -> str | Fault:
            question = last_user_text(request)
            if not mended and question not in asked:
                asked.append(question)
                if how == "trickles" and len(asked) % number == 0:
                    return Fault(trickle=0.1)
            if not mended and how == "never answers" and question not in asked[:number]:
                return Fault(delay=600)
            return judge.reply(request)

        def mend() -> None:
            mended.append(True)

        if not how:
            yield mend
            return
        with LocalEndpoint(reply, model="good") as endpoint:
            file = self.folder / "judge.yml"
            file.write_text(f"model: good\nbase_url: {endpoint.url}\ntimeout: 1\n")
            self._env[settings.JUDGE] = str(file) if how == "trickles" else f"good@{endpoint.url}"
            yield mend

    def results(self) -> list[dict[str, dict[str, Any]]]:
        """The numbers of all runs that were saved here; what cannot be read is none."""
        found = []
        for file in sorted((self.folder / "out").rglob("*_results.json")):
            with suppress(ValueError):
                found.append(saved_runs.numbers(json.loads(file.read_text(encoding="utf-8"))))
        return found

    def put_data_back(self) -> None:
        """The user has the videos again."""
        shutil.copytree(self._prepared / "sample", self.folder / "data", dirs_exist_ok=True)

    def move_away(self, pattern: str) -> None:
        """Out of sight, not deleted."""
        for file in self.folder.glob(pattern):
            file.rename(file.with_name(f"{file.name}.moved"))

    def spoil(self, how: str, pattern: str) -> None:
        """Damage files, between two runs."""
        for file in self.folder.glob(pattern):
            if file.is_file():
                injected.damage(how, file)
