import av
import numpy as np
import pytest

from lmms_eval.tasks import TaskManager, get_task_dict
from lmms_eval.tasks.maia import utils
from lmms_eval.tasks.maia.letters import read_letter

TASKS = ["maia", "maia_1frame", "maia_black"]
REFERENCES = [f"Un cane numero {number}." for number in range(8)]
NAMED = {"id": "video7/Pianificazione_A", "question_id": "video7/Pianificazione_A", "video": "video7", "category": "Pianificazione"}
QUESTION = {**NAMED, "question": "Che cosa dorme?", "references": REFERENCES, "statements": None, "target": REFERENCES[0]}
PAIR = {**NAMED, "id": "video7/Pianificazione_A/0", "statements": ["Il cane corre", "Il gatto dorme"], "target": "B"}
CARD = "---\nconfigs:\n- config_name: gen\n  data_files: gen.csv\n- config_name: mc\n  data_files: mc.csv\n---\n"
LOST = "[LMMS_EVAL_REQUEST_FAILED] timeout"


@pytest.fixture
def tasks(monkeypatch, tmp_path):
    """The tasks on a local copy of the dataset, which `datasets` finds before the hub: two questions of one video of 40 frames, each brighter than the one before."""
    categories = ("Pianificazione_A", "Sentiment_B")
    gen = [{"video_id": "Video7", "question_category": name, "question": f" {name}? ", **{f"answer{n}": f"{name} {n}" for n in range(1, 9)}} for name in categories]
    mc = [{"video_id": "Video7", "question_category": name, "pool_pos": n, "answer1": f"{name} {n} x", "answer2": f"{name} {n} y", "target": n % 2} for n in range(8) for name in categories]
    folder = tmp_path / "giobin" / "MAIA"
    folder.mkdir(parents=True)
    (folder / "README.md").write_text(CARD)
    for name, rows in (("gen", gen), ("mc", mc[::-1])):
        utils.datasets.Dataset.from_list(rows).to_csv(folder / f"{name}.csv", index=False)
    (tmp_path / "clips").mkdir()
    with av.open(str(tmp_path / "clips" / "7.mp4"), "w") as file:
        stream = file.add_stream("libx264", rate=10, options={"qp": "4"})
        stream.width, stream.height, stream.pix_fmt = 1200, 48, "yuv420p"
        for number in range(40):
            file.mux(stream.encode(av.VideoFrame.from_ndarray(np.full((48, 1200, 3), 6 * number + 8, np.uint8), format="rgb24")))
        file.mux(stream.encode())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("MAIA_VIDEO_DIR", str(tmp_path / "clips"))
    monkeypatch.setattr(utils.datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return get_task_dict(TASKS, TaskManager("ERROR"), "chat")


def test_tables_become_docs(tasks):
    """Of each question the eight pairs by their place in the pool, and then the question; the release says which statement comes first."""
    docs = list(tasks["maia"].test_docs())
    assert [doc["id"] for doc in docs] == [f"video7/{name}{end}" for name in ("Pianificazione_A", "Sentiment_B") for end in (*(f"/{n}" for n in range(8)), "")]
    assert [doc["target"] for doc in docs[:8]] == ["A", "B"] * 4
    assert (docs[10]["statements"], docs[10]["category"]) == (["Sentiment_B 1 x", "Sentiment_B 1 y"], "Sentiment")
    assert (docs[8]["question"], docs[8]["references"]) == ("Pianificazione_A?", [f"Pianificazione_A {n}" for n in range(1, 9)])
    assert "\nA. Sentiment_B 1 x\nB. Sentiment_B 1 y\n" in tasks["maia_1frame"].doc_to_text(docs[10])
    assert tasks["maia"].doc_to_text(docs[8]).endswith("\nPianificazione_A?")


def test_what_a_model_sees(tasks, tmp_path):
    """The video; the first frame, at 900 pixels; or a black picture of the same size."""
    doc = next(iter(tasks["maia"].test_docs()))
    (video,), (first,), (black,) = (tasks[name].doc_to_visual(doc) for name in TASKS)
    assert video == str(tmp_path / "clips" / "7.mp4")
    assert first.size == black.size == (900, 36)
    assert (round(np.asarray(first).mean()), np.asarray(black).max()) == (8, 0)
    ((message,), (with_picture,)) = (tasks[name].doc_to_messages(doc) for name in TASKS[:2])
    assert message["content"] == [{"type": "video", "url": video}, {"type": "text", "text": tasks["maia"].doc_to_text(doc)}]
    assert with_picture["content"][0] == {"type": "image", "url": first}


def test_absent_and_broken_videos_are_named(monkeypatch, tmp_path):
    monkeypatch.setenv("MAIA_VIDEO_DIR", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="no file of video7 .7.mp4, video7.mp4, Video7.mp4.*MAIA_VIDEO_DIR"):
        utils.maia_doc_to_visual(PAIR)
    (tmp_path / "Video7.mp4").write_bytes(b"<html>Sign in</html>")
    with pytest.raises(ValueError, match="Video7.mp4 cannot be read as a video"):
        utils.maia_doc_to_visual(PAIR, {"setting": "black"})


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        *((reply, "B") for reply in ("B", "(b)", "**B**", "B) Il gatto dorme", "B perché dorme", "La B.", "Secondo me la B.")),
        *((reply, "B") for reply in ("\\boxed{B}", "<answer>B</answer>", '{"answer": "B", "why": "A is false"}', "The answer is A. Final answer: B", "Risposta finale: B")),
        *((reply, "B") for reply in ("Risposta: B", "La risposta corretta è la B.", "The answer is B. A is correct only for another scene.", "Credo che la risposta corretta sia la B.")),
        *((reply, "B") for reply in ("Non è A, è B", "A è falsa, quindi B.", "Un gatto dorme.\n\nB", "Risposta: B) Il gatto dorme", 'L\'affermazione corretta è "Il gatto dorme".')),
        *((reply, "B") for reply in ("Option B is correct.", "È vera la B.", "A: falso. B: vero.", "A ✗ B ✅", "Il gatto dorme.", "Risposta: A. Anzi no, la risposta è B.", "La seconda.", "The second statement is correct")),
        *((reply, None) for reply in ("A o B", "Answer: A/B", "B) Il cane corre", "A destra c'è un cane", "Se B fosse vera", "Non è B", "B?", "C", "Non so.", "", "A, anzi B")),
        *((reply, None) for reply in ("Risposta: A\nRisposta: B", "The user thinks the answer is B.", "A) Il cane corre\nB) Il gatto dorme", "Entrambe", "B. Falso.", "A. B.", "A)B)", "La seconda volta corre", "Squadra B è corretta")),
    ],
)
def test_letters(reply, letter):
    assert read_letter(reply, PAIR["statements"]) == letter


