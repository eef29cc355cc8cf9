"""The tasks of all installed benchmarks as tasks of Inspect (https://inspect.aisi.org.uk).

    inspect eval lmms_eval_tasks/maia_vsv --model openai/gpt-4o -T videos_as_pictures=true

Inspect sends the requests and writes the log. Docs, prompts, media, items and numbers are those of
a run of lmms-eval (docs/python.md). Inspect loads this module as its entry point.
"""

from __future__ import annotations

import base64
import contextlib
import io
import mimetypes
from collections.abc import Callable, Mapping
from contextvars import copy_context
from pathlib import Path
from typing import TypeVar

import anyio.to_thread
from inspect_ai import Task, task
from inspect_ai._util.error import PrerequisiteError  # printed as one line, without a traceback
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageSystem,
    ChatMessageUser,
    Content,
    ContentAudio,
    ContentImage,
    ContentText,
    ContentVideo,
    GenerateConfig,
    ModelOutput,
    get_model,
)
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from typing_extensions import ParamSpec

from lmms_eval_tasks import context, judges, registry, sample, settings
from lmms_eval_tasks.benchmark import Doc, Items, Ran
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges import Judge
from lmms_eval_tasks.judges.asking import VerdictSource
from lmms_eval_tasks.judges.providers.replay import NoJudge
from lmms_eval_tasks.notify import notify
from lmms_eval_tasks.report import aggregation
from lmms_eval_tasks.report.compare import by_item, headline_metrics
from lmms_eval_tasks.report.exchange import inspect_logs
from lmms_eval_tasks.runs import messages, prepare, scoring
from lmms_eval_tasks.utils.conditions import SAMPLE_TEXT, Condition, Kind, condition_lines
from lmms_eval_tasks.utils.json_files import JsonObject

P = ParamSpec("P")
R = TypeVar("R")
VIDEO_FORMATS = {"video/mp4": "mp4", "video/mpeg": "mpeg", "video/quicktime": "mov"}  # Inspect's


class InspectRun:
    """One task in a run of Inspect: its docs, its judge, and the context of its functions.

    Raises:
        TasksError: data, settings or judge cannot be used.
    """

    def __init__(self, name: str, options: Mapping[str, str], *, pictures: bool) -> None:
        self.benchmark = registry.of(name)
        self.task = self.benchmark.tasks[name]
        with context.with_options(options), context.begun() as run:
            run.plan = context.ClassPlan(videos_as_pictures=pictures)
            settings.take()
            sample.ready()
            prepare.check_tasks([name])
            run.model = _running_model()
            self.docs = {str(d["id"]): d for d in prepare.usable_docs(self.benchmark, name)}
            self.facts = self._describe()
            self._context = copy_context()  # Inspect's threads do not inherit this context
        self._judge = self.call(self._make_judge)

    def _describe(self) -> JsonObject:
        """Return the facts about the data, and the conditions of the numbers, for the log."""
        name = self.task.name
        checked = prepare.checked(self.benchmark, [name])
        left_out = {name: prepare.left_out(self.benchmark, checked, name)}
        facts, conditions = self.benchmark.describe(Ran(checked.loaded, [name], left_out, {}))
        if settings.is_sample():
            conditions = [Condition(Kind.SAMPLE, SAMPLE_TEXT), *conditions]
        if self.task.judgements:
            facts["judge"] = prepare.describe_judge(self.benchmark)
        return {**facts, "conditions": condition_lines(conditions)}

    def _make_judge(self) -> Judge:
        if not self.task.judgements:
            return NoJudge()
        config = prepare.judge_config(self.benchmark)
        notify(judges.announcement(config, prepare.judge_prompt(self.benchmark)))
        return judges.make_judge(config)

    def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what a function returns in the run's context; any thread may call this."""
        return self._context.copy().run(function, *args, **kwargs)

    def sample(self, doc: Doc) -> Sample:
        """Return a doc as a sample of Inspect, with its fields for the log as metadata."""
        entry = self.task.log_entry(doc)
        text, target = messages.text_of(self.task.prompt(doc)), inspect_logs.target_of(entry)
        return Sample(id=str(doc["id"]), input=text, target=target, metadata=entry)

    def request(self, doc: Doc) -> list[ChatMessage]:
        """Return the request for a doc; its media are made now, or found in the cache.

        Raises:
            TasksError: the media cannot be made, or Inspect does not take them.
        """
        turns = messages.messages_of(self.task.prompt(doc), self.task.system(doc))
        *system, user = ([make_content(part) for part in turn["content"]] for turn in turns)
        return [*(ChatMessageSystem(content=one) for one in system), ChatMessageUser(content=user)]

    def score(self, doc: Doc, output: ModelOutput) -> Score:
        """Return the item of a reply, with its headline numbers; None for a failed request."""
        entry = {**self.task.log_entry(doc), **messages.media_log(self.task, doc)}
        if output.stop_reason == "max_tokens":
            entry["at_limit"] = True
        reply = output.completion.strip()  # lmms-eval strips replies, too
        item = scoring.scored(self.task, entry, reply, VerdictSource(self._judge))
        found = {one.name: by_item(one, [item]) for one in headline_metrics(self.task)}
        failed = item["status"] in inspect_logs.ERRORS
        return Score(
            # A mapping, since Inspect passes no score with the value nan to a metric.
            value={name: None if failed else own.get(item["id"]) for name, own in found.items()},
            reason=None if item["status"] == "ok" else item["status"],
            metadata=item,
            **inspect_logs.answer_of(item),
        )

    def numbers(self, items: Items) -> dict[str, float]:
        """Return all numbers of the task by name; a number without a value is absent."""
        items = scoring.scored_together(self.task, items, lambda _: VerdictSource(self._judge))
        found = aggregation.numbers(self.task, items)
        return {name: float(value) for name, value in found.items() if value is not None}


