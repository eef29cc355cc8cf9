"""Published video benchmarks as lmms-eval tasks. Importing this package imports nothing heavy."""

from importlib import import_module as _import_module
from pathlib import Path as _Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmms_eval_tasks.commands.notebook import RunFrames as RunFrames
    from lmms_eval_tasks.commands.notebook import load_docs as load_docs
    from lmms_eval_tasks.commands.notebook import read_run as read_run
    from lmms_eval_tasks.commands.notebook import score_reply as score_reply

__version__ = "0.4.0"

# In a checkout, the folders `utils/`, `judges/` and `leaderboards/` lie beside this folder
# (pyproject.toml maps them into the package). Python that runs in the checkout imports this folder
# before the installed package, so this file adds the checkout's root to the places where submodules
# are searched.
_here = _Path(__file__).absolute().parent
if not (_here / "utils").is_dir():
    __path__.append(str(_here.parent))

_FOR_PYTHON = ("RunFrames", "load_docs", "read_run", "score_reply")


def __getattr__(name: str) -> object:
    """Return a function of docs/python.md by its name, imported at its first use.

    Raises:
        AttributeError: the package has no attribute of that name.
    """
    if name in _FOR_PYTHON:
        return getattr(_import_module("lmms_eval_tasks.commands.notebook"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
