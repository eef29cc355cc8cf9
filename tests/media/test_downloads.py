"""Downloads: from a local server in the hub's form and a local git repository, with their faults.

Each fault gives one line that says what to do, and the next try goes on where the first ended.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from lmms_eval_tasks import registry, settings
from lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.media import downloads
from lmms_eval_tasks.media.downloads import GitFiles, HubFiles
from tests.local_hub import LocalHub, git_repository, used

SOURCE = HubFiles("owner/set", ("data/*.json", "*.zip"), ignored=("*vid_only*",))
TABLE = b"[1, 2, 3]" * 1000


def archive(
    *names: str, content: bytes = b"moving pictures" * 1000, method: int = zipfile.ZIP_STORED
) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as opened:
        for name in names:
            opened.writestr(name, content)
    return buffer.getvalue()


# A file of git's could hold commands.
MEDIA = archive("vid/a.mp4", "vid_only/a.mp4", "__MACOSX/a.mp4", ".git/config", "vid/.a.mp4")

_LZMA = archive("a.mp4", method=zipfile.ZIP_LZMA)
DAMAGED = _LZMA[:60] + b"\xff" * 40 + _LZMA[100:]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalHub]:
    """A hub with a table, an archive and another file; the bytes come in small pieces."""
    files = {"data/facts.json": TABLE, "media.zip": MEDIA, "README.md": b"not asked for"}
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1024)
    with used(LocalHub({"owner/set": files}), monkeypatch) as server:
        yield server


def files_in(folder: Path) -> set[str]:
    found = (file.relative_to(folder) for file in folder.rglob("*") if file.is_file())
    return {file.as_posix() for file in found if not file.parts[0].startswith(".")}


def refusal(source: HubFiles | GitFiles, folder: Path) -> str:
    with pytest.raises(DataError) as error:
        downloads.download(source, folder, lambda line: None)
    assert "\n" not in str(error.value)
    return str(error.value)


ALL = {"data/facts.json", "media.zip", "vid/a.mp4"}


def test_a_data_set_of_the_hub_is_downloaded_once_and_unpacked(
    hub: LocalHub, tmp_path: Path
) -> None:
    said: list[str] = []
    downloads.download(SOURCE, tmp_path, said.append)
    assert files_in(tmp_path) == ALL
    assert not (tmp_path / ".git").exists()
    assert (tmp_path / "data/facts.json").read_bytes() == TABLE
    assert said == [
        f"{hub.url}/datasets/owner/set: 2 files, of which 2 are to be downloaded (84.5kB) to "
        f"{tmp_path}"
    ]
    hub.requests.clear()
    downloads.download(SOURCE, tmp_path, said.append)
    assert "of which 0 are" in said[1]
    assert hub.downloaded() == []
    # A damaged file is downloaded again, and so is a file that somebody removed.
    (tmp_path / "data/facts.json").write_bytes(b"[4, 5, 6]" * 1000)
    (tmp_path / "vid/a.mp4").unlink()
    downloads.download(SOURCE, tmp_path, said.append)
    assert hub.downloaded() == ["data/facts.json"]
    assert (tmp_path / "data/facts.json").read_bytes() == TABLE
    assert files_in(tmp_path) == ALL


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (
            {"status": 401, "code": "RepoNotFound"},
            r"\(401\): log in \(hf auth login, or HF_TOKEN\)",
        ),
        ({"status": 401}, r"\(401\): log in \(hf auth login, or HF_TOKEN\)"),
        ({"status": 403}, r"\(403\): log in .* open this page and accept their terms"),
        ({"file_status": 403, "code": "GatedRepo"}, r"authors grant access \(403\)"),
        ({"file_status": 401, "code": "GatedRepo"}, r"authors grant access \(401\)"),
        ({"status": 404, "code": "RepoNotFound"}, r"not there \(404\).* by hand"),
        ({"status": 500}, "the hub answered 500: wait a few minutes, then run the same command"),
        ({"broken": 1000}, "the connection broke .*: run the same command again, which continues"),
        ({"page": "api"}, r"the answer is not that of a hub .* the proxy \(HTTPS_PROXY\)"),
        ({"page": "resolve"}, r"the answer is not that of a hub .* if it is set, HF_ENDPOINT"),
        ({"changed": True}, "data/facts.json came with other content than its hash"),
    ],
)
def test_a_fault_of_the_hub_is_one_line_and_the_next_try_continues(
    hub: LocalHub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: dict[str, Any],
    said: str,
) -> None:
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda seconds: None)
    before = {name: getattr(hub, name) for name in fault}
    for name, value in fault.items():
        setattr(hub, name, value)
    line = refusal(SOURCE, tmp_path)
    assert line.startswith(f"{hub.url}/datasets/owner/set: ")
    assert re.search(said, line)
    assert files_in(tmp_path) == set()
    for name, value in before.items():
        setattr(hub, name, value)
    downloads.download(SOURCE, tmp_path, print)
    assert files_in(tmp_path) == ALL


def test_a_broken_connection_to_the_hub(hub: LocalHub, tmp_path: Path) -> None:
    """One break costs the rest of the file; after many, whole files are not downloaded again."""
    hub.broken = 1
    downloads.download(HubFiles("owner/set", ("data/*.json",)), tmp_path, print)
    assert "bytes=4096-" in {place for _, _, place in hub.requests}
    assert (tmp_path / "data/facts.json").read_bytes() == TABLE
    hub.status = 500
    refusal(SOURCE, tmp_path)
    hub.status = 0
    hub.requests.clear()
    downloads.download(SOURCE, tmp_path, print)
    assert hub.downloaded() == ["media.zip"]


def test_a_hub_that_is_off_or_not_to_be_asked(
    hub: LocalHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE is set: unset it" in refusal(SOURCE, tmp_path)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    line = refusal(SOURCE, tmp_path)
    assert line.startswith("http://127.0.0.1:9/datasets/owner/set: cannot be reached (")
    assert "HTTPS_PROXY" in line


def test_other_content_than_expected(
    hub: LocalHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No such files, a pointer of Git LFS, an archive that is none or leaves its folder."""
    none = HubFiles("owner/set", ("*.csv",))
    assert "has no files *.csv" in refusal(none, tmp_path)
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"
    for name, content, said in (
        ("data/a.json", pointer, "data/a.json is only a pointer of Git LFS there"),
        ("b.zip", b"no archive", "b.zip: cannot be unpacked: File is not a zip file"),
        ("c.zip", archive("../c.mp4"), "../c.mp4 would lie outside of the folder"),
        ("d.zip", archive("a", "a/b"), "d.zip: cannot be unpacked: [Errno 17] File exists: "),
        ("e.zip", DAMAGED, "e.zip: cannot be unpacked: Corrupt input data"),
    ):
        hub.repositories = {"owner/set": {name: content}}
        assert said in refusal(SOURCE, tmp_path / name)
    assert not (tmp_path / "c.mp4").exists()


