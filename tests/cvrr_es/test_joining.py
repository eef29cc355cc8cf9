"""Joining answers to places: what shows where an answer belongs, and what shows nothing."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from lmms_eval_tasks.cvrr_es.joining import Place, Said, join

Pairs = Sequence[tuple[str, str]]


def joined(said: Pairs, places: Pairs, judged: Sequence[tuple[str, str, str]] = ()):
    """`said` as (question, answer), `places` as (question, reference), `judged` as (q, pred, a)."""
    references: dict[tuple[str, str], list[str]] = {}
    for question, answer, reference in judged:
        references.setdefault((question, answer), []).append(reference)
    return join([Said(*one) for one in said], [Place(*one) for one in places], references)


def given(questions: str) -> list[tuple[str, str]]:
    """One letter is one question; every answer or reference is unlike all others."""
    return [(letter, f"{letter}{number}") for number, letter in enumerate(questions)]


class TestWays:
    """Each way alone, with what it needs and what breaks it."""

    @pytest.mark.parametrize("questions", ["abc", "aba", "aaa"])
    def test_order(self, questions: str) -> None:
        found = joined(given(questions), given(questions))
        assert dict(found.places) == {n: n for n in range(3)}
        assert found.ways == {"order": 3}
        assert not found.missing

    def test_text(self) -> None:
        found = joined(given("cab"), given("abc"))
        assert found.places == {0: 2, 1: 0, 2: 1}
        assert found.ways == {"text": 3}

    def test_judgement(self) -> None:
        places = [("x", "r0"), ("a", "r1"), ("x", "r2"), ("b", "r3"), ("x", "r4")]
        said = [("a", "A"), ("x", "P"), ("x", "Q"), ("b", "B"), ("x", "R")]
        judged = [("x", "P", "r4"), ("x", "Q", "r0"), ("x", "R", "r2")]
        found = joined(said, places, judged)
        assert found.places == {0: 1, 3: 3, 1: 4, 2: 0, 4: 2}
        assert found.ways == {"text": 2, "judgement": 3}
        assert found.open == ()

    def test_equal_answers_are_interchangeable(self) -> None:
        """The judgements name both references for one (question, answer): either way is right."""
        places = [("x", "r0"), ("a", "r1"), ("x", "r2"), ("x", "r3")]
        said = [("x", "two"), ("x", "one"), ("x", "two"), ("a", "A")]
        judged = [("x", "two", "r3"), ("x", "two", "r0"), ("x", "one", "r2")]
        found = joined(said, places, judged)
        assert found.places[1] == 2
        assert {found.places[0], found.places[2]} == {0, 3}
        assert found.ways == {"text": 1, "judgement": 3}

    def test_equal_references_are_not(self) -> None:
        """Two places with one question and reference: the judgement tells nothing."""
        places = [("x", "r"), ("a", "ra"), ("x", "r"), ("b", "rb")]
        said = [("b", "B"), ("x", "P"), ("a", "A"), ("x", "Q")]
        found = joined(said, places, [("x", "P", "r"), ("x", "Q", "r")])
        assert found.ways == {"text": 2}
        assert found.open == (1, 3)
        assert found.missing == ()

    def test_neighbours(self) -> None:
        """The blocks ax and cx moved; inside them nothing did."""
        found = joined(given("cxdabxe"), given("abxecxd"))
        assert found.places[1] == 5
        assert found.places[5] == 2
        assert found.ways == {"text": 5, "neighbours": 2}

    def test_neighbours_on_one_side_are_not_enough(self) -> None:
        said, places = given("axbcxd"), given("axcbxd")
        found = joined(said, places)
        assert found.ways == {"text": 4}
        assert found.open == (1, 4)
        # One of them known by its judgement, the other one is the last.
        found = joined(said, places, [("x", "x4", "x1")])
        assert (found.places[4], found.places[1]) == (1, 4)
        assert found.ways == {"text": 4, "judgement": 1, "last": 1}

    def test_neighbours_of_another_number_of_repeats(self) -> None:
        found = joined(given("axb"), given("axxb"))
        assert found.open == (1,)
        assert found.missing == (2,)

    def test_a_place_that_a_judgement_took_is_not_given_again(self) -> None:
        found = joined(given("axbxcde"), given("axbxced"), [("x", "x1", "x3")])
        assert (found.places[1], found.places[3]) == (3, 1)
        assert found.ways == {"text": 5, "judgement": 1, "last": 1}

    def test_neighbours_that_are_answered_twice_are_none(self) -> None:
        found = joined(given("axbaxb"), given("axbx"))
        assert (found.places, found.open) == ({}, (1, 4))

    def test_the_end_of_a_cut_file_is_no_neighbour(self) -> None:
        found = joined(given("ax"), given("axbx"))
        assert found.places == {0: 0}
        assert found.open == (1,)

    def test_last_with_equal_answers(self) -> None:
        said = [("b", "B"), ("x", ""), ("a", "A"), ("x", "")]
        found = joined(said, given("axbx"))
        assert {found.places[1], found.places[3]} == {1, 3}
        assert found.ways == {"text": 2, "last": 2}


class TestTrouble:
    """What is not joined is told; nothing is joined twice."""

    def test_unknown_and_missing(self) -> None:
        found = joined(given("azc"), given("abc"))
        assert (found.unknown, found.missing) == ((1,), (1,))
        assert found.places == {0: 0, 2: 2}

    def test_several_for_one(self) -> None:
        found = joined(given("abbc"), given("abc"))
        assert found.several == (1, 2)
        assert found.places == {0: 0, 3: 2}
        assert found.missing == ()

    def test_more_answers_than_repeats(self) -> None:
        found = joined(given("axbxcx"), given("axbxc"))
        assert found.ways == {"text": 3, "neighbours": 2}
        assert (found.open, found.missing) == ((5,), ())

    def test_fewer_answers_than_repeats(self) -> None:
        found = joined(given("axbc"), given("axbcx"))
        assert (found.places[1], found.missing, found.open) == (1, (4,), ())

    def test_no_questions_are_not_equal_to_each_other(self) -> None:
        """A row without a text is nothing to be found by."""
        found = joined([("", "A"), ("b", "B")], [("b", "r"), ("", "")])
        assert found.places == {1: 0}
        assert (found.unknown, found.missing) == ((0,), ())

    def test_judgements_contradict_the_order(self) -> None:
        """The questions are in order, but the answers to the repeated one were swapped."""
        said, places = given("axbx"), given("axbx")
        swapped = [("x", "x1", "x3"), ("x", "x3", "x1")]
        found = joined(said, places, swapped)
        assert found.contradicted
        assert found.places == {0: 0, 2: 2, 1: 3, 3: 1}
        assert not joined(said, places, [("x", "x1", "x1"), ("x", "x3", "x3")]).contradicted

    def test_what_is_contradicted_is_not_joined_by_neighbours(self) -> None:
        said = places = given("axbxcx")
        found = joined(said, places, [("x", "x1", "x3")])
        assert found.contradicted
        assert found.places == {0: 0, 2: 2, 4: 4, 1: 3}
        assert found.open == (3, 5)

    def test_another_reference_than_the_release_is_noted(self) -> None:
        said, places = given("ab"), given("ab")
        found = joined(said, places, [("a", "a0", "older")])
        assert (found.rejudged, found.contradicted) == ((0,), False)
        assert found.ways == {"order": 2}

    def test_judgements_that_do_not_count_up_say_nothing(self) -> None:
        """Two equal answers, one judgement: it cannot be known whose it is."""
        places = [("x", "r0"), ("a", "ra"), ("x", "r1"), ("x", "r2")]
        said = [("x", "P"), ("x", "P"), ("x", "Q"), ("a", "A")]
        found = joined(said, places, [("x", "P", "r2")])
        assert found.ways == {"text": 1}


def test_shuffled_files_with_judgements_are_joined_as_they_were() -> None:
    """Any order of any mixture of repeats, over 200 seeds; without judgements never n_openly."""
    n_open = 0
    for seed in range(200):
        draw = Random(seed)
        letters = [draw.choice("abcdefgxxyy") for _ in range(draw.randint(1, 14))]
        places = [(letter, f"ref{number}") for number, letter in enumerate(letters)]
        said = [(letter, f"said{number}") for number, letter in enumerate(letters)]
        order = list(range(len(letters)))
        draw.shuffle(order)
        shuffled = [said[number] for number in order]
        judged = [(*said[n], places[n][1]) for n in range(len(letters))]
        found = joined(shuffled, places, judged)
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
