"""The built-in counter stays within its stated error; no counter ever downloads."""

import base64
import io
import json
import time
from pathlib import Path

import pytest

from lmms_eval_tasks.judges import tokens
from tests.checks import table

FILE = Path(__file__).parents[1] / "cases" / "token_counts.json"
CASES = json.loads(FILE.read_text(encoding="utf-8"))["cases"]
ENCODINGS = ("o200k_base", "cl100k_base")
WORST = {"english": 0.2, "italian": 0.25, "mixed": 0.15, "json": 0.1, "code": 0.2}  # of one text


@table("kind", ["english", "italian", "mixed", "json", "code", "digits"])
def test_totals_by_kind(kind):
    cases = [case for case in CASES if case["kind"] == kind]
    counted = sum(tokens.count(case["text"]) for case in cases)
    assert len(cases) >= 4
    for encoding in ENCODINGS:
        true = sum(case[encoding] for case in cases)
        assert abs(counted / true - 1) <= tokens.STATED_ERROR


@table("case", CASES)
def test_each_text(case):
    for encoding in ENCODINGS:
        off = abs(tokens.count(case["text"]) / case[encoding] - 1)
        assert off <= WORST.get(case["kind"], 0.45)
    bound = tokens.upper_bound([{"role": "user", "content": case["text"]}])
    most = max(case[encoding] for encoding in ENCODINGS)
    assert most + tokens.PER_MESSAGE + tokens.PER_REQUEST <= bound


@table("text", ["", "A", "aB", " ", "'", "x\u0301", "\r\n ", "9", "\u4e00", "\ud800"])
def test_long_texts_are_counted_in_time(text):
    started = time.perf_counter()
    assert (tokens.count(text * (40_000 // max(1, len(text)))) > 0) == bool(text)
    assert time.perf_counter() - started < 2  # 0.04 on an idle machine


# --- messages and images -------------------------------------------------------------------


def picture(width, height, form="PNG"):
    from PIL import Image

    buffer = io.BytesIO()
    Image.new("RGB", (width, height)).save(buffer, form)
    return f"data:image/{form.lower()};base64,{base64.b64encode(buffer.getvalue()).decode()}"


def part(**image):
    return {"type": "image_url", "image_url": image}


def test_messages():
    system, user = {"role": "system", "content": "Grade."}, {"role": "user", "content": "A b c"}
    words = tokens.Counter("words", lambda text: len(text.split()), 0.0)
    assert tokens.count_messages([system, user], words) == 3 + 3 + 3 + 1 + 3
    assert tokens.count_messages([user]) == 3 + 3 + tokens.count("A b c")
    assert tokens.count_messages([], words) == 3
    images = [part(url=picture(512, 512)), part(url=picture(1024, 1024, "JPEG"))]
    parts = [{"type": "text", "text": "A b"}, *images]
    assert tokens.count_messages([{"role": "user", "content": parts}], words) == 6 + 2 + 255 + 765


@table("width, height, expected")
def test_image_tokens(width, height, expected):
    assert tokens.image_tokens(width, height) == expected


# --- tiktoken ------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache folder of tiktoken, and a machine where every download fails the test."""
    import requests

    def download(*args, **kwargs):
        pytest.fail(f"a download: {args}")

    monkeypatch.setattr(requests, "get", download)
    monkeypatch.setattr("tiktoken.load.read_file", download)
    monkeypatch.setattr("tiktoken.registry.ENCODINGS", {})
    monkeypatch.delenv("DATA_GYM_CACHE_DIR", raising=False)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_no_vocabulary_no_download(folder, monkeypatch):
    for model, encoding in (
        ("gpt-4o", "o200k_base"),
        ("gpt-5-mini", "o200k_base"),
        ("gpt-3.5-turbo", "cl100k_base"),
    ):
        counter = tokens.counter(model)
        assert (counter.name, counter.error) == (f"built-in estimate for {encoding}", 0.1)
        assert counter.count("perché") == tokens.count("perché")
    counter = tokens.counter("Qwen/Qwen2.5-VL-7B-Instruct")  # its vocabulary: no stated error
    assert counter.error is None
    assert "Qwen" in counter.name
    assert counter.count("The end.") == 3
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    assert tokens.is_cached("o200k_base") is False
