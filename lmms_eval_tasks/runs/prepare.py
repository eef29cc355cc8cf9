"""Before the model is built: are data, videos, prompts and judge there; and the media made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lmms_eval_tasks import context, judges, prompts, registry, settings
from lmms_eval_tasks.benchmark import Benchmark, Doc, LoadedData, MediaJob
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges import JudgeConfig, checks
from lmms_eval_tasks.media.sources import bad_items, missing_files, stop
from lmms_eval_tasks.models import plan
from lmms_eval_tasks.notify import say
from lmms_eval_tasks.runs import media
from lmms_eval_tasks.utils import extras
from lmms_eval_tasks.utils.json_files import JsonObject
from lmms_eval_tasks.utils.released_files import listed


class CheckedData:
    """The data of a benchmark as its last check in this process found them.

    The host hands nothing from the check to docs and results, and files may change or go while a
    model answers.
    """

    def __init__(self, loaded: LoadedData, names: Sequence[str]) -> None:
        self.loaded = loaded
        self.names = tuple(names)
        self.lost: dict[media.MediaKey, str] = {}  # keys of what cannot be made, with the reason


class _CheckedByName(dict[str, CheckedData]):
    """The checked data of benchmarks in a run, by name."""


def check(tasks: Sequence[str]) -> None:
    """Can these tasks run: settings, data and videos, prompts, the judge, what a benchmark adds.

    Raises:
        TasksError: the first thing that is missing or wrong, with what to do.
    """
    settings.check()
    prompts.forget()
    chosen, loaded, known = list(registry.chosen(tasks)), {}, context.current().own(_CheckedByName)
    check_extras(chosen)
    check_frames(chosen)
    for benchmark, names in chosen:
        known.pop(benchmark.name, None)
        benchmark.board()  # a file that cannot be read must not cost a run's first screen
        loaded[benchmark.name] = load(benchmark, names)
        benchmark.prompts(names)
    if (model := context.current().model) is not None:
        own = [(one, loaded[one.name], name) for one, names in chosen for name in names]
        for line in go_by_plan(model, [needs_of(*one) for one in own]).told:
            say(line)
    for benchmark, names in chosen:
        benchmark.check(names, loaded[benchmark.name])
        if any(benchmark.tasks[name].judgements for name in names):
            check_judge(benchmark)
        known[benchmark.name] = CheckedData(loaded[benchmark.name], names)


def check_extras(chosen: Iterable[tuple[Benchmark, Sequence[str]]]) -> None:
    """Stop before a run that lacks packages of its numbers, or of the page it is to write."""
    if settings.value(settings.REPORT):
        extras.require("report", settings.REPORT.option)
    for benchmark, names in chosen:
        for name in names:
            extras.require(benchmark.tasks[name].extra, name)


def check_frames(chosen: Iterable[tuple[Benchmark, Sequence[str]]]) -> None:
    """Stop before a run whose `--frames` names a video that no task has."""
    framed = {name for name, _ in settings.value(settings.FRAMES) if name}
    for benchmark, names in chosen if framed else ():
        loaded = benchmark.load(names, videos=False)
        framed -= {str(one.get("video")) for name in names for one in benchmark.docs(loaded, name)}
    if framed:
        raise TasksError(
            f"{settings.FRAMES.option}: these videos are in no task of the run: "
            f"{', '.join(sorted(framed))}"
        )


def go_by_plan(model: context.RunModel, needs: Sequence[plan.MediaNeeds]) -> context.ClassPlan:
    """Decide what the running model's class needs for these tasks, if it can take them."""
    made = plan.of(model, needs)
    context.current().go_by(made)
    if made.pictures_as_videos and (left := [one.task for one in needs if one.pictures]):
        raise TasksError(
            f"{model.name} ({made.interface}) takes only videos, and "
            f"{', '.join(left)} pass pictures: leave these tasks out, or use "
            "another model"
        )
    return made


def needs_of(benchmark: Benchmark, loaded: LoadedData, name: str) -> plan.MediaNeeds:
    """The kinds of media in a task's requests, by its first one."""
    task, asked = benchmark.tasks[name], benchmark.docs(loaded, name)[context.current().docs]
    parts = task.prompt({**asked[0], "task": name}) if asked else []
    kinds = [part.kind for part in parts]
    several = plan.FRAMES if "images" in kinds else 0
    return plan.MediaNeeds(
        name,
        videos="video" in kinds,
        pictures=several + kinds.count("image"),
        frames=frozenset(filter(None, map(task.frames, asked))),
    )


def load(benchmark: Benchmark, names: Sequence[str]) -> LoadedData:
    """The user's data; of the videos those that this run shows (`--limit`, `--offset`).

    Raises:
        DataError: the data cannot be used (Benchmark.load), or nothing is left of a task.
    """
    loaded = _load(benchmark, names)
    every = loaded.release.n_records + len(loaded.release.problems)
    empty = [name for name in names if not benchmark.docs(loaded, name)]
    told = [
        f"{name}: none of {every:,} {benchmark.title} {benchmark.records} can "
        f"be run:\n{listed(loaded.left_out(name))}"
        for name in empty
    ]
    if empty and (rest := [name for name in names if name not in empty]):
        told.append(f"Tasks that can be run: --tasks {','.join(rest)}")
    stop(loaded.release.place, told)
    return loaded


