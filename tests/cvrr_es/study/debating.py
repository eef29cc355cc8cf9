"""A small study for tests of the debate: annotations, candidates, and a player of all agents.

Answers end in the rating that the agents shall give them (`... 4`); the reference never does.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from lmms_eval_tasks import settings
from lmms_eval_tasks.commands.cli import app
from tests.local_endpoint import Fault, LocalEndpoint, last_user_text

DIMENSIONS = ("partial_actions", "time_order_understanding")
# The first two questions of a dimension are the same.
QUESTIONS = ["What happens?", "What happens?", "Who is there?"]
REFERENCES = ["A planted dog runs.", "A planted cat sleeps.", "Nobody is there."]
SAID = {
    "Alpha": [
        ["A dog runs. 5", "A dog sleeps. 2", "A man. 1"],
        ["It runs fast. 4", "", "A crowd. 3"],
    ],
    "Beta": [["A dog runs. 5", "Rain. 1", "A woman. 2"], ["Snow. 1", "Fog. 2", "A child. 3"]],
}
ANSWERS = 12
DIFFERENT = 11  # requests: one answer is both candidates'
CANDIDATE = re.compile(r"<candidate-([0-9a-f]{16})>\n(.*?)\n</candidate-\1>", re.DOTALL)


def write_study(root: Path) -> tuple[Path, list[Path]]:
    """The data root, and the folders of the candidates."""
    for number, dimension in enumerate(DIMENSIONS):
        folder = root / "data" / "cvrr_es" / dimension
        folder.mkdir(parents=True)
        rows = [
            {"Q": question, "A": reference, "VideoID": f"{number}{place}.mp4"}
            for place, (question, reference) in enumerate(zip(QUESTIONS, REFERENCES, strict=True))
        ]
        (folder / f"annotations_{dimension}.json").write_text(json.dumps(rows))
    folders = []
    for name, parts in SAID.items():
        folder = root / "candidates" / name
        folder.mkdir(parents=True)
        for dimension, own in zip(DIMENSIONS, parts, strict=True):
            rows = [{"Q": q, "A": a} for q, a in zip(QUESTIONS, own, strict=True)]
            (folder / f"{dimension}.json").write_text(json.dumps(rows))
        folders.append(folder)
    return root / "data", folders


def wanted(answer: str) -> int:
    """What the players rate an answer."""
    return int(answer[-1]) if answer else 1


class Player:
    """Rates as `wanted`, but for the model `a`; and counts the requests by their texts."""

    def __init__(self, delay: float = 0.0) -> None:
        self.delay, self.seen = delay, Counter[str]()
        self._lock = threading.Lock()

    def __call__(self, request: dict[str, Any]) -> str | Fault:
        with self._lock:
            self.seen[json.dumps(request["messages"])] += 1
            number = len(self.seen)
        found = CANDIDATE.search(last_user_text(request))
        assert found
        rating = wanted(found[2]) % 5 + 1 if request["model"] == "a" else wanted(found[2])
        reply = {"reason": f"turn {number}: it's so", "rating": rating}
        return Fault(content=json.dumps(reply), delay=self.delay)


class Study:
    """The command on the small study; each call with the same cache."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data, self.candidates = write_study(folder)
        self.out = folder / "reference.jsonl"
        self.said = folder / "reference_transcripts.ndjson"
        self.player: Callable[[dict[str, Any]], str | Fault] = Player()
        self.endpoint = LocalEndpoint(self._play)

    def _play(self, request: dict[str, Any]) -> str | Fault:
        return self.player(request)

    @property
    def env(self) -> dict[str, str]:
        return {"LMMS_EVAL_TASKS_JUDGE_CACHE": str(self.folder / "cache")}

    def arguments(self, *more: str) -> list[str]:
        candidates = [part for one in self.candidates for part in ("--candidates", str(one))]
        file = self.folder / "debate.yml"
        file.write_text(f"debate: ['a@{self.endpoint.url}', 'm@{self.endpoint.url}']\n")
        spec = f"m@{self.endpoint.url}" if "--single" in more else str(file)
        judge = [] if "--judge" in more else ["--judge", spec]
        where = ["--data", str(self.data), "--out", str(self.out)]
        return ["debate", *candidates, *where, *judge, *more]

    def __call__(self, *more: str) -> Result:
        with settings.said({}):  # options hold for one call
            return CliRunner().invoke(app, self.arguments(*more), env=self.env)
