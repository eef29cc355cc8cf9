"""Importing any module of the judges or of utils loads nothing heavy: the host lists tasks fast."""

import json
import subprocess
import sys

from tests.conftest import REPOSITORY

HEAVY = "torch transformers openai decord av PIL numpy nltk sacrebleu rouge_score bert_score scipy"
HEAVY += " sklearn pycocoevalcap huggingface_hub sqlite3 filelock"

CODE = """
import importlib, json, sys
found = {}
for name in sys.argv[2:]:
    importlib.import_module(name)
    for heavy in sys.argv[1].split():
        if heavy in sys.modules:
            found.setdefault(heavy, name)
print(json.dumps(found))
"""


def test_what_is_the_first_to_load_something_heavy():
    names = [
        "lmms_eval_tasks." + ".".join(file.relative_to(REPOSITORY).with_suffix("").parts)
        for folder in ("judges", "utils")
        for file in sorted((REPOSITORY / folder).rglob("*.py"))
    ]
    assert {one.count(".") for one in names} == {2, 3}
    command = [sys.executable, "-c", CODE, HEAVY, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {}
