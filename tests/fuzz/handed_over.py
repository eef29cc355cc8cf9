"""Every kind of file that a user hands over, with what reads it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import yaml

from lmms_eval_tasks import prompts, registry, settings
from lmms_eval_tasks.commands import authors_prompts, cli
from lmms_eval_tasks.cvrr_es.study import ratings
from lmms_eval_tasks.errors import TasksError, about_file
from lmms_eval_tasks.haven.records import structure
from lmms_eval_tasks.judges import JudgeConfig, prices
from lmms_eval_tasks.judges.config import resolve
from lmms_eval_tasks.judges.providers.batch import Results
from lmms_eval_tasks.judges.providers.replay import ReplayJudge
from lmms_eval_tasks.judges.verdict import REPLAY
from lmms_eval_tasks.maia import release
from lmms_eval_tasks.media import clip_specs, video_checks
from lmms_eval_tasks.models import fake_replies
from lmms_eval_tasks.movierecapsqa.facts import recap_file
from lmms_eval_tasks.utils.media import subtitles
from tests import test_authors_prompts as authors
from tests.fuzz.files import mistaken, readable
from tests.fuzz.watch import TooSlow, at_most
from tests.maia.test_data import hub_rows, write_table
from tests.report import made, sent

_LINES = 16  # of a saved run's samples: two pools
SECONDS = 20.0  # of CPU, for one file; reading the largest sample takes a fifth of one
_ANY_FILE = ("cvrr_es", "tables as csv", "tables as parquet")
_TASKS = ("haven_v2vt", "haven_temporal", "maverix_a", "movierecapsqa_segment", "cvrr_judge")


@dataclass(frozen=True)
class Handed:
    """A folder of good files of one kind."""

    kind: str
    folder: Path
    read: Callable[[], object]  # all of them, or the one there is
    media: bool = False  # mistakes are made in media too

    @property
    def files(self) -> list[Path]:
        """Those that mistakes are made in."""
        other = ("VERSION", "replay.jsonl")  # which no reader of data looks into
        found = readable(self.folder, media=self.media)
        return [one for one in found if one.name not in other]


def everything(sample: Path, folder: Path) -> list[Handed]:
    """Of all kinds, put into a folder; data are read with it as the data root (`environment`)."""
    shutil.copytree(sample, folder / "data")
    kept = [*_data(folder / "data"), *_prompts(folder)]
    return [*kept, *_runs(sample, folder), *_named(sample, folder), *_others(sample, folder)]


def environment(folder: Path) -> dict[str, str]:
    """What the readers need."""
    return {settings.DATA: str(folder / "data"), settings.PROMPTS: str(folder / "prompts")}


def mistake(kinds: Sequence[Handed], seed: int, number: int) -> tuple[str, str]:
    """Put a mistake into a file; its kind, and what is wrong with how reading it ends.

    It may be read, or be refused in a line that names it: then "".
    """
    random, handed = Random(f"{seed}/{number}"), kinds[number % len(kinds)]
    file = random.choice(handed.files)
    why = _told(handed, file, random)
    return handed.kind, why and f"number {number}, {file.name}: {why}"


def _told(handed: Handed, file: Path, random: Random) -> str:
    good = file.read_bytes()
    bad = mistaken(good, file.suffix, random)
    file.write_bytes(bad)
    try:
        with at_most(SECONDS):
            handed.read()
    except SystemExit as ended:  # as the command says, with a line
        return "" if ended.code in (2, 3) else f"exit code {ended.code}"
    except (TasksError, OSError) as error:
        said = str(error) if isinstance(error, TasksError) else about_file(error)
        # Answers are put to the questions of other files: either may be named.
        known = handed.files if handed.kind in _ANY_FILE else [file]
        first, *more = said.splitlines()
        if more and not first.endswith(":"):  # a list of what cannot be used, or one line
            return f"not one line: {said[:300]}"
        named = any(one.stem in said for one in known)
        return "" if named else f"names no file: {said[:300]}"
    except (Exception, TooSlow) as error:
        return repr(error)[:300]
    finally:
        file.write_bytes(good)
        prompts.forget()
    return ""


def _data(root: Path) -> Iterator[Handed]:
    for name in registry.NAMES:
        yield Handed(name, root / name, partial(_docs, name, root))


def _docs(name: str, root: Path) -> None:
    """All that is made of a benchmark's data before a model is loaded, without its media."""
    benchmark = registry.load_benchmark(name)
    benchmark.status(root)
    found = benchmark.load([*benchmark.tasks], videos=False)
    for task in benchmark.tasks.values():
        for number, doc in enumerate(benchmark.docs(found, task.name)[:3]):
            json.dumps(task.log_fields(doc))
            task.prompt(doc)
            task.example_reply(doc, number)


def _prompts(folder: Path) -> Iterator[Handed]:
    for name in (*registry.NAMES, "judges"):
        own = folder / "prompts" / name
        packaged = resources.files(f"lmms_eval_tasks.{name}") / "prompts"
        shutil.copytree(Path(str(packaged)), own, ignore=shutil.ignore_patterns("*.json"))
        yield Handed(f"prompts of {name}", own, partial(_prompts_of, name))


