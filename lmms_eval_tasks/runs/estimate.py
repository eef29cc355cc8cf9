"""The cost of a run before it starts: requests, media, tokens, GPU hours, dollars and time.

A task is counted on the user's data. Where these are not there, it is counted with the published
sizes (leaderboards/recipes/data.yaml). `estimate` and `leaderboard NAME --plan` both use this
module, so that their figures are equal.

The lengths of the model's and the judge's replies are unknown before a run. They are assumptions,
which the output states. A GPU computes a prompt with 2 operations for each parameter and token. It
reads all weights for each token of a reply. Both run at a share of the figures on an A100's data
sheet.

With vLLM (`tasks_vllm`), media before several questions are computed once, a batch shares one
reading of the weights, and all GPUs of a model work at the same time. With other classes, one
request follows another, and GPUs take turns on a model's layers. Vision towers, loading, the
engine's overhead and waiting are left out. None of these estimates was ever measured on a GPU.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_tasks import registry, settings
from lmms_eval_tasks.benchmark import Benchmark, Doc, Item, LoadedData, Task
from lmms_eval_tasks.context import RunModel
from lmms_eval_tasks.errors import DataError, MediaError
from lmms_eval_tasks.judges import JudgeConfig, costs, run
from lmms_eval_tasks.judges.asking import run_scoring
from lmms_eval_tasks.judges.config import environment
from lmms_eval_tasks.judges.costs import CostEstimate, default_rate
from lmms_eval_tasks.judges.prices import Price, counter
from lmms_eval_tasks.judges.report import dollars, duration, price
from lmms_eval_tasks.judges.verdict import (
    Criterion,
    JudgeRequest,
    JudgeRequests,
    Verdict,
    sum_known,
)
from lmms_eval_tasks.media import video_checks
from lmms_eval_tasks.models import model_capabilities, recipes
from lmms_eval_tasks.models.plan import FRAMES, whole
from lmms_eval_tasks.models.recipes import ModelFacts, TaskWorkload
from lmms_eval_tasks.runs import media, prepare
from lmms_eval_tasks.runs.messages import text_of
from lmms_eval_tasks.tables.paper_tables import NONE, by_row
from lmms_eval_tasks.utils.json_files import Json, JsonObject

if TYPE_CHECKING:
    from rich.table import Table

OPERATIONS = 312e12  # operations a second of an A100, dense bfloat16
BANDWIDTH = 2.0e12  # bytes a second of an A100's 80 GB memory
SHARE = 0.4  # share of both that a run reaches, a guess
BYTES = 2  # bytes of a parameter
FORMULA = (
    f"2 operations a parameter and prompt token at {SHARE:.0%} of {OPERATIONS / 1e12:g} TFLOP/s, "
    f"all weights a reply token at {SHARE:.0%} of {BANDWIDTH / 1e12:g} TB/s (A100, 80 GB). A "
    "formula, not measured on a GPU."
)

DATA, PAPER = "data", "paper"  # what a task is counted with


@dataclass
class Cost:
    """The cost of a task or of several; None is a number that is not known."""

    name: str
    basis: str = ""  # DATA, PAPER, or both with a comma
    why: str = ""  # the reason why published sizes were taken; "" if the data were counted
    requests: int = 0
    clips: Mapping[object, float | None] = field(default_factory=dict)  # seconds of each video
    videos: int = 0
    minutes: float | None = 0.0  # minutes of these videos
    text: int = 0  # tokens of the prompts' texts
    prompt: float | None = 0.0  # tokens of the prompts, including media
    cached: float | None = 0.0  # prompt tokens that an engine has from an earlier question
    reply: float | None = 0.0  # tokens of the replies
    hours: float | None = 0.0  # GPU hours
    gpus: int = 0  # GPUs at a time; 0 if the model is on a server
    dollars: float | None = 0.0  # price of the model's server
    uploaded: float | None = None  # bytes for the model's server
    judge: CostEstimate = field(default_factory=CostEstimate)

    @property
    def wall(self) -> float:
        """The time in hours; requests to servers count with the rate of the judge's limits."""
        requests = self.judge.calls + (0 if self.gpus else self.requests)
        return (self.hours or 0) / max(1, self.gpus) + requests / default_rate()[0] / 3600

    def __str__(self) -> str:
        by = f"about {self.hours or 0:,.1f} GPU hours ({self.gpus} of 80 GB)"
        where = by if self.gpus else f"its server: {price(self.dollars)}"
        calls, prompt, cached = self.judge.calls, self.prompt or 0, self.cached or 0
        judge = f"; judge: {calls:,} calls, {price(self.judge.cost)}" if calls else ""
        share = f" ({cached / prompt:.1%} of the prompts' cached)" if cached else ""
        tokens = f"{prompt / 1e6:,.1f} + {(self.reply or 0) / 1e6:,.2f} million tokens{share}"
        took = f"; {duration(self.wall * 3600)} in all"
        return f"{self.name}: {self.requests:,} requests, {tokens}, {where}{judge}{took}"

    def as_dict(self, rate: float) -> JsonObject:
        """Return the numbers by name; `rate` is the number of requests to the judge per second."""
        return {
            "task": self.name,
            "counted_with": self.basis,
            "requests": self.requests,
            "videos": self.videos,
            "minutes_of_video": _rounded(self.minutes, 1),
            "text_tokens_in": self.text,
            "tokens_in": _rounded(self.prompt),
            "tokens_in_cached": _rounded(self.cached),
            "tokens_out": _rounded(self.reply),
            "gpu_hours": _rounded(self.hours, 3),
            "gpus": self.gpus,
            "uploaded_bytes": _rounded(self.uploaded),
            "model_dollars": self.dollars,
            "judge_requests": self.judge.calls,
            "judge_tokens_in": self.judge.judge_tokens,
            "judge_tokens_out": self.judge.reply_tokens,
            "judge_dollars": self.judge.cost,
            "judge_dollars_as_batch": self.judge.batch_cost,
            "judging_seconds": round(self.judge.calls / rate, 1),
        }


