"""Verdicts at half the price: requests written in OpenAI's Batch format, and results read back.

Both directions are the ordinary engine with another provider before the endpoint. Writing: every
request that the cache cannot answer goes into the file, with the verdict `skipped`. Reading: the
results are the replies, which the engine caches, counts and reads as usual. Requests that depend on
an earlier reply (a repair, a debate's next round) are in the next file: repeat until it is empty.
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
    """A writer of requests into a batch file, each once; all judges of a run share it."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._lock = out, threading.Lock()
        self._written: set[str] = set()
        self.models: set[str] = set()

    @property
    def count(self) -> int:
        """The number of requests in the file."""
        return len(self._written)

    def write(self, custom_id: str, body: JsonObject) -> None:
        """Append a request unless it is in the file."""
        line = {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions"}
        with self._lock:
            if custom_id not in self._written:
                self._written.add(custom_id)
                self.models.add(str(body["model"]))
                self._out.write(json.dumps({**line, "body": body}, ensure_ascii=False) + "\n")


class WritingProvider:
    """A provider that writes requests for later; replies are stored as the endpoint's."""

    def __init__(self, provider: OpenAIProvider, writer: Writer) -> None:
        self._provider, self._writer, self.identity = provider, writer, provider.identity

    def complete(self, request: Request, samples: Sequence[int]) -> list[JudgeReply]:
        """Write a line for each sample; always raises ProviderError, `skipped`."""
        for sample in samples:
            name = key(self.identity, request, sample)
            self._writer.write(name, self._provider.body(request))
        raise ProviderError("written to the batch file", Status.SKIPPED)


class Results:
    """A batch's results by custom_id.

    Raises:
        TasksError: a line is no result of a batch; names it.
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
        """Return the reply to one request.

        Raises:
            ProviderError: `skipped` if the results do not have it, `api_error` if the batch failed
                on it, `refused` if a content filter rejected it.
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
        # Without `retry`: reading the same line again would not help.
        except ProviderError as error:
            raise ProviderError(str(error), error.status) from None


class ReadingProvider:
    """A provider whose replies are a batch's results."""

    def __init__(self, provider: OpenAIProvider, results: Results) -> None:
        self._provider, self._results, self.identity = provider, results, provider.identity

    def complete(self, request: Request, samples: Sequence[int]) -> list[JudgeReply]:
        """Return the result for the first sample; the engine asks for the next ones.

        Raises:
            ProviderError: see `Results.reply`.
        """
        return [self._results.reply(key(self.identity, request, samples[0]), self._provider)]
