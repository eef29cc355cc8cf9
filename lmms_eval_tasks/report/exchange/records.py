"""Records of Every Eval Ever: the paper's rows as documentation, a saved run as evaluation run.

A run's record has the basis of its numbers as texts: the data's hash, the videos, the items by
status, the prompts' hashes, and the conditions.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from operator import attrgetter

from lmms_eval_tasks import leaderboards
from lmms_eval_tasks.benchmark import Benchmark, Task
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.leaderboards import figures
from lmms_eval_tasks.leaderboards.figures import INFINITE, Figure, Scale
from lmms_eval_tasks.report import compare, compared_runs
from lmms_eval_tasks.report.compare import Comparison
from lmms_eval_tasks.report.compared_runs import Side
from lmms_eval_tasks.tables.paper_tables import number
from lmms_eval_tasks.utils.conditions import OF_JUDGE, as_dicts, is_valid
from lmms_eval_tasks.utils.json_files import Json, JsonObject
from lmms_eval_tasks.utils.metrics.aggregate import by_status
from lmms_eval_tasks.utils.metrics.stats import Interval

OURS = "lmms_eval_tasks"  # our section of lmms-eval's results
UNKNOWN = "unknown"  # the schema's word for a missing fact
# Our rules of panels -> Every Eval Ever's words.
_AGGREGATION = {"majority": "majority_vote", "mean": "average", "median": "median"}

Record = JsonObject


@functools.cache
def schema() -> Mapping[str, Json]:
    """Return the JSON schema of records, as published by Every Eval Ever."""
    text = files(leaderboards.__name__).joinpath("vendor/eval.schema.json").read_text("utf-8")
    content: Mapping[str, Json] = json.loads(text)
    return content


def own_tasks(benchmark: Benchmark, side: Side) -> list[Task]:
    """Return the tasks of a benchmark that a side has."""
    return [task for name, task in benchmark.tasks.items() if name in side.runs]


# --- the paper's rows -----------------------------------------------------------------------------


def published(benchmark: Benchmark) -> dict[str, Record]:
    """Return a documentation record of each model in the paper's tables, as printed."""
    printed = sorted(figures.of_models(benchmark.board()), key=attrgetter("model"))
    title = benchmark.board()["paper"]
    source = {
        "source_type": "documentation",
        "source_name": title,
        "source_organization_name": "the paper's authors",
        "evaluator_relationship": "third_party",
    }
    records = {}
    for model, group in itertools.groupby(printed, key=attrgetter("model")):
        results = [_printed(benchmark, one) for one in group]
        records[model] = {
            **_head(benchmark, model, "paper"),
            "source_metadata": source,
            "eval_library": {"name": UNKNOWN, "version": UNKNOWN},
            "model_info": _model_info(model),
            "evaluation_results": results,
        }
    return records


def _printed(benchmark: Benchmark, figure: Figure) -> Record:
    table = f"table {figure.table['number']}"
    details = {"printed": str(figure.printed), "table": table, "place": ", ".join(figure.place)}
    return {
        "evaluation_result_id": f"{benchmark.name}/{table}/row {figure.row}/{figure.place[-1]}",
        "evaluation_name": f"{benchmark.name}.{figure.task or table.replace(' ', '')}",
        "source_data": _source_data(benchmark, {}),
        "metric_config": {
            "evaluation_description": figure.table["caption"],
            "lower_is_better": False,
            **_metric(benchmark, figure.metric, figure.scale),
            **(
                {"additional_details": {"note": figure.table["note"]}}
                if figure.table["note"]
                else {}
            ),
        },
        "score_details": {"score": figure.value, "details": details},
    }


# --- own runs -------------------------------------------------------------------------------------


def lines_of(benchmark: Benchmark, side: Side) -> list[Comparison]:
    """Return the numbers of a side in lmms-eval's table.

    Raises:
        TasksError: there is no number yet.
    """
    if not (lines := compare.headlines(benchmark, own_tasks(benchmark, side), [side])):
        how = "judge its samples first: lmms-eval-tasks judge"
        raise TasksError(f"{side.label}: no number of {benchmark.title} yet; {how}")
    return lines


def first_of(benchmark: Benchmark, side: Side) -> Mapping[str, Json]:
    """Return the results file of a side's first task."""
    return side.runs[own_tasks(benchmark, side)[0].name].results


