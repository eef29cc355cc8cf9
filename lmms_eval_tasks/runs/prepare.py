"""The checks before the model is loaded (data, videos, prompts, judge), and the media jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lmms_eval_tasks import context, judges, prompts, registry, settings
from lmms_eval_tasks.benchmark import Benchmark, Doc, LoadedData, MediaJob
from lmms_eval_tasks.errors import DataError, TasksError
from lmms_eval_tasks.judges import JudgeConfig, checks
from lmms_eval_tasks.media.sources import bad_items, missing_files, stop
from lmms_eval_tasks.models import plan
from lmms_eval_tasks.notify import notify
from lmms_eval_tasks.runs import media
from lmms_eval_tasks.utils import extras
from lmms_eval_tasks.utils.json_files import JsonObject
from lmms_eval_tasks.utils.released_files import listed


class CheckedData:
    """A benchmark's data as they were at the last check in this process.

    The functions that return docs and results use this object. They cannot read the files again,
    which may change or disappear while the model answers, and lmms-eval passes nothing to them.
    """

    def __init__(self, loaded: LoadedData, names: Sequence[str]) -> None:
        self.loaded = loaded
        self.names = tuple(names)
        self.lost: dict[media.MediaKey, str] = {}  # reason for each failed media job, by its key
        # Docs by task, from `make_media` until `usable_docs` takes them: making them takes seconds.
        self.docs: dict[str, Sequence[Doc]] = {}


class _CheckedByName(dict[str, CheckedData]):
    """The checked data of a run's benchmarks, by name."""


def check_tasks(tasks: Sequence[str]) -> None:
    """Check that these tasks can run: settings, data, videos, prompts, judge, and more.

    Raises:
        TasksError: something is missing or wrong; the message names the first such thing and says
            what to do.
    """
    settings.check_settings()
    prompts.forget()
    chosen, loaded, by_name = (
        list(registry.benchmarks_of(tasks)),
        {},
        context.current().instance_of(_CheckedByName),
    )
    check_extras(chosen)
    check_frames(chosen)
    for benchmark, names in chosen:
        by_name.pop(benchmark.name, None)
        benchmark.board()  # an unreadable file must stop the run now, not at its summary
        loaded[benchmark.name] = load_data(benchmark, names)
        benchmark.prompts(names)
    if (model := context.current().model) is not None:
        own = [(one, loaded[one.name], name) for one, names in chosen for name in names]
        for line in go_by_plan(model, [needs_of(*one) for one in own]).lines:
            notify(line)
    for benchmark, names in chosen:
        benchmark.check(names, loaded[benchmark.name])
        if any(benchmark.tasks[name].judgements for name in names):
            check_judge(benchmark)
        by_name[benchmark.name] = CheckedData(loaded[benchmark.name], names)


def check_extras(tasks_by_benchmark: Iterable[tuple[Benchmark, Sequence[str]]]) -> None:
    """Check that the packages for the run's metrics and for its page (`--report`) are installed.

    Raises:
        TasksError: the message names the extra to install.
    """
    if settings.value(settings.REPORT):
        extras.require("report", settings.REPORT.option)
    for benchmark, names in tasks_by_benchmark:
        for name in names:
            extras.require(benchmark.tasks[name].extra, name)


def check_frames(tasks_by_benchmark: Iterable[tuple[Benchmark, Sequence[str]]]) -> None:
    """Check that every video in `--frames` belongs to a task of the run.

    Raises:
        TasksError: the message names the unknown videos.
    """
    framed = {name for name, _ in settings.value(settings.FRAMES) if name}
    for benchmark, names in tasks_by_benchmark if framed else ():
        loaded = benchmark.load(names, videos=False)
        framed -= {str(one.get("video")) for name in names for one in benchmark.docs(loaded, name)}
    if framed:
        raise TasksError(
            f"{settings.FRAMES.option}: these videos are in no task of the run: "
            f"{', '.join(sorted(framed))}"
        )


