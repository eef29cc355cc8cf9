"""Saved answers judged as an OpenAI batch, at half the price: requests written, results read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from lmms_eval_tasks import benchmarks
from lmms_eval_tasks.console import say
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.runs import before
from lmms_eval_tasks.runs.rescore import rescore_saved
from lmms_eval_tasks.runs.score_again import Saved, score_again

# A batch pays for nothing while it is written or read, and asks no endpoint.
_NO_LIMITS: dict[str, Any] = {
    "requests_per_minute": None,
    "tokens_per_minute": None,
    "max_calls": None,
    "max_cost": None,
    "stop_after": 0,  # its failed requests say nothing about an endpoint
}


def shown_judge(saved: Saved, spec: str) -> str:
    """How to show the judge that a batch is for: without a password in its URL.

    Raises:
        TasksError: it is not asked through an OpenAI-compatible endpoint.
    """
    from lmms_eval_tasks.judges.verdict import OPENAI

    config = before.judge_config(benchmarks.load(saved[0][0]), spec, os.environ)  # no run yet
    models = config.endpoints
    if not models or any(model.provider != OPENAI for model in models):
        raise TasksError(f"the judge {spec} has no batches: name a model at an endpoint (--judge)")
    return spec if spec.endswith((".yml", ".yaml")) else config.label


def write_batch(saved: Saved, spec: str, path: Path) -> None:
    """Write the requests of all missing verdicts; asks nobody.

    Raises:
        TasksError: the judge has no batches, or the file cannot be written.
    """
    from lmms_eval_tasks.judges import run
    from lmms_eval_tasks.judges.providers.batch import Writer, WritingProvider

    partial = path.with_name(f".{path.name}.part")
    shown = shown_judge(saved, spec)
    try:
        with partial.open("w", encoding="utf-8") as out:
            writer = Writer(out)
            made = run.from_settings(
                wrap=lambda provider: WritingProvider(provider, writer),
                progress=False,
                **_NO_LIMITS,
            )
            with run.use(made):
                for name, own in saved:
                    rescore_saved(benchmarks.load(name), own, spec)
        if not writer.count:
            print("every verdict is there already: nothing to put into a batch")
            return
        partial.replace(path)
    except OSError as error:
        raise TasksError(f"{path}: the batch cannot be written ({error.strerror})") from None
    finally:
        partial.unlink(missing_ok=True)
    print(
        f"{path}: {writer.count:,} requests to {', '.join(sorted(writer.models))}. Upload it as a "
        "batch for /v1/chat/completions, then: lmms-eval-tasks judge LOGS "
        f"--judge {shown} --batch-results RESULTS.jsonl"
    )
    if len(writer.models) > 1:
        say("OpenAI takes one model in a batch: split the file by `body.model`")


def read_batch(saved: Saved, spec: str, path: Path, output: Path | None, save: Path) -> None:
    """Give the verdicts that a batch's results hold, and compute all numbers.

    Raises:
        TasksError: the judge has no batches, or the results cannot be read.
        SystemExit: as `score_again`.
    """
    from lmms_eval_tasks.judges import run
    from lmms_eval_tasks.judges.providers.batch import ReadingProvider, Results

    results = Results(path)
    shown_judge(saved, spec)
    made = run.from_settings(wrap=lambda provider: ReadingProvider(provider, results), **_NO_LIMITS)
    with run.use(made):
        try:
            score_again(saved, spec, output, made, save=save)
        finally:
            print(
                f"{path}: {len(results.used):,} of {len(results):,} results used; what still has "
                "no verdict goes into the next batch (--batch)"
            )
