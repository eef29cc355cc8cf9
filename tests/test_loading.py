"""Loading a user's data, the same for all benchmarks: what is missing, bad or damaged, and where.

Each benchmark's folder tests its own schema; here is what all of them promise.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lmms_eval_tasks import context, registry, settings
from lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_tasks.commands import cli
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.media import video_checks
from lmms_eval_tasks.runs import prepare
from tests.checks import annotated, limits_of, refused, table


@dataclass(frozen=True)
class Case:
    """A benchmark, and how its sample is damaged.

    task: shows videos. without: needs none, "" where all do. record: the field of a doc that names
    its record. data: the data file. broken: from its content the object and the field whose loss
    makes a record bad; in MAIA's it makes the whole file bad. window: of a record, the field of its
    end, "" where all of a video is shown.
    """

    name: str
    task: str
    without: str
    record: str
    data: str
    broken: Callable[[Any], tuple[dict[str, Any], str]]
    window: str = ""

    @property
    def benchmark(self) -> Benchmark:
        return registry.load_benchmark(self.name)


CVRR = "partial_actions"
CASES = [
    Case("maia", "maia_vsv", "", "video", "data.json", lambda c: (c[0], "video")),
    Case(
        *("maverix", "maverix_av", "", "question_id", "data.json"),
        lambda c: (c["items"][0], "paraphrase"),
        window="end",
    ),
    Case(
        *("movierecapsqa", "movierecapsqa_segment", "movierecapsqa_segment_dialogue", "segment"),
        *("segments.json", lambda c: (c[0], "facts")),
        window="endTime",
    ),
    Case(
        *("haven", "haven_v2v", "haven_v2v_text", "id", "processed/tvsum_data.json"),
        lambda c: (min(c.items())[1], "frames"),
    ),
    Case(
        *("cvrr_es", f"cvrr_es_{CVRR}", "", "id", f"{CVRR}/annotations_{CVRR}.json"),
        lambda c: (c[0], "A"),
    ),
]
over = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


@pytest.fixture
def user(sample_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data root of the user's with copies of all samples; nothing is judged."""
    root = tmp_path / "root"
    shutil.copytree(sample_root, root)
    monkeypatch.setenv(settings.DATA, str(root))
    monkeypatch.setenv(settings.JUDGE, "none")
    return root


def edit(file: Path, change: Callable[[Any], object]) -> None:
    content = json.loads(file.read_text(encoding="utf-8"))
    change(content)
    file.write_text(json.dumps(content), encoding="utf-8")


def docs(case: Case, task: str = "") -> list[Any]:
    return prepare.usable_docs(case.benchmark, task or case.task)


def stopped(*tasks: str) -> str:
    with pytest.raises(DataError) as error:
        prepare.check_tasks(tasks)
    return str(error.value)


def test_every_benchmark_of_ours_has_a_case() -> None:
    assert {case.name for case in CASES} == {*registry.NAMES}


