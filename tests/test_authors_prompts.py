"""A clone's own wording becomes a folder of prompts; what is not of a known form is named."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import prompts
from lmms_eval_tasks.commands import authors_prompts
from lmms_eval_tasks.errors import PromptError
from lmms_eval_tasks.haven.options import KINDS
from lmms_eval_tasks.judges import debate
from tests.checks import table

# As the authors' files are built; the sentences are made up.
MAIA = {
    "eval_model.py": 'PROMPT_GEN = "Say it:\\n{}"\nPROMPT_MC = "Pick:\\nA. {}\\nB. {}\\n"\n'
    'raise SystemExit("never run")\n',
    "compute_llm-as-a-judge.py": """
def llm_judge(chat, question, candidate, refs):
    system = (
        "Grade. "
        "One word."
    )
    user = (
        f"Q: {question}\\n"
        f"C: {candidate}\\n"
        + "\\n".join([f"R{i+1}: {r}" for i, r in enumerate(refs)])
    )
""",
}
CODE = """
START = "Rate it. "
def get_prompt():
    prompt = {"start": START, "tasks": {"score": "Poor (1) to Excellent (5)."}}
    return f"{n_frames} views.\\n" + _prefix(doc_text) + "Sum up."
def ask(rows, given):
    send(messages=[
        {"role": "system", "content": "Compare {'a': 1}."},
        {"role": "user", "content": "Pair:\\n" f"Q {question} P {pred}"},
    ])
    said = [{"type": "text", "text": f"Here are {n}:\\n"}]
    said.append({"role": "user", "content": "Well?"})
    lines.append(f"Choose {k}." + "\\n".join(str(i) for i in range(n)))
    prompt = given["start"] + "How:\\n" + given["score"] + "\\nInput:\\n"
    prompt += given[0] or "Which?"
    prompt += "Special" if given else "Usual"
"""
TEMPLATE = "{% raw %}\n{# ours #}Rate {{ pred | trim }}.{% endraw %}"
YAML = "process: !function utils.made\nkwargs: {default: {post: 'Its letter.'}}\n"


def build(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_a_folder_of_prompts(tmp_path: Path) -> None:
    told = authors_prompts.write_prompts("maia", build(tmp_path / "clone", MAIA), tmp_path / "own")
    given = {"vsv": {"A", "B"}, "oevqa": {"question"}}
    found = prompts.load_prompt("maia", "it", given, tmp_path / "own").text
    assert found == {"vsv": "Pick:\nA. {A}\nB. {B}\n", "oevqa": "Say it:\n{question}"}
    parts = {"system": (), "user": ("question", "references", "candidate")}
    judge = prompts.load_prompt("maia", "judge", parts, tmp_path / "own").text
    assert judge["system"] == "Grade. One word."
    assert judge["user"] == "Q: {question}\nC: {candidate}\n{references}"
    assert told[-1].endswith(str(tmp_path / "own"))


def test_of_two_repositories_the_one_that_is_there(tmp_path: Path) -> None:
    code = """
def get_gpt_eval(question, answer, pred):
    said = [{"role": "system", "content": "Compare."},
            {"role": "user", "content": f"{question} {answer} {pred}"}]
    for text in (1, 2, 3):
        said.append({"role": "user", "content": "Well?"})
        said.append({"role": "user", "content": "And you?"})
        said.append({"role": "user", "content": "Like {'pred': 'correct'}."})
"""
    study = """
def get_prompt():
    prompt = {"start": "Rate it. ", "tasks": {"score": "Poor (1)."}}
def construct_input(prompt_dict, judge_mode, reference, instruction, responses):
    prompt = prompt_dict["start"] + "How:\\n" + prompt_dict["tasks"][judge_mode] + "\\nInput:\\n"
    prompt += f"[I]{instruction}[/I][The Start of Assistant’s Answer]{responses[0]}[/A]"
    prompt += "[The End of Assistant’s Answer]\\nOthers:\\n"
def evaluate(cli_args):
    question_new = 1
    question_new = 2
    question_new += "\\nReply."
