"""MAIA for the shared commands: checks, provenance, data, tables; saved runs are in saved.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.benchmarks import DataStatus
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maia import data, schema, utils
from lmms_eval_tasks.maia import judge as judging
from lmms_eval_tasks.maia.judge import config as judge_config
from lmms_eval_tasks.maia.judge import prompt_name as judge_prompt
from lmms_eval_tasks.maia.report import tables as numbers_tables
from lmms_eval_tasks.maia.saved import details, rescore_saved
from lmms_eval_tasks.maia.schema import PAPER_COUNTS, Release
from lmms_eval_tasks.runs import rescore
from lmms_eval_tasks.runs.estimate import Workload
from lmms_eval_tasks.utils import prompt_notes, provenance, released_files, text_metrics

if TYPE_CHECKING:
    from rich.table import Table

    from lmms_eval_tasks.utils.transcribers import Transcriber

__all__ = [
    "annotate",
    "check",
    "judge_config",
    "judge_prompt",
    "make_media",
    "make_subtitles",
    "numbers_tables",
    "prepare",
    "rescore_saved",
    "status",
    "submission",
    "tables",
    "workload",
]


# --- before and after a run -------------------------------------------------------------------


def check(tasks: Sequence[Mapping[str, Any]]) -> None:
    """Data, frames, videos, prompts, and the judge where a task is judged.

    Raises:
        TasksError: the first thing that is missing, with what to do.
    """
    data.usable(data.load())
    for language in sorted({_language(task) for task in tasks}):
        utils.task_prompts(language)
    if any(task["metadata"]["judged"] for task in tasks):
        judging.check()


def make_media(tasks: Sequence[Mapping[str, Any]], limit: float | None = None) -> None:
    """Nothing: MAIA's clips are made when a model asks for them."""


def annotate(results: dict[str, Any], tasks: Sequence[Mapping[str, Any]]) -> None:
    """Provenance under `results["lmms_eval_tasks"]["maia"]`; placeholders of `agg_acc` dropped."""
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
            language: prompt_notes.note(utils.task_prompts(language))
            for language in sorted({_language(task) for task in tasks})
        },
        "implementations": {
            **text_metrics.IMPLEMENTATIONS,
            **{k: fact for k, fact in provenance.notes().items() if k == "bertscore"},
        },
    }
    if any(task["metadata"]["judged"] for task in tasks):
        section["judge"] = judging.describe()
        if warning := section["judge"].get("warning"):
            warnings.append(warning)
    section["warnings"] = warnings
    section["details"] = rescore.details(results, tasks, details)
    results["lmms_eval_tasks"]["maia"] = section
    rescore.drop_placeholders(results)


def tables(results: Mapping[str, Any]) -> list[Table | str]:
    """The paper's tables for the host's results, with the warnings that belong to them."""
    numbers = rescore.shown_numbers(results, "maia")
    warnings = results["lmms_eval_tasks"]["maia"]["warnings"]
    return [*numbers_tables([("", numbers)]), *(f"Note: {warning}" for warning in warnings)]


def _language(task: Mapping[str, Any]) -> str:
    return str(task["lmms_eval_specific_kwargs"]["default"]["language"])


def workload(task: Mapping[str, Any]) -> Workload:
    """What a run of `task` would generate and ask: prompts, and the judge's with a stand-in answer.

    The stand-ins are the questions' own reference answers, in turn: people's, so models that write
    more cost more.
    """
    from datasets import Dataset

    rows = data.rows(data.load())
    kwargs = task["lmms_eval_specific_kwargs"]["default"]
    judged = bool(task["metadata"]["judged"])
    docs = (data.questions if judged else data.pairs)(Dataset.from_list(rows), "text")
    judgements = (
        {
            "question": doc["question"],
            "references": doc["references"],
            "candidate": doc["references"][number % len(doc["references"])],
        }
        for number, doc in enumerate(docs if judged else ())
    )
    return Workload(
        prompts=[utils.doc_to_text(doc, kwargs) for doc in docs],
        max_reply_tokens=task["generation_kwargs"]["max_new_tokens"],
        judged=[[(judging.criterion(), fields)] for fields in judgements],
    )


def submission(runs: Sequence[rescore.Run]) -> None:
    """None: MAIA's answers are public, nothing is submitted."""


def make_subtitles(root: Path, transcriber: Transcriber) -> int:  # noqa: ARG001
    """MAIA shows its models no subtitles.

    Raises:
        DataError: always.
    """
    raise DataError("MAIA's models see no subtitles: none are needed")


# --- the user's data --------------------------------------------------------------------------


def status(root: Path) -> DataStatus:
    """Look at MAIA's data under a data root, without raising."""
    release = released_files.release_or_status(
        "maia", root, data.HOW_TO_GET, lambda place: schema.read(schema.find_file(place))
    )
    if isinstance(release, DataStatus):
        return release
    problems = data.video_problems(release)
    missing, unreadable = released_files.by_trouble(problems)
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
        missing=missing,
        unreadable=unreadable,
        notes=(compare_with_paper(release),),
    )


def compare_with_paper(release: Release) -> str:
    """One line: how many videos, questions and pairs there are, of how many in the paper."""
    return released_files.compared(release.counts, PAPER_COUNTS)


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
    released_files.put(file, target / file.name, link)
    put = 0
    for video in release.videos:
        path = release.path_of(video.video)
        if path.is_file():
            released_files.put(path, target / "videos" / path.name, link)
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
