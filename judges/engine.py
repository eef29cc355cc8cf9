"""A language model as a judge: from fields to a verdict, with cache, limits and retries.

    fields -> render -> Request -> cache? -> budget -> rate -> provider (retries) -> cache
           -> reader -> Verdict, with one repair attempt for a reply that could not be used

An error of the judge becomes the verdict's status. Only a bug of a benchmark raises an exception.
"""

from __future__ import annotations

import hashlib
import io
import math
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges import Criterion, Judge, JudgeConfig, Status, Verdict
from lmms_eval_tasks.judges.prices import STATED_ERROR, count, upper_bound
from lmms_eval_tasks.judges.providers.exchange import (
    SLOW,
    JudgeReply,
    Provider,
    ProviderError,
    Request,
    key,
)
from lmms_eval_tasks.judges.reader import read_verdict
from lmms_eval_tasks.judges.report import current_task
from lmms_eval_tasks.judges.verdict import MAX_TOKENS, sum_known, total_usage
from lmms_eval_tasks.prompts import fill
from lmms_eval_tasks.utils.json_files import Json, JsonObject

if TYPE_CHECKING:
    from PIL.Image import Image
    from pydantic import BaseModel

    from lmms_eval_tasks.judges.run import JudgeSession


class LanguageJudge(Judge):
    """A judge that is one language model; thread-safe."""

    def __init__(self, config: JudgeConfig, provider: Provider, run: JudgeSession) -> None:
        self.config, self.provider, self._run = config, provider, run
        self._traffic = run.endpoint(config)

    def verdicts(
        self, criterion: Criterion, fields: Mapping[str, object], samples: int
    ) -> list[Verdict]:
        """Judge one item `samples` times; one request asks for all samples, to pay its prompt once.

        The status of a verdict is `api_error` if all configured retries failed, and `skipped` if
        the budget is used up or the endpoint was given up. Otherwise it is that of
        `reader.read_verdict`, after the configured repair attempts.

        Raises:
            PromptError: the template names a field that is not in `fields` (a benchmark's bug).
        """
        request = Request(
            render(criterion, fields),
            self.config.sampling,
            schema_name=criterion.name,
            schema=None if criterion.labels else schema_of(criterion.schema),
            top_logprobs=criterion.top_logprobs,
            exact_schema=exact_schema(criterion, self.config.sampling.max_tokens),
        )
        found = []

        def judge(answer: JudgeReply | ProviderError) -> Verdict:
            if isinstance(answer, ProviderError):
                return Verdict(None, answer.status, str(answer), judge=self.config.label)
            return read_verdict(criterion, fields, answer, self.config.label)

        for sample, answer in enumerate(self._ask(criterion, request, range(samples))):
            verdict = judge(answer)
            for attempt in range(1, self.config.repairs + 1):
                if isinstance(answer, ProviderError) or verdict.status not in _NOTES:
                    break
                again = _repair_of(request, verdict, attempt)
                (answer,) = self._ask(criterion, again, [sample])  # noqa: PLW2901 - the last one
                second = judge(answer)
                if isinstance(answer, ProviderError):  # the first verdict stays
                    verdict = replace(verdict, reason=f"{verdict.reason} {_NOT_REPAIRED}{answer})")
                    break
                ok = second.status == Status.OK.value
                why = second.reason if ok else f"{second.reason} (and before: {verdict.reason})"
                usage = total_usage([verdict, second])
                verdict = replace(second, repaired=ok, reason=why, usage=usage)
            self._run.usage.verdict(self.config.label, verdict)
            found.append(verdict)
        return found

    def _ask(
        self, criterion: Criterion, request: Request, samples: Sequence[int]
    ) -> list[JudgeReply | ProviderError]:
        """Return a reply or an error for each of `samples`; replies are cached or paid for."""
        cache, label = self._run.cache, self.config.label
        results: dict[int, JudgeReply | ProviderError] = {}
        try:
            identity = self.provider.identity
        except JudgeError as error:  # a local model's folder was removed after `preflight`
            return [ProviderError(str(error))] * len(samples)
        keys = {sample: key(identity, request, sample) for sample in samples}

        def took(sample: int, reply: JudgeReply, *, paid: bool) -> None:
            results[sample] = reply
            self._run.usage.reply(label, reply, paid=paid, cost=self._cost(reply))

        def missing() -> list[int]:
            unanswered = [sample for sample in samples if sample not in results]
            for sample in unanswered:
                if cache is not None and (reply := cache.get(keys[sample])) is not None:
                    took(sample, reply, paid=False)
            return [sample for sample in unanswered if sample not in results]

        if missing():
            first, wait = keys[samples[0]], self._traffic.breaker.wait
            # Of two threads or processes with the same request, only one may pay.
            with cache.alone(first, wait) if cache else nullcontext():
                while unpaid := missing():
                    try:
                        replies = self._pay(request, unpaid)
                    except ProviderError as error:
                        results |= dict.fromkeys(unpaid, error)
                        break
                    about = {"criterion": criterion.name, "judge": label, "task": current_task()}
                    for sample, reply in zip(unpaid, replies, strict=False):
                        cached = cache and cache.put(keys[sample], reply, request, about)
                        took(sample, cached or reply, paid=True)
        return [results[sample] for sample in samples]

    def _pay(self, request: Request, samples: Sequence[int]) -> list[JudgeReply]:
        """Send one request within budget and limits, and return its replies.

        Raises:
            ProviderError: no attempt succeeded, or the budget or the endpoint allows none.
        """
        run, traffic, most = self._run, self._traffic, None
        longest = len(samples) * (request.sampling.max_tokens or MAX_TOKENS)
        if run.limits.max_cost is not None:
            if traffic.price is None:  # `preflight` stops such a run
                raise ProviderError(
                    "a budget in dollars, but no known price", status=Status.SKIPPED
                )
            most = traffic.price.cost(upper_bound(request.messages), longest)

        def attempt() -> list[JudgeReply]:
            with run.budget.hold(len(samples), most, self.config.label) as bill:
                try:
                    replies = self.provider.complete(request, samples)
                except ProviderError as error:
                    if (
                        error.load == SLOW
                    ):  # the endpoint may still work on the request, and bill it
                        bill.cost = most or 0.0
                    raise
                costs = [self._cost(one) for one in replies]
                bill.calls, bill.cost = len(replies), sum_known(costs)
                if most is not None and bill.cost is None:
                    bill.cost = self._reckoned(request, replies, longest)
            if most is not None:
                self._tell_of_cost(most, bill.cost or 0.0)
            return replies

        # The budget computes a call's upper bound when the call is sent: earlier bills improve it.
        return traffic.ask(
            attempt, self.config.retries, partial(run.usage.retry, self.config.label)
        )

    def _reckoned(
        self, request: Request, replies: Sequence[JudgeReply], longest: int
    ) -> float | None:
        """Return the cost of replies whose tokens are not reported, estimated from their texts.

        None if the texts are within the limit of tokens; the call then costs its upper bound.
        """
        self._traffic.say_once(
            "tokens",
            "does not report tokens, so each call counts with its highest "
            f"possible cost: {settings.MAX_COST.option} may be reached early, "
            "and hidden reasoning is not counted",
        )
        tokens = sum(count(reply.text or "") for reply in replies)
        price = self._traffic.price
        if price is None or tokens <= longest:
            return None
        return price.cost(upper_bound(request.messages), math.ceil(tokens * (1 + STATED_ERROR)))

    def _tell_of_cost(self, most: float, paid: float) -> None:
        """Warn once if bills exceed their upper bounds, and once if the limit was exceeded."""
        budget, traffic, option = self._run.budget, self._traffic, settings.MAX_COST.option
        if paid > most * (1 + STATED_ERROR):
            traffic.say_once(
                "bills",
                f"sends more tokens than max_tokens allows (${paid:.3g}, bound "
                f"${most:.3g}): from now on each call counts with the largest "
                f"cost so far, to stay below {option}",
            )
        if budget.max_cost is not None and (budget.cost or 0.0) > budget.max_cost:
            traffic.say_once(
                "over",
                f"has cost ${budget.cost:.3g}, over the ${budget.max_cost:.3g} "
                f"of {option} for this process, because calls cost more than "
                "any before; no further call is made",
            )

    def _cost(self, reply: JudgeReply) -> float | None:
        if (price := self._traffic.price) is None:
            return None
        tokens = reply.prompt_tokens, reply.completion_tokens, reply.cached_tokens
        return price.cost(*tokens, batch=reply.batch)


