"""The packaged sample: small clips and texts whose truth is known by construction, made on demand.

Nothing here is released data. `build` writes one folder per benchmark, each in that benchmark's
released layout, so that `LMMS_EVAL_TASKS_DATA=sample` runs the same code as real data does. It is
deterministic: two builds on one machine decode to the same frames and sound samples.

A benchmark's `sample.py` offers `videos()` (file -> render.Clip), `files()` (file -> its content: a
text, plain data for a .json, an iterable of lines for a .jsonl, or a function that writes to a
path), `PLAYED`, what the demo makes of it, and `known(doc)`, replies whose worth is known, where a
doc has neither `options` nor `references`; None of one that has (models/fake_replies.py).
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
from lmms_eval_tasks.notify import say
from lmms_eval_tasks.utils import extras
from lmms_eval_tasks.utils.json_files import write_json, write_lines
from lmms_eval_tasks.utils.media import second_code
from lmms_eval_tasks.utils.released_files import put_folder

VERSION = "VERSION"  # no .json: a benchmark may look for its data among *.json
_LOCK_SECONDS = 300  # a build takes seconds; longer means that another process hangs


def build(root: Path) -> Path:
    """Make the whole sample under `root`, one subfolder per benchmark, and return `root`.

    A benchmark whose extra (extras.py) is not installed is left out; its own data say so.

    A sample of the same version (same sources) is left as it is. Anything else that we made is
    replaced, by renaming a finished folder into its place. Safe to call from several processes at
    once: one builds, the others wait for it.

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
                if not is_current(folder):  # by now
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
    """Make a benchmark's sample; somebody's that cannot be made costs nothing else."""
    try:
        put_folder(folder, functools.partial(write, folder.name))
    except registry.ERRORS as error:
        if registry.is_ours(folder.name):
            raise
        say(f"the sample of {folder.name} cannot be made ({error!r})")


def ready() -> None:
    """Make the sample where the user asked for it by name (`settings.is_sample`).

    Whoever begins work on the user's data calls it: a run, a command.
    """
    if settings.is_sample():
        build(settings.data_root())


def names() -> list[str]:
    """The benchmarks that have a sample, and what it needs."""
    own = (name for name in registry.NAMES if registry.has_part(name, "sample"))
    return [name for name in own if not extras.missing(name)]


def module(name: str) -> ModuleType:
    """A benchmark's `sample.py`."""
    return registry.part(name, "sample")


def version(name: str) -> str:
    """Hash of the sources that may decide a benchmark's sample, so that nobody bumps a number."""
    own = registry.folder(name)
    sources = {*own.rglob("*.py"), *own.glob("sample*")} if own else set()
    shared = (Path(__file__).with_name(f"{one}.py") for one in ("render", "scenes"))
    sources |= {*shared, Path(second_code.__file__)}
    digest = hashlib.sha256()
    # Files there: an editable install may have stale links. By name: it has several places.
    for source in sorted(filter(Path.is_file, sources), key=lambda one: (one.name, str(one))):
        digest.update(source.name.encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def write(name: str, folder: Path) -> None:
    """Write a benchmark's sample into an existing empty folder, its videos side by side."""
    made = module(name)
    videos, files = made.videos(), made.files()
    for file in (*videos, *files):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
    # Threads: encoders let go of Python's lock.
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
    """True if `folder`, called as a benchmark, holds a sample of the present sources."""
    made = folder / VERSION
    return made.is_file() and made.read_text(encoding="utf-8") == version(folder.name)
