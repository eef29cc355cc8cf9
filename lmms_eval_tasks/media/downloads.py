"""Downloads of a benchmark's released files, from the Hugging Face hub or a git repository.

A benchmark lists the places of its files (`Benchmark.downloads`). All files go into one folder,
from which `Benchmark.prepare` puts them in place. The folder is kept: a file in it with the hash
that the hub or git names is not downloaded again, so that a download which broke off goes on.
"""

from __future__ import annotations

import errno
import hashlib
import lzma
import os
import shutil
import subprocess
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tqdm import tqdm

from lmms_eval_tasks.errors import DataError, about_file

AGAIN = "run the same command again, which continues"
TIMEOUT = 60.0  # seconds in which a git server has to list its files
_POINTER = b"version https://git-lfs"
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_OF_HOOKS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX")
# What zipfile raises about a damaged archive, beside OSError.
_DAMAGED = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    EOFError,
    zlib.error,
    lzma.LZMAError,
)
_IGNORED = ("__MACOSX/*", ".*", "*/.*")  # never unpacked: a `.git` could hold commands for git


class RemoteFile(NamedTuple):
    """A file that can be downloaded."""

    path: str  # its path in the folder of the downloads
    hash: str  # SHA-256 of the content, or git's SHA-1 of it
    fetch: Callable[[], object]  # downloads the file to its path
    size: int | None = None  # bytes; None if the server does not say


@dataclass(frozen=True)
class HubFiles:
    """Files of a data set on the Hugging Face hub, or on its mirror at HF_ENDPOINT.

    Attributes:
        name: name of the data set, OWNER/NAME.
        patterns: patterns of the files' paths; archives (.zip) are unpacked.
        ignored: patterns of files, also of those in archives, that no task needs.
    """

    name: str
    patterns: Sequence[str] = ("*",)
    ignored: Sequence[str] = ()

    @property
    def url(self) -> str:
        """The page of the data set."""
        from huggingface_hub import constants

        return f"{constants.ENDPOINT}/datasets/{self.name}"

    def files(self, folder: Path) -> list[RemoteFile]:
        """Return the newest version of the files, for download into a folder.

        Raises:
            DataError: the hub cannot be reached, or refuses; the message says what to do.
        """
        from huggingface_hub import HfApi, hf_hub_download

        try:
            info = HfApi().dataset_info(self.name, files_metadata=True, timeout=10)
        except Exception as error:  # of whichever HTTP library this huggingface_hub uses
            raise _explain_hub_error(self.url, error, is_started=False) from error

        def fetch(path: str) -> None:
            try:
                hf_hub_download(
                    self.name, path, repo_type="dataset", revision=info.sha, local_dir=folder
                )
            except Exception as error:
                raise _explain_hub_error(self.url, error, is_started=True) from error

        return [
            RemoteFile(
                one.rfilename,
                one.lfs.sha256 if one.lfs else one.blob_id or "",
                partial(fetch, one.rfilename),
                one.size,
            )
            for one in info.siblings or ()
            if _matches(one.rfilename, self.patterns) and not _matches(one.rfilename, self.ignored)
        ]