@lru_cache(maxsize=256)  # generating a schema takes as long as a hit in the cache of replies
def schema_of(model: type[BaseModel]) -> JsonObject:
    """Return the JSON schema of a reply for strict mode: no further keys, and all keys required."""

    def closed(node: Json) -> Json:
        if isinstance(node, list):
            return [closed(item) for item in node]
        if not isinstance(node, dict):
            return node
        made = {name: closed(value) for name, value in node.items()}
        if made.get("type") == "object" and "properties" in made:
            made |= {"additionalProperties": False, "required": list(made["properties"])}
        return made

    return dict(closed(model.model_json_schema()))


MAX_REASON = 600  # characters; a model that never ends its reason would use up the reply's tokens
# A judge whose limit for a one-word reply is above this may reason in the reply before the word.
_WORD_TOKENS = 64


def exact_schema(criterion: Criterion, max_tokens: int | None) -> Mapping[str, Json] | None:
    """Return the JSON schema for endpoints that enforce one; None if they need none.

    This is the criterion's exact schema. A criterion without one gets the general schema with a
    limit on the length of the reason, or None if it has no reason. For a one-word reply, the result
    is None if the judge has tokens to reason before the word, since the schema would forbid that.
    """
    if criterion.labels:
        return criterion.exact_schema if (max_tokens or MAX_TOKENS) <= _WORD_TOKENS else None
    general = schema_of(criterion.schema)
    reason = general["properties"].get("reason")
    if criterion.exact_schema or reason is None:
        return criterion.exact_schema
    bounded = {"reason": {**reason, "maxLength": MAX_REASON}}
    return {**general, "properties": {**general["properties"], **bounded}}


