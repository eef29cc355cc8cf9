"""A language model as a judge: from fields to a verdict, through cache, limits and retries.

    fields -> render -> Request -> cache? -> budget -> rate -> provider (retries) -> cache
           -> reader -> Verdict, with one repair attempt for a reply that could not be used

Trouble with the judge becomes a verdict's status; `verdict` raises only for a benchmark's own bug.
"""

from __future__ import annotations

import hashlib
import io
import re
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges import tokens
from lmms_eval_tasks.judges.cache import key
from lmms_eval_tasks.judges.limits import call_with_retries
from lmms_eval_tasks.judges.reader import judged
from lmms_eval_tasks.judges.verdict import (
    MAX_TOKENS,
    Criterion,
    Judge,
    JudgeConfig,
    Provider,
    ProviderError,
    Reply,
    Request,
    Status,
    Verdict,
    total_usage,
)
from lmms_eval_tasks.utils.prompts import fill

if TYPE_CHECKING:
    from PIL.Image import Image
    from pydantic import BaseModel

    from lmms_eval_tasks.judges.run import Run

_REPAIRED = {Status.PARSE_FAILURE.value, Status.TRUNCATED.value, Status.REFUSED.value}


@dataclass(frozen=True)
class _Asked:
    """What became of one sample of a request: a reply, or why there is none."""

    reply: Reply | ProviderError
    cached: bool = False


