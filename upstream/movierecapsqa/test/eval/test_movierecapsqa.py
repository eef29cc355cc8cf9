import json

import av
import numpy as np
import pytest

from lmms_eval.llm_judge import Response
from lmms_eval.tasks import TaskManager, get_task_dict
from lmms_eval.tasks.movierecapsqa import utils

TASKS = ["movierecapsqa_segment", "movierecapsqa_segment_frames", "movierecapsqa_segment_dialogue"]
DOC = {
    "id": "talk.1/0",
    "video_id": "talk",
    "question": "Who waits?",
    "answer": "The captain waits.",
    "movie": "Talk (1999)",
    "start": 1.0,
    "end": 2.5,
    "facts": ["The captain waits.", "It snows."],
    "dialogue": "Where were you?",
}
SRT = """1
00:00:01,000 --> 00:00:03,000
<i>Where were
you?</i> &amp; why

2
00:00:09,000 --> 00:00:12,000
{\\an8}At the harbour.
"""
SEGMENT = {"video_id": "talk", "movie_start_time": 0.0, "recap_start_time": 1.0, "recap_end_time": 2.5}
TABLES = {
    "recaps": [{"video_id": "talk", "movie_name": "Talk (1999)", "subtitle_url": "https://example.org/1", "imdb_url": ""}],
    "segments": [{**SEGMENT, "segment_id": 1, "movie_end_time": 10.5, "fact_ids": ["b", "a"]}, {**SEGMENT, "segment_id": 2, "movie_end_time": 10.6, "fact_ids": ["a"]}],
    "facts": [{"video_id": "talk", "segment_id": number, "fact_id": name, "fact": f"Fact {number}{name}."} for number in (1, 2) for name in "ab"],
    "questions": [{"video_id": "talk", "segment_id": number, "question_id": 0, "question": "Who?", "answer": "He.", "aligned_fact_ids": []} for number in (1, 2)],
}


class Judge:
    """A judge that gives these replies in turn, and records its requests."""

    def __init__(self, *replies):
        self.replies, self.asked = list(replies), []

    def evaluate(self, request):
        self.asked.append([message["content"] for message in request.messages])
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return Response(content=reply, model_used="judge")


def claims(*found):
    return json.dumps({"claims": found})


def rating(score, *labels):
    return json.dumps({"labels": [{"id": number, "label": label} for number, label in enumerate(labels, 1)], "reason": "so", "score": score})


def scored(monkeypatch, reply, *judge_replies):
    """The records of a reply, and the judge."""
    judge = Judge(*judge_replies)
    monkeypatch.setattr(utils.JUDGE, "server", lambda: judge)
    return utils.movierecapsqa_process_results(DOC, [reply]), judge


def scores(records):
    return [records[f"movierecapsqa_{dimension}"].get("score") for dimension in utils.LABELS]


@pytest.fixture
def tables(monkeypatch, tmp_path):
    """The dataset as a local folder, which `datasets` finds before the hub."""
    data = tmp_path / utils.DATASET / "data"
    data.mkdir(parents=True)
    for name, rows in TABLES.items():
        (data / f"{name}.json").write_text(json.dumps(rows))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MOVIERECAPSQA_SUBTITLE_DIR", str(tmp_path))
    return tmp_path


def test_tasks_put_the_tables_together(tables):
    (tables / "talk.srt").write_text(SRT)
    manager = TaskManager("ERROR")
    assert "movierecapsqa" in manager.all_groups
    tasks = get_task_dict(TASKS, manager, "chat")
    first, second = tasks["movierecapsqa_segment"].test_docs()
    assert (first["id"], first["facts"], first["start"], first["end"]) == ("talk.1/0", ["Fact 1b.", "Fact 1a."], 1.0, 2.5)
    # A cue belongs where at least half of it is: 1.5 of 3 s of the last one lie before 10.5 s.
    assert (first["dialogue"], second["facts"]) == ("Where were you? & why\nAt the harbour.", ["Fact 2a."])
    texts = {name: tasks[name].doc_to_text(first) for name in TASKS}
    assert [("At the harbour." in text, "pictures" in text) for text in texts.values()] == [(True, True), (False, True), (True, False)]
    assert all("Fact" not in text and text.endswith("Who?") for text in texts.values())
    assert tasks["movierecapsqa_segment_dialogue"].doc_to_visual(first) == []
    assert tasks["movierecapsqa_segment_dialogue"].doc_to_messages(first) == [{"role": "user", "content": [{"type": "text", "text": texts["movierecapsqa_segment_dialogue"]}]}]


