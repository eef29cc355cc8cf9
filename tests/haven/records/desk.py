"""Rendered videos with known shots, and the command `haven build` at work with a scripted model."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import Result
from typer.testing import CliRunner

from lmms_eval_tasks.commands.cli import app
from lmms_eval_tasks.haven.records import release
from lmms_eval_tasks.sample import render
from tests.local_endpoint import Json, LocalEndpoint, last_user_text
from tests.writing import Folder, Writer

RATE = 10  # frames a second of the videos
# Scenes: colour, sampled frames at 2 a second.
SCENES = (((200, 30, 30), 12), ((30, 30, 200), 3), ((30, 180, 30), 10), ((220, 220, 40), 5))
F = sum(length for _, length in SCENES)  # 30
STARTS = [0, 12, 15, 25]
# The second shot is worth most, then the fourth: of 4 frames at most (15 % of 30), the second fits.
SCORES = [1.0] * 12 + [5.0, 4.0, 5.0] + [2.0] * 10 + [3.0] * 5


def render_video(path: Path, scenes: Sequence[tuple[tuple[int, int, int], int]] = SCENES) -> Path:
    """One colour per scene, half a second for each sampled frame, and a grey block that tells it.

    So no two sampled frames are the same request.
    """

    def drawn() -> Iterator[Any]:
        shades = itertools.count(0, 8)
        for colour, length in scenes:
            for _ in range(length):
                picture = np.full((48, 64, 3), colour, dtype=np.uint8)
                picture[:8, :8] = next(shades)
                yield from [picture] * (RATE // 2)

    render.Clip(drawn, RATE).write(path)
    return path


class Describer(Writer):
    """Describes whatever it is shown; documents join two shots a sentence, in order."""

    def written(self, step: str, request: Json) -> Any:
        if step in ("frame", "shot"):
            return {"description": f"A {step} of {len(pictures(request))} pictures."}
        numbers = [int(n) for n in re.findall(r"^(\d+)\. ", last_user_text(request), re.MULTILINE)]
        pairs = [numbers[n : n + 2] for n in range(0, len(numbers), 2)]
        told = [{"sentence": f"The {step} tells {pair}.", "shots": pair} for pair in pairs]
        return {"sentences": told}


def pictures(request: Json) -> list[str]:
    """The URLs of a request's pictures."""
    content = request["messages"][1]["content"]
    parts = content if isinstance(content, list) else []
    return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]


class Desk(Folder):
    """A folder with a video and its scores."""

    def __init__(self, folder: Path, video: Path, endpoint: LocalEndpoint, writer: Writer) -> None:
        super().__init__(folder, endpoint, writer)
        self.video, self.out = video, folder / "out"
        self.json = release.json_file(self.out, "own")
        self.arrays = release.h5_file(self.out, "own")
        self.scores = self.write("scores.json", SCORES)

    @property
    def env(self) -> dict[str, str]:
        return {
            "LMMS_EVAL_TASKS_JUDGE_CACHE": str(self.folder / "replies"),
            "LMMS_EVAL_TASKS_CACHE": str(self.video.parent / "cache"),
        }

    @property
    def judge(self) -> tuple[str, str]:
        return "--judge", f"m@{self.endpoint.url}"

    def run(self, *options: str, scores: bool = True, **env: str) -> Result:
        """The command, with other environment variables where they are given."""
        command = ["haven", "build", str(self.video), "--out", str(self.out), "--shots", "4"]
        command += ["--scores", str(self.scores)] if scores else []
        return CliRunner().invoke(app, [*command, *options], env=self.env | env)

    def written(self) -> dict[str, Any]:
        return json.loads(self.json.read_text(encoding="utf-8"))


@contextmanager
def open_desk(folder: Path, video: Path) -> Iterator[Desk]:
    """A desk in a folder, while its endpoint serves."""
    writer = Describer()
    with LocalEndpoint(writer) as endpoint:
        yield Desk(folder, video, endpoint, writer)
