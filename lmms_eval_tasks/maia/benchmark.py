"""MAIA for the shared commands: checks, provenance, the user's data, saved runs, tables."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks import provenance, rescore, settings
from lmms_eval_tasks.benchmarks import DataStatus
from lmms_eval_tasks.errors import DataError, TasksError
from lmms_eval_tasks.maia import data, report, schema, scores
from lmms_eval_tasks.maia import judge as judging
from lmms_eval_tasks.maia.schema import PAPER_COUNTS, POOL_SIZE, Release
from lmms_eval_tasks.rescore import Rescored, Run
from lmms_eval_tasks.utils import stats, text_metrics

if TYPE_CHECKING:
    from rich.table import Table


# --- before and after a run -------------------------------------------------------------------


def check(tasks: Sequence[Mapping[str, Any]]) -> None:
    """Data, frames, videos, prompts, and the judge where a task is judged.

    Raises:
        TasksError: the first thing that is missing, with what to do.
    """
    from lmms_eval_tasks.maia import utils

    data.usable(data.load())
    for language in sorted({_language(task) for task in tasks}):
        utils.task_prompts(language)
    if any(task["metadata"]["judged"] for task in tasks):
        judging.check()


def annotate(results: dict[str, Any], tasks: Sequence[Mapping[str, Any]]) -> None:
    """Provenance under `results["lmms_eval_tasks"]["maia"]`; placeholders of `agg_acc` dropped."""
    from lmms_eval_tasks.maia import utils

    release = data.load()
    left_out = data.video_problems(release)
    warnings = []
    if settings.is_sample():
        warnings.append("made with the packaged sample: not a benchmark result")
    lost = sum(len(v.questions) for v in release.videos if v.video in left_out)
    if left_out:
        warnings.append(
            f"{lost} questions of {len(left_out)} videos left out: {', '.join(left_out)}"
        )
    section: dict[str, Any] = {
        "data": {"file": str(release.file), "hash": release.digest, **release.counts},
        "left_out": left_out,
        "questions_left_out": lost,
        "prompts": {
            language: {"hash": prompt.hash, "source": prompt.source}
            for language in sorted({_language(task) for task in tasks})
            for prompt in [utils.task_prompts(language)]
        },
        "implementations": {**text_metrics.IMPLEMENTATIONS, **provenance.notes()},
    }
    if any(task["metadata"]["judged"] for task in tasks):
        section["judge"] = judging.describe()
        if warning := section["judge"].get("warning"):
            warnings.append(warning)
    section["warnings"] = warnings
    samples = results.get("samples") or {}
    section["details"] = {
        task["task"]: details(task["task"], samples[task["task"]])
        for task in tasks
        if samples.get(task["task"])
    }
    results["lmms_eval_tasks"]["maia"] = section
    for table in (results["results"], results.get("groups", {})):
        for values in table.values():
            _drop_placeholders(values)


def _drop_placeholders(values: dict[str, Any]) -> None:
    """Remove the nan that carries scores to the group (utils/aggregate.Carrier) and its errors."""
    from lmms_eval_tasks.utils.aggregate import Carrier

    for key in [key for key, value in values.items() if isinstance(value, Carrier)]:
        metric, _, name = key.partition(",")
        for suffix in ("", "_stderr", "_stderr_clt", "_stderr_clustered"):
            values.pop(f"{metric}{suffix},{name}", None)


def tables(results: Mapping[str, Any]) -> list[Table | str]:
    """The paper's tables for the host's results, with the warnings that belong to them."""
    names = {*results["results"], *results.get("groups", {})}
    numbers = {
        name: rescore.plain_names(
            results.get("groups", {}).get(name) or results["results"].get(name, {})
        )
        for name in sorted(names)
        if name.startswith("maia")
    }
    warnings = results["lmms_eval_tasks"]["maia"]["warnings"]
    return [*report.tables([("", numbers)]), *(f"Note: {warning}" for warning in warnings)]


def numbers_tables(rows: Sequence[tuple[str, report.Numbers]]) -> list[Table]:
    """The paper's tables for labelled numbers of one or more runs."""
    return report.tables(rows)


def _language(task: Mapping[str, Any]) -> str:
    return str(task["lmms_eval_specific_kwargs"]["default"]["language"])


# --- the user's data --------------------------------------------------------------------------