def of_run(benchmark: Benchmark, side: Side) -> Record:
    """Return the record of a model's saved runs: numbers of lmms-eval's table, and their basis.

    Raises:
        TasksError: there is no number yet.
    """
    lines = lines_of(benchmark, side)
    first = first_of(benchmark, side)
    date = date_of(first)
    model = _public(first.get("model_name") or first.get("config", {}).get("model") or side.label)
    is_local = "pretrained=" in str(first.get("config", {}).get("model_args"))
    details = {"host_class": str(first.get("config", {}).get("model", UNKNOWN))}
    version = first.get(OURS, {}).get("version", UNKNOWN)
    return {
        **_head(benchmark, model, date),
        "evaluation_timestamp": date,
        "source_metadata": {
            "source_type": "evaluation_run",
            "source_name": "lmms-eval-tasks",
            "source_organization_name": UNKNOWN,
            "evaluator_relationship": "other",
        },
        "eval_library": {
            "name": "lmms-eval",
            "version": str(first.get("lmms_eval_version", UNKNOWN)),
            "additional_details": {OURS: version},
        },
        "model_info": _model_info(model, "self_deployed" if is_local else UNKNOWN, details),
        "evaluation_results": [measured(benchmark, side, line) for line in lines],
    }


def measured(benchmark: Benchmark, side: Side, line: Comparison) -> Record:
    """Return one number of a side as a result in a record."""
    row, metric = line.quantity.row, line.quantity.metric
    tasks = [benchmark.tasks[one] for one in benchmark.tasks_of(row) if one in side.runs]
    scale = figures.scales()[metric]
    sections = _sections(benchmark, side, tasks)
    is_judged = bool(scale.judged) and any(task.judgements for task in tasks)
    judges = [one["judge"] for one in sections if one.get("judge")] if is_judged else []
    metrics = [one for task in tasks for one in task.metrics if one.name == metric]
    data, rest = _facts(benchmark, side, tasks, is_judged=is_judged)
    return {
        "evaluation_result_id": f"{benchmark.name}/{row}/{metric}",
        "evaluation_name": f"{benchmark.name}.{row}",
        "source_data": _source_data(benchmark, data),
        "metric_config": {
            "lower_is_better": any(one.higher_is_better is False for one in metrics),
            **_metric(benchmark, metric, scale),
            **({"llm_scoring": _llm_scoring(benchmark, judges)} if judges else {}),
            "additional_details": rest,
        },
        "score_details": _score(line.numbers[side.label]),
        "generation_config": _generation(tasks[0].name, side.runs[tasks[0].name].results),
    }


