"""A scripted model that writes facts, pairs and labels, for the tests of `lmms-eval-tasks facts`.

A narration is sentences `Name does thing.`; each is a fact, and each two facts are a pair.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.local_endpoint import Fault, Json, last_user_text

Change = Callable[[str, Any, Json], "Any"]


class Writer:
    """Replies to every step; `change` may put another reply in place of one.

    Args:
        change: called with the step, the reply that would be sent, and the request; returns a reply
            (plain types, or a `Fault`).
    """

    def __init__(self, change: Change | None = None) -> None:
        self.change = change
        self.asked: Counter[str] = Counter()
        self.requests: list[tuple[str, Json]] = []
        self._lock = threading.Lock()

    def __call__(self, request: Json) -> str | Fault:
        name = request["response_format"]["json_schema"]["name"]
        step = name.removeprefix("movierecapsqa_")
        with self._lock:
            self.asked[step] += 1
            self.requests.append((step, request))
        reply = self._reply(step, last_user_text(request))
        if self.change is not None:
            reply = self.change(step, reply, request)
        return reply if isinstance(reply, Fault) else json.dumps(reply)

    def _reply(self, step: str, text: str) -> Any:
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
        label = {"modality": "vision", "category": "npa"}[step]
        return {"labels": [{"id": int(number), "label": label} for number, *_ in found]}


def narration(text: str) -> str:
    """What stands between the tags of the first block."""
    match = re.search(r"<(\w+-[0-9a-f]{16})>\n(.*?)\n</\1>", text, re.DOTALL)
    assert match is not None, text
    return match[2]
