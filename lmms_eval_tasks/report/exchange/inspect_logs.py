"""Saved runs as logs of Inspect (https://inspect.aisi.org.uk), for `inspect view` and its analyses.

Each task of each run has one log. Facts with a place in Inspect's classes are there; the other
fields of an item are metadata.
"""

from __future__ import annotations

import hashlib
import json
import math
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from lmms_eval_tasks import __version__, registry
from lmms_eval_tasks.benchmark import Benchmark, Item, Items, Task
from lmms_eval_tasks.judges import verdict
from lmms_eval_tasks.report import compare
from lmms_eval_tasks.report.compare import Comparison
from lmms_eval_tasks.report.compared_runs import Side, command
from lmms_eval_tasks.utils import extras
from lmms_eval_tasks.utils import saved_runs as saved
from lmms_eval_tasks.utils.conditions import Kind, as_columns, condition_lines, is_valid
from lmms_eval_tasks.utils.metrics import aggregate
from lmms_eval_tasks.utils.replies import refusals

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalResults, EvalSample, EvalScore, EvalSpec
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import Score

# Statuses of items without an answer, or whose scoring failed: errors of an Inspect sample.
ERRORS = {"model_error": "the model's request failed", "error": "scoring the reply failed"}
# Reasons of an output's end with which its text is the provider's, or only a part of a reply.
NO_REPLY = ("content_filter", "model_length")
# Fields of an item that have their own place in a sample.
_PLACED = {"id", "options", "answer", "reference", "references", "reply", "status", "verdicts"}


def check_inspect() -> None:
    """Stop before the work begins if its result could not be written.

    Raises:
        TasksError: inspect-ai is not installed.
    """
    extras.require("inspect", "--format inspect")


def write_logs(sides: Sequence[Side], folder: Path) -> list[Path]:
    """Write a log for each task of each side, and return the files; the same runs give equal names.

    Raises:
        DataError: a saved sample lacks a field that the logs need.
    """
    files = []
    for side in sides:
        for name in side.runs:
            benchmark = registry.of(name)
            made = _log(benchmark, benchmark.tasks[name], side)
            stamp = made.eval.created[:19].replace(":", "-")  # Inspect's own form of file names
            parts = (stamp, name.replace("_", "-"), made.eval.task_id)
            files.append(folder / f"{'_'.join(parts)}.eval")
            _write(made, files[-1])
    return files


def _write(log: EvalLog, file: Path) -> None:
    """Write a log, adding its samples to the archive here.

    Inspect's own writer searches for each sample among all before it, which takes minutes for
    20,000.
    """
    from inspect_ai.log import write_eval_log
    from pydantic_core import to_json

    samples, log.samples = log.samples or [], []
    write_eval_log(log, file)
    with warnings.catch_warnings(), zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        # Of several members with one name the last one counts, in Inspect's own logs too.
        warnings.filterwarnings("ignore", "Duplicate name", UserWarning)
        for one in samples:
            member = f"samples/{one.id}_epoch_{one.epoch}.json"
            archive.writestr(member, to_json(one, exclude_none=True))
        summaries = [one.summary() for one in samples]
        archive.writestr("summaries.json", to_json(summaries, exclude_none=True))


def _log(benchmark: Benchmark, task: Task, side: Side) -> EvalLog:
    from inspect_ai.log import EvalError, EvalLog, EvalStats

    run = side.runs[task.name]
    lines = [line for line in compare.headlines(benchmark, [task], [side]) if line.numbers]
    samples = list(_samples(task, side))
    began = _began(run)
    took = timedelta(seconds=float(run.results.get("total_evaluation_time_seconds") or 0))
    invalid = "; ".join(one.text for one in side.record([task.name]) if one.kind == Kind.INVALID)
    broken = EvalError(message=invalid, traceback="", traceback_ansi="")
    return EvalLog(
        status="error" if invalid else "success",
        eval=_spec(benchmark, task, side),
        results=_results(lines, side, samples),
        stats=EvalStats(started_at=began.isoformat(), completed_at=(began + took).isoformat()),
        error=broken if invalid else None,
        samples=samples,
    )