def go_by_plan(model: context.RunModel, needs: Sequence[plan.MediaNeeds]) -> context.ClassPlan:
    """Set and return the plan for the running model's class and these tasks (models/plan.py).

    Raises:
        TasksError: the class takes only videos, and a task has pictures.
    """
    class_plan = plan.of(model, needs)
    context.current().go_by(class_plan)
    if class_plan.pictures_as_videos and (tasks := [one.task for one in needs if one.pictures]):
        raise TasksError(
            f"{model.name} ({class_plan.interface}) takes only videos, and "
            f"{', '.join(tasks)} pass pictures: leave these tasks out, or use "
            "another model"
        )
    return class_plan


def needs_of(benchmark: Benchmark, loaded: LoadedData, name: str) -> plan.MediaNeeds:
    """Return the kinds of media in a task's prompts, taken from its first doc."""
    task, docs = benchmark.tasks[name], benchmark.docs(loaded, name)[context.current().docs]
    parts = task.prompt({**docs[0], "task": name}) if docs else []
    kinds = [part.kind for part in parts]
    several = plan.FRAMES if "images" in kinds else 0
    return plan.MediaNeeds(
        name,
        videos="video" in kinds,
        pictures=several + kinds.count("image"),
        frames=frozenset(filter(None, map(task.frames, docs))),
    )


def load_data(benchmark: Benchmark, names: Sequence[str]) -> LoadedData:
    """Load the user's data, and check only the videos that this run shows (`--limit`, `--offset`).

    Raises:
        DataError: the data cannot be used (Benchmark.load), or all records of a task are left out.
    """
    loaded = _load(benchmark, names)
    every = loaded.release.n_records + len(loaded.release.problems)
    empty = [name for name in names if not benchmark.docs(loaded, name)]
    lines = [
        f"{name}: none of {every:,} {benchmark.title} {benchmark.records} can be run:"
        + (f"\n{listed(left_out)}" if left_out else " the data have nothing for this task")
        for name in empty
        for left_out in (loaded.left_out(name),)
    ]
    if empty and (rest := [name for name in names if name not in empty]):
        lines.append(f"Tasks that can be run: --tasks {','.join(rest)}")
    stop(loaded.release.place, lines)
    return loaded


def _load(benchmark: Benchmark, names: Sequence[str]) -> LoadedData:
    run = context.current().docs
    whole = run.stop is None and not run.start
    # If docs are left out, docs beyond the limit take their places, so all videos are checked.
    if whole or settings.value(settings.ALLOW_MISSING) or settings.value(settings.ALLOW_BAD_ITEMS):
        return benchmark.load(names)
    loaded = benchmark.load(names, only=())
    shown = {doc["video_path"] for name in names for doc in benchmark.docs(loaded, name)[run]}
    return benchmark.load(names, only=shown)


def checked(benchmark: Benchmark, names: Sequence[str]) -> CheckedData:
    """Return a benchmark's checked data; check them now if these tasks were not checked yet."""
    all_known = context.current().instance_of(_CheckedByName)
    known = all_known.get(benchmark.name)
    if known is None or not set(names) <= set(known.names):
        known = all_known[benchmark.name] = CheckedData(load_data(benchmark, names), names)
    return known


def usable_docs(benchmark: Benchmark, name: str) -> list[Doc]:
    """Return a task's docs, without those whose media job failed, each with the field `task`."""
    known = checked(benchmark, [name])
    docs = known.docs.pop(name, None) or benchmark.docs(known.loaded, name)
    return [{**doc, "task": name} for doc in docs if _uncut(benchmark, known, doc) is None]


def _uncut(benchmark: Benchmark, checked: CheckedData, doc: Doc) -> MediaJob | None:
    """Return a doc's media job if it failed; None if it succeeded, or if the doc has no job."""
    cut = benchmark.media_job(doc) if checked.lost else None
    return cut if cut is not None and cut.key in checked.lost else None


def left_out(benchmark: Benchmark, checked: CheckedData, name: str) -> dict[str, str]:
    """Return the reason for each record that a task leaves out, by the record's id."""
    uncut = (_uncut(benchmark, checked, doc) for doc in benchmark.docs(checked.loaded, name))
    lost = {cut.name: checked.lost[cut.key] for cut in uncut if cut is not None}
    return {**checked.loaded.left_out(name), **lost}


