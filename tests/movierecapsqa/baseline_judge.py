"""Replies of a judge of the baselines: grades, and scores with and without log-probabilities."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from tests.local_endpoint import Fault, choice, completion


def stated(score: int, top: Mapping[str, float]) -> Fault:
    """A reply whose score's token has these probabilities."""

    def token(text: str, listed: Mapping[str, float]) -> dict[str, Any]:
        others = [{"token": t, "logprob": math.log(p)} for t, p in listed.items()]
        return {"token": text, "logprob": math.log(listed[text]), "top_logprobs": others}

    content = [token('{"score": ', {'{"score": ': 1.0}), token(str(score), top)]
    content.append(token("}", {"}": 1.0}))
    one = choice(f'{{"score": {score}}}', logprobs={"content": content})
    return completion([one], {"prompt_tokens": 9, "completion_tokens": 3})


def drawn(request: dict[str, Any], scores: Sequence[object]) -> Fault:
    """As many choices as were asked for, without log-probabilities."""
    picked = [scores[place % len(scores)] for place in range(request.get("n", 1))]
    return completion(
        [choice(f'{{"score": {score}}}') for score in picked],
        {"prompt_tokens": 9, "completion_tokens": 3 * len(picked)},
    )


def graded(score: object, reason: str = "because") -> str:
    return json.dumps({"reason": reason, "score": score})
