"""Who waits for whom when answers are judged, and what they share."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from lmms_eval_tasks.judges import ledger
from lmms_eval_tasks.movierecapsqa.answer_judging import Context, Judged, judge_reply
from tests.local_endpoint import choice, completion, error, last_user_text
from tests.movierecapsqa.asking import (
    CONTEXT,
    QUESTION,
    Answer,
    Request,
    at,
    judge_with,
    kind,
    rated_in,
    script,
)


class TestSideBySide:
    """Who waits for whom; all share the judge's limits."""

    def test_the_first_call_of_a_segment_goes_alone_then_three_side_by_side(self) -> None:
        log: list[tuple[str, str]] = []
        lock, together = threading.Lock(), threading.Barrier(3)

        def answer(request: Request) -> Answer:
            about = kind(request)
            with lock:
                log.append(("begins", about))
                second = "Who is Tommy?" in last_user_text(request)
            if about != "claims" and second:
                together.wait(10)  # broken, and an HTTP error, unless all three come at once
            else:
                threading.Event().wait(0.1)
            with lock:
                log.append(("ends", about))
            return script()(request)

        with at(answer) as (judge, _, _):
            assert judge_reply(judge, CONTEXT, QUESTION, "He regrets it.").status == "ok"
            assert log[:2] == [("begins", "claims"), ("ends", "claims")]
            first = log[2][1]
            assert log[2:4] == [("begins", first), ("ends", first)]
            assert {what for what, _ in log[4:6]} == {"begins"}
            log.clear()
            assert judge_reply(judge, CONTEXT, "Who is Tommy?", "A scientist.").status == "ok"
            assert [what for what, _ in log] == ["begins", "ends", *["begins"] * 3, *["ends"] * 3]

    def test_each_segment_has_its_own_first_call(self) -> None:
        facts = {f"seg.{n}": (f"Fact of segment {n}.",) for n in range(3)}
        log: dict[str, list[str]] = {name: [] for name in facts}
        lock = threading.Lock()

        def answer(request: Request) -> Answer:
            text = last_user_text(request)
            (segment,) = [n for n, (fact,) in facts.items() if fact in text] or [""]
            with lock:
                if segment:
                    log[segment].append("begins")
            threading.Event().wait(0.05)
            with lock:
                if segment:
                    log[segment].append("ends")
            return script()(request)

        with at(answer, concurrency=32) as (judge, endpoint, current), ledger.task("t"):

            def one(number: int) -> Judged:
                segment = f"seg.{number % 3}"
                context = Context(segment, facts[segment], "")
                with ledger.task("t"):
                    return judge_reply(judge, context, f"Question {number}?", "He regrets it.")

            with ThreadPoolExecutor(9) as pool:
                done = list(pool.map(one, range(9)))
            assert {one.status for one in done} == {"ok"}
            assert endpoint.most_in_flight > 3
            (row,) = current.ledger.rows()
        for events in log.values():
            assert len(events) == 18
            assert events[:3] == ["begins", "ends", "begins"]
        # Every verdict is booked for the task, whatever thread asked for it.
        assert (row.task, row.verdicts, row.paid_calls) == ("t", 36, 36)

    def test_the_judges_limits_hold(self) -> None:
        def slow(request: Request) -> Answer:
            threading.Event().wait(0.02)
            return script()(request)

        with at(slow, concurrency=2) as (judge, endpoint, _):
            with ThreadPoolExecutor(6) as pool:
                done = list(
                    pool.map(
                        lambda n: judge_reply(judge, CONTEXT, f"Question {n}?", "It is so."),
                        range(6),
                    )
                )
            assert {one.status for one in done} == {"ok"}
            assert endpoint.most_in_flight == 2

    def test_a_first_call_that_fails_lets_the_others_go(self) -> None:
        failed: list[str] = []
        lock = threading.Lock()

        def answer(request: Request) -> Answer:
            with lock:
                if kind(request) != "claims" and not failed:
                    failed.append(kind(request))
                    return error(400)
            return script()(request)

        done, _ = judge_with(answer)
        statuses = {name: rated["status"] for name, rated in rated_in(done)}
        assert statuses.pop(failed[0]) == "judge_api_error"
        assert set(statuses.values()) == {"ok"}

    def test_cached_tokens_of_the_endpoint_are_in_the_verdicts(self) -> None:
        def answer(request: Request) -> Answer:
            text = script()(request)
            assert isinstance(text, str)
            cached = 0 if kind(request) == "claims" else 1024
            usage = {"prompt_tokens": 1500, "completion_tokens": 40}
            details = {"prompt_tokens_details": {"cached_tokens": cached}}
            return completion([choice(text)], usage | details)

        done, _ = judge_with(answer)
        used = {name: rated["verdict"]["usage"] for name, rated in rated_in(done)}
        assert {usage["cached_tokens"] for usage in used.values()} == {1024}