def _spec(benchmark: Benchmark, task: Task, side: Side) -> EvalSpec:
    """Return the task, model and options of a log, and the conditions of its numbers."""
    from inspect_ai.log import EvalConfig, EvalDataset, EvalSpec
    from inspect_ai.model import ModelConfig

    run = side.runs[task.name]
    section = run.section(benchmark.name)
    config, judge = run.results.get("config", {}), section.get("judge") or {}
    data = section.get("data") or {}
    digest = hashlib.sha256(f"{side.label}/{run.file.name}".encode()).hexdigest()[:22]
    grader = ModelConfig(model=str(judge.get("model") or judge.get("provider")))
    limit, conditions = config.get("limit"), side.record([task.name])
    told = {
        "run": str(run.file),
        "model": run.model,
        "command": command(run.results) if run.results else None,
        "conditions": condition_lines(conditions),
        "valid": is_valid(conditions),
        "prompts": section.get("prompts"),
        "judge": section.get("judge"),
        "data": data,
    }
    return EvalSpec(
        created=_began(run).isoformat(),
        eval_id=digest,
        run_id=digest,
        task_id=digest,
        task=task.name,
        task_version=str(run.results.get("versions", {}).get(task.name, "unknown")),
        task_display_name=f"{benchmark.title}: {task.name}",
        dataset=EvalDataset(
            name=benchmark.title,
            location=data.get("file"),
            samples=len(side.items[task.name]),
        ),
        model=side.label,
        model_args={"model_args": config.get("model_args")},
        model_roles={"grader": grader} if judge and task.judgements else None,
        config=EvalConfig(limit=limit if isinstance(limit, int) else None),
        packages={
            "lmms_eval": str(run.results.get("lmms_eval_version", "unknown")),
            "lmms_eval_tasks": __version__,
        },
        metadata={name: one for name, one in told.items() if one not in (None, "", [], {})},
    )


def _began(run: saved.SavedRun) -> datetime:
    """Return the start of the run by lmms-eval's file name; else the time of the file."""
    options = run.results.get("config", {}).get("resolved_cli_args") or {}
    try:
        began = datetime.strptime(run.file.name[:15], "%Y%m%d_%H%M%S")
        when = began.replace(tzinfo=ZoneInfo(options.get("timezone", "UTC")))
    # Another form of name, or a time zone that this machine does not know.
    except (ValueError, KeyError):
        when = datetime.fromtimestamp(run.file.stat().st_mtime, timezone.utc)
    return when.astimezone(timezone.utc).replace(microsecond=0)


def _results(lines: Sequence[Comparison], side: Side, samples: Sequence[EvalSample]) -> EvalResults:
    from inspect_ai.log import EvalResults

    return EvalResults(
        total_samples=len(samples),
        completed_samples=sum(sample.error is None for sample in samples),
        scores=[_number(line, side) for line in lines],
    )


def _number(line: Comparison, side: Side) -> EvalScore:
    """Return a headline number with the standard error of its interval, and its conditions."""
    from inspect_ai.log import EvalMetric, EvalScore

    interval, name = line.numbers[side.label], line.quantity.metric
    kind = "value" if line.quantity.units is None else "mean"
    metrics = {kind: EvalMetric(name=kind, value=interval.estimate)}
    if interval.se is not None and math.isfinite(interval.se):
        metrics["stderr"] = EvalMetric(name="stderr", value=interval.se)
    return EvalScore(
        name=name,
        scorer=name,
        metrics=metrics,
        scored_samples=interval.n,
        metadata={
            "interval of 95 %": interval.as_dict(),
            **as_columns(side.record(line.quantity.tasks)),
        },
    )


