"""The numbers of a finished run and their origin, in our section of lmms-eval's results."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from importlib import metadata

from lmms_eval_tasks import __version__, context, registry, settings
from lmms_eval_tasks.benchmark import Benchmark, Item, Items, LoadedData, Ran, Task
from lmms_eval_tasks.judges.asking import VerdictSource, usable
from lmms_eval_tasks.models import model_capabilities
from lmms_eval_tasks.notify import notify
from lmms_eval_tasks.report import aggregation, arrivals, invalid, provenance, readings
from lmms_eval_tasks.report.invalid import MANY_CUT, Lengths
from lmms_eval_tasks.runs import prepare, scoring, screen
from lmms_eval_tasks.runs.judging import JudgeUsage
from lmms_eval_tasks.runs.scoring import ItemsCarrier
from lmms_eval_tasks.utils import saved_runs as saved
from lmms_eval_tasks.utils.conditions import (
    SAMPLE_TEXT,
    Condition,
    Kind,
    as_dicts,
    condition_lines,
    departed,
    is_valid,
    of_judge,
    of_section,
    part,
    part_of,
    record,
    versions,
)
from lmms_eval_tasks.utils.json_files import Json, JsonObject

_MARK = " [INVALID]"
_NOT_SCORED = (
    "replies were not scored (--predict_only): to get numbers, run again without this option"
)


def annotate(
    results: JsonObject,
    tasks: Sequence[str],
    judged: JudgeUsage | None = None,
    lengths: Mapping[str, Lengths] | None = None,
    of_model: Sequence[Condition] = (),
) -> None:
    """Add our section to lmms-eval's results, under the key `lmms_eval_tasks`.

    Args:
        results: lmms-eval's results, which are changed.
        tasks: names of the tasks of this package.
        judged: the judges' work (`JudgedTasks.end`); None if no task was judged.
        lengths: the lengths of replies by task, for tasks for which they are known.
        of_model: conditions that concern the model.
    """
    judged = judged or JudgeUsage()
    section: JsonObject = {"version": __version__, "data_root": str(settings.data_root())}
    results["lmms_eval_tasks"] = section
    if judged.usage:
        section["judges"] = {
            "usage": list(judged.usage),
            "given_up": list(judged.given_up),
            "prices": judged.prices,
            "departures": list(judged.departures),
        }
    problems = invalid.of_judge(judged.usage, judged.labels)
    for benchmark, names in registry.benchmarks_of(tasks):
        try:
            carried = {name: _carried(results, name) for name in names}
            items = {name: one.items for name, one in carried.items() if one is not None}
            found = (invalid.of_items(name, own) for name, own in items.items())
            problems = invalid.together(problems, *found)
            section[benchmark.name] = _of_benchmark(
                benchmark,
                results,
                names,
                items,
                lengths=lengths or {},
                problems=problems,
                departures=judged.departures,
                of_model=of_model,
            )
        except Exception:  # an error here must not lose the answers, which are paid for
            notify(
                f"{benchmark.name}: the section of lmms-eval-tasks could not be "
                "added to the results"
            )
            traceback.print_exc()
    section["invalid"] = problems
    mark(results)
    for line in judged.given_up:
        notify(
            f"stopped asking the judge {line}; replies and verdicts are kept. "
            "To get the missing verdicts: lmms-eval-tasks judge LOGS (requires "
            "--log_samples), or run the same command again"
        )
    for line in problems.values():
        notify(f"INVALID: {line}")


def score_together(results: JsonObject, tasks: Sequence[str]) -> None:
    """Score items jointly (`Task.score_jointly`), after lmms-eval collected those of all processes.

    The items in `results` are replaced, also those in its samples.
    """
    for name in tasks:
        benchmark = registry.of(name)
        if (carried := _carried(results, name)) is None:
            continue

        def asker(_: Item, benchmark: Benchmark = benchmark) -> VerdictSource:
            return VerdictSource(usable(lambda: prepare.judge_config(benchmark)))

        made = scoring.scored_together(benchmark.tasks[name], carried.items, asker)
        if made is carried.items:  # true for nearly all tasks
            continue
        carried.items, own = made, {item["id"]: item for item in made}
        for sample in results.get("samples", {}).get(name, ()):
            sample[saved.CARRIER] = own[sample[saved.CARRIER]["id"]]


def _of_benchmark(
    benchmark: Benchmark,
    results: JsonObject,
    names: Sequence[str],
    items: Mapping[str, Items],
    *,
    lengths: Mapping[str, Lengths],
    problems: Mapping[str, str],
    departures: Sequence[str] = (),
    of_model: Sequence[Condition] = (),
) -> JsonObject:
    """Return one benchmark's section of the results: `numbers`, and the facts behind them.

    The data are those of the check before the run. If a file has disappeared since then, a
    condition says so; an error would lose answers that are paid for.
    """
    unpack(results, names)
    # Numbers come first, because computing a metric adds the note on its implementation
    # (provenance.note).
    numbers = {name: aggregation.numbers(benchmark.tasks[name], own) for name, own in items.items()}
    for joint in benchmark.joint_metrics:
        if values := aggregation.joint_numbers(joint, items):
            numbers[joint.group] = values
    invalid_ones = ((name, problems[name]) for name in names if name in problems)
    conditions = [Condition(Kind.INVALID, why, (name,)) for name, why in invalid_ones]
    conditions += [*_of_data(results), *of_model]
    known = provenance.value_or_condition(
        "data", lambda: prepare.checked(benchmark, names), conditions
    )
    left_out = {name: prepare.left_out(benchmark, known, name) if known else {} for name in names}
    loaded = known.loaded if known else None
    section, more = benchmark.describe(Ran(loaded, names, left_out, items))
    conditions += more
    prompts = provenance.value_or_condition("prompts", lambda: benchmark.prompts(names), conditions)
    if prompts is not None:
        section["prompts"] = {name: one.note() for name, one in prompts.items()}
    if any("bypass,none" in results["results"].get(name, {}) for name in names):
        conditions.append(Condition(Kind.NOTE, _NOT_SCORED))
    judged = [name for name in items if benchmark.tasks[name].judgements]
    if judged:
        judge = provenance.value_or_condition(
            "judge", lambda: prepare.describe_judge(benchmark), conditions
        )
        if judge is not None:
            section["judge"] = judge
            conditions += of_judge(judge, judged)
            conditions += departed(departures, judged)
    details = section["details"] = {}
    for name, own in items.items():
        details[name] = aggregation.details(benchmark.tasks[name], own)
        if name in lengths:
            details[name]["token_limit"] = vars(lengths[name])
        conditions += of_items(benchmark.tasks[name], own, lengths.get(name))
    for joint in benchmark.joint_metrics:
        if joint.group in numbers:
            details[joint.group] = aggregation.joint_details(joint, benchmark.tasks, items)
    videos = provenance.value_or_condition(
        "videos", lambda: _videos(benchmark, loaded, items), conditions
    )
    section["videos"] = videos
    section["arrived"] = arrivals.line(items) or _not_counted()
    section["numbers"] = numbers
    conditions += [*reading(details), *of_section(section), *_versions(results, names)]
    section["conditions"] = as_dicts(record(conditions))
    # A group's joined numbers are in the group's row of lmms-eval's table.
    for joint in benchmark.joint_metrics:
        row = results.get("groups", {}).get(joint.group, {})
        now = numbers.get(joint.group, {})
        row |= {f"{n},none": now[n] for n in joint.host_fields if n in now and f"{n},none" in row}
    return section


def describe_task(benchmark: Benchmark, name: str, items: Items) -> JsonObject:
    """Return facts about one task that another program than lmms-eval runs, for its log.

    `conditions` are the lines that must accompany the numbers of `items`; `valid` is False if the
    numbers are INVALID. Without items, they are what is known before the run.
    """
    task, known = benchmark.tasks[name], prepare.checked(benchmark, [name])
    left_out = {name: prepare.left_out(benchmark, known, name)}
    of_task = {name: items} if items else {}
    facts, conditions = benchmark.describe(Ran(known.loaded, [name], left_out, of_task))
    if settings.is_sample():
        conditions.append(Condition(Kind.SAMPLE, SAMPLE_TEXT))
    if task.judgements:
        facts["judge"] = judge = prepare.describe_judge(benchmark)
        conditions += of_judge(judge, [name])
    total, arrived = len(prepare.usable_docs(benchmark, name)), _not_counted()
    if items:
        rows, arrived = invalid.judge_rows(name, items), arrivals.line(of_task) or arrived
        broken = invalid.of_judge(rows, {row["judge"] for row in rows})
        broken = invalid.together(broken, invalid.of_items(name, items))
        conditions += [Condition(Kind.INVALID, why) for why in broken.values()]
        conditions += of_items(task, items)
        if (cut := sum(bool(item.get("at_limit")) for item in items)) > MANY_CUT * len(items):
            told = f"{name}: {cut} of {len(items)} replies reach the limit of tokens and may be cut"
            conditions.append(Condition(Kind.CUT, told))
        notes = readings.reply_notes(task, items)
        conditions += reading({name: {"reading": [note._asdict() for note in notes]}})
    if items and len(items) < total:
        conditions.append(Condition(Kind.PART, part_of(len(items), total)))
    version = registry.task_keys(benchmark.name, name).get("metadata", {}).get("version", 0)
    conditions += of_section({**facts, "arrived": arrived})
    conditions += _versions({"versions": {name: version}}, [name])
    lines = condition_lines(record(conditions))
    return {**facts, "conditions": lines, "valid": is_valid(conditions)}


def _of_data(results: Mapping[str, Json]) -> list[Condition]:
    """Return the conditions that the data are the packaged sample, or only part of the data."""
    made = [Condition(Kind.SAMPLE, SAMPLE_TEXT)] if settings.is_sample() else []
    told = part(results.get("config") or {})
    return [*made, Condition(Kind.PART, told)] if told else made


# The kinds of condition that `of_items` and `reading` return.
OF_ITEMS = (Kind.DELIVERED, Kind.REQUESTS, Kind.CUT, Kind.FEW, Kind.READING)


def of_items(task: Task, items: Items, lengths: Lengths | None = None) -> list[Condition]:
    """Return the conditions that follow from a task's items.

    Args:
        task: the items' task.
        items: the task's items.
        lengths: lengths of the task's replies; None if they are unknown.
    """
    found = {
        Kind.DELIVERED: arrivals.short(task.name, items),
        Kind.REQUESTS: invalid.requests_failed(task.name, items),
        Kind.CUT: invalid.replies_cut(task.name, items, lengths),
    }
    made = [Condition(kind, text, (task.name,)) for kind, text in found.items() if text]
    return [*made, *aggregation.few_videos(task, items)]


def reading(details: Mapping[str, Mapping[str, Json]]) -> list[Condition]:
    """Return the conditions about how replies were read, those of the greatest weight first.

    Args:
        details: for each task, a mapping whose `reading` lists these notes (readings.py).
    """
    found = [(note, name) for name, own in details.items() for note in own.get("reading", ())]
    found.sort(key=lambda one: -one[0]["weight"])
    return [Condition(Kind.READING, f"{name}: {note['text']}", (name,)) for note, name in found]


def _versions(results: Mapping[str, Json], names: Sequence[str]) -> list[Condition]:
    """Return conditions with the versions of packages and tasks on which the numbers depend."""
    packages = ("lmms-eval-tasks", "lmms_eval", "transformers", "torch")
    found = {name.replace("_", "-"): _version(name) for name in packages}
    own = {str(results.get("versions", {}).get(name, "")) for name in names} - {""}
    return versions({**found, "tasks": ", ".join(sorted(own))})


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _videos(
    benchmark: Benchmark, loaded: LoadedData | None, items: Mapping[str, Items]
) -> dict[str, int]:
    """Return the numbers of videos (or other clusters): `asked` in the items, `of` in the data."""
    run_videos, videos = set(), set()
    for name, own in items.items():
        task = benchmark.tasks[name]
        run_videos |= {item.get(task.cluster_field) for item in own}
        docs = benchmark.docs(loaded, name) if loaded else ()
        videos |= {
            video
            for doc in docs
            if (video := task.log_fields(doc).get(task.cluster_field)) is not None
        }
    return {"asked": len(run_videos), "of": len(videos)}


def _not_counted() -> str:
    """Return a line that it is unknown which media reached the model; "" if this is known.

    It is known for the model classes of this package, and if there is no model.
    """
    model = context.current().model
    media = model_capabilities.media_of(model.name, model.interface) if model else None
    if model is None or (media is not None and media.ours):
        return ""
    return f"reached the model: unknown, since the class of {model.name} does not show its input"


def _carried(results: Mapping[str, Json], task: str) -> ItemsCarrier | None:
    values = results["results"].get(task, {}).values()
    return next((one for one in values if isinstance(one, ItemsCarrier) and not one.task), None)


def unpack(results: Mapping[str, Json], names: Sequence[str]) -> None:
    """Replace the `ItemsCarrier`s in the tasks' rows of lmms-eval's results.

    Counts become plain numbers. Placeholders of joint numbers are removed, with their standard
    errors.
    """
    for values in (results["results"].get(name, {}) for name in names):
        for key, value in list(values.items()):
            if isinstance(value, ItemsCarrier) and not value.task:
                values[key] = int(value)
            elif isinstance(value, ItemsCarrier):
                for one in (key, *scoring.errors_of(key)):
                    values.pop(one, None)


def mark(results: JsonObject) -> None:
    """Mark invalid tasks in lmms-eval's own table, by the field `alias`, its first column."""
    names = screen.invalid_names(results)
    for table in (results["results"], results.get("groups", {})):
        for name, values in table.items():
            plain = str(values.get("alias", name)).removesuffix(_MARK)
            if name in names or values.get("alias", plain) != plain:
                values["alias"] = f"{plain}{_MARK}" if name in names else plain
