"""The writer: units side by side, what a lack does to them, and their estimate."""

from __future__ import annotations

from typing import Any

from lmms_eval_tasks.judges import run, writer
from lmms_eval_tasks.judges.writer import Line, ReplySchema, Step, Unit, needed, words
from lmms_eval_tasks.prompts import Prompt
from lmms_eval_tasks.settings import JudgeLimits
from tests.local_endpoint import Json, LocalEndpoint, last_user_text


class Said(ReplySchema):
    """A line."""

    said: Line


FIRST = Step("t", "first", Said, ("text",))
THEN = Step("t", "then", Said, ("lines",))
TEXTS = {"first": "One.", "first_user": "<{text}>", "then": "All.", "then_user": "({lines})"}
GIVEN = Prompt(TEXTS, "0" * 12, "t.yml")
LIKELY = {"said": words(3)}


def unit(*texts: str) -> Unit[list[str]]:
    """Each text by itself, as far as that goes; then all of them together, which has to be."""
    wants = [FIRST.want(GIVEN, {"text": text}, LIKELY) for text in texts]
    verdicts = yield wants
    replies = [want.parsed_reply(one) for want, one in zip(wants, verdicts, strict=True)]
    lines = [one.said for one in replies if one is not None]
    return [*lines, (yield from needed(THEN.want(GIVEN, {"lines": lines}, LIKELY))).said]


def answer(request: Json) -> str:
    shown = last_user_text(request)
    return '{"said": ""}' if "bad" in shown else '{"said": "yes"}'


def test_a_run_and_its_estimate() -> None:
    with LocalEndpoint(answer) as endpoint, run.use(run.JudgeSession(JudgeLimits())):
        config = writer.writer(f"m@{endpoint.url}", {}, "--model", "a model writes")
        seen: list[str] = []

        def made(*given: tuple[str, ...]) -> Any:
            units = {" ".join(texts): unit(*texts) for texts in given}
            return writer.run_units(units, config, "task", lambda one: seen.append(one.unit))

        good, lacks, ends = made(("a", "b"), ("a", "bad one"), ("c", "bad"))
        assert (good.result, good.failures) == (["yes", "yes", "yes"], {})
        assert lacks.result == ["yes", "yes"]
        (why,) = lacks.failures.values()
        assert "an empty text" in why
        assert sorted(seen) == ["a b", "a bad one", "c bad"]
        assert ends.failures.keys() == {"first"}
        told, _, advice, summary = writer.outcome_lines([good, lacks, ends])
        assert told == f"failed: a bad one: first: {why}"
        assert advice == "run the same command again to continue"  # no reply is kept
        assert "task: " in summary
        asked = len(endpoint.chats)
        table, notes = writer.estimated([unit("a", "b"), unit("c")], config, "three words")
        rows = list(zip(*(column.cells for column in table.columns), strict=True))
        assert [row[:2] for row in rows] == [("first", "3"), ("then", "2"), ("all", "5")]
        assert "assumed: three words; no repeated requests" in notes
        assert len(endpoint.chats) == asked


def test_a_unit_without_what_it_needs_ends() -> None:
    with LocalEndpoint(lambda _: "no") as endpoint, run.use(run.JudgeSession(JudgeLimits())):
        config = writer.writer(f"m@{endpoint.url}", {}, "--model", "a model writes")
        (done,) = writer.run_units({"u": unit("a")}, config, "task")
        assert done.result is None
        assert set(done.failures) == {"first", "then"}
