"""Verdicts at half the price: OpenAI's Batch format written, and its results read back.

Both are the ordinary engine with another provider in front of the endpoint. Writing, every request
that the cache cannot answer goes into the file (its verdict is `skipped`). Reading, the results
are the replies, which the engine caches, counts and reads as ever. What depends on an earlier
reply (a repair, a debate's next round) comes with the next file: write again until it is empty.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges.providers.completions import MAX_MESSAGE, is_filtered
from lmms_eval_tasks.judges.providers.exchange import JudgeReply, ProviderError, Request, key
from lmms_eval_tasks.judges.providers.openai_compatible import OpenAIProvider
from lmms_eval_tasks.judges.verdict import Status
from lmms_eval_tasks.utils.json_files import JsonObject
from lmms_eval_tasks.utils.released_files import read_lines


class Writer:
    """Puts requests into a batch file, each once; shared by the judges of a run."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._lock = out, threading.Lock()
        self._written: set[str] = set()
        self.models: set[str] = set()

    @property
    def count(self) -> int:
        """Requests in the file."""
        return len(self._written)

    def write(self, custom_id: str, body: JsonObject) -> None:
        """Append one request unless it is there."""
        line = {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions"}
        with self._lock:
            if custom_id not in self._written:
                self._written.add(custom_id)
                self.models.add(str(body["model"]))
                self._out.write(json.dumps({**line, "body": body}, ensure_ascii=False) + "\n")


class WritingProvider:
    """Asks nobody: its requests are for later, and the replies the endpoint's own."""

    def __init__(self, provider: OpenAIProvider, writer: Writer) -> None:
        self._provider, self._writer, self.identity = provider, writer, provider.identity

    def complete(self, request: Request, samples: Sequence[int]) -> list[JudgeReply]:
        """Write a line for each sample; always ends in a ProviderError, `skipped`."""
        for sample in samples:
            name = key(self.identity, request, sample)
            self._writer.write(name, self._provider.body(request))
        raise ProviderError("written to the batch file", Status.SKIPPED)


class Results:
    """A batch's results by custom_id.

    Raises:
        TasksError: a line is none of a batch's results; the message names it.
    """

    def __init__(self, path: Path) -> None:
        self._lines: dict[str, JsonObject] = {}
        self.used: set[str] = set()
        for number, value in read_lines(path):
            if not isinstance(value, dict) or {"custom_id", "response"} - value.keys():
                raise JudgeError(
                    f"{path}, line {number}: not a result of a batch "
                    "(custom_id, response); name the file with its results, "
                    "not with its requests"
                )
            self._lines[str(value["custom_id"])] = value

    def __len__(self) -> int:
        return len(self._lines)

    def reply(self, name: str, provider: OpenAIProvider) -> JudgeReply:
        """The reply to one request.

        Raises:
            ProviderError: `skipped` if it is not there, `api_error` if the batch failed on it,
                `refused` if a filter turned it down.
        """
        line = self._lines.get(name)
        if line is None:
            raise ProviderError("not in the batch's results", Status.SKIPPED)
        self.used.add(name)
        response = line["response"] if isinstance(line["response"], dict) else {}
        body = response.get("body")
        if line.get("error") or response.get("status_code") != 200:
            told = line.get("error") or (body.get("error") if isinstance(body, dict) else body)
            words = provider.clean(str(told))[:MAX_MESSAGE]
            status = Status.REFUSED if is_filtered(told) else Status.API_ERROR
            raise ProviderError(f"the batch failed on this request: {words}", status)
        try:
            return replace(provider.replies(body)[0], batch=True)
        except ProviderError as error:  # reading the same line again would not help
            raise ProviderError(str(error), error.status) from None


class ReadingProvider:
    """Answers from a batch's results and asks nobody."""

    def __init__(self, provider: OpenAIProvider, results: Results) -> None:
        self._provider, self._results, self.identity = provider, results, provider.identity

    def complete(self, request: Request, samples: Sequence[int]) -> list[JudgeReply]:
        """The result of the first of the samples, or why there is none; the engine asks on."""
        return [self._results.reply(key(self.identity, request, samples[0]), self._provider)]