@over
def test_no_data(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a folder nor, in it, a file: how to get the data, and what was expected."""
    monkeypatch.setenv(settings.DATA, str(tmp_path))
    benchmark = case.benchmark
    assert benchmark.status(tmp_path).problem == benchmark.how_to_get
    said = stopped(case.task)
    assert benchmark.how_to_get in said
    assert f"data prepare {case.name}" in said
    folder = tmp_path / case.name
    folder.mkdir()
    said = stopped(case.task)
    assert said.startswith(str(folder))
    assert "expected" in said
    assert benchmark.status(tmp_path).problem == said


@over
def test_what_may_not_be_read(case: Case, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line with the file: root, who runs tests, may read everything, so it is made up."""

    def refuse(place: Path) -> None:
        raise PermissionError(13, "Permission denied", str(place))

    monkeypatch.setattr(type(case.benchmark), "read_release", staticmethod(refuse))
    assert stopped(case.task) == f"{user / case.name}: Permission denied"
    assert "Permission denied" in case.benchmark.status(user).problem


@over
def test_a_bad_record(case: Case, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named with what it lacks; left out, counted and said where the user allows it."""
    known = {doc[case.record] for doc in docs(case)}
    file, field = user / case.name / case.data, ""

    def damage(content: Any) -> None:
        nonlocal field
        record, field = case.broken(content)
        record.pop(field)

    edit(file, damage)
    said = stopped(case.task)
    assert field in said
    if case.name == "maia":
        assert f"{file}: entry 1, " in said
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        assert stopped(case.task) == said
        return
    title, records = case.benchmark.title, case.benchmark.records
    count, _, line = said.partition(f" {title} {records} cannot be used:\n  ")
    assert count.endswith(f"1 of {case.benchmark.read_release(user / case.name).n_records + 1}")
    bad = line.partition(": ")[0]
    assert bad in known
    assert said.count("--allow-bad-items") == 1
    assert any(bad in line for line in case.benchmark.status(user).notes)
    monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
    prepare.check_tasks([case.task])
    assert {doc[case.record] for doc in docs(case)} == known - {bad}
    section = annotated(case.name, case.task)
    assert list(section["left_out"][case.task]) == [bad]
    (line,) = (line for line in limits_of(section) if f"{records} skipped" in line)
    assert line.startswith(f"1 {records} skipped ({bad}), such as {bad}: ")


@over
@pytest.mark.parametrize("reason", ["missing", "unreadable"])
def test_a_video_that_cannot_be_used(
    case: Case, reason: str, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With it all records that show it go, where the user allows it; others stay."""
    whole = docs(case)
    file = Path(whole[0]["video_path"])
    lost = {doc[case.record] for doc in whole if doc["video_path"] == str(file)}
    rest = [doc["id"] for doc in whole if doc[case.record] not in lost]
    present = case.benchmark.status(user).videos
    if reason == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:200])
    said = stopped(case.task)
    title, records = case.benchmark.title, case.benchmark.records
    assert re.search(rf": 1 of \d+ {title} videos cannot be used", said)
    assert (f", and with them {len(lost)} of " in said) is (records != "videos")
    assert f": {reason}: {file}" in said
    assert said.count("--allow-missing-videos") == 1
    status = case.benchmark.status(user)
    assert (status.problem, status.videos, len(status.bad)) == ("", present - 1, 1)
    assert next(iter(status.bad.values())).startswith(reason)
    if case.without:
        prepare.check_tasks([case.without])
        assert lost <= {doc[case.record] for doc in docs(case, case.without)}
    monkeypatch.setenv(settings.ALLOW_MISSING, "1")
    tasks = [one for one in (case.task, case.without) if one]
    prepare.check_tasks(tasks)
    assert [doc["id"] for doc in docs(case)] == rest
    section = annotated(case.name, *tasks)
    assert {name: {*own} for name, own in section["left_out"].items()} == {case.task: lost}
    (line,) = (line for line in limits_of(section) if f"{records} skipped" in line)
    assert f"{len(lost)} {records} skipped (" in line
    assert line.startswith(f"{case.task}: ") is bool(case.without)