def _rounded(number: float | None, digits: int | None = None) -> float | None:
    return None if number is None else round(number, digits)


def estimate(
    task: str,
    model: RunModel | None = None,
    batch: int = 1,
    *,
    limit: int | None = None,
    published: bool = False,
) -> Cost:
    """Return the cost of a task, with the judge of the settings.

    Args:
        task: name of the task.
        model: the model; None leaves out what depends on it.
        batch: lmms-eval's `--batch_size`.
        limit: lmms-eval's `--limit`.
        published: True to count with the published sizes, even if there are data.

    Raises:
        DataError: the data cannot be used, and there is no published size; says both.
        TasksError: the judge's settings are wrong.
    """
    benchmark, why = registry.of(task), "the published sizes were asked for"
    config = None
    if benchmark.tasks[task].judgements:
        config = prepare.judge_config(benchmark, env=environment(dry_run=True))
    if not published:
        try:
            return _measured(benchmark, task, config, model, batch, limit=limit)
        except DataError as error:
            place = settings.data_folder(benchmark.name)
            why = str(error).splitlines()[0] if place.is_dir() else f"no data at {place}"
    if (work := published_work(task, limit)) is None:
        raise DataError(f"{why}, and no published size (leaderboards/recipes/data.yaml)")
    judge = CostEstimate()
    if config is not None and config.endpoints:
        judge = costs.plan_sizes(config, round(work.docs * work.calls), work.asked, work.told)
    # Where the number of a task's videos is not published, it is at most the benchmark's.
    most = benchmark.paper_counts.get("videos", work.docs)
    shows = work.video or work.sound or work.pictures
    videos = (work.clips or min(work.docs, most)) if shows else 0
    found = Cost(task, PAPER, why, videos=videos, judge=judge)
    found.minutes = videos * (work.video or work.sound) / 60
    return _with_model(found, work, model, batch)