def status(root: Path) -> DataStatus:
    """Look at MAIA's data under a data root, without raising."""
    place = root / "maia"
    if not place.is_dir():
        return DataStatus("maia", place, found=False, problem=data.HOW_TO_GET)
    try:
        release = schema.read(schema.find_file(place))
    except TasksError as error:
        return DataStatus("maia", place, found=False, problem=str(error))
    problems = data.video_problems(release)
    counts = release.counts
    return DataStatus(
        benchmark="maia",
        where=release.file,
        found=True,
        version=release.digest,
        counts={
            "questions": counts["questions"],
            "pools": counts["questions"],
            "pairs": counts["pairs"],
        },
        videos=len(release.videos) - len(problems),
        missing={v: reason for v, reason in problems.items() if reason.startswith("missing")},
        unreadable={v: r for v, r in problems.items() if r.startswith("unreadable")},
        notes=(compare_with_paper(release),),
    )


def compare_with_paper(release: Release) -> str:
    """One line: how many videos, questions and pairs there are, of how many in the paper."""
    parts = (
        f"{release.counts[name]:,} of {total:,} {name}" for name, total in PAPER_COUNTS.items()
    )
    return f"{', '.join(parts)} of the paper's full set"


def prepare(source: Path, root: Path, link: bool) -> str:
    """Validate a release and put it under the data root.

    Args:
        source: the data file, or a folder that holds it; videos are taken from `videos/` beside it.
        root: the data root; files go to `root/maia`.
        link: make symbolic links instead of copies.

    Raises:
        DataError: the source is not there, does not fit the schema, or other data is in the way.
    """
    source = source.expanduser().resolve()
    if not source.exists():
        raise DataError(f"{source}: no such file or folder")
    file = schema.find_file(source) if source.is_dir() else source
    release = schema.read(file)
    target = root / "maia"
    (target / "videos").mkdir(parents=True, exist_ok=True)
    present = [p for p in target.glob("*.json") if p.resolve() != file and p.name != file.name]
    if present:
        raise DataError(f"{target}: holds {present[0].name} already; remove it first")
    _put(file, target / file.name, link)
    put = 0
    for video in release.videos:
        path = release.path_of(video.video)
        if path.is_file():
            _put(path, target / "videos" / path.name, link)
            put += 1
    lines = [
        f"{'linked' if link else 'copied'} {file.name} and {put} videos to {target}",
        compare_with_paper(release),
    ]
    absent = [v.video for v in release.videos if not release.path_of(v.video).is_file()]
    if absent:
        lines.append(
            f"{len(absent)} videos are not beside the file: {', '.join(absent)}; put them into "
            f"{target / 'videos'} as N.mp4"
        )
    return "\n".join(lines)


def _put(source: Path, target: Path, link: bool) -> None:
    if target.exists() and target.resolve() == source.resolve():
        return
    temporary = target.with_name(f".{target.name}.part")
    temporary.unlink(missing_ok=True)
    if link:
        temporary.symlink_to(source)
    else:
        shutil.copyfile(source, temporary)
    temporary.replace(target)


# --- saved runs -------------------------------------------------------------------------------


