"""Keys of the reply cache: what changes them, and what must not; replies as they are packed."""

from __future__ import annotations

import unicodedata
from collections import OrderedDict
from dataclasses import fields
from types import MappingProxyType

from cache_cases import IMAGE, SCHEMA, ask, ask_image

from lmms_eval_tasks.judges import cache as replies
from lmms_eval_tasks.judges.verdict import Request, Sampling

IDENTITY = {"provider": "openai", "model": "gpt-4o", "base_url": "https://api.openai.com/v1"}


def key(request, identity=IDENTITY, sample=0):
    return replies.key(identity, request, sample)


CHANGES = {
    "text": ask("È una tromba? "),
    "decomposed text": ask(unicodedata.normalize("NFD", "È una tromba?")),
    "role": ask(messages=[{"role": "user", "content": "Giudica."}, *ask().messages[1:]]),
    "order": ask(messages=list(reversed(ask().messages))),
    "fewer messages": ask(messages=ask().messages[1:]),
    "image": ask_image(),
    "other image": ask_image(IMAGE + "AAAA"),
    "image by address": ask_image("https://example.org/a.png"),
    "temperature": ask(sampling=Sampling(0.1, 16)),
    "no temperature": ask(sampling=Sampling(None, 16)),
    "max_tokens": ask(sampling=Sampling(0.0, 17)),
    "top_p": ask(sampling=Sampling(0.0, 16, top_p=1.0)),
    "seed": ask(sampling=Sampling(0.0, 16, seed=0)),
    "reasoning_effort": ask(sampling=Sampling(0.0, 16, reasoning_effort="low")),
    "schema_name": ask(schema_name="other"),
    "no schema": ask(schema=None),
    "schema": ask(schema={**SCHEMA, "additionalProperties": False}),
    # A reason after the score is no reason for it.
    "order of the reply's fields": ask(
        schema={**SCHEMA, "properties": dict(reversed(SCHEMA["properties"].items()))}
    ),
    "top_logprobs": ask(top_logprobs=20),
    "surrogate": ask("\ud83d"),
    "two surrogates": ask("\ud83d\ude00"),
    "their character": ask("\U0001f600"),
}


def test_each_part_changes_the_key(monkeypatch):
    keys = {name: key(request) for name, request in CHANGES.items()}
    keys["as it is"] = key(ask())
    keys["sample"] = key(ask(), sample=1)
    keys["model"] = key(ask(), {**IDENTITY, "model": "gpt-4o-mini"})
    keys["no identity"] = key(ask(), {})
    with monkeypatch.context() as patch:
        patch.setattr(replies, "FORMAT", 2)
        keys["format"] = key(ask())
    assert len(set(keys.values())) == len(keys), keys
    # A changed key makes users pay for everything again: raise FORMAT when this is meant.
    assert replies.FORMAT == 1
    assert key(ask()) == "85ab76e1b3540f9d8ec56f79f310259634418d9b51f54dedce6839f4c8505283"
    # A new field of Request or Sampling must be tried here too.
    named = {field.name for field in (*fields(Request), *fields(Sampling))}
    assert named - {"messages", "sampling"} <= set(CHANGES)


def test_same_request_in_other_types_has_the_same_key():
    turned = [OrderedDict(reversed(message.items())) for message in ask().messages]
    same = ask(messages=tuple(MappingProxyType(message) for message in turned))
    assert key(same, OrderedDict(reversed(IDENTITY.items()))) == key(ask())
    assert key(ask(sampling=Sampling(0, 16))) == key(ask(sampling=Sampling(-0.0, 16))) == key(ask())
