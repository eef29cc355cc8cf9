"""What the commands say on recorded replies: estimates, judges, debates, facts, HAVEN's builder.

`all_said` runs each command as a user would, in a folder of its own, against endpoints whose
replies follow from what they are asked. Kept: exit code, printed lines without folders, addresses
and blanks, and the content of the files that were written (of long ones a digest).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.cvrr_es import sample as cvrr_sample
from tests.conftest import HostRun
from tests.cvrr_es.study.debating import write_study
from tests.golden import judge, numbers
from tests.golden.command import tasks_command
from tests.golden.run import GROUPS, environment
from tests.haven.records import desk as haven_desk
from tests.local_endpoint import Fault, LocalEndpoint, error
from tests.movierecapsqa.facts import desk as facts_desk
from tests.movierecapsqa.facts.desk import FactWriter
from tests.movierecapsqa.small_release import release

# Judged tasks whose saved answers another judge judges again; not all, to be cheap.
AGAIN = (
    *("maia_oevqa", "maia_vsv", "maverix_s_oe", "movierecapsqa_segment", "haven_v2vt"),
    *("cvrr_es_partial_actions", "cvrr_judge"),
)
_KEPT = 5_000  # characters of a list that are kept
_BOX = "─━│┃┏┳┓┡╇┩└┴┘ "  # of a table's rules
_VOLATILE = re.compile(
    r"; last \w+: .*|\b\d+(?:\.\d+)? (?:s|kB|MB)\b|\d{4}-\d\d-\d\d(?:T[\d:.+]+|(?=\)))"
)

# Hashes that hold the endpoint's address; of several reasons the one that came last; a check's day.
_UNSTABLE = ("setup", "settings", "custom_id", "reasons", "date", "line")

Reply = Callable[[dict[str, Any]], "str | Fault"]


class Desk:
    """A folder to work in, and what was said there."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder, self.cache = folder, cache
        self.said: dict[str, Any] = {}

    def __call__(self, name: str, *arguments: object, files: tuple[Path, ...] = ()) -> None:
        """Run a command and keep what it says, and `files`."""
        env = {
            **environment(self.cache, ""),
            settings.JUDGE: "",
            settings.JUDGE_CACHE: str(self.folder / "replies"),
        }
        done = tasks_command(*arguments, cache=self.cache, env=env)
        self.said[name] = {
            "code": done.code,
            "out": self.lines(done.stdout),
            # Sorted: what is said while threads work comes in any order.
            "err": sorted(n for n in self.lines(done.stderr) if n.startswith("lmms-eval-tasks")),
            "files": {file.name: self._kept(file) for file in files},
        }

    def lines(self, text: str) -> list[str]:
        """Printed lines, each as words between single spaces; without rules of tables."""
        plain = (_VOLATILE.sub("~", self.normal(line)) for line in text.splitlines())
        found = (" ".join(line.split()) for line in plain)
        # How many numbers the host's table holds may change; which of two commands pays for a
        # reply that both need, and sees what its endpoint ignored, is chance.
        left_out = re.compile(r" equal the saved ones|the judge \S+ takes .*ignores")
        return [line for line in found if line.strip(_BOX) and not left_out.search(line)]

    def normal(self, value: Any) -> Any:
        value = _without(value, _UNSTABLE)
        return numbers.normal(value, self.cache, str(self.folder))

    def _kept(self, file: Path) -> Any:
        """The content of a file, its longest parts as digests; None if there is no such file."""
        if not file.exists():
            return None
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".csv":
            return _shortened(text)
        parts = [text] if file.suffix == ".json" else text.splitlines()
        found = self.normal([json.loads(part) for part in parts])
        # A batch's lines come in any order.
        return _shortened(found[0] if file.suffix == ".json" else sorted(found, key=json.dumps))

    @contextmanager
    def endpoint(self, reply: Reply = judge.reply) -> Iterator[str]:
        """`MODEL@URL` of an endpoint that plays a model."""
        with LocalEndpoint(reply, model="drawn") as opened:
            yield f"other@{opened.url}"


def _without(value: Any, names: Collection[str]) -> Any:
    """Without the keys of these names, at any depth."""
    if isinstance(value, dict):
        return {name: _without(one, names) for name, one in value.items() if name not in names}
    return [_without(one, names) for one in value] if isinstance(value, list) else value


def _shortened(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shortened(one) for key, one in value.items()}
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return (
        value if len(text) <= _KEPT else f"{len(text)} {hashlib.sha256(text.encode()).hexdigest()}"
    )


def all_said(folder: Path, cache: Path, runs: Mapping[str, HostRun]) -> dict[str, Any]:
    """By the command's name and what is special about it."""
    said = {}
    for part in (_plans, _saved, _agreement, _study, _facts, _haven):
        own = folder / part.__name__.strip("_")
        own.mkdir()
        desk = Desk(own, cache)
        part(desk, runs)
        said |= desk.said
    return said


