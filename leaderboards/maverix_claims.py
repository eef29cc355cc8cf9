"""MAVERIX's text compared with its tables and with itself: all statements that figures decide."""

from __future__ import annotations

from lmms_eval_tasks.leaderboards import Leaderboard
from lmms_eval_tasks.leaderboards.findings import Claim
from lmms_eval_tasks.leaderboards.maverix_data_claims import STATEMENTS as ABOUT_DATA
from lmms_eval_tasks.leaderboards.maverix_paper import Paper
from lmms_eval_tasks.leaderboards.maverix_score_claims import STATEMENTS as ABOUT_SCORES
from lmms_eval_tasks.leaderboards.maverix_split_claims import STATEMENTS as ABOUT_SPLITS

_STATEMENTS = (*ABOUT_SCORES, *ABOUT_SPLITS, *ABOUT_DATA)


def claims(board: Leaderboard) -> list[Claim]:
    """Every statement that we check: first about scores, then about data and protocol.

    Readings of soft words ("often", "relatively strong") are ours and stand in the statement.
    """
    paper = Paper(board)
    return [statement.claim(paper) for statement in _STATEMENTS]