# --- media --------------------------------------------------------------------------------------


def make_media(tasks: Sequence[str], limit: float | None = None) -> None:
    """Make the media of tasks, after `check_tasks`; the cache keeps them for the run.

    This takes no more time than during the run. But it finds damage in the middle of a file before
    the model is loaded, when the run can still be stopped at no cost.

    Args:
        tasks: names of the tasks.
        limit: lmms-eval's `--limit`; only the docs within limit and offset count.

    Raises:
        DataError: `--offset` leaves no doc, a job failed and the user did not allow it
            (`--allow-bad-items`, or `--allow-missing-videos` for whole videos), or all jobs of a
            task failed.
    """
    for benchmark, names in registry.benchmarks_of(tasks):
        data = checked(benchmark, names)
        data.docs = docs_of = {name: benchmark.docs(data.loaded, name) for name in names}
        counts = media.docs_per_task([len(own) for own in docs_of.values()], limit)
        first, parts = context.current().docs.start or 0, []
        for (name, own), count in zip(docs_of.items(), counts, strict=True):
            if own and first >= len(own):
                raise DataError(f"--offset {first}: {name} has only {len(own):,} docs")
            cuts = [benchmark.media_job(doc) for doc in own[first:]]
            parts.append(media.TaskMedia(name, [cut for cut in cuts if cut is not None], count))
        done, impossible = benchmark.media_messages
        data.lost = media.make_jobs(parts, benchmark.title, done)
        lost = media.lost(parts, data.lost, impossible)
        total = len({cut.name for part in parts for cut in part.cuts})
        complain = missing_files if benchmark.whole_videos else bad_items
        stop(benchmark.title, complain(lost, f"of {total} items cannot be run"))


# --- the judge ----------------------------------------------------------------------------------


def judge_config(
    benchmark: Benchmark, spec: str | None = None, env: Mapping[str, str] | None = None
) -> JudgeConfig:
    """Return the judge that `spec` names, else the one of `--judge`, else the paper's.

    Args:
        benchmark: the benchmark, which adapts the judge (`Benchmark.configure_judge`).
        spec: a judge, in a form of docs/judges.md.
        env: environment variables with the judge's keys; default: the process's.

    Raises:
        JudgeError: the judge cannot be used as configured, or not by this benchmark.
    """
    return benchmark.configure_judge(judges.configured(benchmark.paper_judge, spec, env))


def check_judge(benchmark: Benchmark, spec: str | None = None) -> None:
    """Check the judge (`spec`, or as in `judge_config`) and its prompts before a run.

    Raises:
        JudgeError: the judge cannot be used; the message lists the choices.
        PromptError: a prompt file is wrong.
    """
    judges.preflight(judge_config(benchmark, spec), benchmark.criteria())


def describe_judge(benchmark: Benchmark, spec: str | None = None) -> JsonObject:
    """Return judge and prompts for a run's results, as plain types without secrets."""
    config, prompt = judge_config(benchmark, spec), benchmark.judge_prompt()
    told = {**judges.describe_judge(config), **benchmark.describe_judge(config)}
    if prompt is not None:
        told["prompt"] = prompt.note()
    shown = shown_judge(config, spec)
    return {
        **told,
        "checked": checks.record(
            benchmark.name, config, judge_fingerprint(benchmark, config), shown
        ),
    }


def shown_judge(config: JudgeConfig, spec: str | None = None) -> str:
    """Return the judge's name as a user types it: its file, or its form without a password."""
    named = spec or settings.text(settings.JUDGE)
    return named if named.endswith((".yml", ".yaml")) else config.label


def judge_fingerprint(benchmark: Benchmark, config: JudgeConfig) -> str:
    """Return the hash of the judge's settings and of the benchmark's prompt; "" without a judge."""
    return next((judges.judge_fingerprint(config, one) for one in benchmark.criteria()), "")


def judge_prompt(benchmark: Benchmark) -> str:
    """Return the judge's prompt file and its hash, for messages; "" without a judge."""
    prompt = benchmark.judge_prompt()
    return "" if prompt is None else prompt.name