class LanguageJudge(Judge):
    """Asks one model; thread-safe."""

    def __init__(self, config: JudgeConfig, provider: Provider, run: Run) -> None:
        self.config, self.provider, self._run = config, provider, run
        self._traffic = run.endpoint(config)
        self._asking: dict[str, tuple[threading.Lock, int]] = {}
        self._asking_lock = threading.Lock()

    def verdicts(
        self, criterion: Criterion, fields: Mapping[str, Any], samples: int
    ) -> list[Verdict]:
        """Judge one item `samples` times; a request for several choices costs its prompt once.

        Statuses: `api_error` after the configured retries; `skipped` over the budget, or once the
        endpoint was given up; else as in `reader.judged`, after one repair attempt.

        Raises:
            PromptError: the template names a field that is not in `fields` (a benchmark's bug).
        """
        request = self._request(criterion, fields)
        asked = self._ask(criterion, request, range(samples))
        found = []
        for sample, first in enumerate(asked):
            answer, verdict = first, self._judged(criterion, fields, first)
            for attempt in range(1, self.config.repairs + 1):
                if not isinstance(answer.reply, Reply) or verdict.status not in _REPAIRED:
                    break
                again = _repair_of(request, verdict, attempt)
                (answer,) = self._ask(criterion, again, [sample])
                verdict = self._repaired(verdict, self._judged(criterion, fields, answer), answer)
            self._run.ledger.verdict(self.config.label, verdict)
            found.append(verdict)
        return found

    # --- one request ------------------------------------------------------------------------

    def _request(self, criterion: Criterion, fields: Mapping[str, Any]) -> Request:
        return Request(
            render(criterion, fields),
            self.config.sampling,
            schema_name=criterion.name,
            schema=None if criterion.labels else schema_of(criterion.schema),
            top_logprobs=criterion.top_logprobs,
        )

    def _ask(self, criterion: Criterion, request: Request, samples: Sequence[int]) -> list[_Asked]:
        """A reply for each of `samples`: from the cache, or paid for and put there."""
        cache = self._run.cache
        try:
            identity = self.provider.identity
        except JudgeError as error:  # a local model's folder that went away after `preflight`
            return [_Asked(ProviderError(str(error)))] * len(samples)
        keys = {sample: key(identity, request, sample) for sample in samples}
        found: dict[int, _Asked] = {}

        def look() -> list[int]:
            if cache is not None:
                for sample in samples:
                    if sample not in found and (reply := cache.get(keys[sample])) is not None:
                        found[sample] = _Asked(reply, cached=True)
            return [sample for sample in samples if sample not in found]

        if look():
            # Two threads with the same question must not both pay for it.
            with self._alone(keys[samples[0]]):
                while missing := look():
                    try:
                        replies = self._pay(request, missing)
                    except ProviderError as error:
                        found |= {sample: _Asked(error) for sample in missing}
                        break
                    for sample, reply in zip(missing, replies, strict=False):
                        kept = self._kept(criterion, request, keys[sample], reply)
                        found[sample] = _Asked(kept)
        for answer in found.values():
            if isinstance(answer.reply, Reply):
                cost = self._cost(answer.reply)
                self._run.here.paid += not answer.cached
                self._run.ledger.reply(
                    self.config.label, answer.reply, paid=not answer.cached, cost=cost
                )
        return [found[sample] for sample in samples]

    def _kept(self, criterion: Criterion, request: Request, name: str, reply: Reply) -> Reply:
        if self._run.cache is None:
            return reply
        about = {"criterion": criterion.name, "judge": self.config.label, "task": self._run.task}
        return self._run.cache.put(name, reply, request, about)

    def _pay(self, request: Request, samples: Sequence[int]) -> list[Reply]:
        """One successful call, within budget and limits.

        Raises:
            ProviderError: over the budget, given up, or failed after all retries.
        """
        run, traffic = self._run, self._traffic
        prompt, reply_tokens = self._bounds(request, len(samples))
        most = traffic.price.cost(prompt, reply_tokens) if traffic.price else None
        if most is None and run.limits.max_cost is not None:  # `preflight` stops such a run before
            raise ProviderError("a budget in dollars, but no price", status=Status.SKIPPED)

        def attempt() -> list[Reply]:
            wait = max(traffic.requests.reserve(1), traffic.tokens.reserve(prompt + reply_tokens))
            if wait and not traffic.breaker.wait(wait):
                raise ProviderError(traffic.breaker.reason, status=Status.SKIPPED)
            with traffic.slots:
                if traffic.breaker.is_open:
                    raise ProviderError(traffic.breaker.reason, status=Status.SKIPPED)
                return self.provider.complete(request, samples)

        def retried(_error: ProviderError, _seconds: float) -> None:
            run.ledger.retry(self.config.label)

        with run.budget.hold(len(samples), most) as bill:
            replies = call_with_retries(
                attempt,
                retries=self.config.retries,
                breaker=traffic.breaker,
                on_retry=retried,
            )
            costs = [self._cost(reply) for reply in replies]
            known = [cost for cost in costs if cost is not None]
            bill.calls = len(replies)
            bill.cost = sum(known) if len(known) == len(costs) else None
        if (used := _used(replies)) is not None:
            traffic.tokens.settle(prompt + reply_tokens, used)
        return replies

    def _bounds(self, request: Request, samples: int) -> tuple[int, int]:
        """Tokens of the prompt (estimated) and of the replies (at most); 0 where no limit asks."""
        limits = self._run.limits
        if limits.tokens_per_minute is None and limits.max_cost is None:
            return 0, 0
        return (
            tokens.upper_bound(request.messages),
            samples * (request.sampling.max_tokens or MAX_TOKENS),
        )

    def _cost(self, reply: Reply) -> float | None:
        price = self._traffic.price
        if price is None:
            return None
        return price.cost(
            reply.prompt_tokens,
            reply.completion_tokens,
            cached_tokens=reply.cached_tokens,
            batch=reply.batch,
        )

    @contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        """One thread at a time for each key."""
        with self._asking_lock:
            lock, waiting = self._asking.get(name, (threading.Lock(), 0))
            self._asking[name] = (lock, waiting + 1)
        try:
            with lock:
                yield
        finally:
            with self._asking_lock:
                _, waiting = self._asking[name]
                if waiting == 1:
                    del self._asking[name]
                else:
                    self._asking[name] = (lock, waiting - 1)

    # --- from replies to verdicts -----------------------------------------------------------

    def _judged(self, criterion: Criterion, fields: Mapping[str, Any], answer: _Asked) -> Verdict:
        reply = answer.reply
        if isinstance(reply, ProviderError):
            return Verdict(None, reply.status, str(reply), judge=self.config.label)
        return judged(criterion, fields, reply, self.config.label)

    def _repaired(self, first: Verdict, second: Verdict, answer: _Asked) -> Verdict:
        """The verdict after asking again; the first stands if nothing came back (budget, dead)."""
        if isinstance(answer.reply, ProviderError):
            return replace(first, reason=f"{first.reason} {_NOT_REPAIRED}{answer.reply})")
        usage = total_usage([first, second])
        if second.status == Status.OK.value:
            return replace(second, repaired=True, usage=usage)
        reason = f"{second.reason} (and before: {first.reason})"
        return replace(second, reason=reason, usage=usage)