@over
def test_nothing_is_left(case: Case, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The task is named with the reasons, and what can be run without it."""
    for doc in docs(case):
        Path(doc["video_path"]).unlink(missing_ok=True)
    monkeypatch.setenv(settings.ALLOW_MISSING, "1")
    said = stopped(*filter(None, (case.task, case.without)))
    records = f"{case.benchmark.title} {case.benchmark.records}"
    assert f"{case.task}: none of " in said
    assert f" {records} can be run:\n  " in said
    assert ": missing: " in said
    assert said.endswith(f"--tasks {case.without}") is bool(case.without)


@table("case, end", [(case, end) for case in CASES if case.window for end in (900, 12.3)])
def test_a_window_outside_its_video(
    case: Case, end: float, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never cut silently; but an end rounded up by less than a second is the video's."""
    first = docs(case)[0]
    length = video_checks.probe(first["video_path"]).end
    late = end if end > length + 1 else length + 0.4

    def stretch(content: Any) -> None:
        case.broken(content)[0][case.window] = late

    edit(user / case.name / case.data, stretch)
    if late < length + 1:
        prepare.check_tasks([case.task])
        assert docs(case)[0]["end"] == pytest.approx(length)
        return
    said = stopped(case.task)
    records = f"{case.benchmark.title} {case.benchmark.records}"
    assert (
        f": 1 of {case.benchmark.read_release(user / case.name).n_records} {records} do not fit"
        in said
    )
    assert f"  {first[case.record]}: ends at {late:g} s; its video ends at {length:.3f} s" in said
    assert "--allow-bad-items" in said


@over
def test_only_what_runs_is_looked_at(
    case: Case, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `--limit` and `--offset`: the videos of the docs that run, and ids stay as they are."""
    prepare.check_tasks([case.task])
    whole = docs(case)
    looked: list[Path] = []
    look = video_checks._looked

    def noted(file: Path, *state: Any) -> Any:
        looked.append(file)
        return look(file, *state)

    monkeypatch.setattr(video_checks, "_looked", noted)
    with context.begun(limit=1, offset=1):
        prepare.check_tasks([case.task])
        found = docs(case)
    assert ([one["id"] for one in found], found[1]) == ([one["id"] for one in whole], whole[1])
    assert [str(path.resolve()) for path in looked] == [whole[1]["video_path"]]


# --- `data status` and `data prepare` -------------------------------------------------------------


@table("name", registry.NAMES)
def test_a_release_in_its_place(name: str, sample_root: Path, tmp_path: Path) -> None:
    """Copied or linked, also twice; another file in a place stays, and nothing is put then."""
    benchmark, source = registry.load_benchmark(name), sample_root / name
    whole = benchmark.status(sample_root)
    for link in (True, None, False):
        place = tmp_path / str(link) / name
        for _ in range(2):
            told = benchmark.prepare(source, place.parent, link).splitlines()
        there = {path for path in place.rglob("*") if path.is_file()}
        assert told[0] == f"{'copied' if link is False else 'linked'} {len(there)} files to {place}"
        assert set(benchmark.files(place).values()) == there
        assert {path.is_symlink() for path in there} == {bool(link)}
        found = benchmark.status(place.parent)
        assert (found.version, found.counts, found.problem) == (whole.version, whole.counts, "")
        # HAVEN's videos are no part of its release.
        assert found.videos == (0 if name == "haven" else whole.videos)
        assert tuple(told[1 : 1 + len(found.notes)]) == tuple(found.notes)
    taken = min(there)
    taken.write_text("[]", encoding="utf-8")
    says = f"{taken}: another file than {source}.*remove it first"
    refused(DataError, says, benchmark.prepare, source, place.parent, link=True)
    assert taken.read_text(encoding="utf-8") == "[]"


def test_data_status_of_some_benchmarks_and_of_odd_roots(sample_root: Path, tmp_path: Path) -> None:
    def run(*words: str, command: str = "status") -> tuple[int, str]:
        wide = {"COLUMNS": "400"}
        done = CliRunner().invoke(cli.app, ["data", command, *words], env=wide)
        return done.exit_code, str(done.exception) if done.exit_code else done.output

    deep = sample_root / "maia"
    for root in (sample_root, deep):  # one level too deep
        code, told = run("maia", "maia", "--data", str(root))
        assert told.count("maia: 2 of 100 videos") == 1
        assert code == 0
        assert "maia: 2 of 100 videos" in told
        assert "haven" not in told
    brackets = tmp_path / "[bold]x[" / "nope]"  # "[/nope]" ends no markup of rich
    brackets.mkdir(parents=True)
    code, told = run("maia", "--data", str(brackets))
    assert (code, f"{brackets}/maia" in told) == (0, True), told
    for words, says in (
        (("--data", str(tmp_path / "none")), f"{tmp_path / 'none'}: no such folder (--data ROOT"),
        (("mai", "--data", str(sample_root)), "no benchmark 'mai'; did you mean maia?"),
    ):
        code, told = run(*words)
        assert (code, says in told) == (1, True), told
    for words, says in (
        ((), "name a benchmark to download: cvrr_es, haven"),
        (("mai",), "no benchmark 'mai'; did you mean maia?"),
        (("maia", "--data", "sample"), "the packaged sample, which cannot take data: unset it"),
    ):
        code, told = run(*words, command="get")
        assert (code, says in told) == (1, True), told
    empty = registry.load_benchmark("maia").status(tmp_path)
    assert (empty.where, bool(empty.problem)) == (tmp_path / "maia", True)


@table("name", [name for name in registry.NAMES if name not in ("haven", "maia")])
def test_a_video_that_hides_another(name: str, sample_root: Path, tmp_path: Path) -> None:
    """Of another container: the one that was there would be taken for it."""
    source = shutil.copytree(sample_root / name, tmp_path / "download")
    video = min(source.rglob("*.mp4"))
    (tmp_path / name / video.parent.relative_to(source)).mkdir(parents=True)
    shutil.copy(video, tmp_path / name / video.relative_to(source))
    video.rename(video.with_suffix(".mkv"))
    says = (
        f"{tmp_path / name}: another file there takes precedence over "
        f".*{video.stem}.mkv; remove it first"
    )
    refused(DataError, says, registry.load_benchmark(name).prepare, source, tmp_path, link=False)
