"""Would the same command fail again? Replies that could not be used are kept like all others."""

from __future__ import annotations

from lmms_eval_tasks.judges.verdict import Status

# Of replies that could not be used, also when asked for once more.
_UNUSABLE = tuple(
    f"{status.value}: " for status in (Status.PARSE_FAILURE, Status.REFUSED, Status.TRUNCATED)
)
_NOT_REPAIRED = "(not repaired: "  # as judges/engine.py says it: a second run asks once more


def stay(failure: str) -> bool:
    """Whether a run with the same cache fails for the same reason, nobody being asked again.

    Args:
        failure: a verdict's status and reason, `parse_failure: no object with ...`.
    """
    return failure.startswith(_UNUSABLE) and _NOT_REPAIRED not in failure
