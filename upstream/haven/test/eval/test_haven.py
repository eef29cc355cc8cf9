import importlib
import json

import av
import numpy as np
import pytest

from lmms_eval.tasks import TaskManager, get_task_dict
from lmms_eval.tasks.haven import utils

TASKS = [f"haven_{kind}{end}" for kind in utils.UNITS for end in ("", "_text")]
FRAMES = [{"frame_id": 4 * n, "description": f"View {n}.", "is_gt": False} for n in range(10)]
CLIPS = [{"clip_id": n, "summary": f"What {n} does.", "gt": n == 1, "frames": [4 * (2 * n), 4 * (2 * n + 1)]} for n in range(5)]
SUMMARY = {"sentences": ["One.", "[Shot 3] Two.", "Three."], "alignments": [{"sentence_id": 0, "shot_ids": [0, 1]}, {"sentence_id": 1, "shot_ids": [2]}]}
VIDEO = {"frames": FRAMES, "clips": CLIPS, "aligned_text_summary": SUMMARY, "video_name": "A walk"}


@pytest.fixture
def tasks(monkeypatch, tmp_path):
    """The tasks on a released file of three videos, of which one has neither a key shot nor a summary, and one a single shot."""
    plain = {**VIDEO, "clips": [{**clip, "gt": False} for clip in CLIPS], "aligned_text_summary": None}
    (tmp_path / "tvsum_data.json").write_text(json.dumps({"video_1": VIDEO, "video_2": plain, "video_3": {**VIDEO, "clips": CLIPS[1:2]}}))
    with av.open(str(tmp_path / "A walk.mp4"), "w") as file:
        stream = file.add_stream("mpeg4", rate=10)
        stream.width, stream.height = 1024, 64
        for level in range(40):
            file.mux(stream.encode(av.VideoFrame.from_ndarray(np.full((64, 1024, 3), 6 * level, np.uint8), format="rgb24")))
        file.mux(stream.encode())
    for name in ("HAVEN_DIR", "HAVEN_VIDEO_DIR", "HF_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    importlib.reload(utils)
    return get_task_dict(TASKS, TaskManager("ERROR"), "chat")


def test_videos_become_docs(tasks):
    docs = {name: {doc["video"]: doc for doc in task.test_docs()} for name, task in tasks.items()}
    assert {name: [*own] for name, own in docs.items() if "text" not in name} == {"haven_v2v": ["video_1", "video_3"], "haven_temporal": ["video_1", "video_2"], "haven_grounding": ["video_1", "video_3"]}
    order, grounding = docs["haven_temporal"]["video_1"], docs["haven_grounding"]["video_1"]
    assert order["units"] == docs["haven_temporal"]["video_2"]["units"] or sorted(order["units"]) == [1, 2, 3, 4, 5]
    assert order["units"] != [1, 2, 3, 4, 5]
    assert dict(zip(grounding["sentences"], grounding["sentence_shots"])) == {"One.": [1, 2], "Two.": [3], "Three.": []}
    assert docs["haven_v2v"]["video_1"]["key_frames"] == [3, 4]


def test_prompts(tasks):
    """Pictures stand behind their labels; descriptions in their place make a text proxy. No prompt tells a frame's place in the video."""
    doc = next(iter(tasks["haven_temporal"].test_docs()))
    ((message,),) = [tasks["haven_temporal"].doc_to_messages(doc)]
    kinds = [part["type"] for part in message["content"]]
    assert kinds == ["text", "image", "image"] * 5 + ["text"]
    assert message["content"][3]["text"] == "\n\nShot 2:\n"
    first = message["content"][1]["url"]
    assert (first.size, round(np.asarray(first).mean() / 24)) == ((512, 32), 2 * (doc["units"][0] - 1))
    assert "Shot 2 (images 3 to 4)" in tasks["haven_temporal"].doc_to_text(doc)
    text = tasks["haven_temporal_text"].doc_to_text(doc)
    assert f"Shot 1: What {doc['units'][0] - 1} does.\nShot 2: " in text and text.endswith("exactly once.")
    assert tasks["haven_temporal_text"].doc_to_messages(doc) == [{"role": "user", "content": [{"type": "text", "text": text}]}]
    assert "has exactly 2 element(s). Example of the form, for 2 frame(s): [1, 5]" in tasks["haven_v2v"].doc_to_text(next(iter(tasks["haven_v2v"].test_docs())))
    assert "Summary 3: " in tasks["haven_grounding_text"].doc_to_text(next(iter(tasks["haven_grounding"].test_docs())))


@pytest.mark.parametrize(
    ("kind", "reply", "scores"),
    [
        ("temporal", "Shot 3 > Shot 1 > Shot 2", (1.0, 1.0)),
        ("temporal", "<think>Shot 1 > Shot 2 > Shot 3</think>I think: **Shot 2 > Shot 1 > Shot 3**", (-1.0, -1.0)),
        ("temporal", "Shot 3", (0.0, 0.0)),
        ("temporal", "", (0.0, 0.0)),
        *(("temporal", reply, (1.0, 1.0)) for reply in ("Shot 3 \u2192 Shot 1 -> Shot 2", '["Shot 3", "Shot 1", "Shot 2"]', "3, 1, 2", "Shot #3 > Shot #1 (a man) > Shot #2", "1. Shot 3\n2. Shot 1\n3. Shot 2")),
        *(("temporal", reply, (1.0, 1.0)) for reply in ("Shot 3 > Shot 1 > Shot 2 (3 > 1: he is older)", "Shuffled: Shot 1 > Shot 2 > Shot 3. In time: Shot 3 > Shot 1 > Shot 2", "From last to first: Shot 2 > Shot 1 > Shot 3")),
        *(("temporal", reply, (0.0, 0.0)) for reply in ("Shot 3 > Shot 1, Shot 2", "It is not Shot 3 > Shot 1 > Shot 2.", "3 > 1 is true", "Shot 3 > Shot 1 > Shot 2\nShot 1 > Shot 2 > Shot 3", "NaN > NaN")),
        ("grounding", "Summary 1: Clip 1, Clip 2\nSummary 2: Clip 3", (1.0, 1.0, 1.0)),
        ("grounding", "Summary 1: Clip 1", (1 / 3, 1 / 4, 1 / 2)),
        *(("grounding", reply, (1.0, 1.0, 1.0)) for reply in ("1. **Summary 1:** Clips 1-2\n2. **Summary 2:** Clip 3.", "Summary 1: Clip 1, 2; Summary 2: 3", '{"Summary 1": ["Clip 1", "Clip 2"], "Summary 2": ["Clip 3"]}')),
        *(("grounding", reply, (1.0, 1.0, 1.0)) for reply in ("Summary 1 (10 people): Clip 1 (00:01-00:05), Clip 2\nSummary 2: at 0:07 (Clip 3)", "Summary 1:\n- Clip 1\n- Clip 2\nSummary 2: Clip 3, Clip 3")),
        *(("grounding", reply, (1 / 2, 1 / 2, 1 / 2)) for reply in ("Summary 1: not Clip 1\nSummary 2: Clip 3", "Summary 1: Clip 2-1\nSummary 2: Clip 3", "Summary 1: Clip NaN\nSummary 2: Clip 3", "Summary 1: Clip 1\nSummary 1: Clip 2\nSummary 2: Clip 3")),
        ("grounding", "No idea.", (0.0, 0.0, 0.0)),
        ("v2v", "[3, 4]", (1.0, 1.0, 1.0)),
        ("v2v", "Frames 3 and 9, and 4", (0.5, 0.5, 0.5)),
        *(("v2v", reply, (1.0, 1.0, 1.0)) for reply in ("K = 2: [3, 4]", "[3, 4, 3, 4, 9]", '["3", "4"]', "[999, 3, 4]", "[03, 04]", "[3, 4,]")),
        *(("v2v", reply, (0.0, 0.0, 0.0)) for reply in ("none", "[]", "[NaN]", "[10000000000]")),
    ],
)
def test_scores(kind, reply, scores):
    doc = {"id": "a/1", "source": "a", "kind": kind, "units": [2, 3, 1], "sentence_shots": [[1, 2], [3]], "sentences": ["One.", "Two."], "picks": [*range(10)], "key_frames": [3, 4]}
    records = utils.haven_process_results(doc, [reply])
    assert tuple(record["score"] for name, record in records.items() if name != "haven_failed") == pytest.approx(scores)
    assert utils.haven_count_failed([records["haven_failed"]]) == 0
    lost = utils.haven_process_results(doc, ["[LMMS_EVAL_REQUEST_FAILED] timeout"])
    assert [*lost] == ["haven_failed"] and lost["haven_failed"]["failed"]
