"""One page of saved runs: overview, comparison, and every item, without external content.

Answers are text in the page: templates escape them, the script writes them as text, and the page's
policy allows no other script.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lmms_eval_tasks import __version__
from lmms_eval_tasks.benchmark import Benchmark, Task
from lmms_eval_tasks.judges import report as judge_report
from lmms_eval_tasks.report import charts, compare, item_table, previews
from lmms_eval_tasks.report.cards import Card, ends_text, make_card
from lmms_eval_tasks.report.compare import Comparison
from lmms_eval_tasks.report.compared_runs import Side, command, tasks_of
from lmms_eval_tasks.report.invalid import Throughput
from lmms_eval_tasks.report.pages import SERIES, filled
from lmms_eval_tasks.tables.paper_tables import INVALID, fixed, p_text, signed
from lmms_eval_tasks.utils.conditions import Kind, limits
from lmms_eval_tasks.utils.json_files import JsonObject

_HERE = Path(__file__).parent
SCRIPTS = ("vendor/tabulator.min.js", "run_page.js")
STYLES = ("vendor/tabulator.min.css", "run_page.css")


class Split(NamedTuple):
    """A headline number by category: a chart, and its lines."""

    by: str
    title: str
    picture: str
    lines: Sequence[Comparison]


class BenchmarkSection(NamedTuple):
    """One benchmark's part of the page."""

    benchmark: Benchmark
    lines: Sequence[Comparison]
    picture: str  # chart of the main numbers
    splits: Mapping[str, Sequence[Split]]  # by task and number
    facts: Mapping[str, Sequence[tuple[str, str]]]  # facts of each side, by label
    # Limits of the numbers' comparability, with the sides concerned.
    warnings: Mapping[str, Sequence[str]]
    invalid: Collection[tuple[str, str]]  # label of a side and task whose numbers are INVALID
    card: Card | None  # the benchmark on the first screen


def html(sides: Sequence[Side], media: Path | None = None, page: Path | None = None) -> str:
    """Return the page.

    Args:
        sides: one or more sides; the others are compared with the first.
        media: folder to copy playable files into; None leaves them out.
        page: the page's future path, for links to that folder.

    Raises:
        DataError: a saved sample lacks a field that the page needs.
    """
    by_item, lines = previews.find_previews(sides)
    listed, places = previews.listed(by_item)
    names = previews.copy(listed, media) if media else {}
    folder = Path(media).name if media and page and media.parent == page.parent else str(media)
    shown = [
        {**one._asdict(), "file": f"{folder}/{names[one.file]}" if one.file in names else ""}
        for one in listed
    ]
    by_benchmark = tasks_of(sides)
    tasks = [task for _, own in by_benchmark for task in own]
    parts = [_part(benchmark, own, sides) for benchmark, own in by_benchmark]
    index, chunks = item_table.make_table(tasks, sides, places)
    scripts = [(_HERE / name).read_text(encoding="utf-8") for name in SCRIPTS]
    return filled(
        _HERE / "run_page.html",
        sides=sides,
        parts=parts,
        overview=_overview(parts, sides) if len(sides) > 1 else "",
        told=lines,
        row_series={side.label: nth % len(SERIES) + 1 for nth, side in enumerate(sides)},
        version=__version__,
        data={"index": item_table.packed(index), "media": item_table.packed(shown)},
        chunks=chunks,
        items=len(index["id"]),
        styles=[(_HERE / name).read_text(encoding="utf-8") for name in STYLES],
        scripts=scripts,
        hashes=" ".join(f"'sha256-{_sha256(one)}'" for one in scripts),
        value=_value,
        difference=_difference,
        points=f"{100 * compare.POINTS:g}",
    )


