"""The long form: every fault at all of its moments, on tasks of several benchmarks; one table.

make faults          python -m tests.faults [part of a fault's name]
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.table import Table

from lmms_eval_tasks.sample import build_sample
from tests import warm
from tests.conftest import environment
from tests.faults.home import Home, Subject, reply
from tests.faults.played import Lost, play
from tests.faults.table import FAULTS, Fault, Moment
from tests.local_endpoint import LocalEndpoint

SUBJECTS = (Subject("maia_oevqa_1frame"), Subject("maverix_v_oe,maverix_vs_oe"))
AT_ONCE = 2  # runs, each with a server of its own


def main() -> int:
    """Print what was lost; 1 if it was more than the table of faults allows."""
    wanted = " ".join(sys.argv[1:])
    chosen = [fault for fault in FAULTS if wanted in fault.name]
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        lost = played(chosen, Path(name))
    table = Table(title="Faults, and what was lost", title_justify="left")
    columns = ("moments", "runs", "replies lost", "of", "verdicts lost", "numbers that differ")
    table.add_column("fault", max_width=30)
    for column in columns:
        table.add_column(column, justify="right", max_width=9)
    table.add_column("the line that the user saw", max_width=70)
    bad = []
    for fault in chosen:
        if not (own := lost[fault.name]):
            continue
        tried = [one for one in own if not one.skipped]
        line = next((one.line for one in own if one.line), own[0].skipped)
        most = [str(max((getattr(one, f) for one in tried), default=0)) for f in Lost._fields[:4]]
        table.add_row(fault.name, str(len(fault.moments)), str(len(tried)), *most, line[:200])
        bad += [f"{fault.name}: {what}" for one in tried for what in complaints(fault, one)]
    console = Console(width=170)
    console.print(table)
    console.print("lost: the most in any run; what is lost by design is told in docs/robustness.md")
    for line in bad:
        console.print(f"NOT AS IT SHOULD BE: {line}")
    return 1 if bad else 0


def complaints(fault: Fault, lost: Lost) -> list[str]:
    """In what a fault cost more than it may."""
    found = list(lost.wrong)
    found += [f"{lost.replies} replies lost"] if lost.replies > fault.replies else []
    found += [f"{lost.verdicts} verdicts lost"] if lost.verdicts > fault.verdicts else []
    return found + ([f"{lost.numbers} numbers differ"] if lost.numbers else [])


def played(chosen: Sequence[Fault], folder: Path) -> dict[str, list[Lost]]:
    """All moments of these faults on all subjects."""
    cache = folder / "cache"
    build_sample(cache / "sample")
    servers = [warm.Server(environment(cache)) for _ in range(AT_ONCE)]
    done: dict[str, list[Lost]] = {fault.name: [] for fault in chosen}
    # What asks an endpoint is tried on one subject: the host's class is the same for all.
    jobs = [(f, m, s) for f in chosen for m in f.moments for s in SUBJECTS[: 1 if f.model else 2]]
    with LocalEndpoint(reply, model="good") as endpoint:
        spec = f"good@{endpoint.url}"
        prepared = Home(folder / "prepared", cache, servers[0], spec)
        right = {}
        for subject, model in {(s, tuple(f.model)) for f, _, s in jobs}:
            (run,) = prepared.run([*subject.command, *model])
            assert run.code == 0, run.stderr[-2000:]
            (right[subject, model],) = prepared.results()
            shutil.rmtree(prepared.folder / "out")
        (folder / "prepared/data").rename(folder / "prepared/cache/sample")

        def one(number: int, fault: Fault, moment: Moment, subject: Subject) -> None:
            server = servers.pop()
            home = Home(folder / f"{number}", folder / "prepared/cache", server, spec)
            try:
                own = right[subject, tuple(fault.model)]
                lost = play(fault, moment, subject, home, own)
            finally:
                servers.append(server)
            done[fault.name].append(lost)
            told = f"{lost.replies} of {lost.asked} replies asked again"
            print(fault.name, *moment, subject.tasks, told, *complaints(fault, lost), flush=True)

        with ThreadPoolExecutor(AT_ONCE) as pool:
            try:
                list(pool.map(lambda job: one(job[0], *job[1]), enumerate(jobs)))
            except KeyboardInterrupt:  # what is known is shown
                pool.shutdown(cancel_futures=True)
    for server in servers:
        server.close()
    return done


if __name__ == "__main__":
    sys.exit(main())
