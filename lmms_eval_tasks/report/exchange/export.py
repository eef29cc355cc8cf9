"""Results in the forms in which others collect them.

`eee`: records of Every Eval Ever, one for each model; their schema is
leaderboards/vendor/eval.schema.json. `hf`: the content of `.eval_results` in a model's repository
on the Hugging Face hub.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from lmms_eval_tasks import registry
from lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.leaderboards import figures
from lmms_eval_tasks.report import compared_runs
from lmms_eval_tasks.report.compare import Comparison
from lmms_eval_tasks.report.compared_runs import Side
from lmms_eval_tasks.report.exchange import records
from lmms_eval_tasks.tables.paper_tables import fixed
from lmms_eval_tasks.utils.conditions import Kind, from_dicts
from lmms_eval_tasks.utils.json_files import check_folder, write_text


def export_runs(
    name: str, runs: Sequence[Path], form: str, output: Path, *, force: bool = False
) -> None:
    """Write results below a folder, one file for each model; existing files are replaced.

    Args:
        name: name of the benchmark.
        runs: folders or sample files; empty for the paper's rows (`eee` alone).
        form: `eee` writes BENCHMARK/MODEL.json, `hf` MODEL/.eval_results/BENCHMARK.yaml.
        output: the folder, which is made if it does not exist.
        force: for `hf`: also write numbers that are INVALID, of the sample or of part of the data,
            or whose conditions are unknown.

    Raises:
        TasksError: the runs hold no task of this benchmark, `output` cannot be written, or the
            numbers are not for the Hub.
    """
    benchmark = registry.find_benchmark(name)
    if form == "hf" and not runs:
        raise TasksError("--format hf writes your results: name the folders of your runs")
    read = compared_runs.read_sides(runs) if runs else []
    own = [side for side in read if records.own_tasks(benchmark, side)]
    if runs and not own:
        raise TasksError(f"{', '.join(map(str, runs))}: no runs of {benchmark.title}")
    if form == "hf":
        for side in own if not force else ():
            _refuse(benchmark, side)
        made = {side.label: on_the_hub(benchmark, side) for side in own}
        place = f"{{}}/.eval_results/{name}.yaml"
    else:
        found = {side.label: records.of_run(benchmark, side) for side in own}
        made = {
            label: json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
            for label, record in (found or records.published(benchmark)).items()
        }
        place = f"{name}/{{}}.json"
    check_folder(output, "--output")
    for stem, text in zip(_stems(made), made.values(), strict=True):
        file = output / place.format(stem)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, text)
        print(file)


def _refuse(benchmark: Benchmark, side: Side) -> None:
    """Stop before a number that is no result of the benchmark is written for the Hub.

    Raises:
        TasksError: the message names the condition, and the option to write the number anyway.
    """
    no_result = (Kind.INVALID, Kind.SAMPLE, Kind.PART, Kind.UNKNOWN)
    if found := [one.line for one in side.record(benchmark.tasks) if one.kind in no_result]:
        raise TasksError(
            f"{side.label}: not written for the Hugging Face hub: "
            f"{'; '.join(found)}. To write it with these conditions in its "
            "notes: --force"
        )


def _stems(labels: Iterable[str]) -> list[str]:
    """Return different file names for labels, which may hold any characters."""
    stems: list[str] = []
    for label in labels:
        stem = re.sub(r"[^A-Za-z0-9.-]+", "_", label)[:80].strip("._") or "model"
        names = itertools.chain([stem], (f"{stem}_{place}" for place in itertools.count(2)))
        stems.append(next(name for name in names if name.lower() not in map(str.lower, stems)))
    return stems


# --- the hub --------------------------------------------------------------------------------------


def on_the_hub(benchmark: Benchmark, side: Side) -> str:
    """Return the main number of each task and group, as YAML for `.eval_results`.

    Raises:
        TasksError: there is no number yet, or huggingface_hub does not know this form.
    """
    try:
        from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml
    except ImportError:
        how = "pip install 'huggingface_hub>=1.4'"
        raise TasksError(f"--format hf requires a newer huggingface_hub: {how}") from None
    import yaml

    hub = figures.hubs()[benchmark.name]
    lines: dict[str, Comparison] = {}
    for line in records.lines_of(benchmark, side):
        if line.quantity.row not in lines or line.quantity.published:
            lines[line.quantity.row] = line
    date = records.date_of(records.first_of(benchmark, side))
    entries = [
        EvalResultEntry(hub, row, line.numbers[side.label].estimate, date=date, notes=note)
        for row, line in lines.items()
        for note in [" ".join(_note(benchmark, side, line))]
    ]
    found = eval_result_entries_to_yaml(entries)
    return str(yaml.safe_dump(found, allow_unicode=True, sort_keys=False, width=100))


def _note(benchmark: Benchmark, side: Side, line: Comparison) -> Iterator[str]:
    """Yield the sentences that a reader of a number on the hub needs to know."""
    made, one = records.measured(benchmark, side, line), line.numbers[side.label]
    yield f"{line.quantity.metric}."
    if one.ends is not None:
        low, high = one.ends
        yield f"95 % interval {fixed(low, 4)} to {fixed(high, 4)}."
    data, config = made["source_data"]["additional_details"], made["metric_config"]
    yield f"lmms-eval-tasks; data {data['hash']}, videos {data['videos']}."
    for judge in config.get("llm_scoring", {}).get("judges", ()):
        yield f"Judge {judge['model_info']['name']}."
    rest = config["additional_details"]
    conditions = from_dicts(json.loads(rest["conditions"]))
    yield from (f"{'Note: ' * one.is_limit}{one.line}." for one in conditions)
