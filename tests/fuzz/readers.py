"""Every reader of what models and judges write, found in the registry of benchmarks.

A model's reader is a task's `score`, a judge's reader a criterion that some `score` asks about: so
a further benchmark is read here too, without a word about it.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from jsonschema import Draft202012Validator

from lmms_eval_tasks import registry, settings
from lmms_eval_tasks.benchmark import Benchmark, Task
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges import Criterion, Judge, JudgeConfig, Verdict, reader
from lmms_eval_tasks.judges.asking import run_scoring
from lmms_eval_tasks.judges.debate import DebateJudge, PanelJudge
from lmms_eval_tasks.judges.providers.exchange import JudgeReply, Token
from lmms_eval_tasks.judges.providers.replay import NoJudge
from lmms_eval_tasks.judges.verdict import DEBATE, PANEL, REPLAY
from lmms_eval_tasks.models import fake_replies
from lmms_eval_tasks.movierecapsqa.settings import BASELINES, JUDGED_BASELINES
from lmms_eval_tasks.utils.released_files import read_lines
from tests.conftest import cvrr_study
from tests.fuzz import texts
from tests.fuzz.watch import TooSlow, at_most

SECONDS = 20.0  # of CPU for all that one item needs; the slowest of a million takes a fraction
CASES = Path(__file__).parents[1] / "cases"


@dataclass
class Tally:
    """What became of the texts that one reader was given."""

    inputs: int = 0
    failures: list[str] = field(default_factory=list)
    slowest: tuple[float, int] = (0.0, 0)  # seconds of CPU, and the number of that text

    def add(self, seconds: float, number: int) -> None:
        """One more text."""
        self.inputs += 1
        self.slowest = max(self.slowest, (seconds, number))


@dataclass(frozen=True)
class Scored:
    """One task of those that read alike."""

    benchmark: Benchmark
    task: Task
    docs: Sequence[Mapping[str, Any]]  # kept
    items: Sequence[Mapping[str, Any]]  # of those with stand-ins for replies, not judged yet
    real: Sequence[str]  # replies
    recorded: Mapping[str, Sequence[str]]  # replies of judges, by criterion


def environment(root: Path) -> dict[str, str]:
    """What a run on the sample under `root` needs, with all that judges can be asked."""
    return {
        settings.DATA: str(root),
        settings.JUDGE: "none",
        BASELINES: ",".join(JUDGED_BASELINES),
        **cvrr_study(root),
    }


def found(root: Path, most: int = 40) -> list[Scored]:
    """Tasks, one of those with the same `score` and metrics, with up to `most` docs each."""
    made: dict[Any, Scored] = {}
    for benchmark in map(registry.load_benchmark, registry.NAMES):
        looked = benchmark.load([*benchmark.tasks], videos=False)
        recorded: dict[str, list[str]] = {}
        for file in (root / benchmark.name).glob("*.jsonl"):
            for _, line in read_lines(file):
                recorded.setdefault(line["criterion"], []).append(line["reply"])
        for task in benchmark.tasks.values():
            docs = benchmark.docs(looked, task.name)
            docs = docs[:: math.ceil(len(docs) / most)]
            real = {
                reply for number, doc in enumerate(docs) for reply in _replies(task, doc, number)
            }
            kept = [task.log_fields(doc) for doc in docs]
            items = [_unjudged(task, item, doc) for item, doc in zip(kept, docs, strict=True)]
            one = Scored(benchmark, task, kept, items, sorted(real), recorded)
            made.setdefault((task.score, tuple(task.metrics)), one)
    return list(made.values())


def _unjudged(task: Task, kept: Mapping[str, Any], doc: Mapping[str, Any]) -> dict[str, Any]:
    skipped = NoJudge().verdicts
    scoring = task.score(kept, task.example_reply(doc, 0))
    made = run_scoring(scoring, lambda asks: [skipped(ask.criterion, {}, 1)[0] for ask in asks])
    return {**kept, **made}


def _replies(task: Task, doc: Mapping[str, Any], number: int) -> Iterator[str]:
    yield task.example_reply(doc, number)
    with suppress(TasksError):
        known = fake_replies.known_replies(doc)
        yield from (known.right, known.wrong, known.unreadable, *known.random_replies)


@cache
def cases() -> list[str]:
    """Every text in the tables of the readers' tests."""

    def inside(value: Any) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        if not isinstance(value, dict | list):
            return
        for one in (
            value.values() if isinstance(value, dict) else value if type(value) is list else ()
        ):
            yield from inside(one)

    files = sorted(CASES.rglob("*.json"))
    return sorted({one for file in files for one in inside(json.loads(file.read_text("utf-8")))})