def _load(benchmark: Benchmark, names: Sequence[str]) -> LoadedData:
    run = context.current().docs
    whole = run.stop is None and not run.start
    # Docs that are left out make way for others, which have to be good then.
    if whole or settings.value(settings.ALLOW_MISSING) or settings.value(settings.ALLOW_BAD_ITEMS):
        return benchmark.load(names)
    loaded = benchmark.load(names, only=())
    shown = {doc["video_path"] for name in names for doc in benchmark.docs(loaded, name)[run]}
    return benchmark.load(names, only=shown)


def checked(benchmark: Benchmark, names: Sequence[str]) -> CheckedData:
    """Return the checked data; they are checked now if they were not, or not for these tasks."""
    all_known = context.current().own(_CheckedByName)
    known = all_known.get(benchmark.name)
    if known is None or not set(names) <= set(known.names):
        known = all_known[benchmark.name] = CheckedData(load(benchmark, names), names)
    return known


def docs(benchmark: Benchmark, name: str) -> list[Doc]:
    """A task's docs without what cannot be shown; each says which task it is of."""
    known = checked(benchmark, [name])
    return [
        {**doc, "task": name}
        for doc in benchmark.docs(known.loaded, name)
        if _uncut(benchmark, known, doc) is None
    ]


def _uncut(benchmark: Benchmark, known: CheckedData, doc: Doc) -> MediaJob | None:
    """The cut of a doc, if it cannot be made."""
    cut = benchmark.media_job(doc) if known.lost else None
    return cut if cut is not None and cut.key in known.lost else None


def left_out(benchmark: Benchmark, known: CheckedData, name: str) -> dict[str, str]:
    """Return what a task leaves out, by name, with the reason."""
    uncut = (_uncut(benchmark, known, doc) for doc in benchmark.docs(known.loaded, name))
    lost = {cut.name: known.lost[cut.key] for cut in uncut if cut is not None}
    return {**known.loaded.left_out(name), **lost}


# --- media --------------------------------------------------------------------------------------


def make_media(tasks: Sequence[str], limit: float | None = None) -> None:
    """Make what tasks hand over, after `check`; it is kept, so that the run finds it.

    It costs nothing that the run would not. But a file that is damaged in the middle shows only
    here, and must not end a run whose model is loaded.

    Args:
        tasks: their names.
        limit: as the host's `--limit`; only what the docs that it and the offset leave need is
            made.

    Raises:
        DataError: something cannot be made and the user did not allow it (`--allow-bad-items`, or
            `--allow-missing-videos` of whole videos), or nothing else is left of a task.
    """
    for benchmark, names in registry.chosen(tasks):
        known = checked(benchmark, names)
        docs_of = {name: benchmark.docs(known.loaded, name) for name in names}
        counts = media.asked([len(own) for own in docs_of.values()], limit)
        first, parts = context.current().docs.start or 0, []
        for (name, own), count in zip(docs_of.items(), counts, strict=True):
            cuts = [benchmark.media_job(doc) for doc in own[first:]]
            parts.append(media.TaskMedia(name, [cut for cut in cuts if cut is not None], count))
        done, impossible = benchmark.media_messages
        known.lost = media.make(parts, benchmark.title, done)
        lost = media.lost(parts, known.lost, impossible)
        total = len({cut.name for part in parts for cut in part.cuts})
        complain = missing_files if benchmark.whole_videos else bad_items
        stop(benchmark.title, complain(lost, f"of {total} items cannot be run"))


# --- the judge ----------------------------------------------------------------------------------


def judge_config(
    benchmark: Benchmark, spec: str | None = None, env: Mapping[str, str] | None = None
) -> JudgeConfig:
    """The judge of `spec`, or of the user's setting, or the paper's (judges.configured).

    Raises:
        JudgeError: it cannot be used as configured, or not by this benchmark.
    """
    return benchmark.configure_judge(judges.configured(benchmark.paper_judge, spec, env))


def check_judge(benchmark: Benchmark, spec: str | None = None) -> None:
    """Stop before a run whose judge (`spec`, or the user's) or judge's prompts cannot be used.

    Raises:
        JudgeError, PromptError: what is wrong and the choices there are.
    """
    judges.preflight(judge_config(benchmark, spec), benchmark.criteria())


def describe_judge(benchmark: Benchmark, spec: str | None = None) -> JsonObject:
    """Judge and prompts for a run's results, as plain types; no secrets."""
    config, prompt = judge_config(benchmark, spec), benchmark.judge_prompt()
    told = {**judges.describe(config), **benchmark.describe_judge(config)}
    if prompt is not None:
        told["prompt"] = prompt.note()
    shown = shown_judge(config, spec)
    return {
        **told,
        "checked": checks.record(benchmark.name, config, setup(benchmark, config), shown),
    }


def shown_judge(config: JudgeConfig, spec: str | None = None) -> str:
    """Return a judge as a user names it: its file, or its short form without a password."""
    named = spec or settings.text(settings.JUDGE)
    return named if named.endswith((".yml", ".yaml")) else config.label


def setup(benchmark: Benchmark, config: JudgeConfig) -> str:
    """Hash of a judge's settings and the prompt of a benchmark; "" where nothing is judged."""
    return next((judges.setup(config, one) for one in benchmark.criteria()), "")


def judge_prompt(benchmark: Benchmark) -> str:
    """The judge's prompts in use, for people: their file and hash."""
    prompt = benchmark.judge_prompt()
    return "" if prompt is None else prompt.name