def published_work(task: str, limit: int | None = None) -> TaskWorkload | None:
    """Return the workload of a task on the published data; None if it is not known."""
    try:
        work = recipes.work(task)
    except KeyError:
        return None
    (docs,) = media.docs_per_task([work.docs], limit)
    docs = min(docs, work.docs)
    clips = math.ceil(work.clips * docs / work.docs)
    return work.model_copy(update={"docs": docs, "clips": clips})


def load_data(benchmark: Benchmark, names: Sequence[str]) -> LoadedData:
    """Return a benchmark's data; if a video is missing or damaged, without a look at the videos.

    Raises:
        DataError: the data cannot be used.
    """
    try:
        return benchmark.load(names)
    except DataError:
        return benchmark.load(names, videos=False)


def _measured(
    benchmark: Benchmark,
    task: str,
    config: JudgeConfig | None,
    model: RunModel | None,
    batch: int,
    *,
    limit: int | None,
) -> Cost:
    own, loaded = benchmark.tasks[task], load_data(benchmark, [task])
    docs = benchmark.docs(loaded, task)
    docs = docs[: media.docs_per_task([len(docs)], limit)[0]]
    judge, plain = CostEstimate(), counter("")
    requested = requests(own, docs) if config is not None else []
    if config is not None and requested and config.endpoints:
        judge = costs.plan(config, [(*one, "") for one in requested])
    paper = published_work(task) or TaskWorkload(docs=0, text=0, reply=0)
    tokens, pictures, clips, shows = 0, 0, dict[object, float | None](), set[str]()
    for place, doc in enumerate(docs):
        parts = own.prompt({**doc, "task": task})
        tokens += plain.count(own.system(doc) + text_of(parts))
        kinds = [part.kind for part in parts]
        pictures += kinds.count("image") + FRAMES * kinds.count("images")
        shows.update(kinds)
        if {"video", "audio", "image", "images"}.intersection(kinds):
            job = benchmark.media_job(doc)
            key = job.key if job else (doc.get("video_path") or place,)
            if key not in clips:
                timed = {"video", "audio"}.intersection(kinds)
                clips[key] = (_seconds(doc) or paper.video or paper.sound) if timed else 0.0
    seconds = sum_known([*clips.values()])
    each = (seconds or 0) / len(clips) if clips else 0
    replies = (
        paper.reply
        if paper.docs
        else _mean([plain.count(own.example_reply(doc, place)) for place, doc in enumerate(docs)])
    )
    work = TaskWorkload(
        docs=len(docs),
        clips=len(clips),
        text=tokens / max(1, len(docs)),
        reply=replies,
        video=each if "video" in shows else 0,
        sound=each if "audio" in shows else 0,
        pictures=pictures / max(1, len(docs)),
        frames=max((own.frames(doc) or 0 for doc in docs), default=0),
    )
    found = Cost(task, DATA, clips=clips, videos=len(clips), judge=judge)
    found.minutes = None if seconds is None else seconds / 60
    _with_model(found, work, model, batch)
    if docs and not replies and not paper.docs:  # no published length, and no example
        found.reply = found.hours = None
        found.dollars = found.dollars and None
    return found


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / max(1, len(numbers))


def _seconds(doc: Doc) -> float | None:
    """Return the seconds of a doc's segment or video; None if the file cannot be looked at."""
    if (start := doc.get("start")) is not None and (end := doc.get("end")) is not None:
        return float(end) - float(start)
    path = Path(str(doc.get("video_path") or ""))
    with contextlib.suppress(MediaError):
        return video_checks.probe(path).duration if path.is_file() else None
    return None


# --- the judge's part -----------------------------------------------------------------------------


