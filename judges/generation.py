"""One reply of a Hugging Face model that is loaded: messages to tokens, tokens drawn, and text."""

from __future__ import annotations

import inspect
import io
import random
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lmms_eval_tasks.judges.config import MAX_TOKENS
from lmms_eval_tasks.judges.exchange import ProviderError, Reply, Request, Sampling, Token

_MARKERS = {"<think>", "</think>"}  # stay in the text: the reader drops what is between them


class _Place(NamedTuple):
    """A drawn token and the most probable ones at its place, as ids."""

    id: int
    logprob: float
    top: list[tuple[int, float]]


def encode(front: Any, request: Request, *, sees: bool) -> dict[str, Any]:
    """The model's inputs for a request, through the checkpoint's own chat template.

    The tokenizer's special tokens inside a message's text are split by a space after the first
    character, whichever they are: text cannot end a turn or stand for an image. Where the template
    refuses or drops a system message, its text opens the first message after it.

    Args:
        front: the tokenizer, or for a model that sees its processor.
        request: messages of text parts and, if `sees`, `image_url` parts with data URLs.
        sees: whether the model takes images.

    Raises:
        ProviderError: an image for a model that takes none, or one that cannot be read.
    """
    tokenizer = getattr(front, "tokenizer", front)
    specials = sorted((text for text in _specials(tokenizer).values() if len(text) > 1), key=len)
    special = re.compile("|".join(map(re.escape, reversed(specials))) or "(?!)")
    messages = [
        {
            "role": message["role"],
            "content": [_part(part, special, sees) for part in _parts(message)],
        }
        for message in request.messages
    ]
    options: dict[str, Any] = {"add_generation_prompt": True}
    if request.sampling.reasoning_effort is not None:
        options["reasoning_effort"] = request.sampling.reasoning_effort  # for templates that ask
    if not getattr(front, "chat_template", None):
        options["chat_template"] = tokenizer.chat_template
    refused = messages[0]["role"] == "system" and not _keeps_system(
        front, _shaped(messages, sees), options
    )
    if refused and len(messages) > 1:
        system, first, *rest = messages
        opening = [_text(part["text"] + "\n") for part in system["content"]]
        messages = [first | {"content": [*opening, *first["content"]]}, *rest]
    encoded = front.apply_chat_template(
        _shaped(messages, sees), tokenize=True, return_dict=True, return_tensors="pt", **options
    )
    return dict(encoded)


def generate(
    model: Any, front: Any, inputs: Mapping[str, Any], request: Request, sample: int
) -> Reply:
    """Draw one sample; the context's end cuts a reply like its token limit does.

    Raises:
        ProviderError: the prompt leaves no room in the context.
    """
    import torch
    from transformers import LogitsProcessorList

    tokenizer, sampling = getattr(front, "tokenizer", front), request.sampling
    length, wanted = inputs["input_ids"].shape[1], sampling.max_tokens or MAX_TOKENS
    context = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    room = wanted if context is None else context - length
    if room < 1:
        raise ProviderError(f"a prompt of {length} tokens, for a context of {context}")
    # Some tokenizers make token types for models that have none.
    unknown = {"token_type_ids"} - inspect.signature(model.forward).parameters.keys()
    moved = {
        name: value.to(model.device, model.dtype if value.is_floating_point() else value.dtype)
        for name, value in inputs.items()
        if name not in unknown
    }
    draw = _Draw(sampling, sample, request.top_logprobs)
    with torch.inference_mode():
        model.generate(
            **moved,
            do_sample=False,
            max_new_tokens=min(wanted, room),
            logits_processor=LogitsProcessorList([draw]),
        )
    ends = model.generation_config.eos_token_id or []
    stopped = draw.places[-1].id in ends
    hidden = {id_ for id_, text in _specials(tokenizer).items() if text not in _MARKERS}.union(ends)
    places = [place for place in draw.places if place.id not in hidden]
    return Reply(
        text=_decode(tokenizer, [place.id for place in places]),
        finish="stop" if stopped else "length",
        form="text",
        prompt_tokens=length,
        completion_tokens=len(draw.places),
        tokens=tuple(_tokens(tokenizer, places)) if request.top_logprobs else None,
    )