def test_absent_files_are_named(tables, monkeypatch):
    with pytest.raises(FileNotFoundError, match="subtitles of 1 of 1 recaps .* talk.srt of Talk .*https://example.org/1.*MOVIERECAPSQA_SUBTITLE_DIR"):
        utils.movierecapsqa_process_docs(TABLES["questions"])
    with pytest.raises(FileNotFoundError, match="talk.mp4 .*MOVIERECAPSQA_VIDEO_DIR"):
        utils.movierecapsqa_doc_to_visual(DOC)


@pytest.mark.parametrize(("name", "newline"), [("talk.srt", "\n"), ("Talk (1999)_talk.srt", "\r\n")])
def test_subtitles_by_either_name(tables, name, newline):
    (tables / name).write_text("\ufeff" + SRT, newline=newline)
    utils._cues.cache_clear()
    assert [doc["dialogue"] for doc in utils.movierecapsqa_process_docs(TABLES["questions"])] == ["Where were you? & why\nAt the harbour."] * 2


def test_window_of_subtitles(tmp_path):
    (tmp_path / "a.srt").write_text("00:00:01,000 --> 00:00:02,000\nOne\n\n00:00:04.000 --> 00:00:08.000\nThey are\n7\n")
    path = str(tmp_path / "a.srt")
    assert [utils._said(path, *window) for window in ((0, 6), (0, 5.9), (6, 9), (1.5, 3), (2, 4))] == ["One\nThey are 7", "One", "They are 7", "One", ""]


@pytest.mark.parametrize("content", [b"<html>Sign in</html>", b"", SRT.replace("00:00:09,000", "9 s").encode(), SRT.replace("you", "t\xfa").encode("latin-1")])
def test_what_is_no_subtitle_file(tmp_path, content):
    (tmp_path / "bad.srt").write_bytes(content)
    with pytest.raises(ValueError, match="bad.srt is no"):
        utils._cues(str(tmp_path / "bad.srt"))


def test_clip_is_the_muted_segment(monkeypatch, tmp_path):
    with av.open(str(tmp_path / "talk.mp4"), "w") as file:
        stream = file.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        sound = file.add_stream("aac", rate=44100)
        for number in range(40):
            file.mux(stream.encode(av.VideoFrame.from_ndarray(np.full((48, 64, 3), 6 * number, np.uint8), format="rgb24")))
        file.mux(stream.encode())
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 44100), np.float32), format="fltp", layout="mono")
        frame.rate = 44100
        file.mux(sound.encode(frame))
        file.mux(sound.encode())
    monkeypatch.setenv("MOVIERECAPSQA_VIDEO_DIR", str(tmp_path))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    utils._clip.cache_clear()
    (path,) = utils.movierecapsqa_doc_to_visual(DOC)
    with av.open(path) as clip:
        assert not clip.streams.audio
        shown = [(round(frame.time, 3), round(float(frame.to_ndarray(format="rgb24").mean()) / 6)) for frame in clip.decode(video=0)]
    assert shown == [(round(place / 10, 3), 10 + place) for place in range(15)]
    assert utils.movierecapsqa_doc_to_visual(DOC) == [path]
    for start in (3.0, 9.0):
        with pytest.raises(ValueError, match=f"talk.mp4 ends before the segment from {start:g} s to 10 s"):
            utils.movierecapsqa_doc_to_visual({**DOC, "start": start, "end": 10.0})


def test_claims_first_then_three_dimensions(monkeypatch):
    replies = (claims("He  waits.\n", " - ", "It rains."), f"```json\n{rating(4, 'Supported', 'not checkable')}\n```", rating(5.0, "relevant", "relevant"), rating("3", "consistent", "*redundant*"))
    records, judge = scored(monkeypatch, "<think>Who?</think> He waits. <|extra_0|><|im_end|>Supported", *replies)
    assert scores(records) == [4.0, 5.0, 3.0]
    assert records["movierecapsqa_factuality"]["labels"] == ["supported", "not_checkable"]
    assert records["movierecapsqa_factuality"]["claims"] == ["He waits.", "It rains."]
    (first, prompt), *others = judge.asked
    assert first == utils.CLAIMS_SYSTEM and "He waits. < |extra_0|>\n</candidate-" in prompt
    assert not any(part in prompt for part in (*DOC["facts"], DOC["dialogue"]))
    assert all("1. He waits.\n2. It rains.\n</claims-" in prompt and DOC["answer"] not in prompt.replace(DOC["facts"][0], "") for _, prompt in others)
    # Facts and dialogue come first, so that providers find them in their caches; coherence has none.
    assert [utils.JUDGE_TASKS[name] in prompt for name, (_, prompt) in zip(utils.LABELS, others)] == [True] * 3
    head = "1. The captain waits.\n2. It snows.\n"
    assert [head in prompt and DOC["dialogue"] in prompt for _, prompt in others] == [True, True, False]