def _sha256(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _part(benchmark: Benchmark, tasks: Sequence[Task], sides: Sequence[Side]) -> BenchmarkSection:
    with_tasks = [side for side in sides if any(task.name in side.runs for task in tasks)]
    lines = compare.headlines(benchmark, tasks, with_tasks)
    conditions = compare.conditions(tasks, with_tasks)
    warnings: dict[str, list[str]] = {}
    for label, found in conditions.items():
        for line in limits(found):
            warnings.setdefault(line, []).append(label)
    facts = {side.label: list(_facts(benchmark, side)) for side in with_tasks}
    invalid = {(s.label, t.name) for s in with_tasks for t in tasks if not s.is_valid([t.name])}
    runs = charts.Runs([side.label for side in sides], invalid)
    splits = {
        name: made for task in tasks for name, made in _splits(task, with_tasks, runs) if made
    }
    unknown = {s for s, record in conditions.items() if any(c.kind == Kind.UNKNOWN for c in record)}
    card = make_card(benchmark, lines, invalid, unknown, list(warnings))
    return BenchmarkSection(
        benchmark, lines, _picture(benchmark, lines, runs), splits, facts, warnings, invalid, card
    )


def _facts(benchmark: Benchmark, side: Side) -> Iterator[tuple[str, str]]:
    """Yield the facts of a side's run for a reader, each with its name."""
    own = [name for name in side.runs if name in benchmark.tasks]
    yield "model", next(iter(side.runs.values())).model or "unknown"
    counts: dict[str, int] = {}
    for name in own:
        for item in side.items[name]:
            counts[item["status"]] = counts.get(item["status"], 0) + 1
    yield "items", ", ".join(f"{count:,} {status}" for status, count in sorted(counts.items()))
    for one in side.record(own):
        if not one.is_limit:
            yield one.kind.value, one.text
    for section in side.sections(benchmark.name):
        if seen := section.get("videos"):
            yield "videos", f"{seen['asked']:,} of {seen['of']:,}"
        prompts = {
            **section.get("prompts", {}),
            "judge": (section.get("judge") or {}).get("prompt"),
        }
        hashes = [f"{name} {one['hash']}" for name, one in prompts.items() if one]
        yield "prompts", ", ".join(hashes)
    for results in side.results:
        for line in judge_report.of_results(results, by_task=False):
            yield "cost", line
        answered = results.get("lmms_eval_tasks", {}).get("answered", {})
        if speed := str(Throughput(**answered)):
            yield "speed", speed
        yield "run", f"{results.get('date', '')}, lmms-eval {results.get('lmms_eval_version', '')}"
        yield "command", command(results)


def _overview(parts: Sequence[BenchmarkSection], sides: Sequence[Side]) -> str:
    """Return a chart of the benchmarks' headline numbers; "" if there are none."""
    cards = [part.card for part in parts if part.card]
    invalid = {number for part in parts for number in part.invalid}
    runs = charts.Runs([side.label for side in sides], invalid)
    return charts.overview(cards, runs, "Headline numbers") if cards else ""


def _picture(benchmark: Benchmark, lines: Sequence[Comparison], runs: charts.Runs) -> str:
    """Return a chart of the papers' main numbers; for other tasks, of their first number."""
    main_lines = [line for line in lines if line.quantity.published]
    named = {line.quantity.row for line in main_lines}
    main_lines += [
        line
        for place, line in enumerate(lines)
        if line.quantity.row not in named
        and (not place or lines[place - 1].quantity.row != line.quantity.row)
    ]
    main = [line for line in lines if line in main_lines]
    return charts.dots(main, runs, f"{benchmark.title}: main numbers") if main else ""


def _splits(
    task: Task, sides: Sequence[Side], runs: charts.Runs
) -> Iterator[tuple[str, list[Split]]]:
    """Yield a task's first headline number by each of its splits."""
    for metric in compare.headline_metrics(task)[:1]:
        name, made = f"{task.name} {metric.name}", []
        for field, kind in task.splits.items():
            lines = compare.by_category(task, metric, field, sides)
            by = field.replace("_", " ")
            if len(lines) > 1:
                picture = charts.KINDS[kind](lines, runs, f"{name} by {by}")
                made.append(Split(by, f"{name} by {by}", picture, lines))
        yield name, made


def _value(line: Comparison, label: str, invalid: Collection[tuple[str, str]]) -> tuple[str, str]:
    """Return a number, marked if it is INVALID, and its interval as text."""
    if (one := line.numbers.get(label)) is None:
        return "-", ""
    mark = "" if line.is_valid(label, invalid) else f" {INVALID}"
    return f"{fixed(one.estimate, 3)}{mark}", ends_text(one)


def _difference(line: Comparison, label: str) -> JsonObject | None:
    if (change := line.differences.get(label)) is None:
        return None
    ends = change.value.ends
    return {
        "value": signed(change.value.estimate, 3),
        "ends": "-" if ends is None else " to ".join(signed(end, 3) for end in ends),
        "p": p_text(change.p),
        "rose": "-" if change.rose is None else f"{change.rose:,}",
        "fell": "-" if change.fell is None else f"{change.fell:,}",
        "needed": "-" if change.needed is None else f"{change.needed:,}",
        "sure": ends is not None and (ends[0] > 0 or ends[1] < 0),
    }
