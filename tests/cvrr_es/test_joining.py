"""Joining answers to places: what shows where an answer belongs, and what shows nothing."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from lmms_eval_tasks.cvrr_es.joining import Joined, Place, Said, join

Pairs = Sequence[tuple[str, str]]


def joined(said: Pairs, places: Pairs, judged: Sequence[tuple[str, str, str]] = ()) -> Joined:
    """`said` as (question, answer), `places` as (question, reference), `judged` as (q, pred, a)."""
    references: dict[tuple[str, str], list[str]] = {}
    for question, answer, reference in judged:
        references.setdefault((question, answer), []).append(reference)
    return join([Said(*one) for one in said], [Place(*one) for one in places], references)


def given(questions: str) -> list[tuple[str, str]]:
    """One letter is one question; every answer or reference is unlike all others."""
    return [(letter, f"{letter}{number}") for number, letter in enumerate(questions)]


def check(found: Joined, **fields: Any) -> None:
    for name, value in fields.items():
        assert getattr(found, name) == value, name


class TestWays:
    """Each way alone, with what it needs and what breaks it."""

    def test_order_and_text(self) -> None:
        for questions in ("abc", "aba", "aaa"):
            found = joined(given(questions), given(questions))
            check(found, places={n: n for n in range(3)}, ways={"order": 3}, missing=())
        found = joined(given("cab"), given("abc"))
        check(found, places={0: 2, 1: 0, 2: 1}, ways={"text": 3})

    def test_judgement(self) -> None:
        places = [("x", "r0"), ("a", "r1"), ("x", "r2"), ("b", "r3"), ("x", "r4")]
        said = [("a", "A"), ("x", "P"), ("x", "Q"), ("b", "B"), ("x", "R")]
        judged = [("x", "P", "r4"), ("x", "Q", "r0"), ("x", "R", "r2")]
        found = joined(said, places, judged)
        check(found, places={0: 1, 3: 3, 1: 4, 2: 0, 4: 2}, ways={"text": 2, "judgement": 3})
        assert found.open == ()

    def test_equal_answers_are_interchangeable_but_not_equal_references(self) -> None:
        """The judgements name both references for one (question, answer): either way is right."""
        places = [("x", "r0"), ("a", "r1"), ("x", "r2"), ("x", "r3")]
        said = [("x", "two"), ("x", "one"), ("x", "two"), ("a", "A")]
        found = joined(said, places, [("x", "two", "r3"), ("x", "two", "r0"), ("x", "one", "r2")])
        assert (found.places[1], {found.places[0], found.places[2]}) == (2, {0, 3})
        assert found.ways == {"text": 1, "judgement": 3}
        places = [("x", "r"), ("a", "ra"), ("x", "r"), ("b", "rb")]
        said = [("b", "B"), ("x", "P"), ("a", "A"), ("x", "Q")]
        found = joined(said, places, [("x", "P", "r"), ("x", "Q", "r")])
        check(found, ways={"text": 2}, open=(1, 3), missing=())

    def test_neighbours(self) -> None:
        """The blocks ax and cx moved; inside them nothing did."""
        found = joined(given("cxdabxe"), given("abxecxd"))
        assert (found.places[1], found.places[5]) == (5, 2)
        assert found.ways == {"text": 5, "neighbours": 2}

    def test_where_neighbours_tell_nothing(self) -> None:
        said, places = given("axbcxd"), given("axcbxd")  # on one side alone
        check(joined(said, places), ways={"text": 4}, open=(1, 4))
        # One of them known by its judgement, the other one is the last.
        found = joined(said, places, [("x", "x4", "x1")])
        assert (found.places[4], found.places[1]) == (1, 4)
        assert found.ways == {"text": 4, "judgement": 1, "last": 1}
        check(joined(given("axb"), given("axxb")), open=(1,), missing=(2,))
        # A place that a judgement took is not given again.
        found = joined(given("axbxcde"), given("axbxced"), [("x", "x1", "x3")])
        assert (found.places[1], found.places[3]) == (3, 1)
        assert found.ways == {"text": 5, "judgement": 1, "last": 1}
        # Neighbours that are answered twice are none, nor is the end of a cut file.
        check(joined(given("axbaxb"), given("axbx")), places={}, open=(1, 4))
        check(joined(given("ax"), given("axbx")), places={0: 0}, open=(1,))

    def test_last_with_equal_answers(self) -> None:
        found = joined([("b", "B"), ("x", ""), ("a", "A"), ("x", "")], given("axbx"))
        assert {found.places[1], found.places[3]} == {1, 3}
        assert found.ways == {"text": 2, "last": 2}


class TestTrouble:
    """What is not joined is told; nothing is joined twice."""

    def test_numbers_that_do_not_match(self) -> None:
        found = joined(given("azc"), given("abc"))
        check(found, unknown=(1,), missing=(1,), places={0: 0, 2: 2})
        found = joined(given("abbc"), given("abc"))
        check(found, several=(1, 2), places={0: 0, 3: 2}, missing=())
        found = joined(given("axbxcx"), given("axbxc"))
        check(found, ways={"text": 3, "neighbours": 2}, open=(5,), missing=())
        found = joined(given("axbc"), given("axbcx"))
        assert (found.places[1], found.missing, found.open) == (1, (4,), ())
        # A row without a text is nothing to be found by.
        found = joined([("", "A"), ("b", "B")], [("b", "r"), ("", "")])
        check(found, places={1: 0}, unknown=(0,), missing=())

    def test_judgements_contradict_the_order(self) -> None:
        """The questions are in order, but the answers to the repeated one were swapped."""
        said, places = given("axbx"), given("axbx")
        found = joined(said, places, [("x", "x1", "x3"), ("x", "x3", "x1")])
        check(found, contradicted=True, places={0: 0, 2: 2, 1: 3, 3: 1})
        assert not joined(said, places, [("x", "x1", "x1"), ("x", "x3", "x3")]).contradicted
        # Then neighbours are not trusted either.
        found = joined(given("axbxcx"), given("axbxcx"), [("x", "x1", "x3")])
        check(found, contradicted=True, places={0: 0, 2: 2, 4: 4, 1: 3}, open=(3, 5))

    def test_judgements_that_say_nothing_here(self) -> None:
        found = joined(given("ab"), given("ab"), [("a", "a0", "older")])
        check(found, rejudged=(0,), contradicted=False, ways={"order": 2})
        # Two equal answers, one judgement: it cannot be known whose it is.
        places = [("x", "r0"), ("a", "ra"), ("x", "r1"), ("x", "r2")]
        said = [("x", "P"), ("x", "P"), ("x", "Q"), ("a", "A")]
        assert joined(said, places, [("x", "P", "r2")]).ways == {"text": 1}


def test_shuffled_files_with_judgements_are_joined_as_they_were() -> None:
    """Any order of any mixture of repeats, over 200 seeds; without judgements never wrongly."""
    n_open = 0
    for seed in range(200):
        draw = Random(seed)
        letters = [draw.choice("abcdefgxxyy") for _ in range(draw.randint(1, 14))]
        places = [(letter, f"ref{number}") for number, letter in enumerate(letters)]
        said = [(letter, f"said{number}") for number, letter in enumerate(letters)]
        order = list(range(len(letters)))
        draw.shuffle(order)
        judged = [(*said[n], places[n][1]) for n in range(len(letters))]
        found = joined([said[number] for number in order], places, judged)
        assert dict(found.places) == dict(enumerate(order))
        # Whole blocks between unique questions that moved: right or open.
        ends = [n for n, letter in enumerate(letters) if letters.count(letter) == 1]
        blocks = [range(a, b) for a, b in zip([0, *ends], [*ends, len(letters)], strict=True)]
        draw.shuffle(blocks)
        moved = [number for block in blocks for number in block]
        found = joined([said[number] for number in moved], places)
        if [letters[number] for number in moved] == letters:
            assert found.ways == {"order": len(letters)}
        else:
            assert all(moved[number] == place for number, place in found.places.items())
            n_open += len(letters) - len(found.places)
    assert n_open > 0  # else this has not tried anything hard
