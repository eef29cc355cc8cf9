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
from inspect_ai import Task, model, task
from inspect_ai._util.error import PrerequisiteError  # printed as one line, without a traceback
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from lmms_eval_tasks import context, judges, registry, sample, settings
from lmms_eval_tasks.benchmark import Doc, Items
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges import Judge
from lmms_eval_tasks.judges.asking import VerdictSource
from lmms_eval_tasks.judges.providers.replay import NoJudge
from lmms_eval_tasks.notify import notify
from lmms_eval_tasks.report import aggregation
from lmms_eval_tasks.report.exchange import inspect_logs
from lmms_eval_tasks.runs import finish, messages, prepare, scoring
from lmms_eval_tasks.utils.json_files import JsonObject
from lmms_eval_tasks.utils.replies.refusals import model_error

AS_PICTURES = "to send pictures instead: -T videos_as_pictures=true"
IN_INSPECT = "(in Inspect: -T data=ROOT, -T judge=SPEC; all other options as variables)"
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
            with contextlib.suppress(ValueError):  # Inspect may not have a model yet
                one = model.get_model()
                run.model = context.RunModel(str(one), "chat", {"model": one.name})
            self.docs = {str(d["id"]): d for d in prepare.usable_docs(self.benchmark, name)}
            self.facts = finish.describe_task(self.benchmark, name, [])
            self._context = copy_context()  # Inspect's threads do not inherit this context
        self._judge = self.call(self._make_judge)
        self.failures: dict[str, str] = {}  # by id of the doc: the error of its last request

    def _make_judge(self) -> Judge:
        if not self.task.judgements:
            return NoJudge()
        config = prepare.judge_config(self.benchmark)
        notify(judges.announcement(config, prepare.judge_prompt(self.benchmark)))
        return judges.make_judge(config)

    def call(self, function: Callable[..., R], *args: object) -> R:
        """Return what a function returns in the run's context; any thread may call this."""
        return self._context.copy().run(function, *args)

    def sample(self, doc: Doc) -> Sample:
        """Return a doc as a sample of Inspect, with its fields for the log as metadata."""
        entry = self.task.log_entry(doc)
        text, target = messages.text_of(self.task.prompt(doc)), inspect_logs.target_of(entry)
        return Sample(id=str(doc["id"]), input=text, target=target, metadata=entry)

    def request(self, doc: Doc) -> list[model.ChatMessage]:
        """Return the request for a doc; its media are made now, or found in the cache.

        Raises:
            TasksError: the media cannot be made, or Inspect does not take them.
        """
        turns = messages.messages_of(self.task.prompt(doc), self.task.system(doc))
        roles = {"system": model.ChatMessageSystem, "user": model.ChatMessageUser}
        return [roles[t["role"]](content=[make_content(p) for p in t["content"]]) for t in turns]

    def score(self, doc: Doc, output: model.ModelOutput) -> Score:
        """Return the item of a reply, with its headline numbers; None for a failed request."""
        failure = self.failures.get(str(doc["id"]), "a limit of Inspect was reached")
        item = self._item(doc, inspect_logs.reply_of(output, failure), output)
        found = inspect_logs.values_of(self.task, [item])
        return Score(
            # A mapping, since Inspect passes no score with the value nan to a metric.
            value={name: own.get(item["id"]) for name, own in found.items()},
            reason=None if item["status"] == "ok" else item["status"],
            metadata=item,
            **inspect_logs.answer_of(item),
        )

    def _item(self, doc: Doc, reply: str, output: model.ModelOutput | None = None) -> JsonObject:
        entry = {**self.task.log_entry(doc), **messages.media_log(self.task, doc)}
        if output and not output.empty and output.stop_reason == "max_tokens":
            entry["at_limit"] = True
        return scoring.scored(self.task, entry, reply, VerdictSource(self._judge))

    def numbers(self, items: Items) -> dict[str, float]:
        """Return all numbers of the task by name; a number without a value is absent.

        Failed requests count as in lmms-eval. `invalid` is 1 for numbers that cannot be used, and
        `part` is the share of the docs that were run; both are absent otherwise. The conditions in
        the log become those of these numbers.
        """
        lost = self.failures.keys() - {item["id"] for item in items}
        failed = (self._item(self.docs[n], model_error(self.failures[n])) for n in sorted(lost))
        items = [*items, *failed]
        items = scoring.scored_together(self.task, items, lambda _: VerdictSource(self._judge))
        found = aggregation.numbers(self.task, items)
        facts = finish.describe_task(self.benchmark, self.task.name, items)
        self.facts["conditions"][:] = facts["conditions"]  # the list that Inspect's log holds
        found |= {} if facts["valid"] else {"invalid": 1}
        found |= {"part": len(items) / len(self.docs)} if len(items) < len(self.docs) else {}
        return {name: float(value) for name, value in found.items() if value is not None}


def make_content(part: JsonObject) -> model.Content:
    """Return a part of `messages.messages_of` in Inspect's form, with files as data URIs.

    Raises:
        TasksError: Inspect does not take videos of this format.
    """
    kind, media = part["type"], part.get("url", "")  # a file or a picture
    if kind == "text":
        return model.ContentText(text=part["text"])
    if isinstance(media, str):
        mime, content = mimetypes.guess_type(media)[0], Path(media).read_bytes()
    else:
        png = io.BytesIO()
        media.save(png, "PNG")
        mime, content = "image/png", png.getvalue()
    uri = f"data:{mime};base64,{base64.b64encode(content).decode()}"
    if kind == "image":
        return model.ContentImage(image=uri)
    if kind == "audio":
        return model.ContentAudio(audio=uri, format="wav")
    if mime not in VIDEO_FORMATS:
        formats = ", ".join(VIDEO_FORMATS.values())
        raise TasksError(f"{media}: Inspect takes videos as {formats}; {AS_PICTURES}")
    return model.ContentVideo(video=uri, format=VIDEO_FORMATS[mime])


class OneReplyTask(Task):  # type: ignore[misc]  # mypy takes Inspect's classes as Any
    """A task that refuses Inspect's `--epochs`, before a request is paid for."""

    def __setattr__(self, name: str, value: object) -> None:
        if name == "epochs" and value not in (None, 1):
            raise PrerequisiteError("--epochs: each item has one reply; leave the option out")
        super().__setattr__(name, value)


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
    given = {str(settings.DATA): str(data), str(settings.JUDGE): str(judge)}
    try:
        if not isinstance(videos_as_pictures, bool):  # what a user types is not checked by Inspect
            raise TasksError(f"-T videos_as_pictures={videos_as_pictures}: type true or false")
        options = {variable: value for variable, value in given.items() if value}
        run = InspectRun(name, options, pictures=videos_as_pictures)
        samples = [run.call(run.sample, doc) for doc in run.docs.values()]
    except TasksError as error:
        raise PrerequisiteError(f"{error}\n{IN_INSPECT}") from error

    @solver(name="prompt")
    def ask_model() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            name = str(state.sample_id)
            try:
                doc = run.docs[name]
                state.messages = await anyio.to_thread.run_sync(run.call, run.request, doc)
                state = await generate(state)
            except Exception as error:
                run.failures[name] = str(error.__cause__ or error)
                if not videos_as_pictures and "video content" in str(error).lower():
                    raise TasksError(f"{error} ({AS_PICTURES})") from error
                raise
            run.failures.pop(name, None)
            return state

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
    return OneReplyTask(
        name=name,
        dataset=samples,
        solver=ask_model(),
        scorer=score_item(),
        config=model.GenerateConfig(max_tokens=tokens, temperature=temperature),
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