"""
    files = {"src/lmms_eval/evaluator.py": study, "src/logs_phase1/correct/correct_debate.py": code}
    told = authors_prompts.write_prompts("cvrr_es", build(tmp_path, files), tmp_path)
    assert "hint.yml, judge.yml, task.yml: our prompts (the authors publish none)" in told
    turns = debate.load_prompts(tmp_path).text
    said = [turns[part].split("\n\n")[-1] for part in ("answer", "revision", "consolidation")]
    assert said == ["Well?", "And you?", "Like {'pred': 'correct'}."]


ODD = {"bad.py": "def (", "blank.py": "START = ' '", "deep.py": "a" + ".b" * 10_000}


@table(
    "source, text",
    [
        ({"at": "START"}, "Rate it. "),
        ({"at": "get_prompt.prompt.tasks.score"}, "Poor (1) to Excellent (5)."),
        (  # what is left out, and what stands for a placeholder of theirs
            {"at": "get_prompt.return", "names": {"n_frames": "n", "_prefix(doc_text)": ""}},
            "{n} views.\nSum up.",
        ),
        ({"at": "ask.system"}, "Compare {'a': 1}."),
        (
            {"at": "ask.user", "names": {"question": "question", "pred": "candidate"}},
            "Pair:\nQ {question} P {candidate}",
        ),
        ({"at": "ask.user[1]"}, "Well?"),
        ({"at": "ask.text", "names": {"n": "n"}, "strip": True, "ends": ":"}, "Here are {n}"),
        ({"at": "ask.append[1]", "names": {"k": "k", ".join": "rows"}}, "Choose {k}.{rows}"),
        (
            {
                "of": ["@START", "@ask.prompt"],
                "names": {"given['start']": "", "given['score']": "rubric"},
                "ends": "{rubric}",
                "then": "{more}",
            },
            "Rate it. How:\n{more}",
        ),
        ({"at": "ask.prompt[1]"}, "Which?"),
        ({"at": "ask.prompt[2]", "starts": "ual"}, "ual"),
        ({"of": ["{a}\n", "@ask.user[1]", "@t.yml:kwargs.default.post"]}, "{a}\nWell?Its letter."),
        ({"in": "t.txt", "names": {"pred": "candidate"}}, "Rate {candidate}."),
        ({"at": "ask.user"}, r"m: .*a.py: line \d+: the placeholder 'question'"),
        ({"at": "ask.other"}, "m: .*ask.other: no other; the file has an unknown form"),
        ({"at": "ask.append[1]", "names": {"k": "k"}}, "line 13: the placeholder '.join'"),
        (
            {"at": "get_prompt.return", "names": {"n_frames": "n"}},
            r"line 5: the placeholder '_prefix\(doc_text\)",
        ),
        ({"at": "START", "names": ["A"]}, r"START has 0 places for \['A'\]"),
        ({"at": "START", "after": "absent"}, "it does not contain 'absent'"),
        ({"at": "START", "needs": ["candidate"]}, r"lacks \['candidate'\]"),
        ({"of": ["@t.yml:kwargs.x"]}, "t.yml: no text under kwargs.x"),
        ({"at": "START", "in": "blank.py"}, "m: .*blank.py: an empty text"),
        ({"at": "START", "in": "bad.py"}, "invalid syntax"),
        ({"at": "START", "in": "deep.py"}, "m: .*deep.py: .*recursion depth"),
    ],
)
def test_where_a_text_stands(source: dict[str, Any], text: str, tmp_path: Path) -> None:
    build(tmp_path, {"a.py": CODE, "t.txt": TEMPLATE, "t.yml": YAML} | ODD)
    try:
        file = tmp_path / source.get("in", "a.py")
        found = authors_prompts._part(file, "m", source)
    except PromptError as error:
        with pytest.raises(PromptError, match=text):
            raise error
    else:
        assert found == text


def test_havens_system_texts_are_those_of_each_task(tmp_path: Path) -> None:
    """Each of the six tasks with pictures has a file with a constant of its own."""
    place = resources.files("lmms_eval_tasks.haven") / "prompts" / "authors.json"
    (entry,) = json.loads(place.read_text(encoding="utf-8"))
    parts = entry["files"]["system.yml"]
    assert tuple(parts) == KINDS
    files = {source["in"][0]: f'SYSTEM_PROMPT = (\n "Be {kind}. "\n "Now."\n)\n'
             for kind, source in parts.items()}  # fmt: skip
    assert len(files) == len(KINDS)
    build(tmp_path, files)
    found = {
        kind: authors_prompts._part(tmp_path / source["in"][0], kind, source)
        for kind, source in parts.items()
    }
    assert found == {kind: f"Be {kind}. Now." for kind in KINDS}


def test_nothing_is_written_where_a_part_or_the_repository_is_not_known(tmp_path: Path) -> None:
    wanted = r"state of it; expected: compute.*, eval_model\.py of https://github\.com/Caput97/M"
    with pytest.raises(PromptError, match=wanted):
        authors_prompts.write_prompts("maia", tmp_path, tmp_path / "own")
    name = "compute_llm-as-a-judge.py"
    build(tmp_path, {**MAIA, name: MAIA[name].replace("{candidate}", "{other}")})
    with pytest.raises(PromptError, match=r"judge\.yml, user: .*the placeholder 'other'"):
        authors_prompts.write_prompts("maia", tmp_path, tmp_path / "own")
    assert not (tmp_path / "own").exists()
