"""The extras of pyproject.toml: packages that one part needs and a plain install leaves out."""

from __future__ import annotations

from importlib.util import find_spec

from lmms_eval_tasks.errors import TasksError

# Extra -> the modules that its part imports.
EXTRAS = {
    "report": ("altair", "pandas", "tabulate", "vl_convert"),
    "haven": ("h5py", "ruptures"),
    "metrics": ("nltk", "pycocoevalcap", "sacrebleu"),
    "inspect": ("inspect_ai",),
}


def missing(extra: str) -> list[str]:
    """Return the modules of an extra that are not installed; empty for a name that is no extra."""
    return [name for name in EXTRAS.get(extra, ()) if find_spec(name) is None]


def require(extra: str, part: str) -> None:
    """Raise an error if an extra is not installed, before any work whose result needs it.

    Args:
        extra: a key of EXTRAS.
        part: the option, command or task that needs the extra; the message begins with it.

    Raises:
        TasksError: a package of the extra is not installed; one line with the command to type.
    """
    if lacking := missing(extra):
        raise TasksError(
            f"{part} requires {', '.join(lacking)}: pip install 'lmms-eval-tasks[{extra}]'"
        )