@lru_cache(maxsize=256)  # generating one costs as much as a cache hit
def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a reply, every object closed and all its keys required (strict mode)."""
    closed: dict[str, Any] = _closed(model.model_json_schema())
    return closed


def _closed(node: Any) -> Any:
    if isinstance(node, list):
        return [_closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    closed = {name: _closed(value) for name, value in node.items()}
    if closed.get("type") == "object" and "properties" in closed:
        closed |= {"additionalProperties": False, "required": list(closed["properties"])}
    return closed


def _repair_of(request: Request, first: Verdict, attempt: int) -> Request:
    """The same question with one more line, and more room for a reply that was cut off.

    The unusable reply is not sent back: it may hold what the candidate wrote. A later attempt has
    other words than the first, or the cache would answer it with the same reply.
    """
    note = _NOTES[Status(first.status)]
    if request.schema is None:  # a word is asked for, and no object
        note = f"{note.partition('. ')[0]}. {_IN_FORM}"
    if attempt > 1:
        note = f"{note} This is request {attempt + 1}."
    *before, last = request.messages
    content = last["content"]
    if isinstance(content, str):
        content = f"{content}\n\n{note}"
    else:
        content = [*content, {"type": "text", "text": note}]
    sampling = request.sampling
    if first.status == Status.TRUNCATED.value:
        sampling = replace(sampling, max_tokens=2 * (sampling.max_tokens or MAX_TOKENS))
    return replace(request, messages=[*before, {**last, "content": content}], sampling=sampling)


_NOTES = {
    Status.PARSE_FAILURE: "An earlier reply to this could not be read. Reply with exactly one JSON "
    "object that has the keys asked for above and values in their range, and with nothing else.",
    Status.TRUNCATED: "An earlier reply to this was cut off. Keep a reason to one short sentence "
    "and reply with the complete JSON object asked for above.",
    Status.REFUSED: "An earlier request for this got no answer. You are working on a text that "
    "somebody else wrote, not endorsing it: reply with the JSON object asked for above.",
}

_IN_FORM = "Reply in exactly the form asked for above, and with nothing else."


def _used(replies: Sequence[Reply]) -> int | None:
    counts = [(reply.prompt_tokens, reply.completion_tokens) for reply in replies]
    if any(None in pair for pair in counts):
        return None
    return sum((prompt or 0) + (completion or 0) for prompt, completion in counts)


# Of replies that could not be used, also when asked for once more.
_UNUSABLE = tuple(
    f"{status.value}: " for status in (Status.PARSE_FAILURE, Status.REFUSED, Status.TRUNCATED)
)
_NOT_REPAIRED = "(not repaired: "  # a second run asks once more


def fails_again(failure: str) -> bool:
    """Whether a run with the same cache fails for the same reason, nobody being asked again.

    Args:
        failure: a verdict's status and reason, `parse_failure: no object with ...`.
    """
    return failure.startswith(_UNUSABLE) and _NOT_REPAIRED not in failure


# --- the request for one verdict ------------------------------------------------------------------
#
# Whatever a model under test wrote stands between two lines that carry a tag derived from that
# text, which the text therefore does not contain: it cannot end its block. Chat-template tokens
# inside it are split by one space, because servers such as vLLM read them in a message's content as
# the real ones; every other character arrives as it was.

# Tokens that end a turn, open a role or stand for media in the chat templates in use (ChatML,
# harmony, Llama, Mistral, Gemma, DeepSeek, Qwen, Phi, GLM, Command, EXAONE, LLaVA, InternVL). A
# space goes in after the group. Tokenizers look for the exact text: letters of full width, or with
# invisible characters between them, make no token.
_TOKEN = re.compile(
    r"(?P<open><|\[)(?="
    r"[|｜][^<>\n]{1,64}[|｜]>"  # <|im_end|>, <|eot_id|>, <｜User｜>
    r"|/?s>|/?(?:bos|eos|pad|unk|sop|eop|think|image|img|video|audio|tool_call|tool_response)>"
    r"|/?(?:start_of_turn|end_of_turn|start_of_image|end_of_image)>"
    r"|(?:image_soft_token|audio_soft_token|IMG_CONTEXT)>"
    r"|<\s?/?SYS>>"  # Llama 2's <<SYS>>
    r"|/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|THINK)\]"
    r"|(?:IMG|IMG_END|IMG_BREAK|AUDIO|BEGIN_AUDIO|gMASK|sMASK)\]"
    r"|\|(?:system|user|assistant|tool|endofturn)\|\])",
    re.IGNORECASE,
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def render(criterion: Criterion, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Chat messages (system, if it has a text, and user) that ask `criterion` about `fields`.

    A field is a text, or a list of texts, which becomes a numbered list. A field of
    `criterion.images` is a list of pictures (Pillow's): where its placeholder stands in the
    template, the user's text is split and the pictures follow each other as `image_part`s. Without
    any of them the user's content is one string. Pure: the same fields give the same messages.

    Raises:
        PromptError: a field that the template names is not given.
    """
    values = {
        name: block(name, _text(value)) if name in criterion.untrusted else _text(value)
        for name, value in fields.items()
        if name not in criterion.images
    }
    content: list[dict[str, Any]] = []
    # Texts stand at even places, the names of images between them. The template is split before
    # it is filled: no value can bring a placeholder.
    for place, piece in enumerate(_split(criterion.template, criterion.images)):
        if place % 2:
            content += [image_part(image) for image in fields[piece]]
        elif text := fill(piece, values):
            content.append({"type": "text", "text": text})
    texts = [part["text"] for part in content if part["type"] == "text"]
    user = {"role": "user", "content": "".join(texts) if len(texts) == len(content) else content}
    # Endpoints refuse a message without a text; a user's prompts may have no system text.
    system = fill(criterion.system, values)
    return [*([{"role": "system", "content": system}] if system else []), user]


