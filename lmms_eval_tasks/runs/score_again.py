"""Every metric of saved runs again: computed, printed, written, compared with the saved numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks import benchmarks
from lmms_eval_tasks.console import say, table_console
from lmms_eval_tasks.runs import before
from lmms_eval_tasks.runs.rescore import Pair, rescore_saved
from lmms_eval_tasks.utils import saved_runs as saved_files
from lmms_eval_tasks.utils.json_files import check_output, write_json

if TYPE_CHECKING:
    from lmms_eval_tasks.judges.run import Run as JudgeRun

Saved = Sequence[tuple[str, list[saved_files.Run]]]  # saved runs by benchmark


def score_again(
    saved: Saved,
    judge: str | None,
    output: Path | None,
    run: JudgeRun,
    *,
    missing_only: bool = False,
    save: Path | None = None,
) -> None:
    """Compute, print and write the numbers of saved runs.

    Raises:
        TasksError: a judge that cannot be used, or no folder to write to.
        SystemExit: code 3 if more verdicts failed than the user allows.
    """
    from lmms_eval_tasks import judges
    from lmms_eval_tasks.judges.report import lines
    from lmms_eval_tasks.judges.verdict import NONE
    from lmms_eval_tasks.report.fold import show
    from lmms_eval_tasks.runs import after, invalid, save_again, two_judges

    if output is not None:
        check_output(output)
    if judge == NONE:  # what was paid for stands
        judge = None
    for name, own in saved if judge else ():  # all of them before one of them is asked
        benchmark = benchmarks.load(name)
        if any(benchmark.tasks[one.task].asks for one in own if one.task in benchmark.tasks):
            before.check_judge(benchmark, judge)
    console = table_console()
    written: dict[str, Any] = {}
    problems: dict[str, str] = {}
    parts: list[save_again.Part] = []
    for name, own in saved:
        benchmark = benchmarks.load(name)
        if judge:
            config = before.judge_config(benchmark, judge)
            say(judges.announcement(config, before.judge_prompt(benchmark)))
        done = rescore_saved(benchmark, own, judge, missing_only=missing_only)
        run.progress.close()
        verdicts = [row for task, pairs in done.verdicts.items() for row in _statuses(task, pairs)]
        bad = invalid.of_judge(verdicts, {row["judge"] for row in verdicts}) | done.problems
        problems |= bad
        shown = after.marked(benchmark, done.numbers, bad)
        show(console, after.chosen_tables(benchmark, [("", shown)]))
        label = config.label if judge else None  # the short form may hold a password
        judged = {task for task, pairs in done.verdicts.items() if pairs}
        described = before.describe_judge(benchmark, judge) if judge else {}
        warned = [described["warning"]] if described.get("warning") else []
        for line in [*warned, *done.notes, *compared(own, done.numbers, label, judged)]:
            print(line)
        found = {
            task: two_judges.compared(pairs, run.prices) for task, pairs in done.verdicts.items()
        }
        side_by_side = {task: values for task, values in found.items() if values is not None}
        if judge and not missing_only and side_by_side:
            show(console, [two_judges.table(side_by_side)])
        written[name] = {
            "numbers": done.numbers,
            "details": done.sidecar,
            "notes": done.notes,
            "invalid": bad,
            "judge": described or None,
            "judges_compared": side_by_side if judge else {},
            "verdicts": {
                task: [
                    {"id": pair.id, **(pair.after.as_dict() if pair.after else {})}
                    for pair in pairs
                ]
                for task, pairs in done.verdicts.items()
            },
        }
        parts.append(save_again.Part(benchmark, own, done, described or None, bad))
    rows = [row for row in run.ledger.rows() if row.judge != "none"]
    written["usage"] = [row.as_dict() for row in rows]
    if output is not None:
        write_json(output, written)
    if save is not None:
        save_again.save(save, parts)
        print(f"{save}: the run with its verdicts, to be read like any other")
    for line in [*lines(rows, run.prices.origin), *run.stopped()]:
        print(line)
    invalid.stop(problems)


def _statuses(task: str, pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """How a task's verdicts stand now, kept ones included, by judge (invalid.of_judge)."""
    found: dict[str, Counter[str]] = {}
    for pair in pairs:
        if pair.after is not None:
            found.setdefault(pair.after.judge, Counter())[pair.after.status] += 1
    return [
        {"task": task, "judge": judge, "verdicts": counts.total(), "by_status": dict(counts)}
        for judge, counts in found.items()
    ]


def compared(
    runs: Sequence[saved_files.Run],
    numbers: Mapping[str, Mapping[str, Any]],
    judge: str | None,
    judged: Collection[str] = (),
) -> list[str]:
    """Whether the saved numbers came out again, to the last digit.

    Args:
        runs: saved ones.
        numbers: by task and group, as they are now.
        judge: who was asked now.
        judged: tasks that have verdicts; the others' numbers, and their groups', owe it nothing.
    """
    theirs = {n for run in runs if run.task in judged for n in (run.task, *run.saved_groups)}
    lines = []
    for run in runs:
        pairs = {run.task: run.saved, **run.saved_groups}
        for name, values in pairs.items():
            if not values or name not in numbers:
                continue
            differing = saved_files.difference(values, numbers[name])
            shared = len(values.keys() & numbers[name].keys())
            same = f"{shared - len(differing)} of {shared} numbers equal the saved ones"
            # What had no value lacked what has come since: a judge, reference ratings.
            new = [metric for metric in differing if values[metric] is None]
            other = [metric for metric in differing if values[metric] is not None]
            why = f"; {len(new)} had no value before" if new else ""
            why += f"; differing: {', '.join(other)}" if other else ""
            with_judge = f" (judged by {judge})" if judge and name in theirs else ""
            lines.append(f"{name}: {same}{why}{with_judge}")
    return list(dict.fromkeys(lines))