def _plans(desk: Desk, _: Mapping[str, HostRun]) -> None:
    desk("data status", "data", "status")
    tasks = ",".join(GROUPS)
    desk("estimate", "estimate", "--tasks", tasks)
    desk("estimate, a limit", "estimate", "--tasks", tasks, "--limit", 3, "--rate", 2)
    desk("estimate, no such task", "estimate", "--tasks", "maia_nothing")


def _saved(desk: Desk, runs: Mapping[str, HostRun]) -> None:
    """Other judges on saved answers, a batch for one."""
    logs = [file for task in AGAIN for file in runs["chat"].out.rglob(f"*_samples_{task}.jsonl")]
    out, batch = desk.folder / "out.json", desk.folder / "batch.jsonl"
    means = [*_of(runs["chat"], "cvrr_es"), *_of(runs["chat"], "haven_v2")]
    with desk.endpoint() as other:
        for spec, files in ((other, logs), (other.replace("other", "good"), means)):
            name = f"judge, {spec.partition('@')[0]}"
            save = ("--save", desk.folder / "judged")
            desk(name, "judge", *files, "--judge", spec, "--output", out, *save)
            written = json.loads(out.read_text(encoding="utf-8"))
            numbers_of = {n: {"numbers": written[n]["numbers"]} for n in written if n != "usage"}
            desk.said[name]["files"] = desk.normal({**numbers_of, "usage": written["usage"]})
    asked = ("judge", *logs, "--judge", "other@http://127.0.0.1:9/v1", "--batch", batch)
    desk("judge, a batch", *asked, files=(batch,))


def _of(run: HostRun, start: str) -> list[Path]:
    return sorted(run.out.rglob(f"*_samples_{start}*.jsonl"))


def _agreement(desk: Desk, _: Mapping[str, HostRun]) -> None:
    release(desk.folder / "data")
    out = desk.folder / "agreement.json"
    command = ("agreement", "movierecapsqa", "--from", desk.folder / "data", "--items", "all")
    with desk.endpoint() as other:
        desk("agreement", *command, "--judge", other, "--output", out, files=(out,))
    desk("agreement, what it costs", *command, "--judge", "gpt-4.1-mini", "--dry-run")


def _study(desk: Desk, runs: Mapping[str, HostRun]) -> None:
    """The debate of a small study, and how reliable the sample's judges are."""
    data, folders = write_study(desk.folder)
    candidates = [part for one in folders for part in ("--candidates", one)]
    command = ("debate", *candidates, "--data", data)
    for name, more in (("debate", ()), ("debate, one judge", ("--single",))):
        out = desk.folder / name.replace(", ", "-").replace(" ", "-") / "reference.jsonl"
        out.parent.mkdir()
        told = out.with_name("reference_transcripts.ndjson")
        with desk.endpoint() as other:
            file = desk.folder / "debate.yml"
            file.write_text(f"debate: ['{other}', '{other.replace('other@', 'good@')}']\n")
            spec = other if more else file
            desk(name, *command, "--out", out, "--judge", spec, *more, files=(out, told))
    desk("debate, what it costs", *command, "--out", desk.folder / "no.jsonl", "--dry-run")
    folder = desk.cache / "sample" / "cvrr_es"
    report = desk.folder / "report.json"
    given = (
        *(folder / cvrr_sample.FIRST, *sorted(runs["chat"].out.rglob("*_samples_cvrr_judge*"))),
        *("--reference", folder / cvrr_sample.REFERENCE, "--output", report),
    )
    desk("reliability", "reliability", *given, files=(report,))
    desk("reliability, no reference", "reliability", folder / cvrr_sample.FIRST)


def _facts(desk: Desk, _: Mapping[str, HostRun]) -> None:
    recap, out = desk.folder / "recap.json", desk.folder / "segments.json"
    recap.write_text(json.dumps(facts_desk.RECAP), encoding="utf-8")
    desk("facts, what it costs", "facts", recap, "--out", out, "--dry-run")
    with desk.endpoint(FactWriter()) as other:
        desk("facts", "facts", recap, "--out", out, "--model", other, files=(out,))


def _haven(desk: Desk, _: Mapping[str, HostRun]) -> None:
    """Records of a rendered video, with and without a text that failed."""
    video = haven_desk.render_video(desk.folder / "holiday.mp4")
    scores = desk.folder / "scores.json"
    scores.write_text(json.dumps(haven_desk.SCORES), encoding="utf-8")
    command = ("haven", "build", video, "--shots", 4, "--scores", scores)
    desk("haven build, what it costs", *command, "--out", desk.folder / "no", "--dry-run",
         "--judge", "gpt-4o")  # fmt: skip
    for name, change in (("haven build", None), ("haven build, a gap", _third_shot_fails)):
        out = desk.folder / name.replace(", ", "-").replace(" ", "-")
        with desk.endpoint(haven_desk.Describer(change)) as other:
            made = out / "processed" / "own_data.json"
            desk(name, *command, "--out", out, "--judge", other, files=(made,))


def _third_shot_fails(step: str, reply: Any, request: dict[str, Any]) -> Any:
    shown = len(haven_desk.pictures(request))
    return error(404) if step == "shot" and shown == 3 else reply
