"""What goes to a language model and what comes back, in the form that every provider shares.

A provider makes one attempt and knows nothing of retries, budgets or caches: the engine does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from lmms_eval_tasks.judges.verdict import Status


@dataclass(frozen=True)
class Sampling:
    """How the judge's reply is drawn; None leaves a choice to the endpoint."""

    temperature: float | None = 0.0
    max_tokens: int | None = None  # of the reply; None is the provider's default for the model
    top_p: float | None = None
    seed: int | None = None
    reasoning_effort: str | None = None  # reasoning models: minimal, low, medium, high


@dataclass(frozen=True)
class Request:
    """One question to a model, as data.

    `messages` have OpenAI's chat form; images are `image_url` parts with data URLs. `schema` is the
    JSON schema that the reply must have (None: free text); how strictly it can be asked for is the
    provider's business. `top_logprobs` > 0 asks for log-probabilities of that many tokens at each
    place of the reply.
    """

    messages: Sequence[Mapping[str, Any]]
    sampling: Sampling
    schema_name: str = ""
    schema: Mapping[str, Any] | None = None
    top_logprobs: int = 0


class Token(NamedTuple):
    """One token of a reply, with the most probable tokens at its place (natural logarithms)."""

    text: str
    logprob: float
    top: Sequence[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model sent for one sample of a request, as the cache keeps it. Nothing is judged here.

    Token counts are the endpoint's own; None where it reports none.
    """

    text: str | None
    finish: str = "stop"  # stop, length, content_filter, or the endpoint's own word
    model: str = ""  # as the endpoint names it
    refusal: str = ""
    form: str = ""  # how the schema was asked for: json_schema, json_object, text
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int = 0  # of the prompt's, read from the endpoint's own cache at a lower price
    tokens: tuple[Token, ...] | None = None  # log-probabilities, if asked for and given
    batch: bool = False  # it came from an offline batch, at that price


class ProviderError(Exception):
    """There is no reply.

    Attributes:
        status: `api_error`; `refused` if a content filter turned the request down; `skipped` if
            nobody was asked (no recording, a request put into a batch file).
        retry: whether the same request may succeed later (overload, a dropped connection).
        retry_after: seconds the endpoint asked to wait, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        status: Status = Status.API_ERROR,
        retry: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.retry, self.retry_after = status, retry, retry_after


class Provider(Protocol):
    """Whoever turns requests into replies. Called from many threads and in forked processes."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """What of the provider can change a reply (model, endpoint, weights); enters cache keys."""

    def complete(self, request: Request, samples: Sequence[int]) -> list[Reply]:
        """One attempt to get replies for some samples of a request.

        Args:
            request: the question.
            samples: indices of the samples wanted, at least one.

        Returns:
            Replies of the first one or more of `samples`, in their order.

        Raises:
            ProviderError: there is no reply.
        """
