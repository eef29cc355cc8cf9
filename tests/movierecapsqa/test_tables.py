"""The printed tables: every number is there, none is cut off, none stands under a wrong name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lmms_eval_tasks import registry
from lmms_eval_tasks.benchmark import TableRow
from tests import checks
from tests.checks import lines_of as of
from tests.checks import rows

BENCHMARK = registry.load_benchmark("movierecapsqa")
BOTH = "movierecapsqa_segment"
FRAMES, DIALOGUE = f"{BOTH}_frames", f"{BOTH}_dialogue"


def printed(*given: TableRow) -> dict[str, list[str]]:
    return checks.printed(BENCHMARK.tables(given))


def cells(lines: Sequence[str], *names: str) -> list[str]:
    """The numbers of the one row with these names, which stand in one line each."""
    start = re.compile(r"\s*" + r"\s+".join(map(re.escape, names)) + r"\s{2,}(.*)")
    (match,) = filter(None, (start.fullmatch(line) for line in lines))
    return [cell for cell in re.split(r"\s{2,}", match[1]) if cell]


SEGMENT = "aligned recap segment"


def relevance(**values: float) -> dict[str, dict[str, float]]:
    return {f"movierecapsqa_{name}": {"relevance_valid": one} for name, one in values.items()}


def test_differences_are_to_the_same_source_and_model() -> None:
    first = relevance(segment=3.0, segment_frames=2.0)
    second = relevance(segment=1.0, segment_frames=4.0, movie=0.5, movie_frames=0.25)
    third = relevance(segment_frames=2.0)
    shown = printed(*rows(first, "one"), *rows(second, "two"), *rows(third, "three"))
    lines = of(shown, "relevance")
    for model, source, condition, expected in (
        ("one", SEGMENT, "both", "3.00"),
        ("one", SEGMENT, "only frames", "-1.00"),
        ("two", SEGMENT, "only frames", "+3.00"),
        ("two", "full movie", "only frames", "-0.25"),
        ("three", SEGMENT, "only frames", "2.00"),  # without both: itself
    ):
        assert cells(lines, model, source, condition) == [expected]


def test_an_invalid_run_is_marked_and_nothing_is_compared_with_it() -> None:
    numbers = relevance(segment=1.0, segment_frames=2.5)
    for model, title in (
        ("", ("this run", "INVALID")),
        ("m [bold]x[/]", ("m [bold]x[/] INVALID",)),
    ):
        lines = of(printed(*rows(numbers, model, bad=BOTH)), "relevance")
        assert cells(lines, *title, SEGMENT, "both") == ["1.00"]
        assert cells(lines, model or "this run", SEGMENT, "only frames") == ["2.50"]
    lines = of(printed(*rows(numbers, "m", bad=FRAMES)), "relevance")
    assert cells(lines, "m INVALID", SEGMENT, "only frames") == ["2.50"]


def test_conditions_that_were_not_asked_the_same_questions() -> None:
    a, b, c = ({"id": name} for name in "abc")
    asked = {BOTH: [a, b], FRAMES: [b, a], "movierecapsqa_movie": [c]}
    assert BENCHMARK.notes(asked) == BENCHMARK.notes({}) == []
    # As many, and others: that is unlike too.
    (note,) = BENCHMARK.notes({**asked, DIALOGUE: [a, c]})
    assert note.startswith("aligned recap segment: ")
    assert "(both 2, only frames 2, only dialogue 2)" in note