def requests(task: Task, docs: Sequence[Doc]) -> list[tuple[Criterion, Mapping[str, Json]]]:
    """Return the requests to the judge about example replies to docs.

    The list is empty if nothing is judged, for example if the reference is withheld.
    """
    collected: list[JudgeRequest] = []
    items = []
    for number, doc in enumerate(docs if task.judgements else ()):
        log_item = task.log_fields(doc)
        scoring = task.score(log_item, task.example_reply(doc, number))
        # The work after the last request, such as metrics of texts, takes time and is not needed.
        last = task.judgements if task.score_jointly is None else ()
        with contextlib.suppress(_AllAsked):
            items.append({**log_item, **run_scoring(scoring, _stand_ins(collected, last))})
    for _, scoring in task.score_jointly(items) if task.score_jointly else ():
        run_scoring(scoring, _stand_ins(collected))
    return [(request.criterion, request.fields) for request in collected]


class _AllAsked(Exception):  # noqa: N818 - no error
    """The signal that a scoring has made all its requests."""


def judge_requests(task: Task, log_item: Item, reply: str) -> list[JudgeRequest]:
    """Return the requests to the judge about one reply."""
    collected: list[JudgeRequest] = []
    run_scoring(task.score(log_item, reply), _stand_ins(collected))
    return collected


def _stand_ins(
    requests: list[JudgeRequest], names: Collection[str] = ()
) -> Callable[[JudgeRequests], list[Verdict]]:
    """Return a function that gives made-up verdicts and appends the requests to `requests`.

    It raises `_AllAsked` once all requests of these names were made.
    """
    left = set(names)

    def answer(batch: JudgeRequests) -> list[Verdict]:
        requests.extend(batch)
        left.difference_update(request.name for request in batch)
        if names and not left:
            raise _AllAsked
        # An expected value stops the drawing of samples. Later requests rest on the reply
        # `stand_in`.
        return [Verdict(1.0, "ok", raw=request.stand_in, expected=1.0) for request in batch]

    return answer


# --- the model's part -----------------------------------------------------------------------------


def model_facts(model: RunModel) -> ModelFacts | None:
    """Return the facts about a model's checkpoint; None if they are not known."""
    with contextlib.suppress(KeyError):
        return recipes.facts(recipes.checkpoint_of(model))
    return None


def frames_of(model: RunModel, work: TaskWorkload | None = None) -> int:
    """Return the largest number of a video's frames that reach the model.

    A run sets the class's argument to the number that the task's protocol fixes.

    Raises:
        TasksError: the argument is no whole number.
    """
    known = model_capabilities.media_of(model.name, model.interface)
    argument = known.frames_argument if known else None
    value = model.arguments.get(argument) if argument else None
    given = whole(argument, value) if argument and value else 0
    default = (known.frames_default if known and argument else None) or FRAMES
    fixed = work.frames if work else 0
    return min(given or fixed, fixed) if fixed else given or default


def _with_model(cost: Cost, work: TaskWorkload, model: RunModel | None, batch: int) -> Cost:
    """Fill in the numbers of requests, tokens, hours and dollars, for a task of this workload."""
    cost.requests, cost.text = work.docs, round(work.docs * work.text)
    cost.prompt = cost.cached = cost.hours = cost.dollars = None
    cost.reply = work.docs * work.reply
    has_media = work.video or work.sound or work.pictures
    if not has_media:
        cost.prompt, cost.cached = cost.text, 0.0
    if model is None:
        return cost
    facts, name = model_facts(model), model_capabilities.name_of(model.name)
    served = name in model_capabilities.SERVED
    if facts is None:
        cost.dollars = None if served else 0.0
        return cost
    batched = name == recipes.VLLM
    shown = work.docs * _media(work, facts, frames_of(model, work))
    prompt = cost.prompt = cost.text + shown
    cached = cost.cached = shown * (1 - work.clips / work.docs) if batched and work.clips else 0.0
    reply = cost.reply = work.docs * (work.reply + facts.thinks)
    weights = facts.billions * 1e9
    cost.gpus = facts.gpus if weights and not served else 0
    cost.dollars = 0.0 if cost.gpus else _dollars(model, facts, round(prompt), round(reply))
    if weights and served:  # the GPUs of a server, whose engine and batches are not known
        return cost
    # lmms-eval's default of 1 counts as not set, as in a run.
    together = (batch if batch > 1 else recipes.IN_FLIGHT) if batched else 1
    # For a large batch, the operations take longer than the reading of the weights.
    a_reply_token = max(BYTES / BANDWIDTH / together, 2 / OPERATIONS)
    seconds = weights * (2 * (prompt - cached) / OPERATIONS + reply * a_reply_token)
    # If GPUs take turns on the layers, all are occupied while one works.
    idle = 1 if batched else max(1, cost.gpus)
    cost.hours = seconds / SHARE / 3600 * idle
    return cost


