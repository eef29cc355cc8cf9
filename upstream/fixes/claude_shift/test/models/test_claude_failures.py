"""A failed request of `claude` has one answer, an empty one, and leaves the others in their places."""

from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from lmms_eval.models.simple import claude


@pytest.mark.parametrize("failing", [{0}, {1}, {0, 2}], ids=["first", "second", "first and last"])
def test_every_request_has_its_own_answer(monkeypatch, failing):
    def create(messages, **kwargs):
        (text,) = [part["text"] for part in messages[0]["content"]]
        if int(text) in failing:
            raise ConnectionError("overloaded")
        return SimpleNamespace(content=[SimpleNamespace(text=f"answer {text}")], usage=None)

    client = MagicMock()
    client.messages.create = create
    monkeypatch.setattr(claude, "anthropic", SimpleNamespace(Anthropic=lambda: client), raising=False)
    monkeypatch.setattr(claude, "NUM_SECONDS_TO_SLEEP", 0)
    lm = claude.Claude()
    lm.task_dict = {"a": {"test": [{}] * 3}}
    requests = [SimpleNamespace(args=(str(number), {}, lambda doc: [], number, "a", "test")) for number in range(3)]
    assert [answer.text for answer in lm.generate_until(requests)] == ["" if number in failing else f"answer {number}" for number in range(3)]
