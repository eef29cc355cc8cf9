"""Before the model is built: are data, videos, prompts and judge there; and the media made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lmms_eval_tasks import context, judges, prompts, registry, settings
from lmms_eval_tasks.benchmark import Benchmark, Cut, Doc, Found
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges import JudgeConfig, checks
from lmms_eval_tasks.media.video_checks import bad_items, missing_videos, stop
from lmms_eval_tasks.models import plan
from lmms_eval_tasks.notify import say
from lmms_eval_tasks.runs import media
from lmms_eval_tasks.utils import extras


class Checked:
    """What is known of a benchmark's data in this process since its last check.

    The host hands nothing from the check to docs and results, and files may change or go while a
    model answers.
    """

    def __init__(self, found: Found, names: Sequence[str]) -> None:
        self.found = found
        self.names = tuple(names)
        self.lost: dict[media.Window, str] = {}  # windows that cannot be made, with the reason


class _Known(dict[str, Checked]):
    """What is known of benchmarks' data in a run, by name."""


def check(tasks: Sequence[str]) -> None:
    """Can these tasks run: settings, data and videos, prompts, the judge, what a benchmark adds.

    Raises:
        TasksError: the first thing that is missing or wrong, with what to do.
    """
    settings.check()
    prompts.forget()
    chosen, looked, known = list(registry.chosen(tasks)), {}, context.current().own(_Known)
    check_extras(chosen)
    check_frames(chosen)
    for benchmark, names in chosen:
        known.pop(benchmark.name, None)
        benchmark.board()  # a file that cannot be read must not cost a run's first screen
        looked[benchmark.name] = look(benchmark, names)
        benchmark.prompts(names)
    if (model := context.current().model) is not None:
        own = [(one, looked[one.name], name) for one, names in chosen for name in names]
        for line in go_by_plan(model, [needs_of(*one) for one in own]).told:
            say(line)
    for benchmark, names in chosen:
        found = looked[benchmark.name]
        benchmark.check(names, found)
        if any(benchmark.tasks[name].asks for name in names):
            check_judge(benchmark)
        known[benchmark.name] = Checked(found, names)


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
        found = benchmark.look(names, videos=False)
        framed -= {str(one.get("video")) for name in names for one in benchmark.docs(found, name)}
    if framed:
        raise TasksError(
            f"{settings.FRAMES}: no videos of these tasks: {', '.join(sorted(framed))}"
        )


def go_by_plan(model: context.RunModel, needs: Sequence[plan.MediaNeeds]) -> context.ClassPlan:
    """Decide what the running model's class needs for these tasks, if it can take them."""
    made = plan.of(model, needs)
    context.current().go_by(made)
    if made.pictures_as_videos and (left := [one.task for one in needs if one.pictures]):
        raise TasksError(
            f"{model.name} ({made.interface}) takes videos alone, and {', '.join(left)} hand over "
            f"pictures: leave these tasks out, or take another model"
        )
    return made


def needs_of(benchmark: Benchmark, found: Found, name: str) -> plan.MediaNeeds:
    """What a task's requests hold: its first one tells it for all."""
    task, asked = benchmark.tasks[name], benchmark.docs(found, name)[context.current().docs]
    parts = task.prompt({**asked[0], "task": name}) if asked else []
    kinds = [part.kind for part in parts]
    several = plan.FRAMES if "images" in kinds else 0
    return plan.MediaNeeds(
        name,
        videos="video" in kinds,
        pictures=several + kinds.count("image"),
        frames=frozenset(filter(None, map(task.frames, asked))),
    )


def look(benchmark: Benchmark, names: Sequence[str]) -> Found:
    """The user's data; of the videos those that this run shows (`--limit`, `--offset`)."""
    run = context.current().docs
    whole = run.stop is None and not run.start
    # Docs that are left out make way for others, which have to be good then.
    if whole or settings.value(settings.ALLOW_MISSING) or settings.value(settings.ALLOW_BAD_ITEMS):
        return benchmark.look(names)
    found = benchmark.look(names, only=())
    shown = {doc["video_path"] for name in names for doc in benchmark.docs(found, name)[run]}
    return benchmark.look(names, only=shown)


