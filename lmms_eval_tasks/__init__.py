"""Published video benchmarks as lmms-eval tasks. Importing this package imports nothing heavy."""

from pathlib import Path as _Path

__version__ = "0.2.0"

# In a checkout, `utils/`, `judges/` and `leaderboards/` stand beside this folder (pyproject.toml
# maps them in). Whoever runs Python in the checkout imports this folder before the installed
# package, so the three must be found from here as well.
_here = _Path(__file__).absolute().parent
if not (_here / "utils").is_dir():
    __path__.append(str(_here.parent))
