"""Saved runs and judges: another one, the same one for what is missing, none at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.haven import saved
from lmms_eval_tasks.judges import run as judge_run
from lmms_eval_tasks.runs import rescore
from tests.haven.asking import drawn
from tests.haven.scored import no_encoder, runs, shown, values
from tests.local_endpoint import Fault, LocalEndpoint


@pytest.fixture(autouse=True)
def no_models(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No judge, and BERTScore by hand."""
    monkeypatch.setenv(settings.JUDGE, "none")
    no_encoder(monkeypatch)
    judge_run.forget()
    yield
    judge_run.forget()


class TestJudges:
    """A judge rates the saved summaries; saved ratings stay where nobody is asked."""

    @pytest.fixture
    def endpoint(self) -> Iterator[LocalEndpoint]:
        def rate(request: dict[str, Any]) -> Fault:
            return drawn(request, self.scores)

        self.scores: Sequence[object] = (4, 2)
        with LocalEndpoint(rate, model="local") as made_here:
            yield made_here

    def judged(self, run: rescore.Run, judge: str | None, **more: Any) -> Any:
        judge_run.forget()
        return saved.rescore_saved([run], judge, **more)

    def test_all_of_it(self, endpoint: LocalEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
        spec = f"rater@{endpoint.url}"
        (waiting,) = runs("haven_v2t")
        found = self.judged(waiting, spec)
        numbers = found.numbers["haven_v2t"]
        # Five samples 4, 2, 4, 2, 4 of two summaries; the third is empty: 0.
        assert numbers["geval_samples_valid"] == pytest.approx((3.2 + 3.2 + 0) / 3)
        assert (numbers["geval_samples_coverage"], numbers["geval_samples_failed"]) == (1.0, 0)
        assert numbers["geval_logprobs_valid"] is None
        pairs = found.verdicts["haven_v2t"]
        assert [pair.id for pair in pairs] == ["ovp/video_2", "tvsum/video_0", "tvsum/video_1"]
        assert pairs[0].after is None
        assert pairs[1].after is not None

        monkeypatch.setenv(settings.JUDGE, spec)
        judge_run.forget()
        (run,) = runs("haven_v2t")
        monkeypatch.setenv(settings.JUDGE, "none")
        assert self.judged(run, None).numbers["haven_v2t"] == shown(
            values("haven_v2t", run.samples)
        )

        asked = len(endpoint.chats)
        kept = self.judged(run, spec, missing_only=True)
        assert len(endpoint.chats) == asked
        assert kept.numbers["haven_v2t"]["geval_samples_valid"] == pytest.approx(6.4 / 3)

        self.scores = (5,)
        rated = self.judged(run, spec)
        assert rated.numbers["haven_v2t"]["geval_samples_valid"] == pytest.approx(10 / 3)
        (one, other) = (pair for pair in rated.verdicts["haven_v2t"] if pair.after)
        assert one.before.score == pytest.approx(3.2)
        assert other.after.score == 5
        another = self.judged(run, f"somebody@{endpoint.url}", missing_only=True)
        assert another.numbers["haven_v2t"]["geval_samples_valid"] == pytest.approx(10 / 3)
