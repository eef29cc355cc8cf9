"""What tasks with judged open answers share: a reply without its reasoning, texts for a judge, and its verdicts, which may fail."""

import hashlib
import os
import re
import threading
import unicodedata
from pathlib import Path
from typing import Any, Callable, Iterable, Optional, Sequence, Union

from loguru import logger as eval_logger
from PIL import Image

from lmms_eval.llm_judge import Request, ServerConfig, get_server

# Texts that model classes return for a request that failed.
_REQUEST_FAILED = re.compile(
    r"\s*(?:\[LMMS_EVAL_[A-Z_]+|\[SAFETY_BLOCKED:|\[GENERATION_FAILED\]|\[ERROR\] |Error: can only concatenate str \(not \"NoneType\"\) to str\s*$|Video [^\n]{1,1000} (?:can not load|generate failed), check the source\s*$)"
)
_NAME = r"[\w:.-]*(?:think|thought|reason|analy[sz]|reflect|scratch|rational)[\w:.-]*"
_REASONING = re.compile(rf"<[ /]{{0,2}}({_NAME}) ?>|\[/?({_NAME})\]|◁/?(think)▷|<\|((?:start|begin|end)_(?:of_)?{_NAME})\|>|<(?:\|channel|unused94)>(thought)|<(channel\||unused95)>", re.IGNORECASE)
# gpt-oss: "<|channel|>analysis<|message|>...<|channel|>final<|message|>B", or "analysis...assistantfinalB" without its special tokens.
_CHANNEL = re.compile(r"<\|channel\|>\s?(?P<name>\w{0,20})[^<>|\n]{0,40}(?:<\|constrain\|>\w{0,20}\s?)?<\|message\|>")
_CHANNEL_END = re.compile(r"<\|(?:end|return|start|channel|call)\|>")
_INVISIBLE = re.compile(r"[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\u00ad\ufe0e\ufe0f]|<\|[^<>|\n]{1,40}\|>|</?s>|<(?:eos|end_of_turn|end_of_utterance)>")
# The beginning of another turn; the text behind it is no answer.
_TURN = re.compile(r"<[|｜](?:im_(?:end|start)|eo[tm](?:_id)?|end|start|return|end_?of_?(?:text|turn)|endof\w+|user|assistant)[|｜]>|</s>|<(?:eos|end_of_turn|start_of_turn)>|\[/?INST\]")
# A token of a chat template inside an answer would end the judge's turn.
_TEMPLATE_TOKEN = re.compile(r"(<|\[)(?=[|｜][^<>\n]{1,64}[|｜]>|/?s>|/?(?:bos|eos|pad|think|image|video|start_of_turn|end_of_turn)>|/?(?:INST|SYSTEM_PROMPT)\])", re.IGNORECASE)


def answer_of(reply: str) -> tuple[str, str]:
    """Return a reply without its reasoning, and its status: ok, empty, truncated or request_failed."""
    if _REQUEST_FAILED.match(_INVISIBLE.sub("", reply)):
        return "", "request_failed"
    if _CHANNEL.match(reply.lstrip().removeprefix("<|start|>assistant")):
        final = [channel.end() for channel in _CHANNEL.finditer(reply) if channel["name"].lower() == "final"]
        reply = _CHANNEL_END.split(reply[final[-1] :])[0] if final else "<think>"
    elif re.match(r"\s*(?:analysis|commentary)(?=[A-Z])", reply):
        reply = reply.rpartition("assistantfinal")[2] if "assistantfinal" in reply else "<think>"
    kept, start, opened = [], 0, None
    for mark in _REASONING.finditer(reply):
        written = next(filter(None, mark.groups())).lower()
        closes = "/" in mark.group() or written.startswith("end_") or written in ("channel|", "unused95")
        name = re.sub(r"^(?:start|begin|end)_(?:of_)?|^.*:|(?<=think)ing$", "", written)
        name = "think" if name in ("thought", "thoughts", "channel|", "unused95") else name  # <think> may be closed by </thinking>
        if opened is None and closes:  # the chat template opened it in the prompt
            kept, start = [], mark.end()
        elif opened is None:
            kept, opened = [*kept, reply[start : mark.start()]], name
        elif closes and name == opened:
            opened, start = None, mark.end()
    if opened is not None:
        return "", "truncated"
    answer = "".join([*kept, reply[start:]]).strip()
    answer = answer if _TURN.match(answer) else _TURN.split(answer)[0].strip()
    has_text = any(unicodedata.category(char)[0] in "LNS" and char not in "`$~" for char in _INVISIBLE.sub("", answer))
    return (answer, "ok") if has_text else ("", "empty")