def details(task: str, samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts by status and 95 % intervals of a task's main metrics, clustered by video."""
    from lmms_eval_tasks.utils import aggregate

    first = _first_metric(task)
    items = sorted((sample[first] for sample in samples), key=lambda item: item["id"])
    videos = [item["video"] for item in items]
    found: dict[str, Any] = {"items": len(items), "status": aggregate.by_status(items)}
    interval = stats.clustered_mean([float(item["right"] or 0) for item in items], videos)
    found["intervals"] = {first: _plain(interval)}
    if first == "pair_acc":
        pools = list(aggregate.pools(items, POOL_SIZE).values())
        found["pools"] = len(pools)
        found["intervals"]["pool_acc"] = _plain(
            stats.cluster_bootstrap(
                lambda some: aggregate.mean(float(pool.right) for pool in some),
                pools,
                [pool.video for pool in pools],
            )
        )
    return found


def _plain(interval: stats.Interval) -> dict[str, Any]:
    """An interval for JSON: nan (one video) becomes None."""
    values = vars(interval)
    return {
        key: None if isinstance(value, float) and math.isnan(value) else value
        for key, value in values.items()
    }


def _first_metric(task: str) -> str:
    return "judge_acc" if "oevqa" in task else "pair_acc"


def rescore_saved(runs: Sequence[Run], judge: str | None) -> Rescored:
    """Every metric again from saved samples, and `agg_acc` where both tasks of a model are there.

    Args:
        runs: saved runs of MAIA's tasks.
        judge: judge the answers again with this judge; None keeps the saved verdicts.

    Raises:
        DataError: a sample lacks what MAIA's tasks write, or two samples of a run share an id.
    """
    done = Rescored()
    sides: dict[tuple[str, ...], dict[str, tuple[Run, dict[str, list[Any]]]]] = {}
    for run in runs:
        metrics = _metrics_of(run.task)
        items = _items(run, metrics, judge)
        label = run.task if len({r.task for r in runs}) == len(runs) else f"{run.task} {run.model}"
        done.numbers[label] = {
            name: aggregation(items[name])
            for name, aggregation in metrics.items()
            if items.get(name) and not name.startswith("agg_acc")
        }
        done.sidecar[label] = details(run.task, _samples(run, items))
        side = {"pair_acc": "pool", "judge_acc": "answer"}[_first_metric(run.task)]
        if "agg_acc" in metrics:
            first = items[_first_metric(run.task)][0]
            key = (str(run.model), first["data"], first["setting"], _suffix(run.task))
            if side in sides.setdefault(key, {}):
                raise DataError(
                    f"{run.file}: a second {run.task} run of {run.model}; rescore one at a time"
                )
            sides[key][side] = (run, items)
    _join(sides, done)
    return done


def _metrics_of(task: str) -> Mapping[str, scores.Aggregation]:
    if "unimodal" in task:
        return scores.UNIMODAL
    return scores.OEVQA if "oevqa" in task else scores.VSV


def _suffix(task: str) -> str:
    """What follows the task's kind: setting and language, which both tasks of a group share."""
    return task.removeprefix("maia_vsv").removeprefix("maia_oevqa")


def _items(run: Run, metrics: Mapping[str, Any], judge: str | None) -> dict[str, list[Any]]:
    from lmms_eval_tasks.judges.verdict import Verdict
    from lmms_eval_tasks.maia import utils

    first = _first_metric(run.task)
    collected: dict[str, list[Any]] = {}
    seen: dict[str, Any] = {}
    for number, sample in enumerate(run.samples, 1):
        item = sample.get(first)
        if not isinstance(item, dict) or "reply" not in item:
            raise DataError(f"{run.file}, line {number}: no `{first}` item of this suite")
        if item["id"] in seen:
            raise DataError(f"{run.file}, line {number}: {item['id']} occurs twice")
        seen[item["id"]] = item
    # Without a judge the saved verdicts stand, and what has none stays unjudged.
    ask = judging.judge(judge or "none")
    for _, item in sorted(seen.items()):
        if first == "pair_acc":
            scored = utils.pair_metrics(metrics, item, item["reply"])
        else:
            verdict = Verdict(**item["verdict"]) if item.get("verdict") and not judge else None
            scored = utils.answer_metrics(metrics, item, item["reply"], judge=ask, verdict=verdict)
        for name, value in scored.items():
            collected.setdefault(name, []).append(value)
    return collected


def _samples(run: Run, items: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    first = _first_metric(run.task)
    return [{first: item} for item in items[first]]


def _join(
    sides: Mapping[tuple[str, ...], Mapping[str, tuple[Run, dict[str, list[Any]]]]], done: Rescored
) -> None:
    names = [key for key, found in sides.items() if found.keys() == {"pool", "answer"}]
    for key in names:
        (pool_run, pool_items), (answer_run, answer_items) = (
            sides[key]["pool"],
            sides[key]["answer"],
        )
        group = f"maia{key[-1]}" + (f" {key[0]}" if len(names) > 1 else "")
        done.numbers[group] = {
            name: scores.join(
                [
                    scores.VSV[name](pool_items[name]),
                    scores.OEVQA[name](answer_items[name]),
                ]
            )
            for name in scores.VSV
            if name.startswith("agg_acc") and pool_items.get(name) and answer_items.get(name)
        }
        joined = done.numbers[group].get("agg_acc_n_joined")
        done.notes.append(
            f"{group}: {joined} questions joined from {pool_run.file.name} and "
            f"{answer_run.file.name}"
        )
        if pool_run.model is None:
            done.notes.append(f"{group}: no results files, so the models could not be compared")
    done.notes += _why_not_joined([key for key in sides if key not in names])


def _why_not_joined(keys: Iterable[tuple[str, ...]]) -> list[str]:
    alone = list(keys)
    if len(alone) < 2:
        return []
    titles = ("model", "data hash", "setting", "task variant")
    differing = [
        f"{title} ({' / '.join(sorted({key[i] for key in alone}))})"
        for i, title in enumerate(titles)
        if len({key[i] for key in alone}) > 1
    ]
    return [f"agg_acc not computed: the runs differ in {', '.join(differing)}"] if differing else []
