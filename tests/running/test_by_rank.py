"""Which docs each process gets: the host deals them out, we say in which order."""

from __future__ import annotations

import pytest

from lmms_eval_tasks import running
from tests.checks import table

DOCS = [f"{video}/{question}" for video in "abcde" for question in range(7)]


def ranks(processes: int, limit: float | None, offset: int) -> list[list[str]]:
    """The docs of each rank, as the host takes them."""
    from lmms_eval.utils import create_iterator

    number = -(-len(DOCS) * limit // 1) if limit and limit < 1 else limit
    with running.limited(limit, offset):
        docs = running.by_rank(DOCS)
    assert sorted(docs) == DOCS
    given = (int(number) if number else None, offset)
    return [list(create_iterator(iter(docs), one, processes, *given)) for one in range(processes)]


@table("processes", [1, 2, 3, 4, 8, 40])
@table("limit, offset", [(None, 0), (20, 0), (20, 5), (999, 3), (None, 8), (3, 99), (0, 0)])
def test_each_rank_gets_neighbours_and_together_the_same(
    processes: int, limit: int | None, offset: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", str(processes))
    asked = DOCS[offset : offset + limit if limit else None]
    found = ranks(processes, limit, offset)
    assert [doc for own in found for doc in own] == asked
    videos = [{doc[0] for doc in own} for own in found]
    split = sum(len(own) for own in videos) - len(set().union(*videos))
    assert split <= min(processes, len(asked) or 1) - 1


def test_a_share_of_the_docs_is_the_same_whatever_the_number_of_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert sorted(doc for own in ranks(2, 0.5, 0) for doc in own) == DOCS[:18]


def test_outside_of_a_run_all_docs_are_dealt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert running.by_rank([1, 2, 3, 4, 5]) == [1, 4, 2, 5, 3]
