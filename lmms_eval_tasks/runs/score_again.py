"""Saved runs, scored again: computed, printed, written, and saved in lmms-eval's form.

With a judge, each run is written completely, so that every reader of runs reads the new verdicts.
"""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_tasks import judges, registry
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.notify import notify, table_console
from lmms_eval_tasks.report import invalid
from lmms_eval_tasks.runs import finish, prepare, scoring, screen
from lmms_eval_tasks.runs.rescore import Numbers, Rescored, rescore_saved
from lmms_eval_tasks.tables.terminal_tables import show
from lmms_eval_tasks.utils import saved_runs as saved_files
from lmms_eval_tasks.utils.conditions import Record, as_dicts, departed, merged, of_judge
from lmms_eval_tasks.utils.json_files import (
    Json,
    JsonObject,
    check_folder,
    check_output,
    write_json,
    write_lines,
)
from lmms_eval_tasks.utils.saved_runs import CARRIER

if TYPE_CHECKING:
    from lmms_eval_tasks.benchmark import Benchmark, Items
    from lmms_eval_tasks.judges.run import JudgeSession as JudgeRun

Saved = Sequence[tuple[str, list[saved_files.SavedRun]]]  # saved runs by benchmark


def score_again(
    saved: Saved,
    specs: Mapping[str, str],
    output: Path | None,
    run: JudgeRun,
    *,
    save: Path | None = None,
) -> None:
    """Compute, print and write the numbers of saved runs.

    Args:
        saved: the saved runs by benchmark.
        specs: the judge for missing verdicts, by benchmark; without one, the saved verdicts stay.
        output: a JSON file for the numbers.
        run: the session of the judge.
        save: a folder for the runs with their verdicts.

    Raises:
        TasksError: the judge cannot be used, or the folder cannot be written to.
        SystemExit: code 3 if more verdicts failed than the user allows.
    """
    from lmms_eval_tasks.judges.report import departures, usage_lines
    from lmms_eval_tasks.judges.verdict import NONE

    if output is not None:
        check_output(output)
    # With the judge `none`, verdicts that are paid for stay.
    specs = {name: spec for name, spec in specs.items() if spec != NONE}
    for name, runs in saved:  # check all judges before the first request
        benchmark, judge = registry.load_benchmark(name), specs.get(name)
        if judge is not None and any(
            benchmark.tasks[one.task].judgements for one in runs if one.task in benchmark.tasks
        ):
            prepare.check_judge(benchmark, judge)
    if save is not None:
        check_folder(save, "--save")
    folder = _Folder(save, [one for _, runs in saved for one in runs]) if save else None
    written: JsonObject = {}
    problems: dict[str, str] = {}
    for name, runs in saved:
        benchmark, judge = registry.load_benchmark(name), specs.get(name)
        if judge is not None:
            config = prepare.judge_config(benchmark, judge)
            notify(judges.announcement(config, prepare.judge_prompt(benchmark)))
        take = functools.partial(folder.add, benchmark) if folder else None
        done = rescore_saved(benchmark, runs, judge, take=take)
        run.progress.close()
        described = (
            prepare.describe_judge(benchmark, judge) if judge is not None and done.judged else {}
        )
        if described:
            tasks = _judged(benchmark, runs)
            found = departed(departures(run.departed()), tasks)
            done.add([*of_judge(described, tasks), *found])
        by_label = done.by_label
        broken = by_label(lambda one: one.invalid or None)
        problems |= broken
        values, details = by_label(lambda one: one.values), by_label(lambda one: one.details)
        bad = {done.label(one.name, one.model) for one in done.numbers if done.is_invalid(one)}
        rows = screen.table_rows(values, bad, details)
        show(table_console(), screen.chosen_tables(benchmark, rows))
        changes = by_label(lambda one: one.changes)
        lines = (f"{label}: {one.line(judged=name in specs)}" for label, one in changes.items())
        print("\n".join([*done.lines(), *lines]))
        if folder is not None:
            folder.finish(benchmark, runs, done, described)
        written[name] = {
            "numbers": values,
            "details": details,
            "notes": done.lines(),
            "conditions": by_label(lambda one: None if one.tasks else as_dicts(one.conditions)),
            "read_otherwise": by_label(lambda one: one.read_otherwise or None),
            "invalid": broken,
            "judge": judges.describe_judge(config) if judge is not None else None,
        }
    usage = [row for row in run.usage.rows() if row.judge != NONE]
    if output is not None:
        write_json(output, {**written, "usage": [asdict(row) for row in usage]})
    if save is not None:
        print(f"{save}: the run with its verdicts, for report, leaderboard and rescore")
    for line in [*usage_lines(usage, run.prices.origin), *run.stopped()]:
        print(line)
    invalid.stop(problems)


