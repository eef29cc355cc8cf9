"""For the tests of faults: items to judge, faults by request and attempt, a process to kill.

Each item names itself in its request, so that the endpoint knows what is right, which attempt this
is and what goes wrong with it.
"""

import dataclasses
import hashlib
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from lmms_eval_tasks.judges import Criterion, Judge, Verdict, resolve
from lmms_eval_tasks.judges.run import JudgeSession
from lmms_eval_tasks.settings import JudgeLimits
from tests import local_endpoint as server
from tests.local_endpoint import Fault, last_user_text

SHARE = 0.30  # of the replies that are broken
TIMEOUT = 3.0  # seconds; generous, since an attempt that is late by accident would be counted
_BROKEN_IN_A_ROW = 5  # attempts of one request at most: the default number of retries


class Agreement(BaseModel):
    model_config = ConfigDict(extra="forbid")

    reason: str
    correct: bool


class Rating(BaseModel):
    model_config = ConfigDict(extra="forbid")

    reason: str
    rating: int = Field(ge=1, le=5)


def _criterion(name: str, schema: type[BaseModel], score: Callable[[Any], float]) -> Criterion:
    return Criterion(
        name=name,
        system="Grade the answer. Reply in JSON.",
        template=f"{name} of item {{number}}\n{{candidate}}",
        schema=schema,
        score=score,
        prompt_hash="0",
    )


AGREEMENT = _criterion("agreement", Agreement, lambda reply: float(reply.correct))
RATING = _criterion("rating", Rating, lambda reply: float(reply.rating))


class Item(NamedTuple):
    """One thing to judge."""

    criterion: Criterion
    number: int

    @property
    def name(self) -> str:
        return f"{self.criterion.name} {self.number}"

    @property
    def fields(self) -> dict[str, str]:
        return {"number": str(self.number), "candidate": f"answer {self.number}"}


def items(count: int) -> list[Item]:
    """`count` items, every other one a rating."""
    return [Item((AGREEMENT, RATING)[number % 2], number) for number in range(count)]


def right_score(name: str) -> float:
    """What the endpoint says about an item when nothing is wrong."""
    draw = int(hashlib.sha256(name.encode()).hexdigest(), 16)
    return float(draw % 2) if name.startswith("agreement") else float(1 + draw % 5)


def right(name: str) -> str:
    """The reply with that score."""
    score = right_score(name)
    told = {"correct": bool(score)} if name.startswith("agreement") else {"rating": int(score)}
    return json.dumps({"reason": f"because of {name}", **told})


_HTML = b"<html><body>502 Bad Gateway</body></html>"
# No reply came of these: the same request is sent again.
TRANSPORT: dict[str, Fault] = {
    "429": Fault(status=429),
    "429 with seconds": Fault(status=429, headers={"Retry-After": "0"}),
    "429 with milliseconds": Fault(status=429, headers={"retry-after-ms": "50"}),
    "529": Fault(status=529),
    "500": server.error(500),
    "502": Fault(status=502, body=_HTML, content_type="text/html"),
    "503": server.error(503),
    "dropped": Fault(drop=True),
    "slow": Fault(content="too late", delay=TIMEOUT + 1.5),
    "not JSON": Fault(body=b'{"id": "chatcmpl-test", "choi'),
    "no completion": Fault(body=b'{"error": {"message": "upstream failed"}}'),
    "no content": Fault(),
    "aborted": Fault(content='{"reason": "good", "rating": 1}', finish_reason="abort"),
}
_CUT = '{"reason": "because of it'
# A reply came and was paid for, and its status is known; asked once more in other words.
CONTENT: dict[str, tuple[Fault, str]] = {
    "refusal": (server.refused(), "refused"),
    "filtered": (Fault(content="", finish_reason="content_filter"), "refused"),
    "length": (server.truncated(_CUT), "truncated"),
    "cut": (Fault(content=_CUT), "truncated"),
    "scale": (Fault(content='{"reason": "good", "rating": 9}'), "parse_failure"),
    "keys": (Fault(content='{"reason": "good", "grade": true}'), "parse_failure"),
    "prose": (Fault(content="The answer seems fine to me."), "parse_failure"),
}
REPAIR = "An earlier re"  # how the last line of a repair request begins

Plan = Callable[[str, int], "str | None"]  # request's name and attempt -> a kind of fault


def passing(name: str, attempt: int) -> str | None:
    """30 % of the replies are broken, by a hash of request and attempt, and all heal in time."""
    if attempt >= _BROKEN_IN_A_ROW:
        return None
    kinds = list(TRANSPORT) if name.endswith("repair") else [*TRANSPORT, *CONTENT]
    return _drawn(f"{name}, attempt {attempt}", kinds)


def lasting(name: str, attempt: int) -> str | None:
    """30 % of the items are broken for good: whatever is sent, the same goes wrong."""
    return _drawn(name.removesuffix(" repair"), [*TRANSPORT, *CONTENT])


def none(name: str, attempt: int) -> str | None:
    """Nothing is broken."""
    return None


def _drawn(text: str, kinds: Sequence[str]) -> str | None:
    draw = int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 16**8
    return kinds[int(draw / SHARE * len(kinds))] if draw < SHARE else None


class Player:
    """The endpoint's side: right verdicts, broken as planned."""

    def __init__(self, plan: Plan = none, delay: float = 0.0) -> None:
        self.plan, self.delay = plan, delay  # seconds
        self.seen: Counter[str] = Counter()  # requests by name
        self.broken: Counter[str] = Counter()  # replies by kind of fault
        self._lock = threading.Lock()

    def __call__(self, request: dict[str, Any]) -> Fault:
        name = name_of(request)
        with self._lock:
            attempt = self.seen[name]
            self.seen[name] += 1
            kind = self.plan(name, attempt)
            if kind is not None:
                self.broken[kind] += 1
        if kind in TRANSPORT:
            return TRANSPORT[kind]
        if kind is not None:
            return CONTENT[kind][0]
        return Fault(content=right(name.removesuffix(" repair")), delay=self.delay)


def name_of(request: Mapping[str, Any]) -> str:
    """`rating 17`, or `rating 17 repair`."""
    text = last_user_text(dict(request))
    found = re.search(r"(agreement|rating) of item (\d+)", text)
    assert found is not None, text
    return f"{found[1]} {found[2]}" + (" repair" if REPAIR in text else "")


def judged(judge: Judge, wanted: Sequence[Item], threads: int = 16) -> list[Verdict]:
    """The verdicts, in order."""
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda item: judge.verdict(item.criterion, item.fields), wanted))


def judge_of(url: str, run: JudgeSession, **changes: Any) -> Judge:
    """A judge at an endpoint."""
    config = resolve(f"m@{url}", {}, default_model="gpt-4o")
    return run.judge(dataclasses.replace(config, **{"timeout": TIMEOUT, **changes}))


def process(url: str, cache: Path, numbers: Sequence[int], out: Path, threads: int) -> None:
    """For a process of its own: judge some items and write their verdicts, once all are there."""
    known = items(max(numbers) + 1)
    run = JudgeSession(JudgeLimits(concurrency=threads), cache=cache)
    judge = judge_of(url, run, timeout=30.0)
    verdicts = judged(judge, [known[number] for number in numbers], threads)
    found = {known[n].name: v.as_dict() for n, v in zip(numbers, verdicts, strict=True)}
    total = run.usage.total()
    counts = {"paid": total.paid_calls, "cached": total.cached_calls}
    out.write_text(json.dumps({"verdicts": found, "counts": counts}), encoding="utf-8")
    run.close()
