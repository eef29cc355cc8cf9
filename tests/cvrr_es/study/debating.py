"""A small study for tests of the debate: annotations, candidates, and a player of all agents.

Answers end in the rating that the agents shall give them (`... 4`); the reference never does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from lmms_eval_tasks import settings
from lmms_eval_tasks.commands.cli import app
from tests.cvrr_es.release_files import predict, row, write
from tests.local_endpoint import LocalEndpoint, last_user_text

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
        rows = [
            row(question, reference, f"{number}{place}.mp4")
            for place, (question, reference) in enumerate(zip(QUESTIONS, REFERENCES, strict=True))
        ]
        write(root / "data" / "cvrr_es", dimension, rows)
        for name, parts in SAID.items():
            own = [*zip(QUESTIONS, parts[number], strict=True)]
            predict(root / "candidates" / name, dimension, own)
    return root / "data", [root / "candidates" / name for name in SAID]


def wanted(answer: str) -> int:
    """What the players rate an answer."""
    return int(answer[-1]) if answer else 1


def played(request: dict[str, Any]) -> str:
    """Rates as `wanted`, but for the model `a`."""
    found = CANDIDATE.search(last_user_text(request))
    assert found
    rating = wanted(found[2]) % 5 + 1 if request["model"] == "a" else wanted(found[2])
    return json.dumps({"reason": "it's so", "rating": rating})


class Study:
    """The command on the small study; each call with the same cache."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data, self.candidates = write_study(folder)
        self.out = folder / "reference.jsonl"
        self.said = folder / "reference_transcripts.ndjson"
        self.player: Callable[[dict[str, Any]], str] = played
        self.endpoint = LocalEndpoint(lambda request: self.player(request))  # noqa: PLW0108

    def __call__(self, *more: str) -> Result:
        candidates = [part for one in self.candidates for part in ("--candidates", str(one))]
        file = self.folder / "debate.yml"
        file.write_text(f"debate: ['a@{self.endpoint.url}', 'm@{self.endpoint.url}']\n")
        spec = f"m@{self.endpoint.url}" if "--single" in more else str(file)
        judge = [] if "--judge" in more else ["--judge", spec]
        where = ["--data", str(self.data), "--out", str(self.out)]
        env = {settings.JUDGE_CACHE: str(self.folder / "cache")}
        with settings.use_options({}):  # options hold for one call
            return CliRunner().invoke(app, ["debate", *candidates, *where, *judge, *more], env=env)