def _judged(benchmark: Benchmark, runs: Sequence[saved_files.SavedRun]) -> list[str]:
    """Return the tasks of these runs that need a judge."""
    return [run.task for run in runs if benchmark.tasks[run.task].judgements]


class _Folder:
    """The folder for samples and results; several runs have a subfolder each.

    Existing files are replaced.
    """

    def __init__(self, folder: Path, runs: Sequence[saved_files.SavedRun]) -> None:
        several = len({run.file.parent for run in runs}) > 1
        self._places = {
            run.file: folder / run.file.parent.name if several else folder for run in runs
        }
        self._results: dict[Path, JsonObject] = {}

    def add(self, benchmark: Benchmark, run: saved_files.SavedRun, items: Items) -> None:
        """Write the samples of one run."""
        task, place = benchmark.tasks[run.task], self._places[run.file]
        place.mkdir(parents=True, exist_ok=True)
        own = {item["id"]: item for item in items}
        lines = (
            {
                **sample,
                **scoring.to_host_rows(task, benchmark.joint_metrics, own[sample[CARRIER]["id"]]),
            }
            for sample in run.samples
        )
        write_lines(place / run.file.name, lines)

    def finish(
        self,
        benchmark: Benchmark,
        runs: Sequence[saved_files.SavedRun],
        rescored: Rescored,
        judge: Mapping[str, Json],
    ) -> None:
        """Write the results files of a benchmark's runs; `judge` is empty if nothing was judged."""
        records: dict[Path, dict[str, Record]] = {}
        for run in (one for one in runs if one.results):
            file = self._places[run.file] / run.results_file.name
            results = self._results.setdefault(file, copy.deepcopy(run.results))
            _renew(results, benchmark, run, rescored, judge)
            own = records.setdefault(file, {})
            own[run.task] = next(
                (one.conditions for one in rescored.numbers if _is_of(one, run)), ()
            )
            stored = results["lmms_eval_tasks"][benchmark.name]
            stored.pop("warnings", None)  # a field of an earlier version
            stored["conditions"] = as_dicts(merged(own))
        for file, results in self._results.items():
            write_json(file, results)


def _is_of(numbers: Numbers, run: saved_files.SavedRun) -> bool:
    """Return True for a run's own numbers, and for those of groups that join its task."""
    return numbers.model == run.model and run.task in (numbers.name, *numbers.tasks)


def _renew(
    results: JsonObject,
    benchmark: Benchmark,
    run: saved_files.SavedRun,
    rescored: Rescored,
    judge: Mapping[str, Json],
) -> None:
    """Replace one task in a results file: its numbers, its groups' numbers, and their facts."""
    own = [one for one in rescored.numbers if _is_of(one, run)]
    ours = results.setdefault("lmms_eval_tasks", {})
    section = ours.setdefault(benchmark.name, {})
    if judge:
        section["judge"] = judge
        ours.pop("judges", None)  # the work of the previous judge
    ours.setdefault("invalid", {}).pop(run.task, None)
    for numbers in own:
        name = numbers.name
        if numbers.invalid:
            ours["invalid"][name] = numbers.invalid
        section.setdefault("numbers", {})[name] = dict(numbers.values)
        section.setdefault("details", {})[name] = numbers.details
        for rows in (results.get("results", {}), results.get("groups", {})):
            row = rows.get(name, {})
            for key in list(row):  # rows of lmms-eval's table; the error belongs to the old number
                metric, comma, _ = key.partition(",")
                if comma and row[key] != numbers.values.get(metric, row[key]):
                    row[key] = numbers.values[metric]
                    row |= {error: "N/A" for error in scoring.errors_of(key) if error in row}
    finish.mark(results)