def _media(workload: TaskWorkload, facts: ModelFacts, frames: int) -> float:
    """Return the tokens of a doc's media."""
    video = workload.video * facts.second or (frames * facts.frame if workload.video else 0)
    picture = facts.frame if facts.picture is None else facts.picture
    return video + workload.pictures * picture + workload.sound * facts.sound


def _dollars(model: RunModel, facts: ModelFacts, prompt: int, reply: int) -> float | None:
    base_url = model.arguments.get("base_url")
    known = run.current().prices.of(recipes.checkpoint_of(model), base_url and str(base_url))
    if known is None and base_url is None and facts.input is not None and facts.output is not None:
        known = Price(input=facts.input, output=facts.output)
    return known.cost(prompt, reply) if known else None


def byte_size(number: float) -> str:
    """Return a number of bytes as text, such as `9.1 MB`."""
    for unit, least in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if number >= least:
            return f"{number / least:,.1f} {unit}"
    return f"{number / 1e3:,.1f} kB"


# --- sums and tables ------------------------------------------------------------------------------


def sum_costs(each: Sequence[Cost], name: str = "all") -> Cost:
    """Return the sum of tasks' costs; a number is None if it is None for one of them.

    Videos that several tasks of a benchmark show count once. With published sizes, this is the
    number of the task that has most of them.
    """
    bases = dict.fromkeys(one.basis for one in each)
    found = Cost(name, ", ".join(bases), gpus=max((one.gpus for one in each), default=0))
    found.requests, found.text = sum(one.requests for one in each), sum(one.text for one in each)
    for number in ("prompt", "cached", "reply", "hours", "dollars", "uploaded"):
        setattr(found, number, sum_known([getattr(one, number) for one in each]))
    for one in each:
        found.judge.add(one.judge)
    minutes: list[float | None] = []
    for _, names in registry.benchmarks_of([one.name for one in each]):
        own = [one for one in each if one.name in names]
        clips = {key: seconds for one in own for key, seconds in one.clips.items()}
        sized = [one for one in own if one.basis == PAPER]
        found.videos += len(clips) + max((one.videos for one in sized), default=0)
        seconds = sum_known([*clips.values()])
        minutes.append(None if seconds is None else seconds / 60)
        minutes.append(max((one.minutes or 0 for one in sized), default=0))
    found.minutes = sum_known(minutes)
    return found


def _hours(number: float) -> str:
    return f"{number:,.1f}" if number >= 0.1 else f"{number:.2g}"


