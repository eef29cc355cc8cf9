"""Parameters that an endpoint accepts and ignores, known from its replies.

Some servers accept every parameter and use a few. Unnoticed, prose would pass for a reply held to a
schema, and equal greedy replies for samples.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence

from lmms_eval_tasks.judges.providers.exchange import STOP, JudgeReply, Request
from lmms_eval_tasks.utils.replies.reasoning import strip_reasoning

SLACK = 8  # tokens by which an endpoint's count may differ from ours
SURE = 5  # replies, or questions, that must lack a parameter's effect
LONG = 60  # characters of samples that are not equal by chance
SHORT = 12 * SURE  # questions, if samples are shorter: a rating alone is often the same
ALIKE = 3  # samples of one question that are compared
MOST = 1024  # questions with missing samples that are remembered
SHARE = 0.1  # share of the replies that must lack the effect: a single one may be an exception


class Observed:
    """Counts, by parameter, of replies that show its effect and of those that lack it. Thread-safe.

    Args:
        say: called once for each ignored parameter, with a line that continues after the judge's
            name.
        min_lacking: replies that must lack an effect before the parameter counts as ignored.
    """

    def __init__(self, say: Callable[[str], None], min_lacking: int = SURE) -> None:
        self._say, self._min_lacking = say, min_lacking
        self._shown, self._lacked = Counter[str](), Counter[str]()
        self._samples: dict[int, list[str]] = {}  # by question, if its samples come one by one
        self._told: set[str] = set()
        self._lock = threading.Lock()

    @property
    def ignored(self) -> list[str]:
        """The names of the accepted parameters without effect, by all replies so far."""
        with self._lock:
            return sorted(filter(self._is_sure, self._lacked))

    def saw(
        self,
        request: Request,
        samples: Sequence[int],
        replies: Sequence[JudgeReply],
        form: str,
        left_out: Collection[str] = (),
    ) -> None:
        """Count the effects in the replies to one request.

        Args:
            request: the request.
            samples: the indices of its samples.
            replies: the replies that came, one or more.
            form: the requested form of a schema: json_schema, json_object, text.
            left_out: parameters that were not sent.
        """
        whole = [one for one in replies if one.finish == STOP and one.text and not one.refusal]
        with self._lock:
            if request.schema is not None and form != "text":
                for one in whole:
                    held = _is_held(one.text or "", form, request.schema.get("required", ()))
                    self._note("response_format", held)
            if request.top_logprobs and not {"logprobs", "top_logprobs"} & {*left_out}:
                for one in whole:
                    self._note("logprobs", one.tokens is not None)
            if len(samples) > 1 and "n" not in left_out:
                self._note("n", len(replies) > 1)
            if (limit := request.sampling.max_tokens) and "max_tokens" not in left_out:
                known = [one.completion_tokens for one in replies if one.completion_tokens]
                for tokens in known:
                    self._note("max_tokens", tokens <= limit + SLACK)
            if request.sampling.temperature and "temperature" not in left_out:
                self._compare(request, samples, replies)
            self._tell(form)

    def _note(self, name: str, visible: bool, weight: int = 1) -> None:
        (self._shown if visible else self._lacked)[name] += weight

    def _compare(
        self, request: Request, samples: Sequence[int], replies: Sequence[JudgeReply]
    ) -> None:
        """Count whether the samples of a question differ, once all have come."""
        question = hash(repr(request.messages))
        texts = self._samples.setdefault(question, [])
        texts += [one.text or "" for one in replies]
        if len(replies) < len(samples):
            return
        del self._samples[question]
        if len(self._samples) > MOST:  # samples of questions that were given up
            self._samples.clear()
        if len(texts) >= ALIKE:
            is_long = self._min_lacking < SURE or len(texts[0]) >= LONG
            self._note("temperature", len(set(texts)) > 1, SHORT // SURE if is_long else 1)

    def _tell(self, form: str) -> None:
        """Report the ignored parameters, as soon as that is certain."""
        words = {
            "response_format": f"replies are not restricted to the {form}",
            "logprobs": "replies have no log-probabilities",
            "n": "one choice is returned instead of several",
            "max_tokens": "longer replies are returned",
            "temperature": "all samples of a question are equal, so their mean is one reply",
        }
        for name, why in words.items():
            if name not in self._told and self._is_sure(name):
                self._told.add(name)
                self._say(f"accepts {name} but ignores it: {why}")

    def _is_sure(self, name: str) -> bool:
        """Return True if enough replies lack a parameter's effect."""
        sure = self._min_lacking * (SHORT // SURE if name == "temperature" else 1)
        lacked, shown = self._lacked[name], self._shown[name]
        # A single effect proves a temperature, log-probabilities or a second choice.
        possible = shown == 0 or name in ("response_format", "max_tokens")
        return possible and lacked >= max(sure, SHARE * (lacked + shown))


def _is_held(text: str, form: str, required: Collection[str]) -> bool:
    """Return True if a text is JSON alone, with a schema's keys, as a grammar would make it.

    Reasoning before it does not count.
    """
    try:
        value = json.loads(strip_reasoning(text)[0].strip())
    except (ValueError, RecursionError):
        return False
    return form != "json_schema" or (isinstance(value, dict) and value.keys() >= {*required})