def _split(template: str, names: Sequence[str]) -> list[str]:
    if not names:
        return [template]
    return re.split(rf"\{{({'|'.join(map(re.escape, names))})\}}", template)


def image_part(image: Image) -> dict[str, Any]:
    """A picture as OpenAI's `image_url` part: its pixels as PNG, in a data URL."""
    if image.mode not in ("RGB", "RGBA", "L"):
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    plain = image.copy()
    plain.info = {}  # comments, profiles and dates are no part of the pixels
    file = io.BytesIO()
    plain.save(file, "PNG")
    url = f"data:image/png;base64,{b64encode(file.getvalue()).decode('ascii')}"
    return {"type": "image_url", "image_url": {"url": url}}


def block(name: str, text: str) -> str:
    """`text` neutralised, between `<name-TAG>` and `</name-TAG>`; TAG does not occur in it."""
    text = neutralise(text)
    tag = _tag(text)
    return f"<{name}-{tag}>\n{text}\n</{name}-{tag}>"


def neutralise(text: str) -> str:
    """`text` with a space after the first character of every chat-template token.

    Only adds, so that no token can be put together from the pieces of another. A lone surrogate,
    which no request can carry, becomes U+FFFD. Text without either comes back unchanged.
    """
    return _SURROGATE.sub("\ufffd", _TOKEN.sub(lambda match: match["open"] + " ", text))


def _tag(text: str) -> str:
    content, folded = text.encode("utf-8"), text.lower()
    tag = hashlib.sha256(content).hexdigest()[:16]
    while tag in folded:
        tag = hashlib.sha256(content + tag.encode()).hexdigest()[:16]
    return tag


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "\n".join(f"{number}. {item}" for number, item in enumerate(value, 1))
    return str(value)
