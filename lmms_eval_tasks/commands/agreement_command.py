"""The command `agreement`: our judge on a release's own answers, beside their published scores."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmms_eval_tasks import benchmarks, settings
from lmms_eval_tasks.commands.saved_runs import Concurrency, MaxCalls, MaxCost, set_limits
from lmms_eval_tasks.console import say, table_console
from lmms_eval_tasks.errors import JudgeError, TasksError
from lmms_eval_tasks.report.fold import show

if TYPE_CHECKING:
    from lmms_eval_tasks.judges import JudgeConfig
    from lmms_eval_tasks.judges.run import Run as JudgeRun
    from lmms_eval_tasks.runs.agreement.task import Task

BENCHMARK = "movierecapsqa"  # the one whose release has such scores
RESAMPLES = 1000  # of each interval


def agreement_command(
    benchmark: Annotated[str, typer.Argument(help="Such as movierecapsqa.")],
    *,
    judge: Annotated[
        str | None, typer.Option(help="The judge; LMMS_EVAL_TASKS_JUDGE or the paper's if unset.")
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="The data root; LMMS_EVAL_TASKS_DATA if unset.")
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--from", help="The data file or its folder, instead of --data.")
    ] = None,
    models: Annotated[
        str | None,
        typer.Option(help="Judge answers of these alone, separated by commas; people is one."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Write numbers, scores and verdicts as JSON.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Ask nobody: say what it would cost.")
    ] = False,
    max_calls: MaxCalls = None,
    max_cost: MaxCost = None,
    concurrency: Concurrency = None,
) -> None:
    """Judge a release's own answers: how far does that agree with their published scores?"""
    from lmms_eval_tasks.judges import announcement, costs, run
    from lmms_eval_tasks.judges.config import KEY
    from lmms_eval_tasks.judges.verdict import NONE
    from lmms_eval_tasks.runs import before
    from lmms_eval_tasks.runs.agreement import task as agreement_task
    from lmms_eval_tasks.runs.agreement.task import ASSUMED, planned
    from lmms_eval_tasks.utils.json_files import check_output
    from lmms_eval_tasks.utils.released_files import user_folder

    if data is not None and source is not None:
        raise TasksError("either --data names the data root or --from the data file, not both")
    if dry_run and output is not None:
        raise TasksError("--dry-run has no results to write to --output")
    if output is not None:
        check_output(output)
    if data is not None:
        settings.say({settings.DATA: data})
    set_limits(max_calls, max_cost, concurrency)
    if benchmark != BENCHMARK:
        raise TasksError(
            f"{benchmark}: no benchmark whose release has answers with published scores; there "
            f"is: {BENCHMARK}"
        )
    whose = benchmarks.load(benchmark)
    task = agreement_task.load(source or user_folder(benchmark), models)
    with run.use(run.from_settings(progress=not dry_run)) as current:
        # An estimate needs no key.
        config = before.judge_config(whose, judge, {KEY: "none", **os.environ} if dry_run else None)
        if config.provider == NONE:
            raise JudgeError("agreement is between a judge and the paper's: none is no judge")
        print("\n".join(agreement_task.coverage(task)))
        requests = [one for answer in task.asked for one in planned(answer, task.data)]
        estimate = costs.plan(config, requests)
        summary = f"{task.texts} answers to judge: {costs.summary(estimate)}"
        if dry_run:
            notes = [
                f"assumed: {ASSUMED}; no repairs",
                *estimate.notes,
                *costs.at_best(estimate),
                f"cost: {current.prices.origin}; replies in the cache are free",
            ]
            print("\n".join([summary, *notes]))
            return
        before.check_judge(whose, judge)
        say(announcement(config, before.judge_prompt(whose)))
        say(summary)
        current.progress.expect(len(requests) - len(task.asked))  # ordered_map: 1 for each
        _agree(task, config, before.describe_judge(whose, judge), current, output)


