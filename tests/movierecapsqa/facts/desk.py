"""A recap, and the command `facts` at work on it with a scripted model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from lmms_eval_tasks.commands.cli import app
from tests.local_endpoint import Json, LocalEndpoint, last_user_text
from tests.writing import Folder, Writer

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


class FactWriter(Writer):
    """A narration is sentences `Name does thing.`; each is a fact, and each two are a pair."""

    def written(self, step: str, request: Json) -> Any:
        text = last_user_text(request)
        if step == "facts":
            return {"facts": [f"{said.strip()}." for said in narration(text).split(".") if said]}
        if step == "pairs":
            facts = re.findall(r"^\d+\. (\w+) (.+)\.$", text, re.MULTILINE)
            pairs = []
            for first in range(0, len(facts), 2):
                numbers = list(range(first + 1, min(first + 2, len(facts)) + 1))
                name, deed = facts[first]
                answer = " and ".join(facts[n - 1][1] for n in numbers)
                question = f"What does {name} do when it is {deed.split()[0]}{first}?"
                pairs.append({"question": question, "answer": f"{answer}.", "facts": numbers})
            return {"pairs": pairs}
        found = re.findall(r"^(\d+)\. Question: (.+)\n +Answer: (.+)$", text, re.MULTILINE)
        if step == "simplify":
            return {
                "pairs": [
                    {
                        "id": int(number),
                        "question": re.sub(r"(?<=does )[A-Z]\w+", "somebody", question),
                        "answer": f"simply {answer}",
                    }
                    # Any order will do: numbers tell.
                    for number, question, answer in reversed(found)
                ]
            }
        label = {"modality": "vision", "category": "NPA"}[step]
        return {"labels": [{"id": int(number), "label": label} for number, *_ in found]}


def narration(text: str) -> str:
    """What stands between the tags of the first block."""
    match = re.search(r"<(\w+-[0-9a-f]{16})>\n(.*?)\n</\1>", text, re.DOTALL)
    assert match is not None, text
    return match[2]


class Desk(Folder):
    """A folder with a recap."""

    def __init__(self, folder: Path, endpoint: LocalEndpoint, writer: Writer) -> None:
        super().__init__(folder, endpoint, writer)
        self.out = folder / "segments.json"
        self.recap = self.write("recap.json", RECAP)

    def run(
        self, *options: str, recap: Path | None = None, model: str = "m", cache: str = ""
    ) -> Result:
        command = ["facts", str(recap or self.recap), "--out", str(self.out)]
        env = {"LMMS_EVAL_TASKS_JUDGE_CACHE": cache or str(self.folder / "replies")}
        command += ["--model", f"{model}@{self.endpoint.url}"]
        return CliRunner().invoke(app, [*command, *options], env=env)

    def written(self) -> list[dict[str, Any]]:
        return json.loads(self.out.read_text(encoding="utf-8"))


def is_for(step: str, request: Json, asked: str, word: str) -> bool:
    """Whether a request asks a step about the segment whose narration has a word."""
    return step == asked and word in last_user_text(request)