class Fuzz:
    """Texts by number, given to readers in turn; what came of it, by reader."""

    def __init__(
        self, scored: Sequence[Scored], seed: int = 0, longest: int = texts.LONGEST
    ) -> None:
        self.scored, self.seed, self.longest = scored, seed, longest
        self.tallies: dict[str, Tally] = {}

    @property
    def inputs(self) -> int:
        """How many texts were given."""
        return sum(one.inputs for one in self.tallies.values())

    def run(self, numbers: Iterable[int]) -> None:
        """Score one item for each number; texts of judges come on top."""
        for number in numbers:
            one = self.scored[number % len(self.scored)]
            self._item(one, Random(f"{self.seed}/{number}"), number)

    def _item(self, one: Scored, random: Random, number: int) -> None:
        mine = self.tallies.setdefault(one.task.name, Tally())
        reply = self._text(random, one.real)
        judge = _Judge(self, one, random, number)
        asked = judge.several() if not one.benchmark.one_judge and random.random() < 0.2 else judge
        problem = ""
        try:
            with at_most(SECONDS) as took:
                item, scoring = _scoring(one, random, reply)
                made = run_scoring(scoring, lambda asks: [judged(asked, ask) for ask in asks])
                problem = off_range(one.task, {**item, **made, "reply": reply})
        except (Exception, TooSlow) as error:
            problem = repr(error)
        mine.add(took[0] - judge.seconds, number)
        if problem:
            mine.failures.append(f"number {number} of seed {self.seed}: {problem[:300]}")

    def _text(self, random: Random, real: Sequence[str]) -> str:
        if random.random() < 0.1:
            return random.choice(real)
        return texts.text(random, real if random.random() < 0.6 else cases(), self.longest)


def _scoring(one: Scored, random: Random, reply: str) -> tuple[Mapping[str, Any], Any]:
    """What is scored, and its scoring: a reply, or what a task scores of several items at once."""
    several = list(one.task.score_jointly(one.items)) if one.task.score_jointly else []
    if not several or random.random() < 0.7:
        doc = random.choice(one.docs)
        return doc, one.task.score(doc, reply)
    name, scoring = random.choice(several)
    return next(item for item in one.items if item["id"] == name), scoring


def judged(judge: Judge, ask: Any) -> Verdict:
    """A verdict on its documented scale, that is the same when it was saved."""
    verdict = ask.answered(judge)
    if verdict.score is not None:
        low, high = scale(ask.criterion)
        assert low <= verdict.score <= high, (ask.criterion.name, verdict.score)
    if verdict.expected is not None:
        assert math.isfinite(verdict.expected + (verdict.expected_mass or 0)), verdict.expected
        assert low <= verdict.expected <= high, verdict.expected
    saved = json.dumps(verdict.as_dict(), allow_nan=False)
    assert json.dumps(Verdict.from_dict(json.loads(saved)).as_dict()) == saved
    return verdict


@cache
def _validator(criterion: Criterion) -> Draft202012Validator:
    return Draft202012Validator(criterion.schema.model_json_schema())


def scale(criterion: Criterion) -> tuple[float, float]:
    """The ends of what its schema's numbers can be; without any, a count's or a yes."""
    numbers = list(criterion.schema.model_json_schema()["properties"].values())
    ends = [(one["minimum"], one["maximum"]) for one in numbers if "maximum" in one]
    yes = any(one.get("type") == "boolean" for one in numbers)
    return ends[0] if ends else (0, 1) if yes else (0, math.inf)


