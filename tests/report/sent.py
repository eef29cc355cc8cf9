"""A run told as if of the whole release, and what tests ask of its record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft7Validator

from lmms_eval_tasks import __version__, registry
from lmms_eval_tasks.report.exchange import records
from lmms_eval_tasks.utils.conditions import Condition, Kind, as_dicts
from tests.report import made

Record = dict[str, Any]
RELEASE = "0123456789ab"  # of no data that are known here
TASKS = {"maia_vsv": 19200, "maia_oevqa": 2400}  # items of the whole release


def section(name: str) -> dict[str, Any]:
    """What the hook tells of a whole run with the paper's judge."""
    benchmark = registry.load_benchmark(name)
    prompt = benchmark.judge_prompt()
    judge = {"provider": "openai", "model": benchmark.paper_judge, "comparable": True}
    prompts = benchmark.prompts(list(TASKS))
    return {
        "data": {"hash": RELEASE},
        "videos": {"asked": 100, "of": 100},
        "prompts": {one: given.note() for one, given in prompts.items()},
        "judge": {**judge, "temperature": 0.0, "prompt": prompt.note()},
        "arrived": "reached the model: 32 frames",
        "conditions": as_dicts([Condition(Kind.ARRIVED, "reached the model: 32 frames")]),
    }


def saved_run(folder: Path, model: str, judge: str, most: int | None = None) -> Path:
    """MAIA on the sample, told as if of the release."""
    made.saved_run(folder, model, list(TASKS), made.any_reply, judge, most)
    (file,) = folder.glob("*_results.json")
    results = json.loads(file.read_text(encoding="utf-8"))
    results["lmms_eval_tasks"] = {"version": __version__, "maia": section("maia"), "invalid": {}}
    results["config"] |= {"limit": None, "model_args": "model=m,api_key=sk-12,base_url=http://x"}
    file.write_text(json.dumps(results), encoding="utf-8")
    return folder


def facts(result: Record) -> dict[str, str]:
    found: dict[str, str] = result["source_data"]["additional_details"]
    return found


def named(record: Record, name: str) -> Record:
    found: list[Record] = record["evaluation_results"]
    return next(one for one in found if one["metric_config"]["metric_name"] == name)


def wrong_in(record: Any) -> list[str]:
    found = Draft7Validator(records.schema()).iter_errors(record)
    return [f"{one.json_path}: {one.message}" for one in found]