@pytest.mark.parametrize(
    ("reply", "judge_replies", "status", "expected"),
    [
        ("", (), "empty", [None] * 3),
        ("<think>hm</think> ...", (), "empty", [None] * 3),
        ("<think>hm", (), "truncated", [0.0] * 3),
        ("[LMMS_EVAL_REQUEST_FAILED] timeout", (), "request_failed", [None] * 3),
        ("Well.", (claims(),), "no_claims", [0.0] * 3),
        ("I can't help.", (claims("No."), rating(1, "unsupported"), rating(0, "irrelevant"), rating(5, "consistent")), "ok", [1.0, 0.0, 5.0]),
        ("He waits.", (RuntimeError("down"),), "judge_failed", [None] * 3),
        ("He waits.", ("what?", "what?"), "judge_failed", [None] * 3),
        ("He waits.", ('{"correct": false}', "I cannot help with that."), "judge_failed", [None] * 3),
        ("He waits.", ('{"claims": "He waits."}', '{"claims": ["He waits.", 1]}'), "judge_failed", [None] * 3),
        ("He waits.", (claims("He."), '{"labels": [{"id": 1e999, "label": "supported"}], "score": 1}', '{"labels": 1, "score": 1}', rating(5, "relevant"), "[" * 9999, '{"score": 1}'), "judge_failed", [None, 5.0, None]),
        ("He waits.", ("what?", claims("He waits."), *[rating(5, labels[0]) for labels in utils.LABELS.values()]), "ok", [5.0] * 3),
        ("He waits.", (claims("He waits."), rating(6, "supported"), rating(4, "supported"), "{}", "[]", rating(5, "consistent")), "judge_failed", [4.0, None, 5.0]),
    ],
)
def test_whose_failure_it_is(monkeypatch, reply, judge_replies, status, expected):
    records, judge = scored(monkeypatch, reply, *judge_replies)
    assert (records["movierecapsqa_failed"]["status"], scores(records), judge.replies) == (status, expected, [])
    assert [prompt.endswith(utils.JUDGE_AGAIN) for _, prompt in judge.asked].count(True) <= 2


@pytest.mark.parametrize(
    "reply",
    [
        {"labels": [], "score": 3},
        {"labels": [{"id": 1, "label": "supported"}, {"id": 1, "label": "supported"}], "score": 3},
        {"labels": [{"id": 2, "label": "supported"}], "score": 3},
        {"labels": [{"id": 1, "label": "relevant"}], "score": 3},
        {"labels": [{"id": 1, "label": "supported"}], "score": 2.5},
        {"labels": [{"id": 1, "label": "supported"}], "score": True},
        {"labels": [{"id": 1, "label": "supported"}], "score": -1},
    ],
)
def test_a_rating_that_is_none(reply):
    with pytest.raises(ValueError):
        utils.read_rating(reply, "factuality", 1)


def test_two_scores_are_none():
    with pytest.raises(ValueError):
        utils._object('{"labels": [], "score": 3, "score": 5}')


def test_numbers(monkeypatch):
    none = {"video_id": "talk", "n_claims": 0}
    records = [
        {**none, "id": "1", "status": "ok", "n_claims": 2, "score": 4.0},
        {**none, "id": "2", "status": "no_claims", "score": 0.0},
        {**none, "id": "3", "status": "empty"},
        {**none, "id": "4", "status": "judge_failed"},
    ]
    assert [of(records) for of in (utils.movierecapsqa_aggregate_scores, utils.movierecapsqa_count_failed, utils.movierecapsqa_count_empty, utils.movierecapsqa_coverage)] == [2.0, 1, 1, 0.5]
    # No answer at all has a claim: the judge failed, and there is no mean.
    assert np.isnan(utils.movierecapsqa_aggregate_scores(records[1:]))
    assert (utils.movierecapsqa_count_failed(records[1:]), utils.movierecapsqa_coverage(records[1:])) == (2, 0.0)
