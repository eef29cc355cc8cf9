"""Token counts within their stated error and without downloads; prices known, or unknown: never 0
by default and never another endpoint's.
"""

import base64
import datetime
import io
import json
from pathlib import Path

import pytest
import yaml

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges import prices
from lmms_eval_tasks.judges.prices import count, count_messages
from tests.checks import refused, table

FILE = Path(__file__).parents[1] / "cases" / "token_counts.json"
CASES = json.loads(FILE.read_text(encoding="utf-8"))["cases"]
ENCODINGS = ("o200k_base", "cl100k_base")
WORST = {"english": 0.2, "italian": 0.25, "mixed": 0.15, "json": 0.1, "code": 0.2}  # of one text


@table("kind", ["english", "italian", "mixed", "json", "code", "digits"])
def test_totals_by_kind(kind):
    cases = [case for case in CASES if case["kind"] == kind]
    counted = sum(count(case["text"]) for case in cases)
    assert len(cases) >= 4
    for encoding in ENCODINGS:
        true = sum(case[encoding] for case in cases)
        assert abs(counted / true - 1) <= prices.STATED_ERROR


@table("case", CASES)
def test_each_text(case):
    for encoding in ENCODINGS:
        off = abs(count(case["text"]) / case[encoding] - 1)
        assert off <= WORST.get(case["kind"], 0.45)
    bound = prices.upper_bound([{"role": "user", "content": case["text"]}])
    most = max(case[encoding] for encoding in ENCODINGS)
    assert most + prices.PER_MESSAGE + prices.PER_REQUEST <= bound


def picture(width, height, form="PNG"):
    from PIL import Image

    buffer = io.BytesIO()
    Image.new("RGB", (width, height)).save(buffer, form)
    url = f"data:image/{form.lower()};base64,{base64.b64encode(buffer.getvalue()).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


def words(text):
    return len(text.split())


def test_messages():
    system, user = {"role": "system", "content": "Grade."}, {"role": "user", "content": "A b c"}
    assert count_messages([system, user], words) == 3 + 3 + 3 + 1 + 3
    parts = [{"type": "text", "text": "A b"}, picture(512, 512), picture(1024, 1024, "JPEG")]
    assert count_messages([{"role": "user", "content": parts}], words) == 6 + 2 + 255 + 765


@table("width, height, expected")
def test_image_tokens(width, height, expected):
    assert prices.image_tokens(width, height) == expected


def test_no_vocabulary_no_download(tmp_path, monkeypatch):
    def download(*args, **kwargs):
        pytest.fail(f"a download: {args}")

    monkeypatch.setattr("tiktoken.load.read_file", download)
    monkeypatch.setattr("tiktoken.registry.ENCODINGS", {})
    monkeypatch.delenv("DATA_GYM_CACHE_DIR", raising=False)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    for model, encoding in (("gpt-5-mini", "o200k_base"), ("gpt-3.5-turbo", "cl100k_base")):
        counter = prices.counter(model)
        assert (counter.name, counter.error) == (f"built-in estimate for {encoding}", 0.1)
        assert counter.count("perché") == count("perché")
    counter = prices.counter("Qwen/Qwen2.5-VL-7B-Instruct")  # its vocabulary: no stated error
    assert (counter.error, "Qwen" in counter.name) == (None, True)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    assert prices.is_cached("o200k_base") is False


# --- prices ---------------------------------------------------------------------------------------

PACKAGED = prices.load_prices()
LOCAL = "http://localhost:8000/v1"


def write(folder: Path, text: str) -> Path:
    file = folder / "mine.yml"
    file.write_text(text, encoding="utf-8")
    return file


def test_packaged_file_is_dated_and_plausible():
    date = yaml.safe_load(Path(prices.__file__).with_name("prices.yml").read_text())["date"]
    assert isinstance(date, datetime.date)
    assert PACKAGED.origin == f"prices of {date}"
    for price in PACKAGED.entries.values():
        assert 0 < price.input < price.output < 100, price
        assert price.cached_input is None or 0 < price.cached_input < price.input, price
    papers = ("gpt-4o", "gpt-4.1-mini", "gpt-3.5-turbo")
    assert [name for name in papers if PACKAGED.of(name, None) is None] == []


@table("model, base_url, entry")
def test_which_entry_holds(model, base_url, entry):
    assert PACKAGED.of(model, base_url) is PACKAGED.entries.get(entry)


def test_cost():
    price = PACKAGED.of("gpt-4o", None)
    assert price.cost(1_000_000, 0) == price.input
    assert price.cost(0, 1_000_000) == price.output
    assert price.cost(1000, 100, 400) == pytest.approx(
        (600 * price.input + 400 * price.cached_input + 100 * price.output) / 1e6
    )
    assert price.cost(1000, 100, 400, batch=True) == price.cost(1000, 100, 400) / 2
    assert price.cost(None, 5) is None
    assert price.cost(5, None) is None
    turbo = PACKAGED.of("gpt-4-turbo", None)
    assert turbo.cached_input is None
    assert turbo.cost(100, 1, cached_tokens=60) == turbo.cost(100, 1)


MINE = f"""date: 2027-01-31
models:
  gpt-4o: {{input: 1, output: 2, source: a letter}}
  gpt-5: {{input: 3, output: 4}}
  qwen@{LOCAL}/: {{input: 0, output: 0}}
  qwen@*: {{input: 7, output: 8}}
"""


def test_users_file_goes_over_the_packaged_one(tmp_path):
    mine = prices.load_prices(write(tmp_path, MINE))
    assert mine.origin == f"{PACKAGED.origin}, mine.yml of 2027-01-31 over them"
    price = mine.of("gpt-4o-2024-08-06", None)
    assert (price.input, price.output, price.cached_input) == (1, 2, None)
    assert mine.of("gpt-5", None).input == 3
    assert mine.of("gpt-4.1", None) == PACKAGED.of("gpt-4.1", None)
    assert mine.of("qwen", LOCAL).cost(5, 5) == 0  # free because the user says so
    assert mine.of("qwen", "https://other/v1").input == 7
    assert mine.of("qwen", None) is None
    assert mine.of("gpt-4o", LOCAL) is None
    text = "models: {m: {input: 1, output: 2}}\n"
    assert prices.load_prices(write(tmp_path, text)).origin.endswith("mine.yml (no date) over them")


@table("text, message")
def test_a_wrong_file_is_named_with_the_entry(tmp_path, text, message):
    file = write(tmp_path, text)
    assert refused(TasksError, message, prices.load_prices, file).startswith(f"{file}: ")
    refused(TasksError, "No such file", prices.load_prices, tmp_path / "none.yml")
