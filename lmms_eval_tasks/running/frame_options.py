"""How many frames a model class takes, as far as its arguments say it.

Tasks that hand over whole segments leave the number of frames to the model: results must say which
numbers applied. The host's classes have no common argument for it.
"""

from __future__ import annotations

import inspect
import re
import sys
from typing import Any

from lmms_eval_tasks.running import Model

# max_num_frames, max_frames_num, nframes, num_segments, fps, video_fps, total_pixels, ...
_OPTION = re.compile(r"frame|fps|num_segments|total_pixels|force_sample", re.IGNORECASE)
_PLAIN = (bool, int, float, str, type(None))
NOT_READ = "not known"


def describe(model: Model | None) -> dict[str, Any]:
    """Options of a run's model that decide how many frames it takes, as plain types.

    Returns:
        `given`: from `--model_args`. `defaults`: those of the class's __init__ that were not given,
        `not known` where the class is not imported or has none. A class may have other limits
        inside.
    """
    arguments = {} if model is None else model.arguments
    given = {name: _plain(value) for name, value in arguments.items() if _OPTION.search(name)}
    defaults = None if model is None else _defaults(model)
    if defaults is None:
        return {"given": given, "defaults": NOT_READ}
    return {
        "given": given,
        "defaults": {
            name: _plain(value) for name, value in defaults.items() if name not in arguments
        },
    }


def _defaults(model: Model) -> dict[str, Any] | None:
    """Frame options of the class's __init__ with a default; None if it is not imported.

    A class that passes `**kwargs` on is asked together with its bases.
    """
    found = _class_of(model)
    if found is None:
        return None
    defaults: dict[str, Any] = {}
    for base in found.__mro__:
        if "__init__" not in vars(base):
            continue
        parameters = inspect.signature(vars(base)["__init__"]).parameters.values()
        for one in parameters:
            if _OPTION.search(one.name) and one.default is not one.empty:
                defaults.setdefault(one.name, one.default)
        if not any(one.kind is one.VAR_KEYWORD for one in parameters):
            break
    return defaults


def _class_of(model: Model) -> type | None:
    """The model's class, if the host knows its name and somebody has imported it."""
    from lmms_eval.models import MODEL_REGISTRY_V2

    try:
        resolved = MODEL_REGISTRY_V2.resolve(model.name, force_simple=model.interface == "simple")
    except ValueError:
        return None
    module, _, name = resolved.class_path.rpartition(".")
    found = getattr(sys.modules.get(module), name, None)
    return found if isinstance(found, type) else None


def _plain(value: Any) -> Any:
    return value if isinstance(value, _PLAIN) else str(value)
