"""Every setting a user can make through the environment, read when asked for and never at import.

The `lmms_eval` script turns its own options into these variables, so that they also reach runs that
are started by the host's commands and by torchrun.
"""

from __future__ import annotations

import os
from pathlib import Path

from lmms_eval_tasks.errors import TasksError

DATA = "LMMS_EVAL_TASKS_DATA"
CACHE = "LMMS_EVAL_TASKS_CACHE"
PROMPTS = "LMMS_EVAL_TASKS_PROMPTS"
JUDGE = "LMMS_EVAL_TASKS_JUDGE"
FRAMES = "LMMS_EVAL_TASKS_FRAMES"
STILL_CLIP = "LMMS_EVAL_TASKS_STILL_CLIP"
ALLOW_MISSING = "LMMS_EVAL_TASKS_ALLOW_MISSING_VIDEOS"
BERTSCORE = "LMMS_EVAL_TASKS_BERTSCORE"

SAMPLE = "sample"
_YES = {"1", "true", "yes", "on"}
_NO = {"", "0", "false", "no", "off"}


def cache_dir() -> Path:
    """Folder for clips, the packaged sample and downloaded metric files. Not created here."""
    if given := os.environ.get(CACHE):
        return Path(given).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("lmms-eval-tasks"))


def is_sample() -> bool:
    """True when the user asked for the packaged sample by name."""
    return os.environ.get(DATA) == SAMPLE


def data_root() -> Path:
    """Folder with one subfolder per benchmark; the user cache if nothing is set."""
    given = os.environ.get(DATA)
    if given == SAMPLE:
        return cache_dir() / SAMPLE
    return Path(given).expanduser() if given else cache_dir() / "data"


def prompts_dir() -> Path | None:
    """Folder whose `<benchmark>/<file>` replace ours, or None."""
    given = os.environ.get(PROMPTS)
    return Path(given).expanduser() if given else None


def judge_spec() -> str | None:
    """The judge in its short form (`MODEL[@BASE_URL]`, `offline`, `none`), or None if unset."""
    return os.environ.get(JUDGE) or None


def bertscore_model() -> str | None:
    """Name or path of the BERTScore encoder the user chose, or None for bert-score's default."""
    return os.environ.get(BERTSCORE) or None


def allow_missing_videos() -> bool:
    """Leave out questions whose video is missing (they are counted) instead of stopping."""
    return _flag(ALLOW_MISSING)


def still_clip() -> bool:
    """Hand the 1-frame setting over as a clip of one repeated frame instead of an image."""
    return _flag(STILL_CLIP)


def frames_for(video: str, default: int = 32) -> int:
    """Number of uniform frames for `video`.

    The variable is a number, optionally followed by exceptions per video: `32,video7=16` (MAIA's
    paper lowered the count for some videos of one model, section 4.4).

    Raises:
        TasksError: the value is not of that form or a number is below 1.
    """
    given = os.environ.get(FRAMES)
    if not given:
        return default
    frames = default
    for part in given.split(","):
        name, _, number = part.strip().rpartition("=")
        if not number.isdigit() or int(number) < 1:
            raise TasksError(f"{FRAMES}={given!r}: expected a form like 32 or 32,video7=16")
        if name in ("", video):
            frames = int(number)
            if name:
                break
    return frames


def check() -> None:
    """Read every setting that can be misspelt once, before a model is loaded.

    Raises:
        TasksError: naming the variable and the form it takes.
    """
    frames_for("")
    still_clip()
    allow_missing_videos()


def _flag(name: str) -> bool:
    value = os.environ.get(name, "").strip().lower()
    if value in _YES:
        return True
    if value in _NO:
        return False
    raise TasksError(f"{name}={value!r}: expected 1 or 0")
