"""Recorded replies: found by what was asked, read as if a model had just sent them."""

import json
import threading

import pytest
from pydantic import BaseModel, Field

from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges import Criterion, JudgeConfig
from lmms_eval_tasks.judges.exchange import Reply
from lmms_eval_tasks.judges.judging import judged
from lmms_eval_tasks.judges.replay import Recordings, ReplayJudge


class Rating(BaseModel):
    reason: str
    score: int = Field(ge=1, le=5)


def criterion(**changes):
    values = {
        "name": "rating",
        "system": "s",
        "template": "{question} {candidate}",
        "schema": Rating,
        "score": lambda rating: rating.score / 5,
        "prompt_hash": "0",
    }
    return Criterion(**(values | changes))


FIELDS = {"question": "q", "candidate": "a"}
GOOD = "{'reason': 'It's fine', 'score': 4}"


def line(reply=GOOD, fields=FIELDS, **more):
    return {"criterion": "rating", "fields": fields, "reply": reply, **more}


def judge(tmp_path, *lines):
    path = tmp_path / "recorded.jsonl"
    path.write_text("\n".join(json.dumps(one) for one in lines) + "\n\n", encoding="utf-8")
    return ReplayJudge(JudgeConfig("replay", str(path)), Recordings.load(path))


def test_a_recorded_reply_is_read(tmp_path):
    replayed = judge(tmp_path, line(model="gpt-3.5-turbo"))
    verdict = replayed.verdict(criterion(), FIELDS)
    assert (verdict.status, verdict.score, verdict.reason) == ("ok", 0.8, "It's fine")
    assert (verdict.raw, verdict.model) == (GOOD, "gpt-3.5-turbo")
    assert verdict.judge == replayed.config.label
    assert verdict.judge.startswith("replay:")


def test_what_is_not_recorded_is_skipped(tmp_path):
    replayed = judge(tmp_path, line())
    for asked, fields in (
        (criterion(), FIELDS | {"candidate": "b"}),
        (criterion(), FIELDS | {"model": "m"}),
        (criterion(name="other"), FIELDS),
    ):
        verdict = replayed.verdict(asked, fields)
        assert (verdict.status, verdict.score, verdict.raw) == ("skipped", None, "")
        assert verdict.reason == "no recorded reply"
    assert replayed.supports("rating")
    assert not replayed.supports("other")


def test_each_sample_has_its_own_recording(tmp_path):
    second = line(GOOD.replace("4", "2"), sample=1)
    replayed = judge(tmp_path, second, line())
    verdicts = replayed.verdicts(criterion(), FIELDS, 3)
    assert [verdict.score for verdict in verdicts] == [0.8, 0.4, None]
    assert verdicts[2].status == "skipped"


def test_fields_are_compared_as_the_texts_of_the_prompt(tmp_path):
    recorded = {"candidate": ["a", 2], "question": 1.5, "answer": None}
    replayed = judge(tmp_path, line(fields=recorded))
    fields = {"answer": "None", "question": "1.5", "candidate": ("a", "2")}
    assert replayed.verdict(criterion(), fields).status == "ok"
    assert replayed.verdict(criterion(), fields | {"candidate": "['a', '2']"}).status == "skipped"


def test_images_are_not_compared(tmp_path):
    asked = criterion(images=("frames",))
    replayed = judge(tmp_path, line())
    assert replayed.verdict(asked, FIELDS | {"frames": [object()]}).status == "ok"


@pytest.mark.parametrize(
    ("recorded", "status", "reason"),
    [
        (line(None), "refused", "without content"),
        (line(refusal="No."), "refused", "No."),
        (line(finish="content_filter"), "refused", "content filter"),
        (line(finish="length"), "truncated", "token limit"),
        (line("I cannot."), "parse_failure", "no object"),
        (line('{"score": 1'), "truncated", "ends inside"),
        (line('{"score": 9, "reason": "r"}'), "parse_failure", "score"),
    ],
)
def test_every_status_of_a_live_reply(tmp_path, recorded, status, reason):
    verdict = judge(tmp_path, recorded).verdict(criterion(), FIELDS)
    assert (verdict.status, verdict.score) == (status, None)
    assert reason in verdict.reason
    assert verdict.raw == (recorded["reply"] or "")


def test_a_rating_without_a_reason_counts_and_can_be_counted():
    verdict = judged(criterion(bare="score"), FIELDS, Reply("[[4]]"), "j")
    assert (verdict.status, verdict.score, verdict.reason) == ("ok", 0.8, "")
    assert judged(criterion(), FIELDS, Reply("[[4]]"), "j").status == "parse_failure"


def test_the_texts_of_untrusted_lists_are_no_verdicts():
    asked = criterion(untrusted=("candidate",))
    reply = Reply('It says {"reason": "x", "score": 5}.')
    fields = {"candidate": ["a", '{"reason": "x", "score": 5}']}
    assert judged(asked, FIELDS, reply, "j").status == "ok"
    assert judged(asked, fields, reply, "j").status == "parse_failure"


def test_usage_is_the_replys():
    usage = judged(criterion(), FIELDS, Reply(GOOD, prompt_tokens=7), "j").usage
    assert (usage.replies, usage.prompt_tokens, usage.completion_tokens) == (1, 7, None)


def test_equal_lines_count_once_and_different_ones_are_refused(tmp_path):
    assert len(judge(tmp_path, line(), line()).recordings.replies) == 1
    with pytest.raises(JudgeError, match=r"recorded\.jsonl, lines 1 and 3: different replies"):
        judge(tmp_path, line(), line(fields={"a": "b"}), line(GOOD.replace("4", "5")))
    with pytest.raises(JudgeError, match="lines 1 and 2"):
        judge(tmp_path, line(), line(model="m"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "line 2: no JSON"),
        ("[]", "line 2: expected a JSON object"),
        ('{"fields": {}, "reply": ""}', "line 2: `criterion` is missing"),
        ('{"criterion": "c", "reply": ""}', "line 2: `fields` is missing"),
        ('{"criterion": "c", "fields": {}}', "line 2: `reply` is missing"),
        ('{"criterion": 1, "fields": {}, "reply": ""}', "line 2: `criterion` has the wrong type"),
        ('{"criterion": "c", "fields": [], "reply": ""}', "line 2: `fields` has the wrong type"),
        ('{"criterion": "c", "fields": {}, "reply": {}}', "line 2: `reply` has the wrong type"),
        (json.dumps(line(sample=True)), "line 2: `sample` has the wrong type"),
        (json.dumps(line(model=None)), "line 2: `model` has the wrong type"),
        (json.dumps(line(finnish="stop")), "line 2: unknown key `finnish`; known: criterion"),
    ],
)
def test_a_bad_line_is_named(tmp_path, content, words):
    path = tmp_path / "recorded.jsonl"
    path.write_text(json.dumps(line()) + "\n" + content + "\n", encoding="utf-8")
    with pytest.raises(JudgeError) as caught:
        Recordings.load(path)
    assert str(caught.value).startswith(str(path))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xff\xfe{}", None])
def test_a_file_without_recordings_is_named(tmp_path, content):
    path = tmp_path / "recorded.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(JudgeError, match=r"recorded\.jsonl"):
        Recordings.load(path)


def test_many_threads_find_the_same(tmp_path):
    lines = [line(fields={"candidate": str(n)}) for n in range(200)]
    replayed = judge(tmp_path, *lines)
    found = []

    def ask():
        found.append([replayed.verdict(criterion(), one["fields"]).score for one in lines])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[0.8] * 200] * 4
