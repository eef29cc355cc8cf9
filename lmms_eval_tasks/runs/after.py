"""After the host is done: every number and where it comes from, in our section of the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.benchmark import Benchmark, Items
from lmms_eval_tasks.runs import before, rescore, scoring
from lmms_eval_tasks.runs.scoring import Counted, Side
from lmms_eval_tasks.utils import prompt_notes, provenance

SAMPLE = "made with the packaged sample: not a benchmark result"


def annotate(benchmark: Benchmark, results: dict[str, Any], names: Sequence[str]) -> None:
    """Our section of the host's results for one benchmark: `results["lmms_eval_tasks"][name]`.

    `numbers` has every number by task or group, `details` counts and intervals, `warnings` what
    makes a number not comparable; beside them stand data, prompts and judge. Tells of the data as
    the check before the run found them: a file that has gone since is a warning, since the answers
    are paid for.
    """
    items = {name: found for name in names if (found := _items(results, name))}
    unpack(results, names)
    made = {name: benchmark.tasks[name] for name in items}
    # First of all: what a metric was computed with is noted while it is (provenance.note).
    numbers = {name: scoring.numbers(task, items[name]) for name, task in made.items()}
    for join in benchmark.joins:
        if found_here := scoring.joined(join, items):
            numbers[join.group] = found_here
    warnings = [SAMPLE] if settings.is_sample() else []
    known = provenance.known("data", lambda: before.checked(benchmark, names), warnings)
    left_out = {name: before.left_out(benchmark, known, name) if known else {} for name in names}
    found = known.found if known else None
    section, more = benchmark.describe(found, names, left_out, items)
    warnings += more
    prompts = provenance.known("prompts", lambda: benchmark.prompts(names), warnings)
    if prompts is not None:
        section["prompts"] = {name: prompt_notes.note(one) for name, one in prompts.items()}
    judged = any(benchmark.tasks[name].asks for name in names)
    if judged and (found is None or benchmark.is_judged(found)):
        judge = provenance.known("judge", lambda: before.describe_judge(benchmark), warnings)
        if judge is not None:
            section["judge"] = judge
            warnings += [judge["warning"]] if judge.get("warning") else []
    section["warnings"] = list(dict.fromkeys(warnings))
    section["details"] = {name: scoring.details(task, items[name]) for name, task in made.items()}
    section["numbers"] = numbers
    _show_groups(results, benchmark, numbers)
    results["lmms_eval_tasks"][benchmark.name] = section


def _items(results: Mapping[str, Any], task: str) -> Items | None:
    values = results["results"].get(task, {}).values()
    return next((value.items for value in values if isinstance(value, Counted)), None)


def unpack(results: Mapping[str, Any], names: Sequence[str]) -> None:
    """Replace what carried items through the host in the rows of tasks.

    Counts become plain ones, placeholders of joined numbers vanish with their errors.
    """
    for values in (results["results"].get(name, {}) for name in names):
        for key in list(values):
            if isinstance(values.get(key), Counted):
                values[key] = int(values[key])
            elif isinstance(values.get(key), Side):
                metric, _, name = key.partition(",")
                for suffix in ("", "_stderr", "_stderr_clt", "_stderr_clustered"):
                    values.pop(f"{metric}{suffix},{name}", None)


def _show_groups(
    results: Mapping[str, Any], benchmark: Benchmark, numbers: Mapping[str, Mapping[str, Any]]
) -> None:
    """A group's joined numbers in its row: those of saved runs and of this one are the same."""
    for join in benchmark.joins:
        row = results.get("groups", {}).get(join.group)
        for name in join.shown if row is not None else ():
            key = f"{name},none"
            if key in row and name in numbers.get(join.group, {}):
                row[key] = numbers[join.group][name]


def tables(benchmark: Benchmark, results: Mapping[str, Any]) -> list[Any]:
    """The paper's tables for the host's results, with the warnings that belong to them."""
    section = results["lmms_eval_tasks"][benchmark.name]
    marked = rescore.invalid_names(results)
    numbers = {
        f"{name} INVALID" if name in marked else name: values
        for name, values in sorted(section["numbers"].items())
    }
    shown = benchmark.tables([("", numbers)], section)
    return [*shown, *(f"Note: {warning}" for warning in section["warnings"])]