def checked(benchmark: Benchmark, names: Sequence[str]) -> Checked:
    """What the check before the run found; made now if it was not, or not of these tasks."""
    all_known = context.current().own(_Known)
    known = all_known.get(benchmark.name)
    if known is None or not set(names) <= set(known.names):
        known = all_known[benchmark.name] = Checked(look(benchmark, names), names)
    return known


def docs(benchmark: Benchmark, name: str) -> list[Doc]:
    """A task's docs without what cannot be shown; each says which task it is of."""
    known = checked(benchmark, [name])
    return [
        {**doc, "task": name}
        for doc in benchmark.docs(known.found, name)
        if _uncut(benchmark, known, doc) is None
    ]


def _uncut(benchmark: Benchmark, known: Checked, doc: Doc) -> Cut | None:
    """The cut of a doc, if it cannot be made."""
    cut = benchmark.cut(doc) if known.lost else None
    return cut if cut is not None and cut.window in known.lost else None


def left_out(benchmark: Benchmark, known: Checked, name: str) -> dict[str, str]:
    """What a task leaves out, by name, with the reason."""
    uncut = (_uncut(benchmark, known, doc) for doc in benchmark.docs(known.found, name))
    lost = {cut.name: known.lost[cut.window] for cut in uncut if cut is not None}
    return {**known.found.left_out(name), **lost}


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
        docs_of = {name: benchmark.docs(known.found, name) for name in names}
        empty = [name for name, own in docs_of.items() if not own]
        stop(benchmark.title, [f"nothing is left of {', '.join(empty)}"] if empty else [])
        counts = media.asked([len(own) for own in docs_of.values()], limit)
        first, parts = context.current().docs.start or 0, []
        for (name, own), count in zip(docs_of.items(), counts, strict=True):
            cuts = [benchmark.cut(doc) for doc in own[first:]]
            parts.append(media.Needs(name, [cut for cut in cuts if cut is not None], count))
        done, impossible = benchmark.cuts
        known.lost = media.make(parts, benchmark.title, done)
        lost = media.lost(parts, known.lost, impossible)
        total = len({cut.name for part in parts for cut in part.cuts})
        complain = missing_videos if benchmark.whole_videos else bad_items
        stop(benchmark.title, complain(lost, f"of {total} items cannot be shown"))


# --- the judge ----------------------------------------------------------------------------------


def judge_config(
    benchmark: Benchmark, spec: str | None = None, env: Mapping[str, str] | None = None
) -> JudgeConfig:
    """The judge of `spec`, or of the user's setting, or the paper's (judges.configured).

    Raises:
        JudgeError: it cannot be used as configured, or not by this benchmark.
    """
    return benchmark.suited(judges.configured(benchmark.paper_judge, spec, env))


def check_judge(benchmark: Benchmark, spec: str | None = None) -> None:
    """Stop before a run whose judge (`spec`, or the user's) or judge's prompts cannot be used.

    Raises:
        JudgeError, PromptError: what is wrong and the choices there are.
    """
    judges.preflight(judge_config(benchmark, spec), benchmark.criteria())


def describe_judge(benchmark: Benchmark, spec: str | None = None) -> dict[str, Any]:
    """Judge and prompts for a run's results, as plain types; no secrets."""
    config, prompt = judge_config(benchmark, spec), benchmark.judge_prompt()
    told = {**judges.describe(config), **benchmark.judge_notes(config)}
    if prompt is not None:
        told["prompt"] = prompt.note()
    shown = shown_judge(config, spec)
    return {
        **told,
        "checked": checks.record(benchmark.name, config, setup(benchmark, config), shown),
    }


def shown_judge(config: JudgeConfig, spec: str | None = None) -> str:
    """How a user names this judge: its file, or its short form without a password."""
    named = spec or settings.text(settings.JUDGE)
    return named if named.endswith((".yml", ".yaml")) else config.label


def setup(benchmark: Benchmark, config: JudgeConfig) -> str:
    """Hash of a judge's settings and the prompt of a benchmark; "" where nothing is judged."""
    return next((judges.setup(config, one) for one in benchmark.criteria()), "")


def judge_prompt(benchmark: Benchmark) -> str:
    """The judge's prompts in use, for people: their file and hash."""
    prompt = benchmark.judge_prompt()
    return "" if prompt is None else prompt.name
