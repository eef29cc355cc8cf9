"""A run of lmms-eval with tasks of ours: its checks, its kept replies and its results section.

The run is checked before the model is built. Judged tasks get as many scoring threads as the judge
may have requests in flight (lmms-eval's default is four). lmms-eval is kept from sending a wrong
frame. At the end, our section is added to the results.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from lmms_eval_tasks import context, sample, settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.host import model_class, needs
from lmms_eval_tasks.host.requests import endpoints, replies
from lmms_eval_tasks.judges.verdict import NONE
from lmms_eval_tasks.models.host_types import Arguments, Function, Results
from lmms_eval_tasks.notify import notify
from lmms_eval_tasks.runs import finish, judging, prepare, progress
from lmms_eval_tasks.utils import interrupts
from lmms_eval_tasks.utils.saved_runs import CARRIER

# A run restores its changes to other modules at its end, so two runs at a time would conflict.
_ALONE = threading.RLock()
_THREADS, HOST_THREADS = "process_docs_parallel", 4  # the argument's name and lmms-eval's default


def evaluated(
    evaluate: Function, bound: inspect.BoundArguments, tasks: Sequence[str]
) -> Results | None:
    """Run lmms-eval's `simple_evaluate`; return its results with our section.

    Args:
        evaluate: lmms-eval's `simple_evaluate`.
        bound: the arguments of the call.
        tasks: our tasks among those of the run.

    Raises:
        TasksError: the run cannot be made, or its requests fail. Before the run begins, the error
            has an attribute `of_all`: every process of the run raises it.
    """
    if not needs.met():
        others: Results | None = evaluate(*bound.args, **bound.kwargs)
        return others
    given = bound.arguments
    with ExitStack() as stack:
        if not _ALONE.acquire(blocking=False):
            notify(
                f"{', '.join(tasks)}: waits until the run in another thread ends; "
                "to run at the same time, use processes"
            )
            _ALONE.acquire()
        stack.callback(_ALONE.release)
        stack.enter_context(interrupts.ending(exits=_is_command()))
        limit, offset = given.get("limit"), given.get("offset") or 0
        run = stack.enter_context(context.begun(limit=limit, offset=offset))
        settings.take()
        stack.enter_context(progress.written(given, tasks))
        judged = run.instance_of(judging.JudgedTasks, lambda: judging.JudgedTasks(tasks))
        with _of_all():
            run.model = model_class.run_model(given)
            _check(given, tasks)
            wanted = judged.begin()
        if wanted:
            _score_side_by_side(given, wanted, inspect.signature(evaluate))
        stack.enter_context(_named_scoring())
        stack.enter_context(endpoints.right_media())
        known = stack.enter_context(replies.run_requests(given, tasks))
        results: Results | None = evaluate(*bound.args, **bound.kwargs)
        if results is not None:  # only on rank 0, which has all items
            finish.score_together(results, tasks)
        work = judged.end()
        if results is not None:
            finish.annotate(results, tasks, work, known.lengths, known.conditions)
            results["lmms_eval_tasks"]["answered"] = dataclasses.asdict(known.answered)
    return results


def _is_command() -> bool:
    """Return True if this process is lmms-eval's command line, not a user's script or notebook."""
    return bool(re.search(r"lmms[-_]eval(/__main__\.py)?$", sys.argv[0]))


def _check(arguments: Arguments, tasks: Sequence[str]) -> None:
    """Check that these tasks can run, before the model is built, and make their media."""
    needs.check_filelock()
    if number := arguments.get("num_fewshot"):
        raise TasksError(
            f"--num_fewshot {number}: tasks of lmms-eval-tasks take no examples "
            f"({', '.join(tasks)}); leave the option out, and run tasks with "
            "examples separately"
        )
    sample.ready()
    prepare.check_tasks(tasks)
    for line in (*model_class.set_up(arguments), *model_class.advice(arguments)):
        notify(line)
    prepare.make_media(tasks, arguments.get("limit"))
    if not _has_samples(arguments):
        notify(
            "the samples of this run are not saved, so judge, rescore and report cannot read it; "
            "to save them: --log_samples --output_path out"
        )


def _has_samples(arguments: Arguments) -> bool:
    """Return False if a command saves results or waits for a judge, but saves no samples."""
    if (options := arguments.get("cli_args")) is None:  # called from Python
        return True
    output_path = getattr(options, "output_path", None)
    needs_samples = output_path or settings.text(settings.JUDGE) == NONE
    return bool(not needs_samples or (output_path and getattr(options, "log_samples", False)))


@contextmanager
def _of_all() -> Iterator[None]:
    """Make all processes of the run raise an error that one of them raises inside the context.

    Otherwise those without an error would wait for the others, and a `--config` list would go on
    with processes at different runs.
    """
    raised: Exception | None = None
    try:
        yield
    except Exception as error:
        raised = error
    told = context.gathered(raised and (str(raised) or repr(raised)))
    if not (first := next(filter(None, told), None)):
        return
    raised = raised or TasksError(first)
    raised.of_all = True  # type: ignore[attr-defined]
    raise raised


def _score_side_by_side(arguments: Arguments, n_replies: int, signature: inspect.Signature) -> None:
    """Make lmms-eval score `n_replies` replies at a time, unless the user chose a number."""
    if _THREADS not in signature.parameters:
        notify(
            f"this lmms-eval has no {_THREADS}: the judge gets one request at a time, which is slow"
        )
    elif arguments.get(_THREADS, HOST_THREADS) == HOST_THREADS:
        arguments[_THREADS] = max(HOST_THREADS, n_replies)


@contextmanager
def _named_scoring() -> Iterator[None]:
    """Record verdicts under the name of their task while the context lasts.

    lmms-eval does not pass the name to `process_results`.
    """
    from lmms_eval.api.task import ConfigurableTask

    score = ConfigurableTask.process_results

    @functools.wraps(score)
    def process_results(self: ConfigurableTask, *args: object, **kwargs: object) -> object:
        with judging.scoring(self.config.task, len(getattr(self, "_instances", None) or ())):
            made = score(self, *args, **kwargs)
        item = made.get(CARRIER) if isinstance(made, dict) else None
        if isinstance(item, dict):
            progress.of_run().add_item(self.config.task, item.get("status"))
        return made

    ConfigurableTask.process_results = process_results
    try:
        yield
    finally:
        ConfigurableTask.process_results = score