# --- as an OpenAI batch, at half the price --------------------------------------------------------

# Writing or reading a batch costs nothing and sends no request.
_NO_LIMITS: JsonObject = {
    "requests_per_minute": None,
    "max_calls": None,
    "max_cost": None,
    "stop_after": 0,  # a batch's failed requests say nothing about an endpoint
}


def _shown_judge(specs: Mapping[str, str]) -> str:
    """Return the name of the OpenAI-compatible judge for a batch, without a password."""
    from lmms_eval_tasks.judges.verdict import OPENAI

    # No judge session yet.
    name, spec = next(iter(specs.items()))
    config = prepare.judge_config(registry.load_benchmark(name), spec, os.environ)
    models = config.endpoints
    if not models or any(model.provider != OPENAI for model in models):
        raise TasksError(
            f"the judge {spec or config.label} cannot be asked in batches: name a model at an "
            "endpoint with --judge"
        )
    return prepare.shown_judge(config, spec)


def write_batch(saved: Saved, specs: Mapping[str, str], path: Path) -> None:
    """Write the requests of all missing verdicts to a file; no request is sent.

    Raises:
        TasksError: the judge has no batches, or the file cannot be written.
    """
    from lmms_eval_tasks.judges import run
    from lmms_eval_tasks.judges.providers.batch import Writer, WritingProvider

    partial = path.with_name(f".{path.name}.part")
    shown = _shown_judge(specs)
    try:
        with partial.open("w", encoding="utf-8") as out:
            writer = Writer(out)
            made = run.from_settings(
                wrap=lambda provider: WritingProvider(provider, writer),
                progress=False,
                **_NO_LIMITS,
            )
            with run.use(made):
                for name, own in saved:
                    rescore_saved(registry.load_benchmark(name), own, specs.get(name))
        if not writer.count:
            print("every answer has a verdict already: no batch to write")
            return
        partial.replace(path)
    except OSError as error:
        raise TasksError(f"{path}: the batch cannot be written ({error.strerror})") from None
    finally:
        partial.unlink(missing_ok=True)
    print(
        f"{path}: {writer.count:,} requests to {', '.join(sorted(writer.models))}. Upload it as a "
        "batch for /v1/chat/completions, then: lmms-eval-tasks judge LOGS "
        f"--judge {shown} --batch-results RESULTS.jsonl"
    )
    if len(writer.models) > 1:
        notify("OpenAI takes only one model in a batch: split the file by `body.model`")


def read_batch(
    saved: Saved, specs: Mapping[str, str], path: Path, output: Path | None, save: Path
) -> None:
    """Read the verdicts in a batch's results, and compute all numbers.

    Raises:
        TasksError: the judge has no batches, or the results cannot be read.
        SystemExit: code 3, as in `score_again`.
    """
    from lmms_eval_tasks.judges import run
    from lmms_eval_tasks.judges.providers.batch import ReadingProvider, Results

    results = Results(path)
    _shown_judge(specs)
    made = run.from_settings(wrap=lambda provider: ReadingProvider(provider, results), **_NO_LIMITS)
    with run.use(made):
        try:
            score_again(saved, specs, output, made, save=save)
        finally:
            print(
                f"{path}: {len(results.used):,} of {len(results):,} results "
                "used; for answers still without a verdict write the next "
                "batch with --batch"
            )
