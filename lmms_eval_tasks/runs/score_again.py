"""Every metric of saved runs again: computed, printed, written, compared with the saved numbers."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from lmms_eval_tasks import benchmarks, judges
from lmms_eval_tasks.console import say, table_console
from lmms_eval_tasks.report.fold import show
from lmms_eval_tasks.runs import before, save_again, screen, two_judges
from lmms_eval_tasks.runs.rescore import Again, Pair, Rescored, rescore_saved
from lmms_eval_tasks.utils import saved_runs as saved_files
from lmms_eval_tasks.utils.json_files import check_folder, check_output, write_json

if TYPE_CHECKING:
    from lmms_eval_tasks.benchmark import Benchmark
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
    from lmms_eval_tasks.judges.report import lines
    from lmms_eval_tasks.judges.verdict import NONE
    from lmms_eval_tasks.runs import invalid

    if output is not None:
        check_output(output)
    if judge == NONE:  # what was paid for stands
        judge = None
    for name, own in saved if judge else ():  # all of them before one of them is asked
        benchmark = benchmarks.load(name)
        if any(benchmark.tasks[one.task].asks for one in own if one.task in benchmark.tasks):
            before.check_judge(benchmark, judge)
    if save is not None:
        check_folder(save, "--save")
    folder = save_again.Folder(save, [one for _, own in saved for one in own]) if save else None
    written: dict[str, Any] = {}
    problems: dict[str, str] = {}
    with tempfile.TemporaryFile("w+", encoding="utf-8") as waiting:
        for name, own in saved:
            benchmark = benchmarks.load(name)
            found = _Taken(benchmark, run, waiting if output else None, folder)
            if judge:
                config = before.judge_config(benchmark, judge)
                say(judges.announcement(config, before.judge_prompt(benchmark)))
            done = rescore_saved(benchmark, own, judge, missing_only=missing_only, take=found.take)
            run.progress.close()
            done.notes += saved_files.unknown(own, name)
            described = before.describe_judge(benchmark, judge) if judge and done.judged else {}
            done.notes += [described["warning"]] if described.get("warning") else []
            problems |= done.problems
            _print(benchmark, own, done, config.label if judge else None)
            if found.compared and judge and not missing_only:
                show(table_console(), [two_judges.table(found.compared)])
            if folder is not None:
                folder.finish(benchmark, own, done, described)
            written[name] = {
                "numbers": done.numbers,
                "details": done.sidecar,
                "notes": done.notes,
                "invalid": done.problems,
                "judge": judges.describe(config) if judge else None,
                "judges_compared": found.compared if judge else {},
                "verdicts": found.verdicts,
            }
        usage = [row for row in run.ledger.rows() if row.judge != "none"]
        written["usage"] = [asdict(row) for row in usage]
        if output is not None:
            write_json(output, written)
    if save is not None:
        print(f"{save}: the run with its verdicts, to be read like any other")
    for line in [*lines(usage, run.prices.origin), *run.stopped()]:
        print(line)
    invalid.stop(problems)


@dataclass
class _Taken:
    """What is kept of the verdicts of one benchmark's runs, which come one after another."""

    benchmark: Benchmark
    run: JudgeRun
    waiting: IO[str] | None  # where verdicts wait for the file that they will stand in
    folder: save_again.Folder | None
    compared: dict[str, Any] = field(default_factory=dict)  # two judges
    verdicts: dict[str, Callable[[], list[Any]]] = field(default_factory=dict)

    def take(self, again: Again) -> None:
        """Take a run."""
        for kind, pairs in again.pairs.items():
            label = f"{again.label} {kind}".strip()
            if found := two_judges.compared(pairs, self.run.prices):
                self.compared[label] = found
            if self.waiting is not None:
                self.verdicts[label] = _put(self.waiting, pairs)
        if self.folder is not None:
            self.folder.add(self.benchmark, again)


def _put(waiting: IO[str], pairs: Sequence[Pair]) -> Callable[[], list[dict[str, Any]]]:
    """Write the verdicts that hold now to a file; what is returned reads them again."""
    start, count = waiting.tell(), len(pairs)
    for pair in pairs:
        row = {"id": pair.id, **(pair.after.as_dict() if pair.after else {})}
        waiting.write(json.dumps(row) + "\n")

    def rows() -> list[dict[str, Any]]:
        waiting.seek(start)
        return [json.loads(waiting.readline()) for _ in range(count)]

    return rows


def _print(
    benchmark: Benchmark, runs: Sequence[saved_files.Run], done: Rescored, judge: str | None
) -> None:
    """The tables, and what belongs to their numbers."""
    numbers = screen.marked(done.numbers, done.invalid)
    show(table_console(), screen.chosen(benchmark, [("", numbers)]))
    for line in [*done.notes, *compared(runs, done, judge)]:
        print(line)


def compared(runs: Sequence[saved_files.Run], done: Rescored, judge: str | None) -> list[str]:
    """Whether the saved numbers came out again, to the last digit.

    Args:
        runs: saved ones.
        done: their numbers as they are now.
        judge: who was asked now; numbers of tasks without verdicts, and their groups', owe it
            nothing.
    """
    lines = []
    for run in runs:
        own = done.labels[run.file]
        groups = [label for label, members in done.groups.items() if own in members]
        for label in (own, *groups):
            values = run.saved if label == own else run.saved_groups.get(label.split()[0])
            if not values:
                continue
            differing = saved_files.difference(values, done.numbers[label])
            shared = len(values.keys() & done.numbers[label].keys())
            same = f"{shared - len(differing)} of {shared} numbers equal the saved ones"
            # What had no value lacked what has come since: a judge, reference ratings.
            new = [metric for metric in differing if values[metric] is None]
            other = [metric for metric in differing if values[metric] is not None]
            why = f"; {len(new)} had no value before" if new else ""
            why += f"; differing: {', '.join(other)}" if other else ""
            judged = not done.judged.isdisjoint(done.groups.get(label, [own]))
            lines.append(f"{label}: {same}{why}{f' (judged by {judge})' * bool(judge and judged)}")
    return list(dict.fromkeys(lines))
