"""A clone's own wording becomes a folder of prompts; what is not of a known form is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.cvrr_es import judge as cvrr_judge
from lmms_eval_tasks.errors import PromptError
from lmms_eval_tasks.haven import inputs as haven_inputs
from lmms_eval_tasks.judges import debate
from lmms_eval_tasks.maia import judge as maia_judge
from lmms_eval_tasks.maverix import judge as maverix_judge
from lmms_eval_tasks.maverix import tasks as maverix_tasks
from lmms_eval_tasks.maverix.labels import DIMENSIONS
from lmms_eval_tasks.utils import authors_prompts, prompts

# As the authors' files are built; the sentences are made up.
MAIA = """
PROMPT_GEN = "Say it:\\n{}"
PROMPT_MC = "Pick:\\nA. {}\\nB. {}\\n"
raise SystemExit("never run")
"""
MAIA_JUDGE = """
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
"""
CVRR = """
def annotate(rows):
    for row in rows:
        question, answer, pred = row
        ask(messages=[
            {"role": "system", "content": "Compare {'a': 1}."},
            {"role": "user", "content": "Pair:\\n" f"Q {question} A {answer} P {pred}"},
        ])
"""
STUDY = """
def get_prompt():
    prompt = {"start": "Rate it. ", "tasks": {"score": "\\nPoor (1) to Excellent (5).\\n"}}
    return prompt

def construct_input(prompt_dict, judge_mode, reference, instruction, responses):
    prompt = prompt_dict["start"] + "How:\\n" + prompt_dict["tasks"][judge_mode] + "\\nInput:\\n"
    if judge_mode == "score":
        prompt += f"[I]{instruction}[/I][The Start of Assistant\u2019s Answer]{responses[0]}[/A]"
    else:
        prompt += f\"\"\"[I]{instruction}[/I]
[The Start of Assistant\u2019s Answer]{responses[0]}[The End of Assistant\u2019s Answer]
Others:\\n\"\"\"

def evaluate(cli_args):
    question_new = construct_input(None)
    question_new = construct_input(None)
    question_new += "\\nReply: {{'rating': 'number'}}"
"""
DEBATE = CVRR.replace("annotate(rows)", "get_gpt_eval(question, answer, pred)")
DEBATE += """
    said = [{"role": "user", "content": "Well?"}]
    said.append({"role": "assistant", "content": f"1 again: {one}"})
    said.append({"role": "user", "content": "And you?"})
    said.append({"role": "user", "content": "Like {'pred': 'correct'}."})
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    root = tmp_path / "clone"
    (root / "Evaluation-Scripts").mkdir(parents=True)
    (root / "eval_model.py").write_text(MAIA, encoding="utf-8")
    (root / "compute_llm-as-a-judge.py").write_text(MAIA_JUDGE, encoding="utf-8")
    (root / "Evaluation-Scripts" / "LLM_Judge_evaluation.py").write_text(CVRR, encoding="utf-8")
    return root


def test_maia(clone: Path, tmp_path: Path) -> None:
    told = authors_prompts.write("maia", clone, tmp_path / "own")
    given = {"vsv": {"A", "B"}, "oevqa": {"question"}}
    found = prompts.load("maia", "it", given, tmp_path / "own").text
    assert found == {"vsv": "Pick:\nA. {A}\nB. {B}\n", "oevqa": "Say it:\n{question}"}
    judge = prompts.load("maia", "judge", maia_judge.PARTS, tmp_path / "own").text
    assert judge["system"] == "Grade. One word."
    assert judge["user"] == "Q: {question}\nC: {candidate}\n{references}"
    assert told[-1].endswith(str(tmp_path / "own"))


def test_messages_and_braces(clone: Path, tmp_path: Path) -> None:
    authors_prompts.write("cvrr_es", clone, tmp_path)
    found = prompts.load("cvrr_es", "judge", cvrr_judge.PARTS["judge"], tmp_path)
    assert found.text["system"] == "Compare {'a': 1}."
    values = {"question": "1", "reference": "2", "candidate": "3"}
    assert prompts.fill(found.text["user"], values) == "Pair:\nQ 1 A 2 P 3"


