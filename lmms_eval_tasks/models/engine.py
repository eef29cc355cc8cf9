"""vLLM's engine, called from many threads at once: each gets its reply as soon as it is done."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from lmms_eval_tasks.errors import TasksError

if TYPE_CHECKING:
    from vllm import LLM, RequestOutput, SamplingParams

T = TypeVar("T")
Output: TypeAlias = "Future[RequestOutput]"

LOOK = 1.0  # seconds between two checks that the engine's processes are alive


class EngineEndedError(TasksError):
    """The engine's process has ended: it will answer no further request."""


class Engine:
    """A `vllm.LLM` whose methods may be called from any thread.

    vLLM's own methods may not be: a single thread makes all calls of the LLM, and lives as long as
    there is an unfinished request.

    Args:
        build: builds the LLM; the processes that it starts belong to the engine.
    """

    def __init__(self, build: Callable[[], LLM]) -> None:
        others = multiprocessing.active_children()
        self._llm = build()
        self._processes = [one for one in multiprocessing.active_children() if one not in others]
        self._lock = threading.Lock()
        self._new: list[tuple[dict[str, object], SamplingParams, Future[Output]]] = []
        self._works = False

    def add(self, prompt: dict[str, object], params: SamplingParams) -> Output:
        """Add a request; return when the engine has it, so that its media can be freed.

        Returns:
            A future of vLLM's RequestOutput; pass it to `result`.

        Raises:
            EngineEndedError: the engine's process has ended.
            Exception: vLLM's error for a request that it refuses.
        """
        added: Future[Output] = Future()
        with self._lock:
            self._new.append((prompt, params, added))
            if not self._works:
                self._works = True
                threading.Thread(target=self._work, name="engine", daemon=True).start()
        return self.result(added)

    def repetition_penalty(self) -> float:
        """Return the penalty of the checkpoint's generation_config.json; 1 if there is none."""
        # vLLM also counts its arguments `generation_config` and `override_generation_config`.
        return float(self._llm.get_default_sampling_params().repetition_penalty)

    def result(self, coming: Future[T]) -> T:
        """The result of a future, as soon as it is done.

        vLLM waits forever for an engine that was killed, so its processes are checked every second.

        Raises:
            EngineEndedError: the engine's process has ended.
            Exception: the future's exception.
        """
        while not wait([coming], LOOK).done:
            self._check()
        if error := coming.exception():
            self._check(error)
        return coming.result()

    def end(self) -> None:
        """Shut the engine's processes down; it takes no further requests."""
        with suppress(Exception):  # the engine is dead, or this vLLM has no `shutdown`
            self._llm.llm_engine.engine_core.shutdown()

    def _work(self) -> None:
        """Add new requests and set the results of finished ones, until no request is left."""
        pending: dict[str, Output] = {}  # unfinished requests, by number
        while True:
            with self._lock:
                new, self._new = self._new, []
                if not new and not pending:
                    self._works = False
                    return
            while new:  # pop, so that nothing here holds the media of an added prompt
                self._enqueue(*new.pop(0), pending)
            try:
                outputs = self._llm.llm_engine.step() if pending else ()
            except BaseException as error:
                while pending:
                    pending.popitem()[1].set_exception(error)
                continue
            for output in outputs:
                answer = pending.pop(_number(output.request_id), None) if output.finished else None
                if answer is not None:
                    answer.set_result(output)

    def _enqueue(
        self,
        prompt: dict[str, object],
        params: SamplingParams,
        added: Future[Output],
        waiting: dict[str, Output],
    ) -> None:
        # The chat template has written the special tokens, as in LLM.chat.
        plain = {"add_special_tokens": False}
        try:
            (name,) = self._llm.enqueue(prompt, params, use_tqdm=False, tokenization_kwargs=plain)
        except BaseException as error:
            added.set_exception(error)
            return
        answer: Output = Future()
        waiting[_number(name)] = answer
        added.set_result(answer)

    def _check(self, error: BaseException | None = None) -> None:
        """Raise EngineEndedError if a process of the engine has ended, or if `error` says so."""
        ended = [one.exitcode for one in self._processes if not one.is_alive()]
        if ended or type(error).__name__ == "EngineDeadError":
            how = (
                f" (exit code {ended[0]}; -9 often means that the system ran out of memory)"
                if ended
                else ""
            )
            raise EngineEndedError(
                f"vLLM's engine has stopped{how}; see its message above, if "
                "there is one. To use less memory: a smaller --batch_size, "
                "max_model_len or gpu_memory_utilization"
            ) from error


def _number(request_id: str) -> str:
    """The part of a request id that `enqueue` and an output share: "7" of "7-0a1b2c3d"."""
    return request_id.partition("-")[0]