def _prompts_of(name: str) -> None:
    if name == "judges":
        from lmms_eval_tasks.judges import debate

        debate.load_prompts()
        return
    benchmark = registry.load_benchmark(name)
    benchmark.prompts([*benchmark.tasks])
    benchmark.judge_prompt()
    benchmark.criteria()


def _runs(sample: Path, folder: Path) -> Iterator[Handed]:
    """One told as if of a whole release, one of several benchmarks without what a hook tells."""
    judge = made.recorded(sample, folder / "recorded.jsonl")
    one = sent.saved_run(folder / "run", "m", judge, _LINES)
    for form in ("csv", "html"):
        show = ("--format", form, "--output", str(folder / f"report.{form}"))
        yield Handed(f"saved run, report {form}", one, partial(_command, "report", str(one), *show))
    other = made.saved_run(folder / "runs", "m", list(_TASKS), made.any_reply, judge, _LINES)
    for kind in (one, other):
        yield Handed(f"saved {kind.name}, rescore", kind, partial(_command, "rescore", str(kind)))


def _command(*arguments: str) -> None:
    cli.app(list(arguments), standalone_mode=False)


def _named(sample: Path, folder: Path) -> Iterator[Handed]:
    """Files that are named one by one: a good one, and its reader."""

    def one(name: str, content: Any, read: Callable[[Path], object]) -> Handed:
        file = folder / name.replace(" ", "-").replace(".", "/one.", 1)
        file.parent.mkdir(parents=True)
        text = yaml.safe_dump(content) if file.suffix == ".yml" else json.dumps(content)
        file.write_text(content if isinstance(content, str) else text, encoding="utf-8")
        return Handed(name.partition(".")[0], file.parent, partial(read, file))

    key = {"OPENAI_API_KEY": "x"}
    models = ["gpt-4o", {"model": "m", "base_url": "http://h:1/v1", "temperature": 0.0}]
    judge = partial(resolve, env=key, default_model="gpt-4o")
    for kind in ("panel", "debate"):
        yield one(f"judge {kind}.yml", {kind: models, "name": "p"}, lambda file: judge(str(file)))
    yield one("judge.yml", models[1], lambda file: judge(str(file)))
    recorded = (sample / "maia" / "replay.jsonl").read_text("utf-8").splitlines()[:9]
    replay = lambda file: ReplayJudge(JudgeConfig(REPLAY, str(file)))  # noqa: E731
    yield one("recordings.jsonl", "\n".join(recorded), replay)
    result = {"custom_id": "a", "response": {"status_code": 200, "body": {"choices": []}}}
    yield one("batch results.jsonl", json.dumps(result) + "\n", Results)
    packaged = Path(prices.__file__).with_name("prices.yml").read_text("utf-8")
    yield one("prices.yml", packaged, prices.load_prices)
    yield one("key.json", {"0" * 24: ["A", "B"]}, fake_replies.load_key)
    for name in ("first", "reference"):
        rows = (sample / "cvrr_es" / "ratings" / f"{name}.jsonl").read_text("utf-8")
        yield one(f"ratings {name}.jsonl", rows, lambda file: ratings.read_ratings([file]))
    part = {"startTime": 0, "endTime": 9.5, "transcript": "Ann opens doors.", "movieId": "m"}
    window = {"movieStartTime": 3603.0, "movieEndTime": 3610}
    yield one(
        "recap.json", {"videoId": "v", "segments": [part | window, part]}, recap_file.read_recap
    )
    scores = lambda file: structure.read_scores(file, Path("v.mp4"), range(9), 90)  # noqa: E731
    yield one("importance.json", [0.5] * 9, scores)
    srt = next(file for file in readable(sample / "maverix") if file.suffix == ".srt")
    yield one("subtitles.srt", srt.read_text("utf-8"), subtitles.read_cues)


def _others(sample: Path, folder: Path) -> Iterator[Handed]:
    """Tables, an array, videos, and the code of a benchmark's authors."""
    rows = hub_rows(json.loads((sample / "maia" / "data.json").read_text("utf-8")))
    for ending in ("csv", "parquet"):
        for name, own in rows.items():
            write_table(folder / ending / f"{name}.{ending}", own)
        tables = folder / ending
        yield Handed(f"tables as {ending}", tables, partial(release.read_maia, tables))
    array = folder / "array" / "one.npy"
    array.parent.mkdir()
    np.save(array, np.ones(9))
    scores = partial(structure.read_scores, array, Path("v.mp4"), range(9), 90)
    yield Handed("importance as npy", array.parent, scores)
    video = folder / "video" / "one.mp4"
    video.parent.mkdir()
    shutil.copyfile(sample / "maia" / "videos" / "1.mp4", video)
    yield Handed("video", video.parent, partial(_clip, video), media=True)
    clone = authors.build(folder / "clone", authors.MAIA)
    write = partial(authors_prompts.write_prompts, "maia", clone, folder / "written")
    yield Handed("authors' code", clone, write)


def _clip(file: Path) -> None:
    video_checks.probe(file)
    clip_specs.make_clip_file(file, clip_specs.MediaSpec("uniform", 2))