def test_texts_put_together_of_others(tmp_path: Path) -> None:
    for file, code in (
        ("lmms_eval/evaluator", STUDY),
        ("logs_phase1/correct/correct_debate", DEBATE),
    ):
        path = tmp_path / "src" / f"{file}.py"
        path.parent.mkdir(parents=True)
        path.write_text(code, encoding="utf-8")
    told = authors_prompts.write("cvrr_es", tmp_path, tmp_path)
    assert "hint.yml, judge.yml, task.yml: ours (no text for them is known there)" in told
    prompts.load("cvrr_es", "reference", cvrr_judge.PARTS["reference"], tmp_path)
    turns = debate.load_prompts(tmp_path).text
    said = [turns[part].split("\n\n") for part in ("answer", "revision", "consolidation")]
    assert [one[-1] for one in said] == ["Well?", "And you?", "Like {'pred': 'correct'}."]
    text = prompts.load("cvrr_es", "rating", cvrr_judge.PARTS["rating"], tmp_path).text
    assert (text["role"], text["material"]) == ("Rate it. How:\n", "\nInput:\n")
    assert text["rubric"] == "\nPoor (1) to Excellent (5).\n"
    assert text["instruction"] == "[I]{question}[/I]"
    assert text["answer"] == "[The Start of Assistant\u2019s Answer]{answer}[/A]"
    assert text["others"] == "\nOthers:\n{ratings}"
    assert text["reply"] == "\nReply: {{'rating': 'number'}}"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("{candidate}", "{other}", r"judge\.yml, user: .*the placeholder 'other'"),
        ("    user = (", "    words = (", r"judge\.yml, user: .*llm_judge\.user: no user"),
        ('"Grade. "', "grade() +", r"judge\.yml, system: .*line 4: grade\(\)"),
        ("def llm", "def (", r"judge\.yml, system: .*invalid syntax"),
    ],
)
def test_what_is_not_of_a_known_form_is_named(
    clone: Path, tmp_path: Path, old: str, new: str, told: str
) -> None:
    file = clone / "compute_llm-as-a-judge.py"
    file.write_text(MAIA_JUDGE.replace(old, new), encoding="utf-8")
    with pytest.raises(PromptError, match=told):
        authors_prompts.write("maia", clone, tmp_path / "own")
    assert not (tmp_path / "own").exists()


def test_no_clone(tmp_path: Path) -> None:
    wanted = (
        r"older state of it; wanted: compute.*, eval_model\.py of https://github\.com/Caput97/M"
    )
    with pytest.raises(PromptError, match=wanted):
        authors_prompts.write("maia", tmp_path, tmp_path / "own")


