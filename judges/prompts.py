"""The request for one verdict: a criterion's template, with the candidate's text as delimited data.

Whatever a model under test wrote stands between two lines that carry a tag derived from that text,
which the text therefore does not contain: it cannot end its block. Chat-template tokens inside it
are split by one space, because servers such as vLLM read them in a message's content as the real
ones; every other character arrives as it was.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from lmms_eval_tasks.judges.verdict import Criterion
from lmms_eval_tasks.utils.prompts import fill

# Tokens that end a turn, open a role or stand for media in the chat templates in use (ChatML,
# Llama, Mistral, Gemma, DeepSeek, Qwen, LLaVA). A space goes in after the group.
_TOKEN = re.compile(
    r"(?P<open><|\[)(?="
    r"[|｜][^<>\n]{1,64}[|｜]>"  # <|im_end|>, <|eot_id|>, <｜User｜>
    r"|/?s>|/?(?:bos|eos|pad|unk|think|image|video|audio)>"
    r"|/?(?:start_of_turn|end_of_turn|start_of_image|end_of_image)>"
    r"|<\s?/?SYS>>"  # Llama 2's <<SYS>>
    r"|/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|IMG|IMG_END|IMG_BREAK)\])",
    re.IGNORECASE,
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def render(criterion: Criterion, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Chat messages (system, user) that ask `criterion` about `fields`.

    A field is a text, or a list of texts, which becomes a numbered list. Pure: the same fields give
    the same messages.

    Raises:
        PromptError: a field that the template names is not given.
    """
    values = {
        name: block(name, _text(value)) if name in criterion.untrusted else _text(value)
        for name, value in fields.items()
    }
    return [
        {"role": "system", "content": fill(criterion.system, values)},
        {"role": "user", "content": fill(criterion.template, values)},
    ]


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
