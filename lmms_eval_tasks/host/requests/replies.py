"""Replies between the model and lmms-eval: kept as they arrive, failures told from answers.

lmms-eval hands a model all requests of a run at once and gets the replies when the last is done, so
a run that is stopped keeps nothing. For a failed request it gets whatever the class returns: a
text, an empty one, or one reply too few. Here a class is handed the requests of our tasks a
few at a time (pace.py), and each reply is kept as soon as it is known.
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
    """Context manager within which lmms-eval's models in a `run` are asked by our RequestRunner.

    Args:
        run: the arguments of `simple_evaluate`.
        tasks: our tasks.
    """
    from lmms_eval import evaluator

    evaluate = evaluator.evaluate
    signature = inspect.signature(evaluate)
    asked: list[RequestRunner] = []
    known = RunFacts({}, [], Throughput())
    here = threading.get_ident()

    @functools.wraps(evaluate)
    def through_us(*args: object, **kwargs: object) -> object:
        if threading.get_ident() != here:  # somebody else's run beside this one
            return evaluate(*args, **kwargs)
        lm = signature.bind(*args, **kwargs).arguments["lm"]
        own = {name: vars(lm)[name] for name in vars(lm).keys() & {"generate_until"}}
        with positions.right(lm) as found:
            known.conditions.extend([*found, *endpoints.conditions(lm)])
            asked.append(RequestRunner(lm, run, tasks, known))
            lm.generate_until = asked[-1].generate_until
            try:
                with counting.counted():
                    return evaluate(*args, **kwargs)
            finally:
                del lm.generate_until
                vars(lm).update(own)
                if isinstance(run.get("model"), str) and hasattr(lm, "end_run"):
                    lm.end_run()  # or its GPUs would not be free for the next run of a list

    evaluator.evaluate = through_us
    try:
        with interrupts.at_interrupt(
            lambda: ", ".join(one.kept_replies.summary() for one in asked)
        ):
            yield known
    except (RequestsFailedError, interrupts.InterruptedRunError):  # which is told
        raise
    except BaseException:  # while replies come, or are scored
        for one in asked:
            notify(one.kept_replies.message())
        raise
    else:
        for one in asked:
            one.kept_replies.finish()
    finally:
        for one in asked:
            one.kept_replies.close()
        evaluator.evaluate = evaluate
