"""The key of the packaged sample: for each request of some tasks its fingerprint and its replies.

Made with the data at hand, media included, which are kept for the run that follows: whoever looks
up what was handed to it (players.Key) has to be handed the same.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from lmms_eval_tasks import benchmarks
from lmms_eval_tasks.benchmark import NOT_RUN
from lmms_eval_tasks.runs import before, given
from lmms_eval_tasks.sample import players


def of_tasks(names: Sequence[str]) -> dict[str, list[str]]:
    """Fingerprint -> the right reply, then those that a coin draws from; chat and simple requests.

    Args:
        names: of tasks, no groups.

    Raises:
        TasksError: the data cannot be used.
    """
    found = {}
    for name in names:
        benchmark = benchmarks.of(name)
        for doc in before.docs(benchmark, name):
            if not doc.get(NOT_RUN):
                known, parts = players.known(doc), benchmark.tasks[name].prompt(doc)
                chat = players.of_messages(given.messages_of(parts))
                simple = players.of_visuals(given.visuals_of(parts), given.text_of(parts))
                for asked in (chat, simple):
                    found[players.fingerprint(asked)] = [known.right, *known.drawn]
    return found


def write(path: Path, names: Sequence[str]) -> Path:
    """A key file of these tasks (`of_tasks`)."""
    path.write_text(json.dumps(of_tasks(names), ensure_ascii=False), encoding="utf-8")
    return path
