"""Judges: who gives a verdict, and what a verdict is. Installed as `lmms_eval_tasks.judges`.

config = judges.resolve(settings.text(settings.JUDGE), os.environ, default_model="gpt-4o")
judges.preflight(config, [criterion])            # before a run: JudgeError
judges.make(config).verdict(criterion, fields)   # during it: a Verdict, never an exception

Read verdict.py (the types) first, then engine.py; docs/judges.md is for users.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges.verdict import (
    HUGGINGFACE,
    NONE,
    Criterion,
    Judge,
    JudgeConfig,
    Status,
    Usage,
    Verdict,
)

__all__ = [
    "Criterion",
    "Judge",
    "JudgeConfig",
    "Status",
    "Usage",
    "Verdict",
    "announcement",
    "configured",
    "describe",
    "make",
    "preflight",
    "resolve",
    "setup",
]


def resolve(spec: str | None, env: Mapping[str, str], *, default_model: str) -> JudgeConfig:
    """The judge that a short form or a file names (config.resolve)."""
    from lmms_eval_tasks.judges import config  # its import takes longer than all the rest

    return config.resolve(spec, env, default_model=default_model)


def setup(config: JudgeConfig, criterion: Criterion) -> str:
    """Hash of a judge's settings and a criterion's prompt: what `Verdict.setup` holds."""
    return f"{config.fingerprint}-{criterion.prompt_hash}"


def configured(
    paper: str, spec: str | None = None, env: Mapping[str, str] | None = None
) -> JudgeConfig:
    """The judge of `spec`, or of the user's setting, or the paper's.

    Resolved now, with the keys of `env`; or, without it, once for the process's run.

    Raises:
        JudgeError: it cannot be used as configured.
    """
    from lmms_eval_tasks import settings
    from lmms_eval_tasks.judges import run

    spec = spec or settings.text(settings.JUDGE)
    if env is None:
        return run.current().resolved(spec, paper)
    return resolve(spec, env, default_model=paper)


def make(config: JudgeConfig) -> Judge:
    """The judge of `config` in this process's run (run.py): its threads share one client.

    Making it opens no connection; a fork may come between (the client sees to that).
    """
    from lmms_eval_tasks.judges import run

    return run.current().outermost(config)


def preflight(config: JudgeConfig, criteria: Iterable[Criterion]) -> None:
    """Check before a run all that can be checked without asking anyone: what the judge can decide,
    the cache, the prices where a budget needs them, a local model's files.

    Raises:
        TasksError: naming what is wrong and what to do.
    """
    from lmms_eval_tasks import settings
    from lmms_eval_tasks.judges import run

    judge, asked = make(config), list(criteria)
    if refused := sorted({one.name for one in asked if not judge.supports(one.name)}):
        raise JudgeError(
            f"the judge {config.label} cannot decide {', '.join(refused)}: name a language model "
            "(LMMS_EVAL_TASKS_JUDGE=MODEL[@BASE_URL]), or none to judge later"
        )
    for model in config.endpoints:
        if model.provider == HUGGINGFACE:
            checkpoint = run.current().provider(model)
            _ = checkpoint.front  # loads no weights
            if not checkpoint.sees and any(one.images for one in asked):
                raise JudgeError(f"the judge {model.label} takes no images")
        if run.current().limits.max_cost is not None and run.current().price(model) is None:
            raise JudgeError(
                f"{settings.MAX_COST} is set, but the price of {model.label} is unknown: add it to "
                f"a file named by {settings.PRICES} (docs/judges.md), or limit the calls with "
                f"{settings.MAX_CALLS}"
            )


def describe(config: JudgeConfig) -> dict[str, Any]:
    """The judge and the limits of this run as plain types, for results; no secrets.

    `warning` is None, or one sentence that every number made by this judge must carry.
    """
    from lmms_eval_tasks.judges import run

    current = run.current()
    description = {**config.describe(), "warning": _warning(config)}
    if config.endpoints:
        description["run"] = current.describe()
        if left_out := current.left_out(config):
            description["parameters_left_out"] = left_out
    return description


def _warning(config: JudgeConfig) -> str | None:
    if config.comparable:
        return None
    if config.provider == NONE:
        return "not judged yet: judge the saved samples with `lmms-eval-tasks judge`"
    return f"judged by {config.label}, not by the paper's judge: compare with that in mind"


def announcement(config: JudgeConfig, prompt: str = "") -> str:
    """One line about the judge, said before a run."""
    from lmms_eval_tasks.judges import run

    asked = f", prompt {prompt}" if prompt else ""
    if not config.endpoints:
        return f"judge: {config.label}{asked if config.provider != NONE else ''}"
    parts = []
    for model in config.endpoints:
        place = f" at {model.base_url or 'OpenAI'}" if model.provider != HUGGINGFACE else ""
        price = "known" if run.current().price(model) else "unknown"
        chosen = model.sampling
        drawn = f"temperature {chosen.temperature:g}, " if chosen.temperature is not None else ""
        parts.append(f"{model.model}{place} ({drawn}{chosen.max_tokens} tokens, price {price})")
    return f"judge: {'; '.join(dict.fromkeys(parts))}{asked}; {run.current().summary()}"
