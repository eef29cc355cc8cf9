"""Recorded replies: found by what was asked, read as if a model had just sent them."""

import json

from injections import Rating

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges import Criterion, JudgeConfig
from lmms_eval_tasks.judges.providers.replay import ReplayJudge
from tests.checks import refused, table


def criterion(name="rating", **changes):
    template = "{question} {candidate}"
    return Criterion(name, "s", template, Rating, lambda r: r.score / 5, "0", **changes)


FIELDS = {"question": "q", "candidate": "a"}
GOOD = "{'reason': 'It's fine', 'score': 4}"


def line(reply=GOOD, fields=FIELDS, **more):
    return {"criterion": "rating", "fields": fields, "reply": reply, **more}


def judge(tmp_path, *lines):
    path = tmp_path / "recorded.jsonl"
    path.write_text("\n".join(json.dumps(one) for one in lines) + "\n\n", encoding="utf-8")
    return ReplayJudge(JudgeConfig("replay", str(path)))


def test_a_recorded_reply_is_read_and_what_is_not_recorded_is_skipped(tmp_path):
    replayed = judge(tmp_path, line(model="gpt-3.5-turbo"), line(model="gpt-3.5-turbo"))
    verdict = replayed.verdict(criterion(), FIELDS)
    assert (verdict.status, verdict.score, verdict.reason) == ("ok", 0.8, "It's fine")
    assert (verdict.raw, verdict.model) == (GOOD, "gpt-3.5-turbo")
    assert verdict.judge == replayed.config.label
    assert verdict.judge.startswith("replay:")
    for asked, fields in (
        (criterion(), FIELDS | {"candidate": "b"}),
        (criterion(), FIELDS | {"model": "m"}),
        (criterion(name="other"), FIELDS),
    ):
        verdict = replayed.verdict(asked, fields)
        assert (verdict.status, verdict.score, verdict.raw) == ("skipped", None, "")
        assert verdict.reason == "no recorded reply"


@table("reply, finish, status")
def test_a_recording_ends_as_its_endpoint_says(reply, finish, status, tmp_path):
    verdict = judge(tmp_path, line(reply, finish=finish)).verdict(criterion(), FIELDS)
    assert (verdict.status, verdict.raw) == (status, reply or "")


def test_each_sample_has_its_own_recording(tmp_path):
    second = line(GOOD.replace("4", "2"), sample=1)
    replayed = judge(tmp_path, second, line())
    verdicts = replayed.verdicts(criterion(), FIELDS, 3)
    assert [verdict.score for verdict in verdicts] == [0.8, 0.4, None]
    assert verdicts[2].status == "skipped"


def test_fields_are_compared_as_the_texts_of_the_prompt_and_images_are_not(tmp_path):
    recorded = {"candidate": ["a", 2], "question": 1.5, "answer": None}
    replayed = judge(tmp_path, line(fields=recorded))
    fields = {"answer": "None", "question": "1.5", "candidate": ("a", "2")}
    assert replayed.verdict(criterion(), fields).status == "ok"
    assert replayed.verdict(criterion(), fields | {"candidate": "['a', '2']"}).status == "skipped"
    asked = criterion(images=("frames",))
    assert replayed.verdict(asked, fields | {"frames": [object()]}).status == "ok"


@table("lines, words")
def test_a_bad_line_is_named(tmp_path, lines, words):
    message = refused(TasksError, words, judge, tmp_path, *lines)
    assert message.startswith(str(tmp_path / "recorded.jsonl"))


def test_a_file_without_recordings_is_named(tmp_path):
    path = tmp_path / "recorded.jsonl"
    for content in (None, b"\n \n", b"\xff\xfe{}", b"{"):
        if content is not None:
            path.write_bytes(content)
        refused(TasksError, str(path), ReplayJudge, JudgeConfig("replay", str(path)))
