"""Judges: who gives a verdict, and what a verdict is. Installed as `lmms_eval_tasks.judges`.

config = judges.resolve(settings.judge_spec(), os.environ, default_model="gpt-4o")
judges.preflight(config, [criterion.name])       # before a run: JudgeError
judges.make(config).verdict(criterion, fields)   # during it: a Verdict, never an exception
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges.config import NONE, OFFLINE, OPENAI, JudgeConfig, resolve
from lmms_eval_tasks.judges.verdict import Criterion, Judge, Status, Verdict

__all__ = [
    "Criterion",
    "Judge",
    "JudgeConfig",
    "Status",
    "Verdict",
    "make",
    "preflight",
    "resolve",
]

_judges: dict[JudgeConfig, Judge] = {}


def make(config: JudgeConfig) -> Judge:
    """The judge of `config`: one object for a process, so that its threads share one client.

    Making it opens no connection; a fork may come between (the client sees to that).
    """
    # setdefault is atomic: of two threads that come first at once, both get the same object.
    return _judges.get(config) or _judges.setdefault(config, _build(config))


def preflight(config: JudgeConfig, criteria: Iterable[str]) -> None:
    """Check before a run that the judge can decide every kind of verdict that the run needs.

    Raises:
        JudgeError: naming the judge and the kinds it cannot decide.
    """
    judge = make(config)
    if refused := sorted(name for name in set(criteria) if not judge.supports(name)):
        raise JudgeError(
            f"the judge {config.label} cannot decide {', '.join(refused)}: name a language model "
            "(LMMS_EVAL_TASKS_JUDGE=MODEL[@BASE_URL]), or none to judge later"
        )


@dataclass(frozen=True)
class NoJudge:
    """`none`: generate now, judge later; every verdict is `skipped`."""

    config: JudgeConfig

    def supports(self, criterion: str) -> bool:  # noqa: ARG002 - nobody is asked
        """Every criterion: nothing is decided now."""
        return True

    def verdict(self, criterion: Criterion, fields: Mapping[str, Any]) -> Verdict:  # noqa: ARG002
        """A skipped verdict."""
        return Verdict(None, Status.SKIPPED, "not judged yet", judge=NONE)


def _build(config: JudgeConfig) -> Judge:
    if config.provider == OPENAI:
        from lmms_eval_tasks.judges.client import OpenAIJudge

        return OpenAIJudge(config)
    if config.provider == OFFLINE:
        from lmms_eval_tasks.judges.offline import OfflineJudge

        return OfflineJudge(config)
    if config.provider == NONE:
        return NoJudge(config)
    raise JudgeError(f"no judge provider is called {config.provider!r}")
