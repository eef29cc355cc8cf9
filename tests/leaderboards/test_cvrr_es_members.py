"""The evidence on 5.3's first judges names Table 5 only where Table 5 has Table 1's judges."""

from __future__ import annotations

from lmms_eval_tasks.leaderboards import leaderboard
from lmms_eval_tasks.leaderboards.cvrr_es_claims import STATEMENTS
from lmms_eval_tasks.leaderboards.cvrr_es_paper import Paper
from tests.leaderboards.cvrr_es_boards import NAME
from tests.leaderboards.maverix_boards import of, with_rows


def test_table_5_is_looked_at() -> None:
    (statement,) = (each for each in STATEMENTS if each.key == "members")
    board = leaderboard(NAME)
    told = "Table 1 has no judge Video-ChatGPT, and InternVL2 besides"
    assert statement.check(Paper(board)) == (False, f"{told}; it is so in Table 5 too")
    first = of(board, 5).rows[0].group
    fewer = with_rows(board, 5, lambda rows: [row for row in rows if row.group != first])
    assert statement.check(Paper(fewer)) == (False, told)