class _Draw:
    """Chooses each token and notes the log-probabilities at its place.

    A logits processor of a greedy `generate`: it gets the model's logits (1, vocabulary) and leaves
    only the token it chose. Its own generator, on the CPU, neither depends on nor moves the random
    state of the process, from which other threads draw.
    """

    def __init__(self, sampling: Sampling, sample: int, top: int) -> None:
        import torch

        self._temperature, self._top_p, self._top = sampling.temperature, sampling.top_p, top
        seed = random.Random(f"{sampling.seed or 0}/{sample}").getrandbits(63)
        self._generator = torch.Generator().manual_seed(seed)
        self.places: list[_Place] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:  # noqa: ARG002 - as called
        import torch

        logits = scores[0].float()
        chosen = self._choose(logits)
        logprob: float = 0.0
        top: list[tuple[int, float]] = []
        if self._top:
            logprobs = torch.log_softmax(logits, -1)
            values, ids = logprobs.topk(min(self._top, len(logprobs)))
            logprob, top = (
                logprobs[chosen].item(),
                list(zip(ids.tolist(), values.tolist(), strict=True)),
            )
        self.places.append(_Place(chosen, logprob, top))
        only = torch.full_like(scores, -torch.inf)
        only[0, chosen] = 0
        return only

    def _choose(self, logits: Any) -> int:
        import torch

        if not self._temperature:
            return int(logits.argmax())
        probs = torch.softmax(logits / self._temperature, -1).cpu()
        if self._top_p is not None and self._top_p < 1:
            ordered, order = probs.sort(descending=True, stable=True)
            # The fewest tokens whose probability together reaches top_p, and at least one.
            kept = ordered.cumsum(0) - ordered < self._top_p
            kept[0] = True
            probs = torch.zeros_like(probs).scatter(0, order[kept], ordered[kept])
        return int(torch.multinomial(probs, 1, generator=self._generator))


def _tokens(tokenizer: Any, places: Sequence[_Place]) -> Iterator[Token]:
    """Texts of tokens in their context, such that they concatenate to the reply's text.

    A character that several tokens make up is the last one's text, the others' is empty.
    """
    ids = [place.id for place in places]
    begin = done = 0  # the tokens from `begin` to `done` are context: they decide about spaces
    for index, (id_, logprob, top) in enumerate(places):
        known = len(_decode(tokenizer, ids[begin:done]))
        pending = ids[begin:index]
        text = _decode(tokenizer, [*pending, id_])[known:]
        # A character has at most four bytes: what is not whole by then will never be.
        whole = not text.endswith("\ufffd") or index - done >= 3 or index == len(ids) - 1
        text = text if whole else ""
        others = {other: _decode(tokenizer, [*pending, other])[known:] for other, _ in top}
        yield Token(
            text, logprob, tuple(((others | {id_: text})[other], value) for other, value in top)
        )
        if whole:
            begin, done = done, index + 1


def _decode(tokenizer: Any, ids: Sequence[int]) -> str:
    return str(tokenizer.decode(ids, clean_up_tokenization_spaces=False))


def _specials(tokenizer: Any) -> dict[int, str]:
    """Special tokens by id; words that a checkpoint merely added to its vocabulary are none."""
    named = zip(tokenizer.all_special_ids, tokenizer.all_special_tokens, strict=True)
    added = tokenizer.added_tokens_decoder.items()
    return dict(named) | {id_: token.content for id_, token in added if token.special}


def _parts(message: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    content = message["content"]
    return [_text(content)] if isinstance(content, str) else content


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _part(part: Mapping[str, Any], special: re.Pattern[str], sees: bool) -> dict[str, Any]:
    if part["type"] == "text":
        return _text(special.sub(lambda match: f"{match[0][0]} {match[0][1:]}", part["text"]))
    if part["type"] != "image_url":
        raise ProviderError(f"takes no message part of type {part['type']}")
    if not sees:
        raise ProviderError("a text model, takes no images")
    return {"type": "image", "image": _picture(part["image_url"]["url"])}


def _picture(url: str) -> Any:
    from PIL import Image

    head, _, data = url.partition(",")
    if not (head.startswith("data:image/") and head.endswith(";base64")):
        raise ProviderError("takes images as base64 data URLs only")
    try:
        return Image.open(io.BytesIO(b64decode(data, validate=True))).convert("RGB")
    except (OSError, ValueError) as error:
        raise ProviderError(f"an image cannot be read: {type(error).__name__}") from error


def _shaped(messages: list[dict[str, Any]], sees: bool) -> list[dict[str, Any]]:
    """Messages as templates take them: parts where there may be images, otherwise strings."""
    if sees:
        return messages
    return [
        message | {"content": "\n".join(part["text"] for part in message["content"])}
        for message in messages
    ]


def _keeps_system(front: Any, messages: list[dict[str, Any]], options: dict[str, Any]) -> bool:
    """Whether the rendered prompt shows the whole text of the system message."""
    from jinja2 import TemplateError

    try:
        prompt = front.apply_chat_template(messages, tokenize=False, **options)
    except TemplateError:
        return False
    content = messages[0]["content"]
    texts = [content] if isinstance(content, str) else [part["text"] for part in content]
    return all(text.strip() in prompt for text in texts)
