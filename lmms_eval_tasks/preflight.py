"""Before the model is built: can the tasks run? After the run: where do its numbers come from?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmms_eval_tasks import __version__, benchmarks, settings

# What the last run of this process returned, for the tables our script prints after the host's.
last_results: dict[str, Any] | None = None


def check(tasks: Sequence[Mapping[str, Any]]) -> None:
    """Check the data, the prompts and (where a task is judged) the judge of `tasks`.

    Args:
        tasks: YAML of the selected leaf tasks of ours; none is fine.

    Raises:
        TasksError: with one message that says what is missing and what to do.
    """
    if not tasks:
        return
    settings.check()
    for name, own in _by_benchmark(tasks):
        benchmarks.load(name).check(own)


def annotate(results: dict[str, Any], tasks: Sequence[Mapping[str, Any]]) -> None:
    """Write provenance into the host's results under `lmms_eval_tasks`; remembers the results."""
    global last_results  # noqa: PLW0603  # read once by host_script after the host has printed
    results["lmms_eval_tasks"] = {"version": __version__, "data_root": str(settings.data_root())}
    for name, own in _by_benchmark(tasks):
        benchmarks.load(name).annotate(results, own)
    last_results = results


def _by_benchmark(
    tasks: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    for name in benchmarks.NAMES:
        own = [task for task in tasks if benchmarks.of_task(task) == name]
        if own:
            yield name, own


def print_tables(results: Mapping[str, Any]) -> None:
    """Print each paper's own table from the host's results."""
    from lmms_eval_tasks.console import wide_console

    console = wide_console()
    for name in benchmarks.NAMES:
        if name in results.get("lmms_eval_tasks", {}):
            for table in benchmarks.load(name).tables(results):
                console.print(table)