def fill(template: str, **values: str) -> str:
    """Return a template with its values, filled in in one pass: templates hold JSON, and values may hold braces."""
    return re.sub(r"\{(\w+)\}", lambda match: values[match[1]], template)


def quoted(name: str, text: str) -> str:
    """Return a model's text between two lines with a tag that does not occur in it."""
    text = re.sub("[\ud800-\udfff]", "\ufffd", _TEMPLATE_TOKEN.sub(r"\1 ", text))
    tag = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"<{name}-{tag}>\n{text}\n</{name}-{tag}>"


def numbered(texts: Iterable[str]) -> str:
    """Return texts as numbered lines."""
    return "\n".join(f"{number}. {text}" for number, text in enumerate(texts, 1))


def mean(values: Iterable[float]) -> float:
    """Return the mean; nan of no values."""
    collected = list(values)
    return sum(collected) / len(collected) if collected else float("nan")


def user_message(visuals: Sequence[Union[str, Image.Image]], text: str) -> list[dict[str, Any]]:
    """Return the chat message of videos (paths) and pictures, and a text behind them."""
    media = [{"type": "video" if isinstance(visual, str) else "image", "url": visual} for visual in visuals]
    return [{"role": "user", "content": [*media, {"type": "text", "text": text}]}]


def user_file(names: Iterable[str], cache_dir: str, env_var: str, *subdirs: str) -> Optional[str]:
    """Return the first of these files in the user's folder `env_var`, or in `cache_dir` of HF_HOME if that is not set; None if there is none.

    `media_resolver` looks into the working directory and the shared folders first, where a name such as 7.mp4 may be another benchmark's.
    """
    root = Path(os.getenv(env_var) or os.path.join(os.getenv("HF_HOME", "~/.cache/huggingface"), cache_dir)).expanduser()
    paths = (root / folder / name for name in names for folder in ("", *subdirs))
    return next((str(path) for path in paths if path.is_file()), None)


class Judge:
    """The judge of a task: MODEL_VERSION of the provider API_TYPE of `lmms_eval.llm_judge`. Threads of process_results share it."""

    def __init__(self, default_model: str, again: str, **config: Any) -> None:
        self.again, self._lock, self._server = again, threading.Lock(), None
        self._config = {"temperature": 0.0, "num_retries": 3, "retry_delay": 2.0, **config}
        self._default_model = default_model

    def server(self) -> Any:
        with self._lock:
            if self._server is None:
                config = ServerConfig(model_name=os.getenv("MODEL_VERSION", self._default_model), **self._config)
                self._server = get_server(server_name=os.getenv("API_TYPE", "openai"), config=config)
            return self._server

    def ask(self, system: str, prompt: str, read: Callable[[str], Any]) -> Any:
        """Return what `read` makes of the judge's reply; None if the judge cannot be reached, or twice gives a reply for which `read` raises."""
        for text in (prompt, f"{prompt}\n\n{self.again}"):
            messages = [{"role": "system", "content": system}, {"role": "user", "content": text}]
            try:
                reply, _ = answer_of(self.server().evaluate(Request(messages=messages)).content)
            except Exception as error:  # after the judge's own retries
                eval_logger.warning(f"The judge failed, the answer is left out: {error}")
                return None
            try:
                return read(reply)
            except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
                continue
        eval_logger.warning("The judge's reply cannot be read, the answer is left out")
        return None