def _samples(task: Task, side: Side) -> Iterator[EvalSample]:
    from inspect_ai.log import EvalError, EvalSample
    from inspect_ai.model import ChatMessageUser, ModelOutput

    items = [_clean(item) for item in side.items[task.name]]
    values = values_of(task, items)
    for item in items:
        prompt = side.prompts.get((task.name, item["id"]), "")
        output = ModelOutput.from_content(side.label, item["reply"])
        why = ERRORS.get(item["status"])
        yield EvalSample(
            id=item["id"],
            epoch=1,
            input=prompt,
            choices=item.get("options"),
            target=target_of(item),
            messages=[ChatMessageUser(content=prompt), output.message],
            output=output,
            scores=_scores(task, item, values),
            metadata={name: one for name, one in item.items() if name not in _PLACED},
            error=why and EvalError(message=why, traceback=item["reply"], traceback_ansi=""),
        )


def _clean(item: Item) -> Item:
    """Return an item without lone surrogates, which Inspect's classes refuse."""
    cleaned: Item = json.loads(json.dumps(item, ensure_ascii=False).encode(errors="replace"))
    return cleaned


def target_of(item: Item) -> str | list[str]:
    """Return the right answer of an item, or of a doc's fields in the log; "" if it has none."""
    target = item.get("references") or item.get("answer") or item.get("reference") or ""
    return target if isinstance(target, list) else str(target)


def reply_of(output: ModelOutput, failure: str) -> str:
    """Return the reply in an output of Inspect; lmms-eval's text for a failed request without one.

    `failure` is the reason if Inspect has no output.
    """
    if output.empty:
        return refusals.model_error(failure)
    if output.error or output.stop_reason in NO_REPLY:
        return refusals.model_error(f"{output.stop_reason}: {output.error or output.completion}")
    reply: str = output.completion
    return reply.strip()  # lmms-eval strips replies, too


def values_of(task: Task, items: Items) -> dict[str, dict[str, float]]:
    """Return the headline numbers that items have each, by metric and id of the item.

    A failed request, scoring or judgement is no number: an item without a verdict has only those
    that need no judge.
    """
    metrics, judged = compare.headline_metrics(task), verdict.OF_THE_JUDGE
    values = {one.name: compare.by_item(one, items) for one in metrics}
    for item in items:
        lost, failed = item["status"] in ERRORS, item["status"].startswith(judged)
        unjudged = {**item, "status": aggregate.NOT_JUDGED}
        for metric in metrics if lost or failed else ():
            if lost or not compare.by_item(metric, [unjudged]):
                values[metric.name].pop(item["id"], None)
    return values


def answer_of(item: Item) -> dict[str, str | None]:
    """Return the answer of an item and the judge's replies, as fields of Inspect's `Score`."""
    verdicts = item.get("verdicts") or {}
    raw = {name: one.get("raw") or one.get("status") for name, one in verdicts.items()}
    return {
        "answer": item.get("letter") or item.get("candidate"),
        "explanation": "\n\n".join(f"{name}: {text}" for name, text in raw.items()) or None,
    }


def _scores(task: Task, item: Item, values: Mapping[str, Mapping[str, float]]) -> dict[str, Score]:
    """Return an item's score for each number; the first one holds the answer and the verdicts."""
    from inspect_ai.scorer import Score

    verdicts = item.get("verdicts")
    metadata = {
        "status": item["status"],
        **{split: item.get(split) for split in task.splits},
        **({"verdicts": verdicts} if verdicts else {}),
    }
    reason = None if item["status"] == "ok" else item["status"]
    own = [name for name, found in values.items() if found] or [task.name]
    return {
        name: Score(
            value=values.get(name, {}).get(item["id"], math.nan),  # Inspect's "not scored"
            reason=reason,
            **({} if place else {**answer_of(item), "metadata": metadata}),
        )
        for place, name in enumerate(own)
    }
