"""`make fuzz N=1000000`: that many texts, and what came of them by reader."""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import time
from pathlib import Path

from rich.table import Table

from lmms_eval_tasks import sample
from lmms_eval_tasks.console import table_console
from lmms_eval_tasks.judges import run
from lmms_eval_tasks.settings import JudgeLimits
from tests.fuzz import readers

BLOCK = 1000  # items between two looks at the count


def main(wanted: int, seed: int = 0) -> int:
    """Give readers at least so many texts; the exit code: were there failures?"""
    with tempfile.TemporaryDirectory() as name, run.use(run.Run(JudgeLimits())):
        os.environ |= readers.environment(sample.build(Path(name) / "sample"))
        fuzz = readers.Fuzz(readers.found(Path(name) / "sample"), seed)
        fuzz.run(range(len(fuzz.scored)))  # imports are no reader's time
        fuzz.tallies.clear()
        begun = time.monotonic()
        for block in itertools.count():
            if fuzz.inputs >= wanted:
                break
            fuzz.run(range(block * BLOCK, (block + 1) * BLOCK))
            print(f"\r{fuzz.inputs:,}", end="", file=sys.stderr, flush=True)
    seconds = time.monotonic() - begun
    print(file=sys.stderr)
    title = f"{fuzz.inputs:,} texts, seed {seed}, {seconds / 60:.0f} minutes"
    table = Table("reader", title=title, title_justify="left")
    for column in ("texts", "failures", "slowest, s of CPU", "its number"):
        table.add_column(column, justify="right")
    failures = []
    for reader, one in sorted(fuzz.tallies.items()):
        slowest, number = one.slowest
        cells = f"{one.inputs:,}", str(len(one.failures)), f"{slowest:.2f}", str(number)
        table.add_row(reader, *cells)
        failures += [f"{reader}: {told}" for told in one.failures]
    table_console().print(table)
    print(*failures, sep="\n")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
