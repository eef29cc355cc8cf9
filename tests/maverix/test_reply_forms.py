"""The sample's twenty choices, each answered rightly in one form of reply, from end to end.

`python -m tests.maverix.test_reply_forms` prints the table.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.tables.paper_tables import fixed, number
from tests.checks import table
from tests.maverix import runs

FILE = Path(__file__).parents[1] / "cases" / "maverix" / "reply_forms.json"
TASK = "maverix_s"  # needs no video
NUMBERS = ("acc", "acc_valid", "acc_failed", "acc_authors")


def numbers(form: str) -> dict[str, Any]:
    """The numbers of the sample's items, whose replies are all right and all of this form."""

    def reply(doc: runs.Doc) -> str:
        right = doc["answer"]
        text = doc["options"]["ABCDEFGH".index(right)]
        return form.format(right=right, wrong=runs.wrong(doc), text=text)

    docs = runs.docs(TASK)
    assert len(docs) == 20
    return runs.numbers(TASK, runs.score(docs, reply))


@pytest.mark.usefixtures("sample")
@table("name, form")
def test_a_right_reply_in_any_form_is_right(name: str, form: str) -> None:
    found = numbers(form)
    assert (found["acc"], found["acc_valid"], found["acc_failed"]) == (1, 1, 0), name


if __name__ == "__main__":
    os.environ |= {settings.DATA: "sample", settings.JUDGE: "none"}
    cases = json.loads(FILE.read_text(encoding="utf-8"))["a_right_reply_in_any_form_is_right"]
    print(f"{'form':42}{''.join(f'{name:>13}' for name in NUMBERS)}")
    for title, reply_form in cases:
        own = numbers(reply_form)
        print(f"{title:42}{''.join(f'{fixed(number(own[name]), 3):>13}' for name in NUMBERS)}")
