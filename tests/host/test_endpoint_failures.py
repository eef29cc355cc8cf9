"""A server that fails, and each of the host's classes for endpoints: no failure becomes an answer.

    MODEL_CLASSES=all python -m pytest tests/host/test_endpoint_failures.py

runs all classes (test_endpoint_classes.py says what they need).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import benchmarks
from lmms_eval_tasks.host import names
from lmms_eval_tasks.runs import before
from tests.conftest import Launch, host
from tests.host.endpoint_classes import ALL, TABLE, required, run, serving
from tests.local_endpoint import Fault, LocalEndpoint, error
from tests.vendor_apis import HTML, NO_CONTENT, OTHER_SHAPE, Part, text_of

pytestmark = pytest.mark.usefixtures("on_sample")

TASK = "maia_vsv_1frame"
FAULTS = {
    "500": error(500),
    "401": error(401),
    "429": Fault(status=429, message="slow down", headers={"Retry-After": "0"}),
    "html": HTML,
    "other shape": OTHER_SHAPE,
    "no content": NO_CONTENT,
}


def own(text: str) -> str:
    """The reply to a question and to no other."""
    return f"A. {hashlib.sha256(text.strip().encode()).hexdigest()[:8]}"


def asked(count: int) -> list[str]:
    docs = before.docs(benchmarks.of(TASK), TASK)
    return [names.doc_to_text(doc).strip() for doc in docs[:count]]


def items(results: dict[str, Any]) -> list[dict[str, Any]]:
    samples = sorted(results["samples"][TASK], key=lambda sample: int(sample["doc_id"]))
    return [sample["failed"] for sample in samples]


@pytest.mark.parametrize("name", [name for name in TABLE if name != "openai videos"])
def test_some_requests_fail(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each in its own way: they alone are lost, and every other reply stays with its question."""
    required(TABLE[name]["package"])
    texts = asked(2 * len(FAULTS) + 2)
    faulty = dict(zip(texts[2::2], FAULTS.values(), strict=True))

    def reply(parts: Sequence[Part]) -> str | Fault:
        text = text_of(parts).strip()
        return faulty.get(text) or own(text)

    with serving(reply, monkeypatch) as server:
        results = run(name, server, [TASK], len(texts))
    kinds = dict(zip(texts[2::2], FAULTS, strict=True))
    for text, item in zip(texts, items(results), strict=True):
        print(f"{name:14} | {kinds.get(text, ''):11} | {item['status']:11} | {item['reply'][:90]}")
        if text not in faulty:
            assert (item["status"], item["reply"]) == ("ok", own(text))
        elif kinds[text] == "no content":
            # The server's reply, if an empty one; beside a failure that its class hides the same
            # way nobody can tell them apart, and who is beside it is a matter of time.
            assert item["status"] in {TABLE[name].get("no content", "empty"), "empty"}
        else:
            assert item["status"] == "model_error"
    section = results["lmms_eval_tasks"]
    right = [item["right"] for item in items(results) if item["status"] != "model_error"]
    assert section["maia"]["numbers"][TASK]["pair_acc_valid"] == sum(right) / len(right)
    lost = len(texts) - len(right)
    assert f"{lost} of {len(texts)} requests to the model failed" in section["invalid"][TASK]
    assert any(f"{lost} of {len(texts)} requests" in line for line in section["maia"]["warnings"])


def test_a_reply_without_content_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The class returns None, which the host would read as the answer "None"."""
    silent = asked(3)[1]
    with serving(
        lambda parts: NO_CONTENT if text_of(parts).strip() == silent else "A", monkeypatch
    ) as server:
        results = run("gpt4v", server, [TASK], 3)
    assert [(one["status"], one["reply"]) for one in items(results)][1] == ("empty", "")


@pytest.mark.skipif(not ALL, reason="every class once more: MODEL_CLASSES=all")
@pytest.mark.parametrize("name", TABLE)
def test_all_requests_fail(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    required(TABLE[name]["package"])
    failing = [fault for kind, fault in FAULTS.items() if kind != "no content"]
    faults = dict(zip(asked(len(failing)), failing, strict=True))
    with serving(lambda parts: faults[text_of(parts).strip()], monkeypatch) as server:
        results = run(name, server, [TASK], len(faults))
    section = results["lmms_eval_tasks"]
    assert TASK in section["invalid"]
    assert section["maia"]["numbers"][TASK]["pair_acc_valid"] is None
    assert {item["status"] for item in items(results)} == {"model_error"}


@pytest.mark.host
@pytest.mark.skipif(not ALL, reason="a run of its own: MODEL_CLASSES=all")
def test_the_command_says_so_with_its_code(launch: Launch, tmp_path: Path) -> None:
    with LocalEndpoint(lambda request: error(500)) as server:
        arguments = f"model=m,base_url={server.url},api_key=no,max_retries=1"
        command = host("--model", "openai", "--model_args", arguments, "--tasks", TASK)
        done = launch([*command, "--limit", "3"], tmp_path)
    assert done.code == 3
    assert f"INVALID: {TASK}: 3 of 3 requests to the model failed" in done.stderr