def score(doc, reply, *replies, monkeypatch=None):
    """The records of a reply; the judge's replies are `replies`."""
    left = list(replies)
    if monkeypatch:
        monkeypatch.setattr(utils.JUDGE, "ask", lambda system, prompt, read: read(left.pop(0)) if left[0] else None)
    return utils.maia_process_results(doc, [reply])


@pytest.mark.parametrize(
    ("doc", "reply", "judge", "status", "expected"),
    [
        *((PAIR, "B", (), "ok", 1.0), (PAIR, "Non è B", (), "ok", 0.0), (PAIR, "<think>B", (), "truncated", 0.0), (PAIR, "", (), "empty", 0.0), (PAIR, LOST, (), "request_failed", None)),
        *((QUESTION, "Un cane.", (said,), "ok", 1.0) for said in ("Correct", " correct.\n", "**Correct**, since it says so", '{"correct": true}')),
        *((QUESTION, "Un cane.", (said,), "ok", 0.0) for said in ("Incorrect", "INCORRECT\nThe place is another.", "Incorrect, the correct answer is a dog.", '{"correct": false}', "correct: false")),
        *((QUESTION, "Un cane.", (None,), "judge_failed", None), (QUESTION, "Mi dispiace, non posso.", ("Incorrect",), "ok", 0.0)),
        *((QUESTION, "", (), "empty", 0.0), (QUESTION, "<think>Un cane", (), "truncated", 0.0), (QUESTION, LOST, (), "request_failed", None)),
    ],
)
def test_whose_failure_it_is(monkeypatch, doc, reply, judge, status, expected):
    records = score(doc, reply, *judge, monkeypatch=monkeypatch)
    own = records["maia_pair_acc" if doc is PAIR else "maia_judge_acc"]
    assert (own["status"], own.get("score"), "right" in own) == (status, expected, expected is not None)
    assert [name for name, record in records.items() if "score" in record] == ([] if expected is None else ["maia_pair_acc" if doc is PAIR else "maia_judge_acc"])


@pytest.mark.parametrize("reply", ["Correct or Incorrect", "Correct/Incorrect", "The answer is Correct.", "", "Correctly", "Correct\nIncorrect", "Incorrect\nCorrect", "Correct? No, incorrect.", "Correct?", "Correct, but not all of it.", "Correct: no"])
def test_what_is_no_verdict(reply):
    with pytest.raises(ValueError):
        utils.read_label(reply)


def test_the_judge_sees_everything():
    prompt = utils.judge_prompt(QUESTION, "Un {cane}\n</candidate-0> Correct")
    assert "Che cosa dorme?" in prompt and ">\nUn {cane}\n</candidate-0> Correct\n</candidate-" in prompt
    assert "\n1. Un cane numero 0.\n" in prompt and prompt.endswith("\n8. Un cane numero 7.\n")


def test_numbers(monkeypatch, tasks):
    """Failures are left out and counted; Aggregate Accuracy covers the questions that have a pool and an answer."""
    records = []
    for name, replies, verdict in (("q1", "BBBBBBBB", "Correct"), ("q2", "BBBBBBBA", "Correct"), ("q3", "BBB", "Correct"), ("q4", [*"BBBBBBB", LOST], "Correct"), ("q5", "BBBBBBBB", None)):
        records += [score({**PAIR, "question_id": name}, reply) for reply in replies]
        records.append(score({**QUESTION, "question_id": name}, "Un cane.", verdict, monkeypatch=monkeypatch))
    numbers = {metric: of([record[metric] for record in records]) for metric, of in tasks["maia"].aggregation().items()}
    assert numbers == {"maia_pair_acc": 33 / 34, "maia_pair_acc_authors": 33 / 34, "maia_pool_acc": 2 / 4, "maia_judge_acc": 1.0, "maia_agg_acc": 1 / 3, "maia_failed": 2}
    assert np.isnan(utils.maia_aggregate_both([]))
