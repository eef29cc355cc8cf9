"""The host's classes that ask a server, in this process, at a server in the form of their API.

What they send of our tasks is decoded where it arrives; and a server that fails: no failure becomes
an answer. Those whose client is installed with us run here; the others with

    MODEL_CLASSES=all python -m pytest -s tests/host/test_endpoint_classes.py

and anthropic<1, dashscope, google-genai and litellm on the path. What is expected of each stands in
tests/cases/endpoint_classes.json.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval_tasks import registry, settings
from lmms_eval_tasks.host import plugin, task_functions
from lmms_eval_tasks.runs import prepare
from tests.checks import limits_of
from tests.haven import strip
from tests.local_endpoint import Fault, error
from tests.maverix import reading
from tests.vendor_apis import Part, Reply, VendorApis, order_of, text_of

pytestmark = pytest.mark.usefixtures("on_sample")

TABLE: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "cases" / "endpoint_classes.json").read_text(encoding="utf-8")
)
ALL = os.environ.get("MODEL_CLASSES") == "all"
# Modules that wait so long between attempts, and take no argument for it.
_WAIT = ("claude", "gpt4v", "qwen_vl_api")


def required(name: str) -> None:
    """Skip a test whose package is not installed; with MODEL_CLASSES=all it fails."""
    package = TABLE[name]["package"]
    try:
        importlib.import_module(package)
    except ImportError:
        (pytest.fail if ALL else pytest.skip)(f"needs the package {package}")


@contextmanager
def serving(reply: Reply, monkeypatch: pytest.MonkeyPatch) -> Iterator[VendorApis]:
    """A server that every vendor's client of this process reaches; no class waits to try again."""
    with VendorApis(reply) as server:
        openai = f"{server.root}/v1"
        for name, value in {
            "ANTHROPIC_BASE_URL": server.root,
            "ANTHROPIC_API_KEY": "no",
            "GOOGLE_GEMINI_BASE_URL": server.root,
            "OPENAI_BASE_URL": openai,
            "OPENAI_API_KEY": "no",
            "DASHSCOPE_API_KEY": "no",
            "no_proxy": "127.0.0.1",
            settings.FRESH: "1",
            settings.JUDGE: "none",
        }.items():
            monkeypatch.setenv(name, value)
        for name in _WAIT:
            module = importlib.import_module(f"lmms_eval.models.simple.{name}")
            monkeypatch.setattr(module, "NUM_SECONDS_TO_SLEEP", 0)
        with contextlib.suppress(ImportError):
            dashscope = importlib.import_module("dashscope")
            monkeypatch.setattr(dashscope, "base_http_api_url", f"{server.root}/api/v1")
        yield server


def run(name: str, server: VendorApis, tasks: Sequence[str], limit: int, more: str = "") -> Any:
    """What the host's `simple_evaluate` returns for a class of the table at its defaults."""
    plugin.install()
    from lmms_eval import evaluator

    one = TABLE[name]
    return evaluator.simple_evaluate(
        model=one["model"],
        model_args=one["arguments"].format(root=server.root) + more,
        force_simple=one.get("simple", False),
        tasks=list(tasks),
        limit=limit,
        verbosity="ERROR",
    )


# --- what arrives ---------------------------------------------------------------------------------


def check(parts: Sequence[Part], doc: dict[str, Any], simple: bool) -> None:
    """The media of a request against what was handed over: whole files, every frame at its place.

    By the codes of the samples; MAIA's frames have none.
    """
    (message,) = task_functions.doc_to_messages(doc)
    files = {item["type"]: item.get("url") for item in message["content"]}
    given = task_functions.doc_to_visual(doc)
    if simple and "video" in files:
        files["video"] = given[0]
    for part in parts:
        if part.kind in ("video", "audio"):
            assert part.value == Path(files[part.kind]).read_bytes(), part.kind
    pictures = [part.value for part in parts if part.kind == "image"]
    if doc["task"].startswith("haven"):
        marks, found = ([strip.read(one) for one in some] for some in (given, pictures))
    elif doc["task"].startswith("maverix"):
        marks = reading.seen(given[0])
        found = [reading.read_frame(np.asarray(one)) for one in pictures]
    else:
        assert len({one.tobytes() for one in pictures}) == len(pictures)
        return
    places = [marks.index(one) for one in found]
    for place, wanted in zip(places, np.linspace(0, len(marks) - 1, len(places)), strict=True):
        assert place in {math.floor(wanted), round(wanted)}  # some readers round, others cut it off
    assert places == sorted(set(places))