def describe_basis(each: Sequence[Cost], model: RunModel | None) -> list[str]:
    """Return lines on what the costs rest on, and on what is not known."""
    lines: list[str] = []
    for benchmark, names in registry.benchmarks_of([one.name for one in each]):
        own = [one for one in each if one.name in names]
        whys = {one.why: [o.name for o in own if o.why == one.why] for one in own if one.why}
        for why, tasks in whys.items():
            who = benchmark.name if len(tasks) == len(own) else ", ".join(tasks)
            lines.append(f"{who}: counted with the paper's sizes: {why}")
        if any(one.basis == DATA for one in own):
            lines.append(f"{benchmark.name}: counted on {settings.data_folder(benchmark.name)}")
    lines += [note for one in each for note in one.judge.notes]
    if model is None:
        lines.append(
            "tokens of media, GPU hours, uploaded bytes and the server's price: name the model "
            "with --model and --model_args"
        )
    elif model_facts(model) is None:
        unknown = "tokens of media, GPU hours and a server's dollars are unknown"
        if name := recipes.checkpoint_of(model):
            lines.append(
                f"{name}: size and tokens of a frame are not in leaderboards/recipes/models.yaml, "
                f"so {unknown}"
            )
        else:
            lines.append(f"{model.name}: {unknown} without a checkpoint{_checkpoints(model.name)}")
    elif any(one.hours for one in each):
        gpus = max(one.gpus for one in each)
        lines.append(f"GPU hours: {gpus} of 80 GB at a time; {FORMULA}")
    elif any(one.hours is None for one in each):
        lines.append(f"GPU hours: unknown: {model.name} sends requests to a server")
    return list(dict.fromkeys(lines))


def _checkpoints(model: str) -> str:
    """Return what to type for the checkpoints that the recipes have of a model, or ""."""
    arguments = dict.fromkeys(
        f"{name}={one.model.arguments[name]}"
        for one in recipes.made_with(model)
        for name in recipes.CHECKPOINT
        if one.model.arguments.get(name) and model_facts(one.model)
    )
    if not arguments:
        return ": name it with --model_args"
    first, *others = arguments
    more = f" (or {', '.join(others)})" if others else ""
    return f": add --model_args {first}{more}"


def estimate_tables(each: Sequence[Cost], rate: float, with_model: bool) -> list[Table]:
    """Return the table of the estimates with their sum.

    Args:
        each: the costs of the tasks.
        rate: number of requests to the judge per second.
        with_model: True if a model was named.
    """
    lines = [*each, sum_costs(each)] if len(each) > 1 else each
    text_alone = any(one.prompt is None for one in lines)

    def text(number: float | None, form: Callable[[float], str] = "{:,.0f}".format) -> str:
        return "unknown" if number is None else form(number)

    def cells(cost: Cost) -> Iterable[tuple[str, str]]:
        judge, is_judged = cost.judge, bool(cost.judge.calls)
        yield "requests", text(cost.requests)
        yield "videos", text(cost.videos)
        yield (
            "minutes\nof video",
            NONE if cost.minutes == 0 else text(cost.minutes, "{:,.1f}".format),
        )
        yield (
            ("tokens in\n(text only)", text(cost.text)) if text_alone
            else ("tokens in", text(cost.prompt))
        )  # fmt: skip
        yield "tokens out\n(assumed)", text(cost.reply)
        if with_model:
            on_gpu = cost.gpus or cost.hours is None
            yield "GPU hours\n(A100)", text(cost.hours, _hours) if on_gpu else NONE
            yield "uploaded", NONE if cost.uploaded == 0 else text(cost.uploaded, byte_size)
            yield "model's\nserver", NONE if cost.gpus else text(cost.dollars, dollars)
        yield "judge\nrequests", text(judge.calls)
        tokens = f"{judge.judge_tokens:,} + {judge.reply_tokens:,}"
        yield "judge tokens\nin + out", tokens if is_judged else NONE
        yield "judge", text(judge.cost, dollars) if is_judged else NONE
        yield "judge, as\na batch", text(judge.batch_cost, dollars) if is_judged else NONE
        yield "judging\ntakes", duration(judge.calls / rate) if is_judged else NONE

    rows = [dict(cells(one)) for one in lines]
    columns = [head for head in (rows[0] if rows else ()) if any(row[head] != NONE for row in rows)]
    named = [
        ((one.name,), [row[head] for head in columns]) for one, row in zip(lines, rows, strict=True)
    ]
    return by_row("Estimate", ["task"], columns, named)
