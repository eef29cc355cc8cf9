"""A judge at a local endpoint that knows the right verdicts, and gives these or others."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from lmms_eval_tasks.benchmark import Item, KnownAnswer, KnownAnswers
from tests.local_endpoint import Fault, drawn, last_user_text

# From the known verdict and the scale to the verdict that is given.
Rule = Callable[[float, list[int]], "float | Fault"]
RULES: dict[str, Rule] = {
    "right": lambda known, _: known,
    "always the highest": lambda _, scale: scale[-1],
    "always the other": lambda known, scale: scale[0] + scale[-1] - known,
    "fails": lambda *_: Fault(status=404, message="no such model"),
    "unreadable": lambda *_: Fault(content="well, well"),
}
_CANDIDATE = re.compile(r"<(candidate|claims)-([0-9a-f]{16})>\n(.*)\n</\1-\2>", re.DOTALL)


def playing(known: KnownAnswers, rule: Rule) -> Callable[[dict[str, Any]], str | Fault]:
    """The replies of a judge that knows these answers, by the form that is asked for."""
    lines = [(_line(one.text), one) for one in known.answers if one.right_verdicts]

    def reply(request: dict[str, Any]) -> str | Fault:
        prompt = last_user_text(request)
        found = _CANDIDATE.search(prompt)
        assert found
        text = _line(re.sub(r"(?m)^\d+\. ", "", found[3]))
        # What a model's turn begins or ends with is not put to a judge.
        own = [one for line, one in lines if text in line and _about(one.doc) in prompt]
        return _said(request, text, found[1] == "claims", prompt, own)

    def _said(
        request: dict[str, Any], text: str, labels: bool, prompt: str, own: Iterable[KnownAnswer]
    ) -> str | Fault:
        form = request.get("response_format", {}).get("json_schema")
        schema = form["schema"] if form else {"type": "string"}
        fields = schema.get("properties", {})
        worths = next((one.right_verdicts for one in own), {})  # baselines are asked of others too
        worth = next(iter(worths.values()), float(known.scale[-1]))
        if labels:
            task = re.search(r"(?m)^Task: (\w+)\.", prompt)
            assert task
            worth = worths.get(task[1], worth)
        given = rule(worth, list(known.scale))
        if isinstance(given, Fault):
            return given
        if "claims" in fields:
            return json.dumps({"claims": [text]})
        if "labels" in fields:
            label = fields["labels"]["prefixItems"][0]["properties"]["label"]["enum"][0]
            one = {"id": 1, "label": label}
            return json.dumps({"labels": [one], "reason": "known", "score": int(given)})
        if schema["type"] == "string":
            return "Correct" if given else "Incorrect"
        if "pred" in fields:
            pred = "correct" if given else "incorrect"
            return json.dumps({"pred": pred, "score": 5 * int(given), "reason": "known"})
        return drawn(request, [int(given)])

    return reply


def _about(doc: Item) -> str:
    """What tells an answer's question from others in a prompt."""
    return str(doc.get("question") or f"Reference summary:\n{' '.join(doc['summary'])}")


def _line(text: str) -> str:
    return " ".join(text.split())