@pytest.mark.parametrize("name", TABLE)
def test_what_arrives(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every frame at its place and no other, the whole of a file, and text and media in order."""
    one = TABLE[name]
    required(name)
    with serving(lambda parts: "A", monkeypatch) as server:
        results = run(name, server, list(one["arrives"]), limit=1)
    left = list(server.asked)
    for task, expected in one["arrives"].items():
        doc = prepare.usable_docs(registry.of(task), task)[0]
        own = [parts for parts in left if task_functions.doc_to_text(doc) in text_of(parts)]
        if task.startswith("maia"):  # one text for the video and for its first frame
            alone = [parts for parts in own if "1 image" in order_of(parts).split(", ")]
            own = alone if task == "maia_vsv_1frame" else [p for p in own if p not in alone]
        assert [order_of(parts) for parts in own] == [expected], task
        check(own[0], doc, one.get("simple", False))
        (sample,) = results["samples"][task]
        counted = sample["failed"]["arrived"]  # by the run itself
        kinds = [part.kind for part in own[0]]
        assert (counted["frames"] or 0) + counted["pictures"] == kinds.count("image")
        assert (counted["frames"] is None) == ("video" in kinds)
        sizes = {part.value.size for part in own[0] if part.kind == "image"}
        assert {tuple(size) for size in counted.get("sizes", ())} == sizes
        assert (counted["seconds"] > 0) == ("audio" in kinds)
        left = [parts for parts in left if parts not in own]
    assert not left


def test_how_many_frames_a_server_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that reads videos itself takes so many of them; vLLM takes -1 for all."""
    with serving(lambda parts: "A", monkeypatch) as server:
        run("openai videos", server, ["maia_vsv"], 1, ",max_frames_num=-1")
    (request,) = server.requests
    assert request.json["media_io_kwargs"] == {"video": {"num_frames": -1}}


# --- failures -------------------------------------------------------------------------------------

TASK = "maia_vsv_1frame"
FAULTS = {
    "500": error(500),
    "401": error(401),
    "429": Fault(status=429, message="slow down", headers={"Retry-After": "0"}),
    "html": Fault(body=b"<html><body>Bad gateway</body></html>", content_type="text/html"),
    "other shape": Fault(body=b'{"result": "fine", "items": []}'),
    "no content": Fault(content=None),
}


def own(text: str) -> str:
    """The reply to a question and to no other."""
    return f"A. {hashlib.sha256(text.strip().encode()).hexdigest()[:8]}"


def asked(count: int) -> list[str]:
    docs = prepare.usable_docs(registry.of(TASK), TASK)
    return [task_functions.doc_to_text(doc).strip() for doc in docs[:count]]


def items(results: dict[str, Any]) -> list[dict[str, Any]]:
    samples = sorted(results["samples"][TASK], key=lambda sample: int(sample["doc_id"]))
    return [sample["failed"] for sample in samples]


@pytest.mark.parametrize("name", [name for name in TABLE if name != "openai videos"])
def test_some_requests_fail(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each in its own way: they alone are lost, and every other reply stays with its question."""
    required(name)
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
    assert any(f"{lost} of {len(texts)} requests" in line for line in limits_of(section["maia"]))


def test_a_reply_without_content_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The class returns None, which the host would read as the answer "None"."""
    silent = asked(3)[1]
    with serving(
        lambda parts: FAULTS["no content"] if text_of(parts).strip() == silent else "A", monkeypatch
    ) as server:
        results = run("gpt4v", server, [TASK], 3)
    assert [(one["status"], one["reply"]) for one in items(results)][1] == ("empty", "")