def _facts(
    benchmark: Benchmark, side: Side, tasks: Sequence[Task], *, is_judged: bool
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the facts about data and runs behind a number, as texts."""
    sections = _sections(benchmark, side, tasks)
    items = {task.name: side.items[task.name] for task in tasks}
    seen = [one["videos"] for one in sections if one.get("videos")]
    fewest = min(seen, key=lambda one: one["asked"] - one["of"], default=None)
    data = {
        "hash": _each((one.get("data") or {}).get("hash") for one in sections),
        "videos": f"{fewest['asked']} of {fewest['of']}" if fewest else "",
        "items": json.dumps({name: len(own) for name, own in items.items()}),
        "status": json.dumps(by_status(itertools.chain(*items.values()))),
    }
    given = [one.get("prompts") or {} for one in sections]
    prompts = {
        name: _each(one[name]["hash"] for one in given if name in one)
        for name in dict.fromkeys(itertools.chain(*given))
    }
    conditions = side.record(items)
    of_number = [one for one in conditions if is_judged or one.kind not in OF_JUDGE]
    return data, {
        "prompts": json.dumps(prompts),
        "conditions": json.dumps(as_dicts(of_number), ensure_ascii=False),
        "valid": str(is_valid(conditions)),
    }


def _sections(
    benchmark: Benchmark, side: Side, tasks: Sequence[Task]
) -> Sequence[Mapping[str, Json]]:
    """Return our sections on the runs of tasks; [] unless all runs have one."""
    found = [side.runs[task.name].section(benchmark.name) for task in tasks]
    return found if all(found) else []


def _each(values: Iterable[object]) -> str:
    """Return different values as one text: the common value of all runs, or a list of values."""
    return ", ".join(dict.fromkeys(str(one) for one in values if one))


def _llm_scoring(benchmark: Benchmark, judges: Sequence[Mapping[str, Json]]) -> Record:
    """Return the judge of a number, for all its runs."""
    judge, prompt = judges[0], judges[0].get("prompt") or {}
    now = benchmark.judge_prompt()
    is_same = now is not None and now.hash == prompt.get("hash")
    text = "\n\n".join(now.text.values()) if now is not None and is_same else json.dumps(prompt)
    names = ("provider", "base_url", "warning", "version")
    details = {name: _each(judge.get(name) for judge in judges) for name in names}
    details |= {"comparable": str(all(judge.get("comparable") for judge in judges))}
    details |= {"prompt": _each((judge.get("prompt") or {}).get("hash") for judge in judges)}
    members = {json.dumps(part, sort_keys=True): part for part in judge.get("members") or judges}
    record: Record = {
        "judges": [_judge(part) for part in members.values()],
        "input_prompt": text,
        "additional_details": {name: detail for name, detail in details.items() if detail},
    }
    if (rule := judge.get("rule")) in _AGGREGATION:
        record["aggregation_method"] = _AGGREGATION[rule]
    return record


def _judge(judge: Mapping[str, Json]) -> Record:
    name = _public(judge.get("model") or judge.get("provider") or UNKNOWN)
    temperature = number(judge.get("temperature"))
    return {
        "model_info": _model_info(name),
        **({} if temperature is None else {"temperature": temperature}),
    }


def _score(interval: Interval) -> Record:
    se = number(interval.se)
    uncertainty: Record = {"num_samples": interval.n}
    details = {"clusters": str(interval.clusters)}
    if se is not None:
        uncertainty["standard_error"] = {"value": se}
    if interval.ends is not None:
        low, high = interval.ends
        ends = {"lower": low, "upper": high, "confidence_level": 0.95, "method": interval.method}
        uncertainty["confidence_interval"] = ends
    else:
        details["no_interval"] = interval.method
    return {"score": interval.estimate, "uncertainty": uncertainty, "details": details}


def _generation(task: str, results: Mapping[str, Json]) -> Record:
    given = (results.get("configs", {}).get(task) or {}).get("generation_kwargs") or {}
    tokens, temperature = given.get("max_new_tokens"), number(given.get("temperature"))
    return {
        "generation_args": {
            "execution_command": compared_runs.command(results),
            **({"max_tokens": tokens} if isinstance(tokens, int) and tokens > 0 else {}),
            **({} if temperature is None else {"temperature": temperature}),
        }
    }


# --- parts of a record ----------------------------------------------------------------------------


def _head(benchmark: Benchmark, model: str, date: str) -> Record:
    return {
        "schema_version": schema()["version"],
        "evaluation_id": f"{benchmark.name}/{model}/{date}",
        "retrieved_timestamp": str(int(time.time())),
    }


def date_of(results: Mapping[str, Json]) -> str:
    """Return the date of a run of lmms-eval in ISO form."""
    date = str(results.get("date", UNKNOWN))
    return re.sub(r"^(\d{4})(\d\d)(\d\d)_(\d\d)(\d\d)(\d\d)$", r"\1-\2-\3T\4:\5:\6", date)


def _public(name: object) -> str:
    """Return a name without the folders of a local path."""
    text = str(name)
    return text.rstrip("/").rpartition("/")[2] if text.startswith(("/", ".", "~")) else text


def _model_info(
    model: str, deployment: str = UNKNOWN, details: Mapping[str, str] | None = None
) -> Record:
    known = {"deployment_type": deployment, "model_availability": UNKNOWN}
    return {"name": model, "id": model, "additional_details": {**known, **(details or {})}}


def _source_data(benchmark: Benchmark, details: Mapping[str, str]) -> Record:
    hub = figures.hubs()[benchmark.name]
    data = {"dataset_name": benchmark.title, "source_type": "hf_dataset", "hf_repo": hub}
    return {**data, "additional_details": dict(details)} if details else data


def _metric(benchmark: Benchmark, metric: str, scale: Scale) -> Record:
    def end(value: float) -> float | str:
        sign = "-" if value < 0 else ""
        return f"{sign}Infinity" if abs(value) == INFINITE else value

    return {
        "metric_id": f"{benchmark.name}.{metric}",
        "metric_name": metric,
        "metric_kind": scale.kind,
        "metric_unit": scale.unit,
        "score_type": "continuous",
        "min_score": end(scale.low),
        "max_score": end(scale.high),
    }