def test_one_text_for_each_dimension_and_what_a_task_joins(tmp_path: Path) -> None:
    file = tmp_path / "clone" / "lmms_eval" / "tasks" / "maverix" / "utils.py"
    file.parent.mkdir(parents=True)
    branches = "".join(
        f'    if task == "{name}":\n'
        f'        messages = [{{"role": "system", "content": "Rate {name}."}},\n'
        f'            {{"role": "user", "content": f"{name}: {{question}} {{answer}} {{pred}}"}}]\n'
        for name in DIMENSIONS
    )
    code = (
        f"def get_eval_generic(question, answer, pred, task):\n{branches}"
        "def get_eval_consistency(question1, question2, answer, pred1, pred2):\n"
        '    messages = [{"role": "system", "content": "Compare."}, {"role": "user",\n'
        '        "content": f"{question1} {question2} {answer} {pred1} {pred2}"}]\n'
        "def mmug_doc_to_text_subtitle_builder(folder):\n"
        "    def helper(doc, given):\n"
        '        subtitles_prompt = "Said:\\n"\n'
        '        option_prompt = "Pick one."\n'
        '        post_prompt = given[0] or "Which?"\n'
        '        post_prompt = given[1] or " Say:"\n'
        'def mmug_doc_to_text_wo_subtitle(doc):\n    subtitles_prompt = "Nothing said:\\n"\n'
    )
    file.write_text(code, encoding="utf-8")
    with pytest.raises(PromptError, match=r"task\.yml, choice: .*_default_template_yaml"):
        authors_prompts.write("maverix", tmp_path / "clone", tmp_path)
    (file.parent / "_default_template_yaml").write_text(
        "process_results: !function utils.made\n"
        'lmms_eval_specific_kwargs: {default: {post_prompt: "\\nIts letter.$"}}\n',
        encoding="utf-8",
    )
    authors_prompts.write("maverix", tmp_path / "clone", tmp_path)
    assert prompts.load("maverix", "task", maverix_tasks.PARTS, tmp_path).text == {
        "subtitles": "Said:\n{texts}",
        "no_subtitles": "Nothing said:\n",
        "choice": "{subtitles}\nPick one.\n{question}\n{options}\n\nIts letter.",
        "open": "{subtitles}\n{question} Say:",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(settings.PROMPTS, str(tmp_path))
        found = maverix_judge.criteria()
    for name in DIMENSIONS:
        assert found[name].system == f"Rate {name}."
        assert found[name].template == f"{name}: {{question}} {{reference}} {{candidate}}"
    both = "{question} {paraphrase} {reference} {candidate} {candidate_paraphrase}"
    assert (found["consistency"].system, found["consistency"].template) == ("Compare.", both)


HAVEN = {
    "exp1_v2t/run_qwen": """
def overall_prompt(n_frames, doc_text):
    return f"{n_frames} views.\\n\\n" + _doc_prefix(doc_text) + "Sum up.\\nBriefly."
""",
    "exp2_v2v/run_qwen": """
def build_frame_mode_content(n_total):
    content = [{"type": "text", "text": f"Here are {n}:\\n"}]
    content.append({"type": "text", "text": f"View {i}"})
    content.append({"type": "text", "text": (
        "\\n" + _doc_prefix(doc_text) + (f"of {n_total}" if n_total else "") + f"Choose {n_select}."
    )})
""",
    "exp3_alignment/run_qwen": """
def build_content():
    content = [{"type": "text", "text": f"{total_frames} by shot:\\n"}]
    content.append({"type": "text", "text": f"Shot {i}"})
    content.append({"type": "text", "text": (
        budget_note + f"{n_summary_sentences} and {n_select_frames}:\\n"
        + "\\n".join(str(i) for i in range(n)) + "\\nEnd."
    )})
""",
    "exp4_temporal_understanding/run_qwen": """
def build_content_shot_reorder():
    content = [{"type": "text", "text": f"{n} shots:\\n"}, {"type": "text", "text": f"Shot {i}"}]
    content.append({"type": "text", "text": f"\\nAll of it: {document_text}\\n"})
    content.append({"type": "text", "text": f"\\nOrder {n}: {shot_list}"})
def build_content_sentence_text_only():
    content = [{"type": "text", "text": f"{n} sentences:\\n"}]
def _sentence_reorder_instruction(n):
    return f"Order {n} sentences: {sentence_list}"
""",
    "exp5_direct_alignment/run_qwen": """
def build_content():
    content.append({"type": "text", "text": f"{n_clips} clips:\\n"})
    content.append({"type": "text", "text": f"Clip {i}"})
    content.append({"type": "text", "text": (
        f"\\n{n_sents} sentences:\\n\\n{sents_formatted}\\n\\nWhich clips?\\n"
        + "\\n".join(str(i) for i in range(n))
    )})
""",
    "exp5_direct_alignment/run_gpt_baseline": """
def build_prompt():
    return f"{n_clips} told:\\n\\n{clips_block}\\n\\n{n_sents}: {sents_block}{format_example}"
""",
    "exp6_salience_ranking/run_qwen": """
def build_ranking_instruction(n):
    return f"\\nRank {n}: {shot_list}"
def build_content():
    content.append({"type": "text", "text": f"Background: {doc_text}\\n\\n"})
    content.append({"type": "text", "text": f"{len(selected_shots)} of it:\\n"})
""",
    "exp6_salience_ranking/run_gpt_baseline": """
def build_ranking_instruction(n):
    return f"\\nRank {n} told: {shot_list}"
def build_prompt():
    lines.append(f"Background: {doc_text}")
    lines.append(f"{len(selected_shots)} told:\\n")
""",
    "exp7_text_only/run_gpt": """
def build_prompt(n_summary_sentences, n_select_frames):
    lines = [f"{n} views are told:\\n"]
    lines.append(f"View {i}")
    lines.append(f"\\n{n_summary_sentences} and {n_select_frames}")
""",
}


def test_what_a_function_appends_and_returns(tmp_path: Path) -> None:
    for name, code in HAVEN.items():
        file = tmp_path / "experiments" / "codes" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(code, encoding="utf-8")
    told = authors_prompts.write("haven", tmp_path, tmp_path)
    assert "task.yml, v2t_text_open: ours (the authors have none)" in told
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(settings.PROMPTS, str(tmp_path))
        text = haven_inputs.task_prompts().text
    assert (text["v2t_open"], text["v2t_ask"]) == ("{n_frames} views.", "Sum up.\nBriefly.")
    assert (text["v2v_open"], text["v2v_ask"]) == ("Here are {n_frames}:", "Choose {k}.")
    assert text["v2vt_open"] == "{n_frames} by shot:"
    assert text["v2vt_ask"] == "{n_sentences} and {k}:\n{numbered}\nEnd."
    assert text["temporal_document"] == "All of it: {document}"
    assert text["temporal_ask"] == "Order {n}: {names}"
    assert text["temporal_text_ask"] == "Order {n} sentences: {names}"
    assert text["grounding_sentences"] == "{n_sentences} sentences:\n\n{lines}"
    assert text["grounding_ask"] == "Which clips?\nSummary 1: Clip X, Clip Y"
    assert text["grounding_text_open"] == "{n} told:"
    assert (text["saliency_open"], text["saliency_text_open"]) == ("{n} of it:", "{n} told:")
    assert (text["v2vt_text_open"], text["v2vt_text_ask"]) == (
        "{n_frames} views are told:",
        "{n_sentences} and {k}",
    )
