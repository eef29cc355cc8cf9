"""The packaged sample: small clips and texts whose truth is known by construction, made on demand.

Nothing here is released data. `build` writes one folder per benchmark, each in that benchmark's
released layout, so that `LMMS_EVAL_TASKS_DATA=sample` runs the same code as real data does. It is
deterministic: two builds on one machine decode to the same frames and sound samples.

A benchmark adds itself with one line in `BENCHMARKS`. Its module offers `write(folder: Path)`,
which fills an empty folder; all files that decide the result are called `sample*` and lie beside
it, or are named in its `ALSO`.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import shutil
import tempfile
from pathlib import Path
from types import ModuleType

from lmms_eval_tasks.errors import DataError

# Folder name of a benchmark -> the module that writes its sample, imported when it is built.
BENCHMARKS: dict[str, str] = {
    "maia": "lmms_eval_tasks.maia.sample",
    "maverix": "lmms_eval_tasks.maverix.sample",
    "movierecapsqa": "lmms_eval_tasks.movierecapsqa.sample",
    "haven": "lmms_eval_tasks.haven.sample",
    "cvrr_es": "lmms_eval_tasks.cvrr_es.sample",
}

MANIFEST = "VERSION"  # no .json: a benchmark may look for its data among *.json
_LOCK_SECONDS = 300  # a build takes seconds; longer means that another process hangs


def build(root: Path) -> Path:
    """Make the whole sample under `root`, one subfolder per benchmark, and return `root`.

    A complete sample of the same version (same sources, same file hashes) is left as it is.
    Anything else that we made is replaced, by renaming a finished folder into its place. Safe to
    call from several processes at once: one builds, the others wait for it.

    Raises:
        DataError: a subfolder exists that this function did not make (it is never deleted), the
            folder cannot be written, or another process has been building for five minutes.
        MediaError: a clip cannot be encoded.
    """
    from filelock import FileLock, Timeout

    if all(_is_current(root / name, _module(name)) for name in BENCHMARKS):
        return root  # no lock, so that a complete sample may lie on a read-only disk
    try:
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / ".sample.lock", timeout=_LOCK_SECONDS):
            for name in BENCHMARKS:
                _build_one(root / name, _module(name))
    except Timeout as error:
        raise DataError(
            f"{root}: another process has been building the sample for {_LOCK_SECONDS} s; "
            f"stop it, or delete {root} and try again"
        ) from error
    except OSError as error:
        raise DataError(f"{root}: the packaged sample cannot be written here: {error}") from error
    return root


def version(module: ModuleType) -> str:
    """Hash of the sources that decide a benchmark's sample, so that no number has to be bumped."""
    own = Path(str(module.__file__)).parent
    shared = Path(__file__).parent
    further = [own / name for name in getattr(module, "ALSO", ())]
    sources = [*own.glob("sample*"), *shared.glob("*.py"), *further]
    digest = hashlib.sha256()
    for source in sorted(path for path in sources if path.is_file()):
        digest.update(source.name.encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _module(name: str) -> ModuleType:
    return importlib.import_module(BENCHMARKS[name])


def _build_one(folder: Path, module: ModuleType) -> None:
    """Write one benchmark's sample beside `folder`, then put it in place. Caller holds the lock."""
    if _is_current(folder, module):
        return
    if folder.exists() and not (folder / MANIFEST).is_file():
        raise DataError(
            f"{folder} exists and is not a packaged sample; it is left alone. "
            "Name another folder, or move this one away"
        )
    # Killed builds leave their temporary folder behind; under the lock nobody else is using one.
    for leftover in folder.parent.glob(f".{folder.name}-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        new = work / "new"
        new.mkdir()
        module.write(new)
        manifest = {"version": version(module), "files": _hashes(new)}
        (new / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        if folder.exists():
            folder.rename(work / "old")
        new.rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _is_current(folder: Path, module: ModuleType) -> bool:
    """True if `folder` holds a complete, undamaged sample made from the present sources."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        stored, files = manifest["version"], manifest["files"]
        found = {name: _hash(folder / name) for name in files}
    except (OSError, ValueError, KeyError, TypeError):  # absent, unreadable or damaged: build it
        return False
    return bool(files) and stored == version(module) and found == files


def _hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of every file under `folder`, by its path relative to it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): _hash(path) for path in files}


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
