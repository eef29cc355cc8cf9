"""The tests' own endpoint, through the openai client and as a process that plays a model."""

import json
import subprocess
import sys
from pathlib import Path

import openai
import pytest

from tests import local_endpoint
from tests.local_endpoint import LocalEndpoint, last_user_text

SCRIPT = local_endpoint.__file__


def client(url):
    return openai.OpenAI(base_url=url, api_key="none", max_retries=0)


def complete(url, content):
    messages = [{"role": "user", "content": content}]
    reply = client(url).chat.completions.create(model="m", messages=messages)
    return reply.choices[0].message.content


def test_replies_and_records():
    with LocalEndpoint(lambda request: request["messages"][-1]["content"][::-1]) as endpoint:
        assert complete(endpoint.url, "abc") == "cba"
        assert [model.id for model in client(endpoint.url).models.list()] == ["local"]
        assert endpoint.chats[0].json["model"] == "m"
        with pytest.raises(openai.NotFoundError):
            client(endpoint.url).embeddings.create(model="m", input="x")


def test_the_text_of_a_request():
    parts = [
        {"type": "text", "text": "uno"},
        {"type": "image_url", "image_url": {"url": "data:,"}},
        {"type": "text", "text": "due"},
    ]
    messages = [
        {"role": "user", "content": "earlier"},
        {"role": "user", "content": parts},
        {"role": "assistant", "content": "x"},
    ]
    assert last_user_text({"messages": messages}) == "uno\ndue"
    assert last_user_text({"messages": [{"role": "system", "content": "s"}]}) == ""


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [("oracle", True, "B"), ("always_a", False, "A"), ("coin", False, None)],
)
def test_as_a_process(tmp_path: Path, name, options, expected):
    key = tmp_path / "key.json"
    key.write_text(json.dumps({"pairs": [["Il cane corre.", "Il cane dorme."]]}))
    command = [sys.executable, SCRIPT, "--play", name, *(["--key", str(key)] if options else [])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        url = process.stdout.readline().strip()
        content = [{"type": "text", "text": "Quale?\nA. Il cane dorme.\nB. Il cane corre."}]
        reply = complete(url, content)
        assert reply == expected if expected else reply in ("A", "B")
    finally:
        process.terminate()
        process.wait(10)