@pytest.mark.parametrize("place", ["", "data", "data/facts.json/a"])
def test_something_else_is_in_the_way(hub: LocalHub, tmp_path: Path, place: str) -> None:
    """A file where a folder has to be, or a folder where a file has to be."""
    way = tmp_path / "folder" / place
    way.parent.mkdir(parents=True, exist_ok=True)
    way.touch()
    line = refusal(SOURCE, tmp_path / "folder")
    assert line.startswith(f"{tmp_path / 'folder'}")
    assert line.endswith(": nothing can be written there")


def test_a_disk_without_space(
    hub: LocalHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage._replace(free=100))
    line = refusal(SOURCE, tmp_path)
    assert "but 100B are free: free some space, or name another disk with --data ROOT" in line
    assert hub.downloaded() == []
    monkeypatch.undo()

    def full(*names: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", full)
    monkeypatch.setattr(constants, "ENDPOINT", hub.url)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    assert "the disk is full: free some space, then run the same" in refusal(SOURCE, tmp_path)


# Another process, since lmms-eval makes the locks of its own process reentrant.
HOLD = """
import filelock, sys
with filelock.FileLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_another_process_downloads_to_the_folder(hub: LocalHub, tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        line = refusal(SOURCE, tmp_path)
        other.communicate()
    assert line.startswith(f"{tmp_path}: another process downloads to this folder: when it")
    assert hub.requests == []
    downloads.download(SOURCE, tmp_path, print)
    assert files_in(tmp_path) == ALL


# --- git ------------------------------------------------------------------------------------------


@pytest.fixture
def repository(tmp_path: Path) -> tuple[GitFiles, Path]:
    """Files of a repository on this machine, which sends single files as GitHub does."""
    place = tmp_path / "origin"
    (place / "set/vid").mkdir(parents=True)
    for name in ("a", "b"):
        (place / f"set/vid/{name}.mp4").write_bytes(name.encode() * 10**5)
    (place / "set/data.jsonl").write_text("{}\n", encoding="utf-8")
    (place / "set/pointer.mp4").write_text("version https://git-lfs.github.com/spec/v1\n")
    commit = git_repository(place)
    shutil.rmtree(place / "set/vid")
    (place / "set/data.jsonl").write_text("[]", encoding="utf-8")
    assert git_repository(place) != commit  # later commits do not matter
    return GitFiles(f"file://{place}", commit, ("set/data.jsonl", "set/vid/*"), "set/"), place


def test_files_of_a_commit_are_downloaded_once(
    repository: tuple[GitFiles, Path], tmp_path: Path
) -> None:
    source, place = repository
    folder, said = tmp_path / "folder", list[str]()
    downloads.download(source, folder, said.append)
    assert files_in(folder) == {"data.jsonl", "vid/a.mp4", "vid/b.mp4"}
    assert (folder / "vid/b.mp4").read_bytes() == b"b" * 10**5
    assert said == [
        f"{source.url}: 3 files, of which 3 are to be downloaded to {folder}",
    ]
    (folder / "vid/b.mp4").write_bytes(b"damaged")
    place.rename(place.with_name("away"))  # all is there already: no network
    downloads.download(source, folder, said.append)
    assert "of which 1 are" in said[1]
    assert (folder / "vid/b.mp4").read_bytes() == b"b" * 10**5


def test_a_broken_connection_to_git(repository: tuple[GitFiles, Path], tmp_path: Path) -> None:
    """The server goes away after the first file; the next try downloads the others."""
    source, place = repository
    folder = tmp_path / "folder"
    files = source.files(_made(folder))
    downloads._fetch(source.url, files[0], folder / files[0].path)
    place.rename(place.with_name("away"))
    line = refusal(source, folder)
    assert line.startswith(f"{source.url}: git: fatal: ")
    assert line.endswith("run the same command again, which continues")
    assert files_in(folder) == {"data.jsonl"}
    place.with_name("away").rename(place)
    said: list[str] = []
    downloads.download(source, folder, said.append)
    assert "of which 2 are" in said[0]


def test_the_repository_of_a_git_hook_is_left_alone(
    repository: tuple[GitFiles, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """git sets GIT_DIR for a hook and for what the hook runs."""
    source, place = repository
    monkeypatch.setenv("GIT_DIR", str(place / ".git"))
    before = (place / ".git/config").read_bytes()
    downloads.download(source, tmp_path / "folder", print)
    assert (place / ".git/config").read_bytes() == before
    assert (tmp_path / "folder/.git").is_dir()


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_faults_of_git(
    repository: tuple[GitFiles, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, _ = repository
    gone = GitFiles(source.url, "1" * 40)
    assert "moved or withdrawn; get the files by hand" in refusal(gone, tmp_path / "gone")
    none = GitFiles(f"file://{tmp_path}/gone/away", source.commit)
    assert "git: fatal: '" in refusal(none, tmp_path / "none")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged/.git").touch()
    line = refusal(source, tmp_path / "damaged")
    assert line.endswith(f"if that does not help, remove {tmp_path}/damaged/.git first")
    pointer = GitFiles(source.url, source.commit, ("set/pointer.mp4",))
    assert "set/pointer.mp4 is only a pointer of Git LFS there" in refusal(pointer, tmp_path / "p")
    host = GitFiles("https://nowhere.invalid/a/b", source.commit)
    assert "check the network and the proxy (HTTPS_PROXY)" in refusal(host, tmp_path / "host")
    monkeypatch.setattr(downloads, "TIMEOUT", 0.0)
    assert "no answer in 0 s: check the network" in refusal(source, tmp_path / "slow")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "git is missing: install it" in refusal(source, tmp_path / "missing")


# --- the command ----------------------------------------------------------------------------------


def test_data_get_puts_a_benchmark_in_place(tmp_path: Path) -> None:
    """The command in a process of its own, against HF_ENDPOINT; twice downloads once."""
    recaps = '[{"video_id": "v", "movie_name": "M", "subtitle_url": "http://a"}]'
    times = '"movie_start_time": 0, "movie_end_time": 9, "recap_start_time": 0, "recap_end_time": 9'
    asked = '"question_id": 1, "question": "Who?", "answer": "She.", "aligned_fact_ids": ["f"]'
    tables = {
        "data/recaps.json": recaps,
        "data/segments.json": f'[{{"video_id": "v", "segment_id": 1, {times}, "fact_ids": ["f"]}}]',
        "data/questions.json": f'[{{"video_id": "v", "segment_id": 1, {asked}}}]',
        "data/facts.json": '[{"video_id": "v", "segment_id": 1, "fact_id": "f", "fact": "She."}]',
    }
    root = tmp_path / "root"

    def get(*names: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0"}
        environment |= {"HF_HOME": str(tmp_path), settings.CACHE: str(tmp_path)}
        code = "from lmms_eval_tasks.commands.cli import main; main()"
        return subprocess.run(
            [sys.executable, "-c", code, "data", "get", *names, "--data", str(root)],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )

    content = {name: text.encode() for name, text in tables.items()}
    with LocalHub({"sshaar/movierecapsqa": content}) as hub:
        done = get("movierecapsqa", "movierecapsqa")
        assert done.returncode == 0, done.stderr
        first, placed, *notes = done.stdout.splitlines()
        assert first.startswith(f"{hub.url}/datasets/sshaar/movierecapsqa: 4 files, of which 4 ")
        assert placed == f"linked 4 files to {root / 'movierecapsqa'}"
        assert "1 of 8,231 questions" in notes[0]
        assert notes[-1].startswith("by hand: recap videos from YouTube")
        # No second copy on the disk.
        there = root / ".downloads/movierecapsqa/data/facts.json"
        assert (root / "movierecapsqa/facts.json").samefile(there)
        asked_before = len(hub.downloaded())
        again = get("movierecapsqa", "haven")
        assert len(hub.downloaded()) == asked_before
        assert again.returncode == 2
        assert "of which 0 are to be downloaded" in again.stdout
        # A benchmark that cannot be had does not stop the others.
        (line,) = again.stderr.splitlines()
        assert line.startswith(f"lmms-eval-tasks: haven: {hub.url}/datasets/MokiSee7/HAVEN: not ")


def test_a_benchmark_of_another_package_that_declares_nothing(tmp_path: Path) -> None:
    """It says where its data are, and has the same commands."""

    class Toy(Benchmark):
        name, title, how_to_get = "toy", "Toy", "Ask its authors"

    with pytest.raises(DataError) as error:
        Toy().get(tmp_path, print)
    assert str(error.value) == (
        "Toy cannot be downloaded: Ask its authors. Then: lmms-eval-tasks data prepare toy --from "
        "FOLDER"
    )


def test_what_our_benchmarks_declare() -> None:
    """A git source names a whole hash, so that its content is fixed."""
    for name in registry.NAMES:
        benchmark = registry.load_benchmark(name)
        assert f"lmms-eval-tasks data get {name}" in benchmark.how_to_get
        assert benchmark.downloads
        for source in benchmark.downloads:
            if isinstance(source, GitFiles):
                assert re.fullmatch("[0-9a-f]{40}", source.commit)
                assert source.url.startswith("https://")
            else:
                assert re.fullmatch(r"[\w-]+/[\w-]+", source.name)
