"""The packaged sample: small clips and texts whose right answers are known, made on demand.

Nothing in it is released data. `build_sample` writes one folder per benchmark, each in that
benchmark's released layout, so that `LMMS_EVAL_TASKS_DATA=sample` runs the same code as real data.
It is deterministic: two builds on one machine decode to the same frames and sound samples.

The `sample.py` of a benchmark has these parts:

- `videos()`: the clips (render.Clip) by file.
- `files()`: the contents by file: a text, plain data for a .json, an iterable of lines for a
  .jsonl, or a function that writes to a path.
- `PLAYED`: the tasks of the demo and the numbers that its models must get.
- `known(doc)`: replies of known worth, for docs that have neither `options` nor `references`; None
  for other docs (models/fake_replies.py).
"""

from __future__ import annotations

import functools
import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

from lmms_eval_tasks import registry, settings
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.notify import notify
from lmms_eval_tasks.utils import extras
from lmms_eval_tasks.utils.json_files import write_json, write_lines
from lmms_eval_tasks.utils.media import second_code
from lmms_eval_tasks.utils.released_files import put_folder

VERSION = "VERSION"  # no .json: a benchmark may look for its data among *.json
_LOCK_SECONDS = 300  # a build takes seconds; longer means that another process hangs


def build_sample(root: Path) -> Path:
    """Build the whole sample under `root`, one subfolder per benchmark, and return `root`.

    A benchmark whose extra (extras.py) is not installed is left out; loading its data says so.

    A sample of the present sources stays. A sample of other sources is replaced, by renaming a
    finished folder into its place. Several processes may call this at once: one builds, the others
    wait for it.

    Raises:
        DataError: a subfolder exists that this function did not make (it is never deleted), the
            folder cannot be written, or another process has been building for five minutes.
        MediaError: a clip cannot be encoded.
    """
    from filelock import FileLock, Timeout

    wanted = names()
    if all(is_current(root / name) for name in wanted):
        return root  # no lock, so that a complete sample may lie on a read-only disk
    try:
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / ".sample.lock", timeout=_LOCK_SECONDS):
            for folder in (root / name for name in wanted):
                if folder.exists() and not (folder / VERSION).is_file():
                    raise DataError(
                        f"{folder} exists and is not a packaged sample, so "
                        "nothing is written. Name another folder, or move this "
                        "one away"
                    )
                if not is_current(folder):  # check again: another process may have built it
                    _put(folder)
    except Timeout as error:
        raise DataError(
            f"{root}: another process has been building the sample for {_LOCK_SECONDS} s; "
            f"stop it, or delete {root} and try again"
        ) from error
    except OSError as error:
        raise DataError(f"{root}: the packaged sample cannot be written here: {error}") from error
    return root


def _put(folder: Path) -> None:
    """Build a benchmark's sample; an error of another package's benchmark is only reported."""
    try:
        put_folder(folder, functools.partial(write_sample, folder.name))
    except registry.ERRORS as error:
        if registry.is_ours(folder.name):
            raise
        notify(f"the sample of {folder.name} cannot be made ({error!r})")


def ready() -> None:
    """Build the sample if the user's data are the sample (`settings.is_sample`).

    Every run and every command calls this before it reads the user's data.
    """
    if settings.is_sample():
        build_sample(settings.data_root())


def names() -> list[str]:
    """The names of the benchmarks that have a sample and the packages to build it."""
    own = (name for name in registry.NAMES if registry.has_part(name, "sample"))
    return [name for name in own if not extras.missing(name)]


def module(name: str) -> ModuleType:
    """Return a benchmark's module `sample`."""
    return registry.part(name, "sample")


def version(name: str) -> str:
    """The hash of the sources that may decide a benchmark's sample; 16 hexadecimal digits.

    A hash, so that nobody has to raise a version number.
    """
    own = registry.folder(name)
    sources = {*own.rglob("*.py"), *own.glob("sample*")} if own else set()
    shared = (Path(__file__).with_name(f"{one}.py") for one in ("render", "scenes"))
    sources |= {*shared, Path(second_code.__file__)}
    digest = hashlib.sha256()
    # Only files: an editable install may have stale links. Sorted by name: the folders are in
    # several places.
    for source in sorted(filter(Path.is_file, sources), key=lambda one: (one.name, str(one))):
        digest.update(source.name.encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def write_sample(name: str, folder: Path) -> None:
    """Write a benchmark's sample into an existing empty folder; several videos at once."""
    made = module(name)
    videos, files = made.sample_videos(), made.sample_files()
    for file in (*videos, *files):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
    # Threads suffice: encoders release Python's lock.
    with ThreadPoolExecutor(min(os.cpu_count() or 1, len(videos))) as pool:
        for file, content in files.items():
            path = folder / file
            if callable(content):
                content(path)
            elif isinstance(content, str):
                path.write_text(content, encoding="utf-8")
            else:
                (write_lines if path.suffix == ".jsonl" else write_json)(path, content)
        list(pool.map(lambda file: videos[file].write(folder / file), videos))
    (folder / VERSION).write_text(version(name), encoding="utf-8")


def is_current(folder: Path) -> bool:
    """Return True if `folder`, named after a benchmark, holds a sample of the present sources."""
    made = folder / VERSION
    return made.is_file() and made.read_text(encoding="utf-8") == version(folder.name)
