"""The command `agreement`: our judge on a release's own answers, beside their published scores.

Each answer is scored as in a run. MovieRecapsQA's release is the one that has such scores.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmms_eval_tasks import benchmarks, settings
from lmms_eval_tasks.benchmark import Row
from lmms_eval_tasks.commands.options import LIMITS, DryRun, environment, with_settings
from lmms_eval_tasks.console import say, table_console
from lmms_eval_tasks.errors import JudgeError, TasksError
from lmms_eval_tasks.report.fold import show

if TYPE_CHECKING:
    from lmms_eval_tasks.benchmark import Item, Items
    from lmms_eval_tasks.movierecapsqa.published import Data, Released

BENCHMARK = "movierecapsqa"  # the one whose release has such scores
ASSUMED = "a claim for each sentence, 20 words for each reason"
REASON = '{"reason": "%s", "score": 1}' % ("word " * 20)
KEPT = ("id", "status", "claims", "rouge_l", "baselines", "dimensions", "verdicts")


@with_settings(settings.JUDGE, *LIMITS)
def agreement_command(
    benchmark: Annotated[str, typer.Argument(help="Such as movierecapsqa.")],
    *,
    source: Annotated[
        Path | None,
        typer.Option("--from", help="The data file or its folder; the data root's if unset."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Write numbers, scores and verdicts as JSON.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Judge a release's own answers: how far does that agree with their published scores?"""
    from lmms_eval_tasks.judges import announcement, costs, make, run
    from lmms_eval_tasks.judges.asking import Asker
    from lmms_eval_tasks.judges.verdict import NONE
    from lmms_eval_tasks.movierecapsqa import published
    from lmms_eval_tasks.runs import before, estimate, invalid, scoring
    from lmms_eval_tasks.utils.json_files import check_output, write_json
    from lmms_eval_tasks.utils.released_files import user_folder

    if benchmark != BENCHMARK:
        raise TasksError(
            f"{benchmark}: no benchmark whose release has answers with published scores; there "
            f"is: {BENCHMARK}"
        )
    if dry_run and output is not None:
        raise TasksError("--dry-run has no results to write to --output")
    if output is not None:
        check_output(output)
    whose = benchmarks.load(benchmark)
    task = whose.tasks[published.TASK]
    data = published.read(source or user_folder(benchmark))
    with run.use(run.from_settings(progress=not dry_run)) as current:
        config = before.judge_config(whose, env=environment(dry_run) if dry_run else None)
        if config.provider == NONE:
            raise JudgeError("agreement is between a judge and the paper's: none is no judge")
        print("\n".join(data.coverage()))
        kept = [task.keep(one.doc) for one in data.answers]
        requests = [
            (ask.criterion, ask.fields, ask.stand_in or REASON)
            for one, doc in zip(data.answers, kept, strict=True)
            for ask in estimate.asks(task, doc, one.text)
        ]
        cost = costs.plan(config, requests)
        summary = f"{len(data.answers)} answers to judge: {costs.summary(cost)}"
        if dry_run:
            prices = f"cost: {current.prices.origin}; replies in the cache are free"
            assumed = f"assumed: {ASSUMED}; no repairs"
            print("\n".join([summary, assumed, *cost.notes, prices]))
            return
        before.check_judge(whose)
        say(announcement(config, before.judge_prompt(whose)))
        say(summary)
        current.progress.expect(len(requests) - len(data.answers))  # ordered_map: 1 for each

        def scored(given: tuple[Released, dict[str, Any]]) -> dict[str, Any]:
            return scoring.scored(task, given[1], given[0].text, Asker(make(config)))

        name = f"{benchmark}_agreement"
        items = run.ordered_map(scored, list(zip(data.answers, kept, strict=True)), name)
        current.progress.close()
        usage = current.ledger.as_dicts()
        problems = invalid.of_judge(usage, {config.label}) | invalid.of_items(name, items)
        found = _show(data, items, bool(problems))
        print("\n".join(current.told()))
        if output is not None:
            judged = {"judge": before.describe_judge(whose), "usage": usage}
            write_json(output, {"benchmark": benchmark, **found, **judged, "invalid": problems})
        invalid.stop(problems)


def _show(data: Data, items: Items, is_invalid: bool) -> dict[str, Any]:
    """Print the tables; what they show, and each answer's scores, for JSON."""
    from lmms_eval_tasks import measures
    from lmms_eval_tasks.movierecapsqa import published

    whose = benchmarks.load(BENCHMARK)
    by: dict[str, list[Item]] = {}
    for one, item in zip(data.answers, items, strict=True):
        by.setdefault(one.by, []).append(item)
    numbers = {one: measures.numbers(whose.tasks[published.TASK], own) for one, own in by.items()}
    named = [Row(published.TASK, own, name, is_invalid) for name, own in numbers.items()]
    show(table_console(), whose.tables(named))
    dimensions = {}
    for dimension in published.DIMENSIONS:
        rows = published.rows(data.answers, items, dimension)
        show(table_console(), [*published.table(dimension, rows), ""])
        dimensions[dimension] = {"rows": {title: one.as_dict() for title, one in rows.items()}}
    statuses = Counter(item["status"] for item in items)
    counts = ", ".join(f"{n} {status}" for status, n in statuses.most_common())
    print(f"answers: {len(items)} ({counts})")
    return {
        "data": {"file": str(data.file), "digest": data.digest},
        "dimensions": dimensions,
        "numbers": numbers,
        "statuses": dict(statuses),
        # An answer's own text stays in the release.
        "answers": [
            {"by": one.by, "published": one.scores, **{key: item.get(key) for key in KEPT}}
            for one, item in zip(data.answers, items, strict=True)
        ],
    }
