"""The command `doctor`: in a minute, everything that would stop or spoil a run of tasks.

A check that a run makes too (runs/prepare.py) is the same function, so that both report the same. A
run ends at the first error; here an error ends no other check. Further checks find trouble that a
run meets only later: frames that cannot be decoded, a full disk, a judge that gives no verdict.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal, NamedTuple

from lmms_eval_tasks import context, registry, settings
from lmms_eval_tasks.benchmark import Benchmark, LoadedData, MediaJob
from lmms_eval_tasks.errors import DataError, TasksError
from lmms_eval_tasks.judges import Criterion, JudgeConfig, Status
from lmms_eval_tasks.judges.config import KEY
from lmms_eval_tasks.judges.verdict import NONE, OPENAI
from lmms_eval_tasks.media import video_checks
from lmms_eval_tasks.models import plan
from lmms_eval_tasks.runs import estimate, media, prepare
from lmms_eval_tasks.utils.released_files import listed

TRIAL = 3  # clips of a benchmark to make on trial, which also shows their size
ROOM = 2**30  # bytes that replies, results and tables may need, besides the clips
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
_ALLOW = (settings.ALLOW_MISSING, settings.ALLOW_BAD_ITEMS)


State = Literal["ok", "warning", "error"]


class Finding(NamedTuple):
    """The result of one check, with the remedy."""

    state: State
    message: str  # the state, or the error and its place
    mend: str = ""  # the command or setting that helps; "" if there is nothing to do
    about: str = ""  # the checked thing


Findings = Iterator[Finding]


class DoctorCheck(NamedTuple):
    """A check; `mend` is the remedy for findings that have none of their own."""

    about: str
    look: Callable[[], Iterable[Finding]]
    mend: str


def carried_out(checks: Iterable[DoctorCheck]) -> Findings:
    """The findings of all checks; an exception in one is an error, and stops no other check.

    Values of environment variables that may be keys are left out.
    """
    for about, look, mend in checks:
        try:
            for one in look():
                needed = one.mend or (mend if one.state != "ok" else "")
                yield one._replace(message=_without_keys(one.message), mend=needed, about=about)
        except Exception as error:
            kind = "" if isinstance(error, TasksError) else f"{type(error).__name__}: "
            yield Finding("error", _without_keys(f"{kind}{error}"), mend, about)


def _without_keys(text: str) -> str:
    for name, value in os.environ.items():
        if _SECRET.search(name) and len(value) >= 8:  # a shorter value may be a common word
            text = text.replace(value, f"[{name}]")
    return text


Asked = tuple[Benchmark, LoadedData, str]  # a task's benchmark, its data, and the task's name


class Examination:
    """The checks of a run of some tasks.

    Args:
        names: tasks, groups or patterns; if empty, the group of each benchmark that has data.
        model: returns the findings on the run's model (context.current) for the tasks' media.
        uploads: returns lines on what the model's class sends to a server for such tasks.
    """

    def __init__(
        self,
        names: Sequence[str],
        model: Callable[[Sequence[plan.MediaNeeds]], Iterable[Finding]] | None = None,
        uploads: Callable[[Sequence[Asked]], Iterable[str]] | None = None,
    ) -> None:
        self._names, self._model, self._uploads = names, model, uploads
        self._chosen: list[tuple[Benchmark, list[str]]] = []
        self._found: dict[str, LoadedData] = {}  # by benchmark
        # The media jobs of the requests, each with its video's path, by benchmark.
        self._cuts: dict[str, list[tuple[str, MediaJob]]] = {}
        self._needed = 0.0  # estimated bytes of the clips that are not made yet
        self._probed: dict[str, Finding] = {}  # by the judge's label: each judge gets one request

    def checks(self) -> Iterator[DoctorCheck]:
        """The checks in the order of a run: each builds on the findings of those before it."""
        yield DoctorCheck("tasks", self._tasks, "lmms-eval-tasks list")
        yield DoctorCheck("extras", self._extras, "pip install 'lmms-eval-tasks[all]'")
        yield DoctorCheck("frames", self._frames, f"correct {settings.FRAMES.option}")
        for benchmark, names in self._chosen:
            own = benchmark.name
            look = partial(self._data, benchmark, names)
            yield DoctorCheck(f"{own}: data", look, _get_command(benchmark))
            look = partial(self._prompts, benchmark, names)
            yield DoctorCheck(
                f"{own}: prompts",
                look,
                f"correct that file, or leave {settings.PROMPTS.option} out",
            )
        if self._model is not None:
            name = model.name if (model := context.current().model) else ""
            yield DoctorCheck("model", self._of_model, f"lmms-eval-tasks models {name}".strip())
        for benchmark, names in self._chosen:
            if found := self._found.get(benchmark.name):
                look = partial(self._requests, benchmark, names, found)
                yield DoctorCheck(
                    f"{benchmark.name}: requests", look, "leave these tasks out of --tasks"
                )
            if benchmark.name in self._cuts:
                yield from self._of_media(benchmark)
            if any(benchmark.tasks[name].judgements for name in names):
                mend = (
                    "--judge SPEC (also: none, to judge later; docs/judges.md), or "
                    f"export {KEY}=..."
                )
                look = partial(self._judge, benchmark, names)
                yield DoctorCheck(f"{benchmark.name}: judge", look, mend)
        if self._uploads is not None:
            yield DoctorCheck("uploads", self._sent, "leave these tasks out of --tasks")

    def _of_media(self, benchmark: Benchmark) -> Iterator[DoctorCheck]:
        name, cuts = benchmark.name, self._cuts[benchmark.name]
        option = settings.ALLOW_MISSING if benchmark.whole_videos else settings.ALLOW_BAD_ITEMS
        again = f"download it again, or skip it with {option.option}"
        videos = sorted({path for path, _ in cuts})
        yield DoctorCheck(f"{name}: videos", partial(_videos, benchmark, videos), again)
        different = {cut.key: cut for _, cut in cuts}
        look = partial(self._clips, benchmark, [*different.values()])
        yield DoctorCheck(
            f"{name}: clips", look, f"{settings.CACHE}=DIR on a disk with more space, or {again}"
        )

    # --- data and model -------------------------------------------------------------------------

    def _tasks(self) -> Findings:
        root = settings.data_root()
        there = [name for name in registry.NAMES if settings.data_folder(name).is_dir()]
        if not self._names and not there:
            get = "lmms-eval-tasks data get BENCHMARK"
            mend = (
                f"{get}, or {settings.DATA.option} ROOT, or {settings.DATA.option} "
                f"{settings.SAMPLE}"
            )
            yield Finding("error", f"{root}: no data of any benchmark", mend)
            return
        tasks = registry.selected(self._names or there)
        self._chosen = list(registry.benchmarks_of(tasks))
        own = ", ".join(benchmark.name for benchmark, _ in self._chosen)
        yield Finding("ok", f"{len(tasks)} tasks of {own}")

    def _extras(self) -> Findings:
        prepare.check_extras(self._chosen)
        yield from ()

    def _frames(self) -> Findings:
        prepare.check_frames(self._chosen)
        yield from ()

    def _data(self, benchmark: Benchmark, names: Sequence[str]) -> Findings:
        try:
            data = self._found[benchmark.name] = prepare.load_data(benchmark, names)
        except DataError as error:
            named = [one for one in settings.TABLE.values() if f"{one.option} " in str(error)]
            ways = [f"{one.option} {one.metavar}".strip() for one in named]
            if not settings.data_folder(benchmark.name).is_dir():
                ways = [_get_command(benchmark), *ways]
            if any(one in _ALLOW for one in named):
                ways = ["put them there (lmms-eval-tasks data status shows where)", *ways]
            yield Finding("error", str(error), " or ".join(ways))
            # Go on with the data that can be used.
            with suppress(DataError), settings.use_options(dict.fromkeys(_ALLOW, "1")):
                self._found[benchmark.name] = benchmark.load(names)
            return
        status = benchmark.status(settings.data_root())
        counts = [f"{number:,} {what}" for what, number in status.counts.items() if number]
        facts = ", ".join([*counts, f"{status.videos:,} video files", f"version {data.digest}"])
        yield Finding("ok", f"{status.where}: {facts}")
        if left := {one: why for name in names for one, why in data.left_out(name).items()}:
            facts = f"{len(left):,} skipped, as allowed by your options:\n{listed(left)}"
            yield Finding(
                "warning", facts, "put them there (lmms-eval-tasks data status shows where)"
            )

    def _prompts(self, benchmark: Benchmark, names: Sequence[str]) -> Findings:
        used = [*benchmark.prompts(names).values(), benchmark.judge_prompt()]
        told = ", ".join(dict.fromkeys(prompt.name for prompt in used if prompt is not None))
        yield Finding("ok", told)

    def _of_model(self) -> Iterable[Finding]:
        assert self._model
        return self._model([prepare.needs_of(*one) for one in self._asked()])

    def _asked(self) -> list[Asked]:
        there = [(one, self._found.get(one.name), names) for one, names in self._chosen]
        return [(one, found, name) for one, found, names in there if found for name in names]

    def _sent(self) -> Findings:
        assert self._uploads
        yield from (Finding("ok", line) for line in self._uploads(self._asked()))

    def _requests(self, benchmark: Benchmark, names: Sequence[str], loaded: LoadedData) -> Findings:
        """Check the docs of tasks, and collect their media jobs."""
        docs = {name: benchmark.docs(loaded, name) for name in names}
        if empty := [name for name, own in docs.items() if not own]:
            yield Finding("error", f"no item can be run of {', '.join(empty)}")
        made = [
            (str(doc["video_path"]), cut)
            for name, own in docs.items()
            for doc in own
            if (cut := benchmark.media_job(doc)) is not None
        ]
        if made:
            self._cuts[benchmark.name] = made
        benchmark.check(names, loaded)
        yield Finding("ok", ", ".join(f"{name} {len(own):,}" for name, own in docs.items()))

    # --- media ----------------------------------------------------------------------------------

    def _clips(self, benchmark: Benchmark, cuts: Sequence[MediaJob]) -> Findings:
        """Make some clips on trial, and estimate the disk space for all.

        The clips are spread over the data, since clips of one video follow each other.
        """
        tried = cuts[:: -(-len(cuts) // TRIAL)]
        size = _media_bytes()
        parts = [media.TaskMedia(benchmark.name, tried, len(tried))]
        lost = media.make_jobs(parts, benchmark.title, benchmark.media_messages[0])
        if lost:
            why = {cut.name: lost[cut.key] for cut in tried if cut.key in lost}
            yield Finding(
                "error", f"{len(lost)} of {len(tried)} trial clips cannot be made:\n{listed(why)}"
            )
        if n_made := len(tried) - len(lost):
            grown = _media_bytes() - size
            self._needed += grown / n_made * (len(cuts) - n_made)
            free = shutil.disk_usage(settings.cache_dir()).free
            state: State = "error" if free < self._needed else "ok"
            if state == "ok" and free < self._needed + ROOM:
                state = "warning"
            told = (
                f"{n_made} trial clips of {len(cuts):,} took {grown / 1e6:,.1f} "
                f"MB; the others may take {self._needed / 1e9:,.2f} GB, and "
                f"{free / 1e9:,.2f} GB are free"
            )
            yield Finding(state, told)

    # --- the judge ------------------------------------------------------------------------------

    def _judge(self, benchmark: Benchmark, names: Sequence[str]) -> Findings:
        prepare.check_judge(benchmark)
        config, named = prepare.judge_config(benchmark), settings.text(settings.JUDGE)
        models = {one.label: one for one in config.endpoints if one.provider == OPENAI}
        if config.provider == NONE:
            yield Finding("ok", "none: answers are saved without verdicts, to be judged later")
        elif not models:
            yield Finding(
                "ok", f"{config.label}: can be used; not an endpoint, so no test question"
            )
        elif not named:
            why = (
                "the paper's judge, not tested; to send it one test question: "
                f"--judge {config.label}"
            )
            yield Finding("ok", f"{config.label}: {why}")
        elif found := self._found.get(benchmark.name):
            asked = next(_requests_to_judge(benchmark, names, found), None)
            for label, model in models.items():
                if asked and label not in self._probed:
                    self._probed[label] = _probed(model, *asked)
                if label in self._probed:
                    yield self._probed[label]


def _get_command(benchmark: Benchmark) -> str:
    """Return the command that downloads a benchmark's data, or puts the user's files in place."""
    prepare_command = f"lmms-eval-tasks data prepare {benchmark.name} --from DIR_OR_FILE"
    return f"lmms-eval-tasks data get {benchmark.name}" if benchmark.downloads else prepare_command


def _videos(benchmark: Benchmark, paths: Sequence[str]) -> Findings:
    """Check that the ends of videos can be decoded, in as many threads as there are processors."""
    ends = [MediaJob(path, (path,), partial(video_checks.check_ends, path)) for path in paths]
    parts = [media.TaskMedia(benchmark.name, ends, len(ends))]
    bad = media.make_jobs(parts, benchmark.title, "first and last frames decoded")
    if good := len(paths) - len(bad):
        yield Finding("ok", f"first and last frame of {good:,} videos decoded")
    if bad:
        told = listed({path: why.removeprefix(f"{path}: ") for (path,), why in bad.items()})
        yield Finding("error", f"{len(bad):,} of {len(paths):,} videos cannot be decoded:\n{told}")


def _media_bytes() -> int:
    """Return the size of all clips and sounds that were made, in bytes."""
    made = (settings.cache_dir() / "media").glob("*.*")
    return sum(file.stat().st_size for file in made if file.is_file())


def _requests_to_judge(
    benchmark: Benchmark, names: Sequence[str], loaded: LoadedData
) -> Iterator[tuple[Criterion, Mapping[str, Any]]]:
    """Yield the judge's first request of each judged task, for a made-up reply."""
    for task in (benchmark.tasks[name] for name in names):
        if task.judgements:
            yield from estimate.requests(task, benchmark.docs(loaded, task.name)[:1])


def _probed(model: JudgeConfig, criterion: Criterion, fields: Mapping[str, Any]) -> Finding:
    from lmms_eval_tasks.judges.providers.probe import probe

    begun = time.monotonic()
    verdict, form, departures = probe(model, criterion, fields)
    took = f"{time.monotonic() - begun:.1f} s"
    if verdict.status == Status.OK.value:
        text = f"{model.label}: a verdict in {took}; {criterion.name} as {form}"
        if not departures:
            return Finding("ok", text)
        mend = (
            "nothing, if this is acceptable for your numbers; otherwise a server "
            "that respects these settings"
        )
        return Finding("warning", f"{text}; it {'; it '.join(departures)}", mend)
    text = f"{model.label}: no verdict for one test request after {took}: {verdict.status}: "
    mend = "--judge FILE.yml with another reply_format or model (docs/judges.md)"
    if verdict.status == Status.API_ERROR.value:
        mend = "correct the URL, the model's name or the key of --judge (docs/judges.md)"
    return Finding("error", text + verdict.reason, mend)
