"""A judge at a local endpoint: what it replies follows from what it is asked, and from that alone.

A request that is equal byte for byte gets the same reply, in every process and order. Most replies
are valid and drawn; some fail in each way in which a judge can fail.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from tests import local_endpoint as server
from tests.local_endpoint import Fault, Json, last_user_text

# The engine asks once more with one of these lines at the end (judges/engine.py).
_REPAIR = re.compile(r"\n\nAn earlier (?:reply|request)[^\n]*\Z")
_CANDIDATE = re.compile(r"<candidate-([0-9a-f]{16})>\n(.*)\n</candidate-\1>", re.DOTALL)
# MovieRecapsQA: claims, one a line behind its number; a label's dimension and its words.
_CLAIMS = re.compile(r"<claims-([0-9a-f]{16})>\n(.*)\n</claims-\1>", re.DOTALL)
_LABELS = re.compile(
    r"^Task: (\w+)\..* as \"id\" and one of ([\w, ]+) as", re.DOTALL | re.MULTILINE
)
_EVERY = 60  # requests; each kind of failure below is one of so many
_EVERY_OF_FEW = 18  # where there are few requests


def drawn(*parts: object) -> int:
    """A large number that depends on `parts` only."""
    text = "\x1f".join(map(str, parts))
    return int(hashlib.sha256(text.encode()).hexdigest(), 16)


def reply(request: Json) -> str | Fault:
    """What the judge says, or how it fails."""
    system, asked = request["messages"][0]["content"], last_user_text(request)
    first = _REPAIR.sub("", asked)
    # Two models are two judges, who differ now and then; only `good` never fails.
    number = drawn(system, first, *({request["model"]} - {"drawn"}))
    form = request.get("response_format", {}).get("json_schema")
    if form is None or form["schema"]["type"] == "string":  # MAIA's judge says a word
        name, valid = "", "Correct" if number % 3 else "incorrect."
    else:
        name = form["name"]
        valid = json.dumps(_reply(form["schema"], f"{system}\n{first}", number))
    failures: dict[int, str | Fault] = {
        0: "hard to say",
        1: server.refused(),
        2: server.truncated(valid[:-4]),
        3: server.error(404, "no such deployment"),
        4: Fault(content="", finish_reason="content_filter"),
        5: server.refused("a reply without content"),
        6: valid.replace(":", " is", 1) if name else f"{valid} or not",
        11: server.error(404, "no such deployment"),
    }
    if request["model"] == "good":
        return _with_samples(request, valid, number)
    few = name.startswith(("cvrr", "haven"))
    place = number % (_EVERY_OF_FEW if few else _EVERY)
    if place in failures:
        return failures[place]
    if place in (7, 8) and first == asked:  # readable when asked again
        return "one moment" if place == 7 else server.truncated('{"reason": "be')
    return _with_samples(request, valid, number)


def _with_samples(request: Json, valid: str, number: int) -> str | Fault:
    """As many choices as were asked for; log-probabilities for two of three requests for them."""
    if request.get("logprobs") and number // _EVERY % 3:
        score = json.loads(valid)["score"]
        share = (number // 1000 % 90 + 5) / 100
        return server.stated(
            score, {str(score): share, str(score % 5 + 1): 0.97 - share, "x": 0.02}
        )
    if request.get("n", 1) == 1:
        return valid
    scores = [number // 7**place % 5 + 1 for place in range(request["n"])]
    texts = [json.dumps({"score": one}) if one < 5 else "five" for one in scores]
    return server.completion([server.choice(text) for text in texts], {"prompt_tokens": 9})


def _reply(schema: Json, text: str, number: int) -> dict[str, Any]:
    if "claims" in schema["properties"]:
        found = _CANDIDATE.search(text)
        claims = [part for part in (found[2] if found else text).split(". ") if part]
        return {"claims": [] if number % 12 == 9 else claims}
    made: dict[str, Any] = _value(schema, schema.get("$defs", {}), str(number))
    if "labels" in made:
        told, claims = _LABELS.search(text), _CLAIMS.search(text)
        assert told, text
        assert claims, text
        words = told[2].split(", ")
        made["labels"] = [
            {"id": place, "label": words[drawn(told[1], line.partition(". ")[2]) % len(words)]}
            for place, line in enumerate(claims[2].split("\n"), 1)
        ]
    return made


def _value(schema: Mapping[str, Any], known: Mapping[str, Any], basis: str) -> Any:
    """A value of a JSON schema, drawn by `basis`."""
    if "$ref" in schema:
        return _value(known[schema["$ref"].rpartition("/")[2]], known, basis)
    number = drawn(basis)
    if "enum" in schema:
        return schema["enum"][number % len(schema["enum"])]
    if schema["type"] == "object":
        parts = schema["properties"].items()
        return {name: _value(one, known, basis + name) for name, one in parts}
    low, high = schema.get("minimum", 0), schema.get("maximum", 5)
    values = {
        "boolean": number % 3 > 0,
        "integer": low + number % (high - low + 1),
        "number": low + number % (2 * (high - low) + 1) / 2,
        "string": f"drawn {number % 1000}",
        "array": [],
    }
    return values[schema["type"]]
