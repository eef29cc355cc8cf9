"""A recap, and the command `facts` at work on it with a scripted model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from lmms_eval_tasks.commands.cli import app
from tests.local_endpoint import Json, LocalEndpoint, last_user_text
from tests.movierecapsqa.facts.writer import Writer

SRT = "00:10:01,000 --> 00:10:02,500\n<i>Who is there?</i>\n"
RECAP = {
    "movie": "Boats (1999)",
    "videoId": "abc",
    "segments": [
        {
            "startTime": 0,
            "endTime": 60.5,
            "transcript": "Ann opens doors. Bob sinks boats. Ann runs away.",
            "srt": SRT,
        },
        {"startTime": 60.5, "endTime": 120, "transcript": "Cid eats soup. Dora sings songs."},
        {"startTime": 120, "endTime": 130, "transcript": "Eve sleeps long.", "srt": SRT},
    ],
}


class Desk:
    """A folder with a recap, and an endpoint whose model writes."""

    def __init__(self, folder: Path, endpoint: LocalEndpoint, writer: Writer) -> None:
        self.folder, self.endpoint, self.writer = folder, endpoint, writer
        self.out = folder / "segments.json"
        self.recap = self.write("recap.json", RECAP)

    def write(self, name: str, content: Any) -> Path:
        file = self.folder / name
        text = content if isinstance(content, str) else json.dumps(content)
        file.write_text(text, encoding="utf-8")
        return file

    def run(
        self, *options: str, recap: Path | None = None, model: str = "m", cache: str = ""
    ) -> Result:
        command = ["facts", str(recap or self.recap), "--out", str(self.out)]
        env = {"LMMS_EVAL_TASKS_JUDGE_CACHE": cache or str(self.folder / "replies")}
        command += ["--model", f"{model}@{self.endpoint.url}"]
        return CliRunner().invoke(app, [*command, *options], env=env)

    def written(self) -> list[dict[str, Any]]:
        return json.loads(self.out.read_text(encoding="utf-8"))


@contextmanager
def open_desk(folder: Path) -> Iterator[Desk]:
    """A desk in a folder, while its endpoint serves."""
    writer = Writer()
    with LocalEndpoint(writer) as endpoint:
        yield Desk(folder, endpoint, writer)


def is_for(step: str, request: Json, asked: str, word: str) -> bool:
    """Whether a request asks a step about the segment whose narration has a word."""
    return step == asked and word in last_user_text(request)
