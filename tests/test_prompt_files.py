"""Prompt files: found in the right order, checked with the place of the fault, hashed, filled."""

import hashlib
from importlib import resources

import pytest

from lmms_eval_tasks import prompts
from lmms_eval_tasks.errors import PromptError
from tests.checks import refused, table

PARTS = {"system": (), "user": ("question", "references", "candidate")}
GOOD = "system: be fair\nuser: '{question} {references} {candidate}'\n"


def own(tmp_path, content):
    file = tmp_path / "maia" / "judge.yml"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return tmp_path


def test_the_users_file_comes_before_the_packaged_one(tmp_path):
    packaged = prompts.load_prompt("maia", "judge", PARTS)
    content = (resources.files("lmms_eval_tasks.maia") / "prompts" / "judge.yml").read_bytes()
    assert packaged.hash == hashlib.sha256(content).hexdigest()[:12]
    assert packaged.source == "lmms_eval_tasks/maia/prompts/judge.yml"
    assert set(packaged.text) == {"system", "user"}
    assert (
        prompts.load_prompt("maia", "judge", PARTS, tmp_path) == packaged
    )  # a folder without this file
    prompt = prompts.load_prompt("maia", "judge.yml", PARTS, own(tmp_path, GOOD))
    assert prompt.text["system"] == "be fair"
    assert prompt.source == str(tmp_path / "maia" / "judge.yml")
    assert prompt.hash == hashlib.sha256(GOOD.encode()).hexdigest()[:12]
    assert (
        prompts.load_prompt("maia", "judge", PARTS, own(tmp_path, GOOD + "# \n")).hash
        != prompt.hash
    )
    more = prompts.load_prompt(
        "maia", "judge", {"system": ()}, tmp_path, optional={**PARTS, "more": ()}
    )
    assert set(more.text) == {"system", "user"}
    absent = r"maia/prompts/absent\.yml: no such"
    refused(PromptError, absent, prompts.load_prompt, "maia", "absent", PARTS)
    refused(
        PromptError,
        "no such folder of prompts",
        prompts.load_prompt,
        "maia",
        "judge",
        PARTS,
        tmp_path / "absent",
    )


@table(
    "content, fault",
    [
        ("system: s\nuser: '{question} {candidate}'", r"part 'user'.*\{references\} is missing"),
        (GOOD.replace("be fair", "'{qestion}'"), r"part 'system'.*unknown.*\{qestion\}"),
        ("user: '{question} {references} {candidate}'", "part 'system' is missing"),
        (GOOD + "sytem: x", "unknown part 'sytem'; known: system, user; did you mean system"),
        ("system: ''\nuser: x", "part 'system' has no text"),
        ("", "expected a mapping"),
        ("system: [", "not YAML"),
        (b"system: \xff", "not YAML in UTF-8"),
        ("system: 2024-13-45", "not YAML"),
        ("system: " + "[" * 10_000, "not YAML"),
        ("system: !!python/object/apply:os.system [x]", "not YAML"),
    ],
)
def test_faults_name_file_and_place(tmp_path, content, fault):
    with pytest.raises(PromptError, match=fault) as caught:
        prompts.load_prompt("maia", "judge", PARTS, own(tmp_path, content))
    assert str(tmp_path / "maia" / "judge.yml") in str(caught.value)


def test_fill_reads_no_value_as_a_template():
    template = 'a {x} {y} {"json": 1} {} {0} {{x}}'
    filled = prompts.fill(template, {"x": "{y}", "y": "\\1"})
    assert filled == 'a {y} \\1 {"json": 1} {} {0} {{y}}'
    refused(PromptError, r"\{y\}", prompts.fill, template, {"x": ""})


@table(
    "folder, name, said",
    [
        ("maia", "jugde.yml", "maia/jugde.yml: no prompt file of maia .*; did you mean judge.yml"),
        (
            "maia",
            "judge.yaml",
            "maia/judge.yaml: no prompt file of maia .*; did you mean judge.yml",
        ),
        ("miaa", "judge.yml", "/miaa: no prompt file of this package .*; did you mean maia"),
        (
            "old",
            "judge.yml",
            "/old: no prompt file of this package .*; known: cvrr_es, haven, judges",
        ),
    ],
)
def test_what_would_have_no_effect_is_an_error(tmp_path, folder, name, said):
    (tmp_path / folder).mkdir()
    (tmp_path / folder / name).write_text(GOOD)
    refused(PromptError, said, prompts.load_prompt, "maia", "judge", PARTS, tmp_path)
