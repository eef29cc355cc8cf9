"""Replies between the model and lmms-eval: kept as they arrive, with failures marked.

lmms-eval gives a model all requests of a run at once and gets the replies at the end, so a stopped
run keeps nothing. For a failed request, it gets whatever the class returns: an error text, an empty
text, or one reply too few. Here, a class gets the requests of our tasks a few at a time (pace.py),
and each reply is kept as soon as it is known.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lmms_eval_tasks.host import positions
from lmms_eval_tasks.host.requests import counting, endpoints
from lmms_eval_tasks.host.requests.request_runner import (
    RequestRunner,
    RequestsFailedError,
    RunFacts,
)
from lmms_eval_tasks.models.host_types import Arguments
from lmms_eval_tasks.notify import notify
from lmms_eval_tasks.report.invalid import Throughput
from lmms_eval_tasks.utils import interrupts


@contextmanager
def run_requests(run: Arguments, tasks: Sequence[str]) -> Iterator[RunFacts]:
    """Make lmms-eval's models in a `run` answer through our RequestRunner while the context lasts.

    Args:
        run: the arguments of `simple_evaluate`.
        tasks: our tasks.
    """
    from lmms_eval import evaluator

    evaluate = evaluator.evaluate
    signature = inspect.signature(evaluate)
    runners: list[RequestRunner] = []
    facts = RunFacts({}, [], Throughput())
    here = threading.get_ident()

    @functools.wraps(evaluate)
    def through_us(*args: object, **kwargs: object) -> object:
        if threading.get_ident() != here:  # another thread's run at the same time
            return evaluate(*args, **kwargs)
        lm = signature.bind(*args, **kwargs).arguments["lm"]
        overridden = {name: vars(lm)[name] for name in vars(lm).keys() & {"generate_until"}}
        with positions.right(lm) as class_conditions:
            facts.conditions.extend([*class_conditions, *endpoints.conditions(lm)])
            runners.append(RequestRunner(lm, run, tasks, facts))
            lm.generate_until = runners[-1].generate_until
            try:
                with counting.count_media(), endpoints.quick_bodies():
                    return evaluate(*args, **kwargs)
            finally:
                del lm.generate_until
                vars(lm).update(overridden)
                if isinstance(run.get("model"), str) and hasattr(lm, "end_run"):
                    lm.end_run()  # frees the model's GPUs for the next run of a list

    evaluator.evaluate = through_us
    try:
        with interrupts.at_interrupt(
            lambda: ", ".join(runner.kept_replies.summary() for runner in runners)
        ):
            yield facts
    except (RequestsFailedError, interrupts.InterruptedRunError):  # already reported
        raise
    except BaseException:  # an error while replies arrive or are scored
        for runner in runners:
            notify(runner.kept_replies.message())
        raise
    else:
        for runner in runners:
            runner.kept_replies.finish()
    finally:
        for runner in runners:
            runner.kept_replies.close()
        evaluator.evaluate = evaluate