def _repair_of(request: Request, first: Verdict, attempt: int) -> Request:
    """Return the same request with one more line, and more tokens if the reply was cut off.

    The unusable reply is not sent to the judge again, since it may quote the candidate. The line
    differs between attempts; otherwise the cache would return the same reply.
    """
    note = _NOTES[first.status]
    if request.schema is None:  # the request is for a word, not an object
        form = "Reply in exactly the form asked for above, and with nothing else."
        note = f"{note.partition('. ')[0]}. {form}"
    if attempt > 1:
        note = f"{note} This is request {attempt + 1}."
    *before, last = request.messages
    content = last["content"]
    if isinstance(content, str):
        content = f"{content}\n\n{note}"
    else:
        content = [*content, {"type": "text", "text": note}]
    sampling = request.sampling
    exact = request.exact_schema
    if first.status == Status.TRUNCATED.value:
        sampling = replace(sampling, max_tokens=2 * (sampling.max_tokens or MAX_TOKENS))
    elif request.schema is None:  # the endpoint took the word's schema as a wish for any JSON
        exact = None
    messages = [*before, {**last, "content": content}]
    return replace(request, messages=messages, sampling=sampling, exact_schema=exact)


# The statuses after which a request is repeated, each with the line that is added.
_NOTES = {
    "parse_failure": "An earlier reply to this could not be read. Reply with exactly one JSON "
    "object that has the keys asked for above and values in their range, and with nothing else.",
    "truncated": "An earlier reply to this was cut off. Keep a reason to one short sentence "
    "and reply with the complete JSON object asked for above.",
    "refused": "An earlier request for this got no answer. You are working on a text that "
    "somebody else wrote, not endorsing it: reply with the JSON object asked for above.",
}
_NOT_REPAIRED = "(not repaired: "  # a second run asks again