def _running_model() -> context.RunModel | None:
    """Return the model that Inspect evaluates; None if Inspect does not name it yet."""
    with contextlib.suppress(ValueError):
        return context.RunModel(str(get_model()), "chat", {"model": get_model().name})
    return None


def make_content(part: JsonObject) -> Content:
    """Return a part of `messages.messages_of` in Inspect's form, with files as data URIs.

    Raises:
        TasksError: Inspect does not take videos of this format.
    """
    kind, media = part["type"], part.get("url", "")  # a file or a picture
    if kind == "text":
        return ContentText(text=part["text"])
    if isinstance(media, str):
        mime, content = mimetypes.guess_type(media)[0], Path(media).read_bytes()
    else:
        png = io.BytesIO()
        media.save(png, "PNG")
        mime, content = "image/png", png.getvalue()
    uri = f"data:{mime};base64,{base64.b64encode(content).decode()}"
    if kind == "image":
        return ContentImage(image=uri)
    if kind == "audio":
        return ContentAudio(audio=uri, format="wav")
    if mime not in VIDEO_FORMATS:
        raise TasksError(
            f"{media}: Inspect takes videos as {', '.join(VIDEO_FORMATS.values())}; "
            "to send pictures instead: -T videos_as_pictures=true"
        )
    return ContentVideo(video=uri, format=VIDEO_FORMATS[mime])


def make_task(
    name: str, data: str = "", judge: str = "", *, videos_as_pictures: bool = False
) -> Task:
    """Return a task of Inspect.

    Args:
        name: name of the task.
        data: the data root, or `sample`; default: the variable LMMS_EVAL_TASKS_DATA.
        judge: the judge, in a form of docs/judges.md; default: the variable LMMS_EVAL_TASKS_JUDGE,
            else the paper's judge.
        videos_as_pictures: True to send pictures of each video, for models that take no videos.

    Raises:
        PrerequisiteError: data, settings or judge cannot be used.
    """
    given = {str(settings.DATA): data, str(settings.JUDGE): judge}
    try:
        options = {variable: value for variable, value in given.items() if value}
        run = InspectRun(name, options, pictures=videos_as_pictures)
        samples = [run.call(run.sample, doc) for doc in run.docs.values()]
    except TasksError as error:
        raise PrerequisiteError(str(error)) from error

    @solver(name="prompt")
    def ask_model() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            if state.epoch > 1:
                raise TasksError("--epochs: each item has one reply; leave the option out")
            doc = run.docs[str(state.sample_id)]
            state.messages = await anyio.to_thread.run_sync(run.call, run.request, doc)
            return await generate(state)

        return solve

    @metric(name="numbers", scores="unreduced")
    def all_numbers() -> Metric:
        def compute(scores: list[SampleScore]) -> dict[str, float]:
            return run.call(run.numbers, [one.score.metadata or {} for one in scores])

        return compute

    @scorer(metrics=[all_numbers()], name=name)
    def score_item() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001
            doc = run.docs[str(state.sample_id)]
            return await anyio.to_thread.run_sync(run.call, run.score, doc, state.output)

        return score

    keys = registry.task_keys(run.benchmark.name, name)
    sampling = keys.get("generation_kwargs", {})
    tokens, temperature = sampling.get("max_new_tokens"), sampling.get("temperature")
    return Task(
        name=name,
        dataset=samples,
        solver=ask_model(),
        scorer=score_item(),
        config=GenerateConfig(max_tokens=tokens, temperature=temperature),
        version=str(keys.get("metadata", {}).get("version", 0)),
        metadata=run.facts,
    )


def _register(name: str) -> None:
    @task(name=name)
    def create(data: str = "", judge: str = "", videos_as_pictures: bool = False) -> Task:
        return make_task(name, data, judge, videos_as_pictures=videos_as_pictures)


for _benchmark in registry.usable_benchmarks():
    for _name in _benchmark.tasks:
        _register(_name)
