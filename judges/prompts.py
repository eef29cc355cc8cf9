"""The request for one verdict: a criterion's template, with the candidate's text as delimited data.

Whatever a model under test wrote stands between two lines that carry a tag derived from that text,
which the text therefore does not contain: it cannot end its block. Chat-template tokens inside it
are split by one space, because servers such as vLLM read them in a message's content as the real
ones; every other character arrives as it was.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from lmms_eval_tasks.errors import PromptError
from lmms_eval_tasks.judges.images import image_part
from lmms_eval_tasks.judges.verdict import Criterion
from lmms_eval_tasks.utils.prompts import fill, placeholders

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
    """Chat messages (system, user) that ask `criterion` about `fields`.

    A field is a text, or a list of texts, which becomes a numbered list. A field of
    `criterion.images` is a list of images: where its placeholder stands in the template, the user's
    text is split and the images follow each other as `image_part`s. Without any image the user's
    content is one string. Pure: the same fields give the same messages.

    Raises:
        PromptError: a field that the template names is not given, or one of images has no
            placeholder, stands in the system message, or is no list.
        JudgeError: an image of an unknown kind (`image_part`).
    """
    images = {name: _images(criterion, name, fields) for name in criterion.images}
    values = {
        name: block(name, _text(value)) if name in criterion.untrusted else _text(value)
        for name, value in fields.items()
        if name not in images
    }
    content: list[dict[str, Any]] = []
    # Texts stand at even places, the names of images between them. The template is split before
    # it is filled: no value can bring a placeholder.
    for place, piece in enumerate(_split(criterion.template, criterion.images)):
        if place % 2:
            content += [image_part(image) for image in images[piece]]
        elif text := fill(piece, values):
            content.append({"type": "text", "text": text})
    texts = [part["text"] for part in content if part["type"] == "text"]
    return [
        {"role": "system", "content": fill(criterion.system, values)},
        {"role": "user", "content": "".join(texts) if len(texts) == len(content) else content},
    ]


def _split(template: str, names: Sequence[str]) -> list[str]:
    if not names:
        return [template]
    return re.split(rf"\{{({'|'.join(map(re.escape, names))})\}}", template)


def _images(criterion: Criterion, name: str, fields: Mapping[str, Any]) -> Sequence[Any]:
    """The images of a field, checked against the criterion's template."""
    if name not in placeholders(criterion.template):
        raise PromptError(f"{criterion.name}: no placeholder {{{name}}} for its images")
    if name in placeholders(criterion.system):
        raise PromptError(f"{criterion.name}: {{{name}}} are images: not for the system message")
    if name not in fields:
        raise PromptError(f"{criterion.name}: no images for the placeholder {{{name}}}")
    if not isinstance(fields[name], (list, tuple)):
        raise PromptError(f"{criterion.name}: {{{name}}} takes a list of images")
    return cast("Sequence[Any]", fields[name])


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
