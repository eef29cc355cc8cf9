"""One fault at one moment: broken, repeated as a user would, and what was lost."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.faults.home import Home, Run, Subject
from tests.faults.table import Fault, Moment

Numbers = Mapping[str, Mapping[str, Any]]


class Lost(NamedTuple):
    """What a fault cost."""

    replies: int = 0  # to the model, that were asked again
    asked: int = 0  # of it before the fault
    verdicts: int = 0  # that the judge had given, and were paid for again
    numbers: int = 0  # that differ from those of an undisturbed run
    wrong: tuple[str, ...] = ()  # what else is not as the table says
    line: str = ""  # what the user saw
    skipped: str = ""  # why it could not be tried


def play(fault: Fault, moment: Moment, subject: Subject, home: Home, right: Numbers) -> Lost:
    """Break a run, give the command again, and count."""
    with home.judged_by(fault.judge, moment.number) as mend:
        return _play(fault, moment, subject, home, right, mend)


def _play(
    fault: Fault,
    moment: Moment,
    subject: Subject,
    home: Home,
    right: Numbers,
    mend: Callable[[], None],
) -> Lost:
    command = [*subject.command, *fault.model, *fault.options]
    runs: list[Run] = []
    if fault.spoils:
        runs += home.run(command)
        home.spoil(moment.given[0], fault.spoils)
    broken: dict[str, Any] | None = None
    if fault.point:
        does = [fault.does, *moment.given]
        broken = {"point": fault.point, "number": moment.number, "does": does}
    processes = 2 if fault.together.startswith("two ranks") else 1
    try:
        with mounted(home.folder / fault.mounts if fault.mounts else None, moment.given):
            first = home.run(
                command,
                broken,
                processes=processes,
                twice=fault.together == "two runs",
            )
            damaged = half_pages(home.folder)
    except UnmountableError as error:
        return Lost(skipped=str(error))
    mend()
    runs += first
    wrong = [f"exit code {one.code}" for one in first if one.code not in fault.ends]
    wrong += damaged
    if fault.put_back:
        home.put_data_back()
    if fault.spoils and first[0].code:  # as its message says
        home.move_away(fault.spoils)
    again, *_ = home.run([*subject.command, *fault.model], processes=processes)
    wrong += [f"exit code {again.code} of the same command again"] if again.code else []
    told = [line for one in (*runs, again) for line in one.lines]
    line = next((one for one in told if re.search(fault.says or GOES_ON, one)), "")
    if fault.says and not line:
        wrong.append(f"not told: {fault.says}")
    wrong += [f"a traceback: {one.stderr[-300:]}" for one in runs if "Traceback" in one.stderr]
    results = home.results()
    # Of a run that ended whole everything is asked anew, but no verdict.
    asked = set(first[0].requests) if first[0].code and not fault.saved else set()
    given = [key for one in runs for key in one.verdicts]
    twice = len(given) - len(set(given)) + len(set(given) & set(again.verdicts))
    return Lost(
        len(asked & set(again.requests)),
        len(asked),
        twice,
        max((differing(right, one) for one in results), default=1),
        tuple(wrong),
        line,
    )


GOES_ON = "were kept"


def differing(right: Numbers, found: Numbers) -> int:
    """How many numbers are missing, or not equal to the last digit."""
    pairs = ((task, name) for task, own in right.items() for name in own)
    return sum(found.get(task, {}).get(name) != right[task][name] for task, name in pairs)


def half_pages(folder: Path) -> list[str]:
    """Pages that are not whole."""
    pages = folder.glob("out/**/*_report.html")
    return [
        f"half a page: {page.name}"
        for page in pages
        if not page.read_text(encoding="utf-8").rstrip().endswith("</html>")
    ]


class UnmountableError(Exception):
    """This machine mounts nothing for us."""


@contextmanager
def mounted(folder: Path | None, options: Any) -> Iterator[None]:
    """Within it the folder is an empty small file system; what it holds goes with it."""
    if folder is None:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "none", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UnmountableError(f"no tmpfs can be mounted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        # What was saved there is the user's: it is taken over before the file system goes.
        kept = folder.with_name(f"{folder.name}.kept")
        shutil.copytree(folder, kept)
        subprocess.run(["umount", "-l", str(folder)], check=True)
        shutil.copytree(kept, folder, dirs_exist_ok=True)
        shutil.rmtree(kept)
