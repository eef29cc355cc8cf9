"""A price is known, with its date, or unknown; never 0 by default and never another endpoint's."""

import datetime
from pathlib import Path

import pytest
import yaml

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges import prices
from tests.checks import refused, table

PACKAGED = prices.load(None)
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
        assert (price.per, price.batch_discount) == (1_000_000, 0.5)
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
  gpt-5@https://api.openai.com/v1/: {{input: 3, output: 4}}
  qwen@{LOCAL}/: {{input: 0, output: 0}}
  qwen@*: {{input: 7, output: 8}}
"""


def test_users_file_goes_over_the_packaged_one(tmp_path):
    mine = prices.load(write(tmp_path, MINE))
    assert mine.origin == f"{PACKAGED.origin}, mine.yml of 2027-01-31 over them"
    price = mine.of("gpt-4o-2024-08-06", None)
    assert (price.input, price.output, price.cached_input) == (1, 2, None)
    assert mine.of("gpt-5", None).input == 3
    assert mine.of("gpt-4.1", None) == PACKAGED.of("gpt-4.1", None)
    assert mine.of("qwen", LOCAL).cost(5, 5) == 0  # free because the user says so
    assert mine.of("qwen", "https://other/v1").input == 7
    assert mine.of("qwen", None) is None
    assert mine.of("gpt-4o", LOCAL) is None
    text = "per: 1000\nbatch_discount: 0.25\nmodels: {m: {input: 1, output: 2}}\n"
    mine = prices.load(write(tmp_path, text))
    assert mine.origin.endswith("mine.yml (no date) over them")
    assert mine.of("m", None).cost(1000, 1000) == 3
    assert mine.of("m", None).cost(1000, 0, batch=True) == 0.75


@table("text, message")
def test_a_wrong_file_is_named_with_the_entry(tmp_path, text, message):
    file = write(tmp_path, text)
    assert refused(TasksError, message, prices.load, file).startswith(f"{file}: ")
    refused(TasksError, "No such file", prices.load, tmp_path / "none.yml")
