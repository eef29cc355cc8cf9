"""All five benchmarks through the host, in one process: the models, the settings, the runs.

`RUNS` are the runs that one process makes, one after the other (the host's `--config` takes a
list); `run_all` makes them and gives each its `HostRun`, whose `results` and `samples` any
end-to-end test can read. The packaged sample, recorded replies of the model under test
(replies.json), a drawing judge (judge.py), tiny random models for the metrics that need one. In a
test use the session fixture `golden_runs` (tests/conftest.py): it is made once.
`python -m tests.golden.record` records what they say (record.py).
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock

from lmms_eval_tasks import sample, settings
from lmms_eval_tasks.cvrr_es.settings import CVRR_NAME
from lmms_eval_tasks.haven.settings import CLIPSCORE
from lmms_eval_tasks.movierecapsqa.settings import BARTSCORE, BASELINES, JUDGED_BASELINES
from tests.conftest import HostRun, Launch, cvrr_study, launch_all
from tests.golden import judge
from tests.local_endpoint import LocalEndpoint, last_user_text
from tests.utils.metrics import tiny_bert, tiny_clip

# No two of them share a task: the host cannot take two groups that do.
WHOLE = (
    *("maia", "haven", "haven_text", "movierecapsqa_all"),
    *("maverix_table3", "maverix_oe", "maverix_long", "maverix_long_oe"),
    *("cvrr_es", "cvrr_judge", "cvrr_judge_collective", "cvrr_judge_mixture"),
)
# The same questions in other settings, half of all docs: MAIA's with other media or words, those of
# MAVERIX with their options in every order.
SETTINGS = (
    *("maia_en", "maia_1frame", "maia_1frame_en", "maia_black", "maia_black_en"),
    *("maia_unimodal", "maverix_circular"),
)
GROUPS = (*WHOLE, *SETTINGS)
OTHER_GROUPS = ("maverix", "movierecapsqa", "movierecapsqa_lengths")  # of the same tasks


class Setting(NamedTuple):
    """One run of the host."""

    model: str  # whose replies
    interface: str  # simple or chat
    tasks: tuple[str, ...]
    limit: int | None = None


# The host prints the tables of the last one only.
RUNS: Mapping[str, Setting] = {
    **{f"few {name}": Setting("main", "chat", (name,), 5) for name in OTHER_GROUPS},
    "faulty": Setting("faulty", "simple", GROUPS, 48),
    "simple": Setting("main", "simple", GROUPS, 6),
    "settings": Setting("main", "chat", SETTINGS, 48),
    "chat": Setting("main", "chat", WHOLE),
}
# In two processes: every task with few docs, whose items must be those of one; and whole tasks
# of each benchmark, whose numbers must be those of `chat`. All of them whole take as long as it.
WHOLE_TWICE = "chat 2"
TWICE: Mapping[str, Setting] = {
    "simple 2": RUNS["simple"],
    WHOLE_TWICE: Setting(
        "main",
        "chat",
        ("maia", "haven", "movierecapsqa", "maverix_oe", "cvrr_es", *WHOLE[-3:]),
    ),
}
# Recorded as -> the run; the items of `simple` must be those of `settings` and `chat`.
LABELS = {"main": "chat", **{name: name for name in RUNS if name not in ("chat", "simple")}}


def environment(cache: Path, judge: str) -> dict[str, str]:
    """Every setting that adds numbers; models are made in `cache`."""
    models = cache / "golden"
    with FileLock(cache / "golden.lock"):
        if not models.is_dir():
            tiny_bert.build(models / "bert")
            tiny_bert.build(models / "bart", architecture="bart", positions=256, max_length=256)
            tiny_clip.build(models / "clip")
    return {
        settings.JUDGE: f"drawn@{judge}",
        settings.JUDGE_STOP_AFTER: "0",
        settings.TABLES: "all",
        settings.BERTSCORE: str(models / "bert"),
        BARTSCORE: str(models / "bart"),
        CLIPSCORE: str(models / "clip"),
        BASELINES: ",".join(JUDGED_BASELINES),
        **cvrr_study(sample.build_sample(cache / "sample")),
        CVRR_NAME: "Invented Hasty",
    }


class Golden(NamedTuple):
    """The runs of one command line by name, and what their judge was asked."""

    runs: dict[str, HostRun]
    asked: list[str]


def write_replies(folder: Path) -> dict[str, Path]:
    """A file for `--model tasks_recorded` for each model under test.

    replies.json was made once and is data now: whatever becomes of the docs, a model says the same.
    `main` fails now and then; `faulty` on most items, so that every task meets every status. Of a
    new task write what both say to its items.
    """
    saved = json.loads(Path(__file__).with_name("replies.json").read_text(encoding="utf-8"))
    files = {model: folder / f"replies-{model}.jsonl" for model in ("main", "faulty")}
    for model, file in files.items():
        lines = [
            json.dumps({"task": task, "id": item, "reply": saved["texts"][place]})
            for task, own in saved["tasks"].items()
            for item, place in zip(saved["items"][own["items"]], own[model], strict=True)
        ]
        file.write_text("\n".join(lines), encoding="utf-8")
    return files


def run_all(
    launch: Launch, folder: Path, env: Mapping[str, str], processes: int = 1
) -> dict[str, HostRun]:
    """Make the runs in one command; each has a folder of its own under `folder`.

    Raises:
        AssertionError: the host failed; ends with what it said.
    """
    files = write_replies(folder)
    runs: dict[str, dict[str, Any]] = {}
    for name, one in (RUNS if processes == 1 else TWICE).items():
        arguments: dict[str, Any] = {
            "model": "tasks_recorded",
            "model_args": f"replies={files[one.model]}",
            "tasks": ",".join(one.tasks),
        }
        arguments |= {"force_simple": True} if one.interface == "simple" else {}
        arguments |= {"limit": one.limit} if one.limit is not None else {}
        runs[name] = arguments
    # 3: the judge fails more often than a run may, so that the mark is recorded too.
    given: dict[str, Any] = {"codes": (0, 3), "env": env, "timeout": 3600}
    return launch_all(launch, folder, runs, processes, **given)


def once(launch: Launch, cache: Path, folder: Path, processes: int) -> Golden:
    """`run_all` with its judge, by the worker that comes first; the others wait for it."""
    folder.mkdir(exist_ok=True)
    made = folder / "made.json"
    with FileLock(folder / "lock"):
        if not made.exists():
            with LocalEndpoint(judge.reply, model="drawn") as endpoint:
                runs = run_all(launch, folder, environment(cache, endpoint.url), processes)
                asked = sorted({last_user_text(chat.json) for chat in endpoint.chats})
            said = {name: dataclasses.asdict(one) for name, one in runs.items()}
            text = json.dumps({"runs": said, "asked": asked}, default=str)
            made.write_text(text, encoding="utf-8")
    found = json.loads(made.read_text(encoding="utf-8"))
    runs = {
        name: HostRun(**{**one, "out": Path(one["out"])}) for name, one in found["runs"].items()
    }
    return Golden(runs, found["asked"])
