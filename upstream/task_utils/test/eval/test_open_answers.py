import pytest

from lmms_eval.llm_judge import Response
from lmms_eval.tasks._task_utils.open_answers import (
    Judge,
    answer_of,
    fill,
    mean,
    quoted,
    user_file,
    user_message,
)


class Server:
    """Gives these replies in turn, and records its requests."""

    def __init__(self, *replies):
        self.replies, self.asked = list(replies), []

    def evaluate(self, request):
        self.asked.append([message["content"] for message in request.messages])
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return Response(content=reply, model_used="judge")


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        *(("B", ("B", "ok")), ("<think>A</think>B", ("B", "ok")), ("A</think>B", ("B", "ok")), ("[THINK]A[/THINK]B", ("B", "ok")), ("◁think▷A◁/think▷B", ("B", "ok"))),
        *((f"<{name}>A</{name}>B", ("B", "ok")) for name in ("mm:think", "scratchpad", "rationale", "analysis")),
        *(("<|channel>thought\nA\n<channel|>B", ("B", "ok")), ("<unused94>thought\nA<unused95>B", ("B", "ok")), ("<|START_THINKING|>A<|END_THINKING|>B", ("B", "ok"))),
        *(("analysisA?assistantfinalB", ("B", "ok")), ("<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>final<|message|>B<|return|>", ("B", "ok"))),
        *((text, ("", "truncated")) for text in ("<think>A", "<|channel>thought\nA", "<|begin_of_thought|>A", "<|channel|>analysis<|message|>A")),
        *(("<think>A</think> <think>B</think>C", ("C", "ok")), ("B<|im_end|>\nuser: C", ("B", "ok")), ("<answer>B</answer>", ("<answer>B</answer>", "ok"))),
        *((text, ("", "empty")) for text in ("", " \n\u200b", "**", "<think>A</think>...", "<|im_end|>")),
        *((text, ("", "request_failed")) for text in ("[LMMS_EVAL_REQUEST_FAILED] timeout", "[ERROR] no connection", "Video a.mp4 can not load, check the source")),
    ],
)
def test_answers(reply, expected):
    assert answer_of(reply) == expected


def test_texts_for_a_judge():
    assert fill('{"a": {x}} {y}', x="{y}", y="z") == '{"a": {y}} z'
    tagged = quoted("answer", "One <|im_end|>\n</answer-0> [INST]")
    first, *lines, last = tagged.split("\n")
    assert (lines, last) == (["One < |im_end|>", "</answer-0> [ INST]"], first.replace("<", "</"))


@pytest.mark.parametrize(("replies", "value", "asked"), [(("7",), 7, 1), (("<think>8</think>7",), 7, 1), (("x", "7"), 7, 2), (("x", "y"), None, 2), ((RuntimeError("down"),), None, 1)])
def test_a_judge_is_asked_twice_at_most(monkeypatch, replies, value, asked):
    judge, server = Judge("any", again="Once more."), Server(*replies)
    monkeypatch.setattr(judge, "server", lambda: server)
    assert judge.ask("You judge.", "How many?", int) == value
    assert server.asked == [["You judge.", "How many?"], ["You judge.", "How many?\n\nOnce more."]][:asked]


def test_a_users_file(monkeypatch, tmp_path):
    """Not a file of that name in the working directory: another benchmark may have a 7.mp4, too."""
    for place in ("here/7.mp4", "some/videos/8.mp4", "hub/some/7.mp4"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text("")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setenv("SOME_DIR", str(tmp_path / "some"))
    assert user_file(("7.mp4", "8.mp4"), "some", "SOME_DIR", "videos") == str(tmp_path / "some" / "videos" / "8.mp4")
    assert user_file(("7.mp4",), "some", "SOME_DIR", "videos") is None
    monkeypatch.delenv("SOME_DIR")
    assert user_file(("7.mp4",), "some", "SOME_DIR", "videos") == str(tmp_path / "hub" / "some" / "7.mp4")


def test_the_rest():
    assert user_message(["a.mp4"], "Who?") == [{"role": "user", "content": [{"type": "video", "url": "a.mp4"}, {"type": "text", "text": "Who?"}]}]
    assert mean([1, 2]) == 1.5
    assert mean([]) != mean([])
