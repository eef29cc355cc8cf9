"""`make fuzz N=1000000 FILES=20000`: that many texts and files, and what came of them by reader."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from rich.table import Table

from lmms_eval_tasks import sample, settings
from lmms_eval_tasks.judges import run
from lmms_eval_tasks.notify import table_console
from lmms_eval_tasks.settings import JudgeLimits
from tests.conftest import cvrr_study
from tests.fuzz import handed_over, readers
from tests.fuzz.readers import Tally

BLOCK = 1000  # items between two looks at the count


def texts(wanted: int, seed: int, root: Path) -> tuple[int, Mapping[str, Tally]]:
    """Give readers at least so many texts; how many they were, and what came of them."""
    fuzz = readers.Fuzz(readers.found(root), seed)
    fuzz.run(range(len(fuzz.scored)))  # imports are no reader's time
    fuzz.tallies.clear()
    for block in itertools.count():
        if fuzz.inputs >= wanted:
            break
        fuzz.run(range(block * BLOCK, (block + 1) * BLOCK))
        print(f"\r{fuzz.inputs:,}", end="", file=sys.stderr, flush=True)
    return fuzz.inputs, fuzz.tallies


def files(wanted: int, seed: int, root: Path, folder: Path) -> tuple[int, Mapping[str, Tally]]:
    """Give every kind of file with a mistake, so many in all."""
    os.environ |= {settings.DATA: str(root), settings.CACHE: str(folder / "cache")}
    os.environ |= {settings.JUDGE: "none", settings.JUDGE_CACHE: "off", **cvrr_study(root)}
    kinds = handed_over.everything(root, folder)
    os.environ |= handed_over.environment(folder)
    tallies = {one.kind: Tally() for one in kinds}
    for number in range(wanted):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            started = time.process_time()
            kind, why = handed_over.mistake(kinds, seed, number)
            took = time.process_time() - started
        tallies[kind].add(took, number)
        tallies[kind].failures += [why] if why else []
        if not number % 100:
            print(f"\r{number:,}", end="", file=sys.stderr, flush=True)
    return wanted, tallies


def main(wanted: int, seed: int = 0, wanted_files: int = 0) -> int:
    """Run both; the exit code: were there failures?"""
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as name, run.use(run.JudgeSession(JudgeLimits())):
        root = sample.build_sample(Path(name) / "sample")
        os.environ |= readers.environment(root)
        for kind, work in (
            ("texts", lambda: texts(wanted, seed, root)),
            ("files", lambda: files(wanted_files, seed, root, Path(name) / "handed over")),
        ):
            begun = time.monotonic()
            inputs, tallies = work()
            minutes = (time.monotonic() - begun) / 60
            print(file=sys.stderr)
            title = f"{inputs:,} {kind}, seed {seed}, {minutes:.0f} minutes"
            table = Table("reader", title=title, title_justify="left")
            for column in (kind, "failures", "slowest, s of CPU", "its number"):
                table.add_column(column, justify="right")
            for reader, one in sorted(tallies.items()):
                slowest, number = one.slowest
                cells = f"{one.inputs:,}", str(len(one.failures)), f"{slowest:.2f}", str(number)
                table.add_row(reader, *cells)
                failures += [f"{reader}: {told}" for told in one.failures]
            table_console().print(table)
    print(*failures, sep="\n")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