def _agree(
    task: Task,
    config: JudgeConfig,
    described: Mapping[str, Any],
    current: JudgeRun,
    output: Path | None,
) -> None:
    """Judge, compare, print and write.

    Raises:
        SystemExit: code 3 if more verdicts failed than the user allows.
    """
    from lmms_eval_tasks.judges import make
    from lmms_eval_tasks.judges.run import ordered_map
    from lmms_eval_tasks.movierecapsqa import published
    from lmms_eval_tasks.movierecapsqa.tables import grouped
    from lmms_eval_tasks.runs import invalid
    from lmms_eval_tasks.runs.agreement import task as agreement
    from lmms_eval_tasks.runs.agreement.order import order
    from lmms_eval_tasks.runs.agreement.tables import agreement_table, order_table
    from lmms_eval_tasks.utils.json_files import write_json
    from lmms_eval_tasks.utils.metrics.score_agreement import row, rows

    data, judge = task.data, make(config)
    name = f"{BENCHMARK}_agreement"
    by_answer = ordered_map(lambda one: agreement.judged(judge, one, data), task.asked, name)
    current.progress.close()
    items = [list(own) for own in zip(*by_answer, strict=True)]  # by way
    usage = current.ledger.as_dicts()
    problems = invalid.of_judge(usage, {config.label}) | invalid.of_items(name, items[0])
    numbers = task.numbers(items[0])
    mark = f"{published.TASK} INVALID" if problems else published.TASK
    console = table_console()
    show(console, benchmarks.load(BENCHMARK).tables([(by, {mark: n}) for by, n in numbers.items()]))
    dimensions = {}
    questions = len({answer.doc["id"] for answer in data.answers})
    wanted = {answer.by for answer in task.asked}
    for dimension in published.DIMENSIONS:
        by_way = [task.pairs(own, dimension) for own in items]
        own = [pair for pair in by_way[0] if pair.rater in wanted]
        who = set(task.models) or wanted
        ways = {
            title: row(
                [pair for pair in found if pair.rater in who], published.SCALE, resamples=RESAMPLES
            )
            for title, found in zip(data.ways, by_way, strict=True)
        }
        found = rows(
            own,
            task.models,
            published.PEOPLE,
            grouped(task.models),
            scale=published.SCALE,
            resamples=RESAMPLES,
        )
        ordered = order(by_way[0], data.models, task.models, resamples=RESAMPLES)
        title = f"{dimension}: our judge beside the published scores"
        show(console, [agreement_table(title, "answers of", found), ""])
        if task.models:
            show(console, [order_table(dimension, ordered, questions, len(data.models)), ""])
        if len(ways) > 1:
            title = f"{dimension}: the same by what the judge is shown, {_whose(task)}"
            show(console, [agreement_table(title, "the judge is shown", ways), ""])
        dimensions[dimension] = {
            "rows": {title: row.as_dict() for title, row in found.items()},
            "order": ordered.as_dict(),
            "ways": {title: row.as_dict() for title, row in ways.items()},
        }
    statuses = Counter(one["status"] for one in items[0])
    told = ", ".join(f"{n} {status}" for status, n in statuses.most_common())
    notes = [f"answers: {len(task.asked)} ({told})", agreement.outside(task.asked, items[0])]
    print("\n".join([*notes, *current.told()]))
    if output is not None:
        content = {
            "benchmark": BENCHMARK,
            "data": {"file": str(data.file), "digest": data.digest},
            "coverage": agreement.coverage(task),
            "judge": described,
            "dimensions": dimensions,
            "numbers": numbers,
            "statuses": dict(statuses),
            "notes": notes,
            "usage": usage,
            "invalid": problems,
            "answers": [
                agreement.as_dict(answer, own, list(data.ways))
                for answer, own in zip(task.asked, by_answer, strict=True)
            ],
        }
        write_json(output, content)
    invalid.stop(problems)


def _whose(task: Task) -> str:
    return f"answers of {len(task.models)} models" if task.models else "people's answers"
