"""Judges and their verdicts. Installed as `lmms_eval_tasks.judges`.

config = judges.resolve(settings.text(settings.JUDGE), os.environ, default_model="gpt-4o")
judges.preflight(config, [criterion])            # before a run: JudgeError
judges.make_judge(config).verdict(criterion, fields)   # during it: a Verdict, never an exception

Read verdict.py (the types) first, then engine.py; docs/judges.md is for users.
"""

from lmms_eval_tasks.judges.config import resolve
from lmms_eval_tasks.judges.run import (
    announcement,
    configured,
    describe_judge,
    judge_fingerprint,
    make_judge,
    preflight,
)
from lmms_eval_tasks.judges.verdict import (
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
    "describe_judge",
    "judge_fingerprint",
    "make_judge",
    "preflight",
    "resolve",
]