class _Judge(Judge):
    """Replies with texts that nobody would expect, or with a recorded reply."""

    config = JudgeConfig(REPLAY, "fuzz")

    def __init__(self, fuzz: Fuzz, one: Scored, random: Random, number: int) -> None:
        self._fuzz, self._one, self._random, self._number = fuzz, one, random, number
        self.seconds = 0.0  # that reading took

    def several(self) -> Judge:
        """It, twice or three times, as a panel or in a debate."""
        kind, number = self._random.choice(((PANEL, 2), (PANEL, 3), (DEBATE, 3)))
        own = [_Named(self, f"m{n}") for n in range(number)]
        rule = self._random.choice(("majority", "mean", "median"))
        config = JudgeConfig(kind, members=tuple(one.config for one in own), rule=rule)
        return PanelJudge(config, own) if kind == PANEL else DebateJudge(config, own)

    def verdicts(
        self, criterion: Criterion, fields: Mapping[str, Any], samples: int
    ) -> Sequence[Verdict]:
        """What the one reader of judges' replies makes of them."""
        return [self._verdict(criterion, fields) for _ in range(samples)]

    def _verdict(self, criterion: Criterion, fields: Mapping[str, Any]) -> Verdict:
        random, real = self._random, self._one.recorded.get(criterion.name) or cases()
        text = self._fuzz._text(random, real) if random.random() < 0.8 else random.choice(real)
        tokens = _tokens(random, text) if criterion.top_logprobs and random.random() < 0.7 else None
        reply = JudgeReply(
            text, random.choice(("stop", "stop", "stop", "length", "\0")), tokens=tokens
        )
        start = time.process_time()
        verdict = reader.read_verdict(criterion, fields, reply, "fuzz")
        took = time.process_time() - start
        self.seconds += took
        self._fuzz.tallies.setdefault(f"judge: {criterion.name}", Tally()).add(took, self._number)
        if verdict.status == "ok":
            value = reader.parsed_reply(criterion, fields, verdict)
            if value is not None:  # a bare rating is no object
                _validator(criterion).validate(value.model_dump(mode="json"))
        return verdict


class _Named(Judge):
    def __init__(self, judge: Judge, name: str) -> None:
        self.config, self.verdicts = JudgeConfig(REPLAY, name), judge.verdicts  # type: ignore[method-assign]

    verdicts: Any = None


def _tokens(random: Random, text: str) -> tuple[Token, ...]:
    """A reply in pieces, each with others at its place and odd logarithms."""
    odd = (0.0, -0.1, -5.0, -math.inf, math.inf, math.nan, 3.0, -1e308)
    ends = sorted({0, len(text), *(random.randint(0, len(text)) for _ in range(12))})
    pieces = [text[start:end] for start, end in pairwise(ends)]
    top = [(random.choice(("1", "5", " 3", '"4"', "", "9", "\0")), random.choice(odd))] * 3
    return tuple(Token(piece, random.choice(odd), top) for piece in pieces)


# --- what an item may be --------------------------------------------------------------------------


def off_range(task: Task, item: Mapping[str, Any]) -> str:
    """What of an item is not what its task documents; "" if all is."""
    json.dumps(item, allow_nan=False)
    if not re.fullmatch("[a-z_]+", str(item.get("status"))) or item["status"] == "error":
        return f"status {item.get('status')!r}"
    for name, fits in FIELDS.items():
        if item.get(name) is not None and not fits(item):
            return f"{name} {item[name]!r}"
    for metric in task.metrics:
        value = metric.compute(metric.counted_items([item]))
        if isinstance(value, float) and not math.isfinite(value):
            return f"{metric.name} is {value}"
        if metric.is_share and value is not None and not 0 <= value <= 1:
            return f"{metric.name} is {value}, which is no share"
    return ""


def _distinct(chosen: Sequence[int], known: Iterable[int]) -> bool:
    return len(set(chosen)) == len(chosen) and set(chosen) <= set(known)


# Fields of items by what they must be wherever a benchmark has them.
FIELDS: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "letter": lambda item: item["letter"] in [*fake_replies.LETTERS[: len(item["options"])]],
    "right": lambda item: 0 <= item["right"] <= 1,  # between them is the mean of a panel
    "points": lambda item: 0 <= item["points"] <= 5,
    "rating": lambda item: item["rating"] in range(1, 6),
    "ranked": lambda item: _distinct(item["ranked"], item["units"]),
    "frames": lambda item: _distinct(item["frames"], range(1, item["n_frames"] + 1)),
    "claims": lambda item: all(one.strip() and "\n" not in one for one in item["claims"]),
}