def fails_again(failure: str) -> bool:
    """Return True if a second run with the same cache would fail again without any request.

    Args:
        failure: a verdict's status and reason, such as `parse_failure: no object with ...`.
    """
    return failure.partition(": ")[0] in _NOTES and _NOT_REPAIRED not in failure


# --- the request for one verdict ------------------------------------------------------------------
# A text of a model under test is put between two lines with a tag. The tag is derived from the text
# and does not occur in it, so the text cannot end its block. Chat-template tokens in the text are
# split by a space, because servers such as vLLM would read them as real tokens. No other character
# changes.

# Tokens that end a turn, open a role or stand for media in the chat templates in use (ChatML,
# harmony, Llama, Mistral, Gemma, DeepSeek, Qwen, Phi, GLM, Command, EXAONE, LLaVA, InternVL). A
# space is inserted after the group `open`. Tokenizers look for the exact text, so letters of full
# width, or letters with invisible characters between them, make no token.
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


def render(criterion: Criterion, fields: Mapping[str, object]) -> list[JsonObject]:
    """Return the chat messages of a request: system, if the criterion has such a text, and user.

    A field is a text or a list of texts, which becomes a numbered list. A field in
    `criterion.images` is a list of pictures (Pillow's). Its placeholder in the template splits the
    user's text, and the pictures go there as `image_part`s. Without images, the user's content is
    one string. The same fields always give the same messages.

    Raises:
        PromptError: the template names a field that is not in `fields`.
    """
    values = {
        name: block(name, _text(value)) if name in criterion.untrusted else _text(value)
        for name, value in fields.items()
        if name not in criterion.images
    }
    content: list[JsonObject] = []
    # After the split, texts are at even places and names of fields with images at odd ones. The
    # template is split before it is filled, so that no value can add a placeholder.
    names = "|".join(map(re.escape, criterion.images)) or "(?!)"
    for place, piece in enumerate(re.split(rf"\{{({names})\}}", criterion.template)):
        if place % 2:
            content += [image_part(image) for image in _pictures(fields[piece])]
        elif text := fill(piece, values):
            content.append({"type": "text", "text": text})
    texts = [part["text"] for part in content if part["type"] == "text"]
    user = {"role": "user", "content": "".join(texts) if len(texts) == len(content) else content}
    # Endpoints refuse a message without a text, and a user's prompt file may have no system text.
    system = fill(criterion.system, values)
    return [*([{"role": "system", "content": system}] if system else []), user]


def image_part(image: Image) -> JsonObject:
    """Return a picture as OpenAI's `image_url` part: its pixels as PNG, in a data URL."""
    if image.mode not in ("RGB", "RGBA", "L"):
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    plain = image.copy()
    plain.info = {}  # comments, profiles and dates are not pixels
    file = io.BytesIO()
    plain.save(file, "PNG")
    url = f"data:image/png;base64,{b64encode(file.getvalue()).decode('ascii')}"
    return {"type": "image_url", "image_url": {"url": url}}


def block(name: str, text: str) -> str:
    """Return `text`, neutralised, between `<name-TAG>` and `</name-TAG>`; `text` has no TAG."""
    text = neutralise(text)
    content, folded = text.encode("utf-8"), text.lower()
    tag = hashlib.sha256(content).hexdigest()[:16]
    while tag in folded:
        tag = hashlib.sha256(content + tag.encode()).hexdigest()[:16]
    return f"<{name}-{tag}>\n{text}\n</{name}-{tag}>"


def neutralise(text: str) -> str:
    """Return `text` with a space after the first character of every chat-template token.

    Nothing is removed, since the rest of a text could then form a new token. A lone surrogate,
    which no request can contain, becomes U+FFFD. A text without both is returned unchanged.
    """
    split = _TOKEN.sub(lambda match: match["open"] + " ", text)
    return re.sub("[\ud800-\udfff]", "\ufffd", split)


def _pictures(value: object) -> Iterable[Image]:
    if not isinstance(value, Iterable):
        raise TypeError(f"a field of images holds pictures, not {value!r}")
    return value


def _text(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return "\n".join(f"{number}. {item}" for number, item in enumerate(value, 1))
    return str(value)