@dataclass(frozen=True)
class GitFiles:
    """Files of a git repository in one commit, whose hash makes sure of their content.

    Attributes:
        url: address of the repository.
        commit: all 40 digits of the commit's hash.
        patterns: patterns of the files' paths.
        base: folder in the repository that becomes the folder of the downloads, such as "data/".
    """

    url: str
    commit: str
    patterns: Sequence[str] = ("*",)
    base: str = ""

    def files(self, folder: Path) -> list[RemoteFile]:
        """Return the files, for download into a folder; git's own files go into its `.git`.

        Raises:
            DataError: git is missing, or the repository cannot be reached or lacks the commit.
        """
        self._run(folder, "init", "--quiet")
        # Contents are not fetched with the commit, but file by file when they are read.
        for name, value in (("url", self.url), ("promisor", "true")):
            self._run(folder, "config", f"remote.origin.{name}", value)
        if self._run(folder, "cat-file", "-t", self.commit, is_check=True).returncode:
            self._run(folder, "fetch", "--depth=1", "--filter=blob:none", "origin", self.commit)

        def fetch(target: Path, blob: str) -> None:
            with _whole(target) as opened:
                self._run(folder, "cat-file", "blob", blob, stdout=opened.fileno())

        listing = self._run(folder, "ls-tree", "-rz", self.commit).stdout.decode()
        files = []
        for line in filter(None, listing.split("\0")):
            about, _, path = line.partition("\t")
            if path.startswith(self.base) and _matches(path, self.patterns):
                blob, path = about.split()[2], path.removeprefix(self.base)
                files.append(RemoteFile(path, blob, partial(fetch, folder / path, blob)))
        return files

    def _run(
        self, folder: Path, *arguments: str, is_check: bool = False, stdout: int = subprocess.PIPE
    ) -> subprocess.CompletedProcess[bytes]:
        """Run git in a folder without questions; an error becomes a DataError of one line.

        `is_check` is True for a command whose failure is an answer; it does not use the network.
        """
        # A server that sends less than a kilobyte a second for half a minute has stopped.
        slow = ("-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=30")
        # In a git hook, variables name the user's repository, which is not to be changed.
        variables = {name: value for name, value in os.environ.items() if name not in _OF_HOOKS}
        environment = {**variables, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        if is_check:
            environment["GIT_NO_LAZY_FETCH"] = "1"
        try:
            done = subprocess.run(
                ["git", "-C", str(folder), *slow, *arguments],
                stdout=stdout,
                stderr=subprocess.PIPE,
                stdin=subprocess.DEVNULL,
                env=environment,
                timeout=TIMEOUT if "fetch" in arguments else None,
                check=False,
            )
        except FileNotFoundError:
            raise DataError(f"{self.url}: git is missing: install it, then {AGAIN}") from None
        except subprocess.TimeoutExpired:
            raise DataError(
                f"{self.url}: no answer in {TIMEOUT:g} s: check the network, then {AGAIN}"
            ) from None
        if done.returncode and not is_check:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            last = said[-1] if said else f"ended with {done.returncode}"
            why = next((line for line in said if line.startswith(("fatal:", "error:"))), last)
            raise _explain_git_error(self.url, why, folder)
        return done


def download(source: HubFiles | GitFiles, folder: Path, say: Callable[[str], object]) -> None:
    """Download the files of a source that a folder lacks, check them, and unpack archives.

    Args:
        source: the files.
        folder: the folder of the downloads; it is made.
        say: prints a line for the user: from where come how many files and bytes, to which folder.

    Raises:
        DataError: another process downloads to the folder, a file cannot be had, or its content is
            not that of its hash; one line that says what to do.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            _download(source, folder, say)
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise DataError(f"{folder}: the disk is full: free some space, then {AGAIN}") from error
        raise DataError(f"{about_file(error) or error}: nothing can be written there") from error


def _download(source: HubFiles | GitFiles, folder: Path, say: Callable[[str], object]) -> None:
    files = source.files(folder)
    if not files:
        raise DataError(
            f"{source.url}: has no files {', '.join(source.patterns)}: its form has changed"
        )
    missing = [file for file in files if not _is_whole(folder / file.path, file.hash)]
    size = sum(file.size or 0 for file in missing)
    amount = f" ({tqdm.format_sizeof(size, 'B')})" if size else ""
    say(
        f"{source.url}: {len(files):,} files, of which {len(missing):,} are to be downloaded"
        f"{amount} to {folder}"
    )
    require_space(folder, size)
    is_hub = isinstance(source, HubFiles)  # huggingface_hub shows a bar for each file
    for file in tqdm(missing, unit="file", disable=is_hub or None):  # None: terminals only
        _fetch(source.url, file, folder / file.path)
    if isinstance(source, HubFiles):
        for file in files:
            if file.path.endswith(".zip"):
                _unpack(folder / file.path, folder, source.ignored)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Context manager of the only process that downloads to a folder.

    Raises:
        DataError: another process does.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / ".lock")  # it ends with its process
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise DataError(
            f"{folder}: another process downloads to this folder: when it has ended, {AGAIN}"
        ) from None
    except (OSError, NotImplementedError):
        pass  # a file system without locks
    try:
        yield
    finally:
        lock.release()


def require_space(folder: Path, size: int) -> None:
    """Raise a DataError if the disk of a folder has less free space than `size` bytes."""
    free = shutil.disk_usage(folder).free
    if size > free:
        needed, there = (tqdm.format_sizeof(one, "B") for one in (size, free))
        raise DataError(
            f"{folder}: needs {needed}, but {there} are free: free some space, or name another "
            "disk with --data ROOT"
        )


def _fetch(url: str, file: RemoteFile, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)  # damaged: huggingface_hub would take it for the whole file
    file.fetch()
    with target.open("rb") as opened:
        if opened.read(len(_POINTER)) == _POINTER:
            target.unlink()
            raise DataError(
                f"{url}: {file.path} is only a pointer of Git LFS there: get the file by hand "
                "(git clone, with git-lfs installed)"
            )
    if not _is_whole(target, file.hash):
        target.unlink()
        raise DataError(
            f"{url}: {file.path} came with other content than its hash {file.hash[:12]} says: "
            f"{AGAIN}; if that does not help, look for a proxy or mirror that changes files"
        )


def _is_whole(file: Path, expected: str) -> bool:
    """Return True if a file exists and has the expected hash: SHA-256, or git's SHA-1."""
    if not file.is_file():
        return False
    is_sha1 = len(expected) == hashlib.sha1(usedforsecurity=False).digest_size * 2
    found = hashlib.sha1(usedforsecurity=False) if is_sha1 else hashlib.sha256()
    if is_sha1:
        found.update(f"blob {file.stat().st_size}\0".encode())
    with file.open("rb") as opened:
        while block := opened.read(2**20):
            found.update(block)
    return not expected or found.hexdigest() == expected


def _unpack(archive: Path, folder: Path, ignored: Collection[str]) -> None:
    """Unpack an archive into a folder, without the files that are there already."""
    try:
        with zipfile.ZipFile(archive) as opened:
            new = {}
            for one in opened.infolist():
                target = folder / one.filename
                if not target.resolve().is_relative_to(folder.resolve()):
                    raise zipfile.BadZipFile(f"{one.filename} would lie outside of the folder")
                if one.is_dir() or _matches(one.filename, (*_IGNORED, *ignored)):
                    continue
                if not target.is_file() or target.stat().st_size != one.file_size:
                    new[target] = one
            require_space(folder, sum(one.file_size for one in new.values()))
            for target, one in new.items():
                target.parent.mkdir(parents=True, exist_ok=True)
                with opened.open(one) as source, _whole(target) as output:
                    shutil.copyfileobj(source, output, 2**20)
    except (*_DAMAGED, OSError) as error:
        if isinstance(error, OSError) and error.errno in _NO_SPACE:
            raise
        raise DataError(f"{archive}: cannot be unpacked: {error}") from None


@contextmanager
def _whole(target: Path) -> Iterator[BinaryIO]:
    """Context manager with a file to write, which becomes `target` once it is complete."""
    # With the process's number: two downloads at once must not share a partial file.
    unfinished = target.with_name(f".{os.getpid()}.part")
    try:
        with unfinished.open("wb") as opened:
            yield opened
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def _matches(path: str, patterns: Collection[str]) -> bool:
    return any(fnmatch(path, one) for one in patterns)


# --- messages -------------------------------------------------------------------------------------


def _explain_hub_error(url: str, error: BaseException, *, is_started: bool) -> Exception:
    """Return a DataError of one line for an error of huggingface_hub, or a full disk's OSError.

    `is_started` is True if the hub answered before. The error's cause may be the one that counts.
    """
    from huggingface_hub.errors import FileMetadataError, GatedRepoError, OfflineModeIsEnabled

    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) and cause not in chain:
        chain.append(cause)
    for one in chain:
        if isinstance(one, OSError) and one.errno in _NO_SPACE:
            return one
    codes = (getattr(getattr(one, "response", None), "status_code", None) for one in chain)
    code = next(filter(None, codes), None)
    if any(isinstance(one, OfflineModeIsEnabled) for one in chain):
        why = "not asked, since HF_HUB_OFFLINE is set: unset it"
    elif code == 403 or any(isinstance(one, GatedRepoError) for one in chain):
        why = (
            f"its authors grant access ({code}): log in (hf auth login, or HF_TOKEN), open this "
            "page and accept their terms; then run the same command again"
        )
    elif code == 401:
        why = (
            "not public, or no longer there (401): log in (hf auth login, or HF_TOKEN) with an "
            "account that has access; then run the same command again"
        )
    elif code == 404:
        why = "not there (404): it has another name or was withdrawn; get the files by hand"
    elif code is not None:
        why = f"the hub answered {code}: wait a few minutes, then {AGAIN}"
    else:
        said = next(iter(str(chain[0]).strip().splitlines()), "") or type(chain[0]).__name__
        said = said.split(". ")[0]
        way = "the network, the proxy (HTTPS_PROXY) and, if it is set, HF_ENDPOINT"
        is_answer = isinstance(error, (ValueError, TypeError)) and not isinstance(error, OSError)
        if is_answer or any(isinstance(one, FileMetadataError) for one in chain):
            why = f"the answer is not that of a hub ({said}): check {way}"
        elif is_started:
            why = f"the connection broke ({said}): {AGAIN}"
        else:
            why = f"cannot be reached ({said}): check {way}"
    return DataError(f"{url}: {why}")


def _explain_git_error(url: str, why: str, folder: Path) -> Exception:
    """Return a DataError of one line for what git said about a repository in a folder."""
    if "No space left" in why:
        return OSError(errno.ENOSPC, why)
    if any(text in why for text in ("not our ref", "could not read Username", "not found")):
        mend = "it was moved or withdrawn; get the files by hand"
    elif any(text in why for text in ("resolve", "onnect", "unable to access")):
        mend = f"check the network and the proxy (HTTPS_PROXY), then {AGAIN}"
    else:
        mend = f"{AGAIN}; if that does not help, remove {folder / '.git'} first"
    return DataError(f"{url}: git: {why}: {mend}")
