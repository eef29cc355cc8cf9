"""vLLM's engine, asked from many threads at once: each reply is there as soon as it is done."""

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

LOOK = 1.0  # seconds between two looks whether the engine's processes live


class EngineEndedError(TasksError):
    """A process of the engine has ended: nothing more will be answered."""


class Engine:
    """A `vllm.LLM` whose methods may be called from any thread.

    vLLM's own may not: all calls of it are made by one thread, which lives while there is a
    request.

    Args:
        build: makes the LLM; the processes that it starts are the engine's.
    """

    def __init__(self, build: Callable[[], LLM]) -> None:
        others = multiprocessing.active_children()
        self._llm = build()
        self._processes = [one for one in multiprocessing.active_children() if one not in others]
        self._lock = threading.Lock()
        self._new: list[tuple[dict[str, object], SamplingParams, Future[Output]]] = []
        self._works = False

    def add(self, prompt: dict[str, object], params: SamplingParams) -> Output:
        """Add a request; returns when the engine has it, and holds none of its media any more.

        Returns:
            vLLM's RequestOutput, when it is done; see `result`.

        Raises:
            EngineEndedError: the engine is dead.
            Exception: what vLLM says of a request that it refuses.
        """
        added: Future[Output] = Future()
        with self._lock:
            self._new.append((prompt, params, added))
            if not self._works:
                self._works = True
                threading.Thread(target=self._work, name="engine", daemon=True).start()
        return self.result(added)

    def result(self, coming: Future[T]) -> T:
        """What a future holds, once it does; vLLM's client waits for ever for a killed engine.

        Raises:
            EngineEndedError: the engine is dead.
            Exception: the future's own.
        """
        while not wait([coming], LOOK).done:
            self._check()
        if error := coming.exception():
            self._check(error)
        return coming.result()

    def end(self) -> None:
        """Shut the engine's processes down; nothing can be asked any more."""
        with suppress(Exception):  # of an engine that is dead, or of a version that has none
            self._llm.llm_engine.engine_core.shutdown()

    def _work(self) -> None:
        """Add what is new and see what is done, until nothing is left."""
        asked: dict[str, Output] = {}  # by the request's number
        while True:
            with self._lock:
                new, self._new = self._new, []
                if not new and not asked:
                    self._works = False
                    return
            while new:  # nothing holds the media of a prompt that was added
                self._enqueue(*new.pop(0), asked)
            try:
                done = self._llm.llm_engine.step() if asked else ()
            except BaseException as error:
                while asked:
                    asked.popitem()[1].set_exception(error)
                continue
            for output in done:
                answer = asked.pop(_number(output.request_id), None) if output.finished else None
                if answer is not None:
                    answer.set_result(output)

    def _enqueue(
        self,
        prompt: dict[str, object],
        params: SamplingParams,
        added: Future[Output],
        asked: dict[str, Output],
    ) -> None:
        plain = {"add_special_tokens": False}  # the chat template has written them, as in LLM.chat
        try:
            (name,) = self._llm.enqueue(prompt, params, use_tqdm=False, tokenization_kwargs=plain)
        except BaseException as error:
            added.set_exception(error)
            return
        answer: Output = Future()
        asked[_number(name)] = answer
        added.set_result(answer)

    def _check(self, error: BaseException | None = None) -> None:
        """Raise one line if a process of the engine has ended, or if `error` says so."""
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
    """What `enqueue` and an output call a request alike: "7" of "7-0a1b2c3d"."""
    return request_id.partition("-")[0]
