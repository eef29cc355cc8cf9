"""The number of requests that a class gets at a time, so that replies are known early.

lmms-eval gives a class all requests of a run in one call, and a reply is known only when the call
returns. How a class works on the requests of a call decides how many it can get at a time without
becoming slower. The attributes of a class show this, not its name:

- it has the number of requests that it wants in a call (`requests_at_once`), since a call is
  expensive for it: it gets this number;
- it may be called for single requests from several threads (`requests_in_flight`), or its `client`
  is one of chat completions and it has a number of requests in flight: it gets single requests;
- its `generate_until` starts threads, tasks or a loader (it prepares the next request while one is
  answered, or uploads a video once for all its questions): portions, by time and by count;
- all others answer one batch after the other: a batch, by default one request.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm.std import tqdm

from lmms_eval_tasks import context

if TYPE_CHECKING:
    from lmms_eval_tasks.models.host_types import ModelInstance

# A portion ends after so many seconds or so many batches, whichever comes first.
SECONDS, PORTION = 30.0, 20
# The names in lmms-eval's classes for the number of requests in flight.
_IN_FLIGHT = ("num_concurrent", "num_cpus")
_BATCH = (*_IN_FLIGHT, "batch_size", "concurrency", "max_workers")
_SEVERAL = re.compile(r"\b(?:ThreadPoolExecutor|DataLoader|Thread|submit)\(|\basyncio\.")
_PLACE_OF_FILE = 4  # among the positional arguments of tqdm


class Pace:
    """The number of requests that a class gets at a time in a run."""

    def __init__(self, lm: ModelInstance, run: Mapping[str, object]) -> None:
        model = context.current().model
        arguments = model.arguments if model is not None else {}
        told = [run.get("batch_size"), *(arguments.get(name) for name in _BATCH)]
        told += [_said(lm, name) for name in _BATCH]
        batch = max([1, *(int(one) for one in map(str, told) if one.isdecimal())])
        wanted = _number(lm, "requests_at_once")
        self._wants = wanted > 0
        # Requests that the class answers together.
        self.at_once = wanted or batch
        # Requests in flight, if the class can be called for each from a thread; else 0.
        self.in_flight = _in_flight(lm)
        self._several = _works_on_several(lm)

    def first_portion(self, most: int) -> int:
        """Return the number of requests of the first call.

        The number is above `most` only if the class wants more.
        """
        return self.at_once if self._wants else min(self.at_once, most)

    def next_portion(self, answered: int, seconds: float) -> int:
        """Return the number of requests of the next call; `answered` ones took `seconds`."""
        if self._wants or not self._several:
            return self.at_once
        batches = SECONDS * answered / (self.at_once * max(seconds, 1e-9))
        return self.at_once * int(min(max(batches, 1), PORTION))


def _in_flight(lm: ModelInstance) -> int:
    if number := _number(lm, "requests_in_flight"):
        return number
    client = _said(lm, "client")
    for name in ("chat", "completions", "create"):
        client = _said(client, name)
    numbers = (_said(lm, name) for name in _IN_FLIGHT)
    most = next((one for one in numbers if isinstance(one, int)), None)
    # A class that adapts its number needs many requests for it; tools end with a call.
    own = _said(lm, "adaptive_concurrency") or _said(lm, "mcp_client") is not None
    return 0 if client is None or most is None or own else max(1, most)


def _number(owner: object, name: str) -> int:
    """Return an attribute of `owner` that is an int above 0; else 0."""
    number = _said(owner, name)
    return number if isinstance(number, int) and number > 0 else 0


def _said(owner: object, name: str) -> object:
    """Return an attribute of another package's class; None if it is missing or cannot be read."""
    try:
        return getattr(owner, name, None)
    except Exception:
        return None


def _works_on_several(lm: ModelInstance) -> bool:
    try:
        source = inspect.getsource(type(lm).generate_until)
    except (OSError, TypeError):  # no source code
        return True
    return _SEVERAL.search(source) is not None


@contextmanager
def one_bar(total: int, n_done: int, silent: bool) -> Iterator[tqdm[None]]:
    """Show one bar over all of a run's requests while the context lasts, and hide other bars.

    Classes show a bar for each call. These bars are written to the null device, and not disabled:
    vLLM divides by the elapsed time of its bar, which is 0 if it is disabled.

    Args:
        total: number of requests.
        n_done: number of requests whose replies an earlier run kept.
        silent: True to show no bar, on all ranks but the first.
    """
    plain = tqdm.__init__
    with (
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        tqdm(total=total, initial=n_done, desc="Model Responding", disable=silent) as bar,
    ):

        def hidden(self: tqdm[None], *args: object, **kwargs: object) -> None:
            given = kwargs if len(args) > _PLACE_OF_FILE else {**kwargs, "file": nowhere}
            plain(self, *args, **given)

        tqdm.__init__ = hidden
        try:
            yield bar
        finally:
            tqdm.__init__ = plain
