"""What the model under test is called among candidates and judges.

Names join runs: a judge's own ratings are not shown to it, and a judge that rates its own answers
is marked. So they must not depend on where a checkpoint lies.
"""

from __future__ import annotations

import os

from lmms_eval_tasks import running, settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.running import Model

_NAMING = ("model_version", "model", "pretrained", "model_name")  # of the host's classes


def running_model() -> str:
    """The user's name for it (`--cvrr-name`), or the last part of the checkpoint's or its class."""
    if given := os.environ.get(settings.CVRR_NAME, "").strip():
        return given
    return of(running.current())


def of(model: Model | None) -> str:
    """A model's name; "model" if the hook was not told which one runs."""
    if model is None:
        return "model"
    for name in _NAMING:
        value = model.arguments.get(name)
        if isinstance(value, str) and value.strip("/ "):
            return value.strip("/ ").rpartition("/")[2]
    return model.name


def candidates() -> list[str]:
    """Names of the candidates that the user named; none where they cannot be read."""
    from lmms_eval_tasks.cvrr_es import candidates as reading

    try:
        paths = settings.paths(settings.CVRR_CANDIDATES)
        return [one.name for one in reading.read(paths)] if paths else []
    except TasksError:
        return []  # the check before the run says what is wrong
