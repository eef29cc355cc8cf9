"""What a model is given where the media's tests do not look, what a reply is worth, and checks."""

from __future__ import annotations

import functools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lmms_eval_tasks import context, settings
from lmms_eval_tasks.errors import DataError, MediaError, PromptError
from lmms_eval_tasks.host import task_functions
from lmms_eval_tasks.maverix import judge, tasks
from lmms_eval_tasks.maverix.labels import MODES
from lmms_eval_tasks.maverix.tasks import BENCHMARK
from lmms_eval_tasks.models import model_capabilities
from lmms_eval_tasks.runs import prepare
from lmms_eval_tasks.runs.messages import messages_of
from lmms_eval_tasks.utils.saved_runs import CARRIER
from tests.checks import own_prompts, refused, table
from tests.maverix import runs
from tests.maverix.entries import CASES

FAILED = "[LMMS_EVAL_REQUEST_FAILED after 3 retries] timeout"


# --- what a model is given ------------------------------------------------------------------------


@pytest.mark.usefixtures("sample")
def test_prompts_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Subtitles without their times as in the authors' code, one text for a dimension, errors."""
    own = functools.partial(own_prompts, tmp_path, monkeypatch, "maverix")
    doc = runs.docs("maverix_s")[0]
    timed = str(tasks.choice_prompt(doc)[-1].content).split("\n\n")[0].splitlines()[1:]
    own("task", subtitles=tasks.task_prompts().text["subtitles"].replace("{cues}", "{texts}"))
    bare = str(tasks.choice_prompt(doc)[-1].content).split("\n\n")[0].splitlines()[1:]
    assert bare == [line.partition("] ")[2] for line in timed]
    assert all(bare)
    text = "{question} | {reference} | {candidate}"
    own("judge", user_detail=text)
    templates = {name: one.template for name, one in judge.criteria().items()}
    assert templates.pop("detail") == text
    assert templates.pop("consistency") == judge.prompt().text["user_consistency"]
    assert {*templates.values()} == {judge.prompt().text["user"]}
    for part, wrong, says in (
        ("user_details", text, "unknown part 'user_details'; known: "),
        ("user", "{question} {candidate}", "{reference}"),
    ):
        own("judge", **{part: wrong})
        with pytest.raises(PromptError, match=f"judge.yml.*{says}"):
            prepare.check_tasks(["maverix_s_oe"])


@pytest.mark.usefixtures("sample")
def test_no_sound_is_an_error_that_names_the_video(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = SimpleNamespace(video="x.mp4", video_with_sound=None, sound=None)
    monkeypatch.setattr(tasks, "cut", lambda *_: silent)
    for mode, given in (
        ("a", task_functions.doc_to_visual),
        ("av", task_functions.doc_to_messages),
    ):
        with pytest.raises(MediaError, match=rf"lights.*no audio stream, and {mode} requires"):
            given(runs.docs(f"maverix_{mode}")[0])


@pytest.mark.usefixtures("sample")
class TestReplies:
    """What a reply is worth where no judge is asked; the judge's part is in test_judge.py."""

    def test_every_status(self) -> None:
        doc = runs.docs()[0]
        for reply, status, words in CASES["replies"]:
            text = reply.format(right=doc["answer"], wrong=runs.wrong(doc))
            made = task_functions.process_results(doc, [text])
            item = made[CARRIER]
            assert (item["status"], item["words"], item["reply"]) == (status, words, text)
            assert item["right"] == made["acc"]["score"] == int("{right}" in reply)
            assert (item["letter"] is None) is (status != "ok")

    @table(
        "reply, letter",
        [
            ("C", "C"),
            ("The best answer is D.", "D"),
            ("The answer: (E)", "E"),
            ("Best option: b", ""),
            ("Based on the video, C", "B"),
            ("Answer: C", "A"),
            ("I think that it must be the second one of all these options, sir", ""),
            ("", ""),
            (FAILED, ""),
        ],
    )
    def test_the_authors_letter(self, reply: str, letter: str) -> None:
        (item,) = runs.score(runs.docs()[:1], lambda _: reply)
        assert item["letter_authors"] == letter

    def test_what_the_model_hears_is_told_in_every_mode(self) -> None:
        """Of modes without sound too: S stands for A in Table 3 if the model has none."""
        with context.begun(context.RunModel("openai", "simple")):
            items = {m: runs.score(runs.docs(f"maverix_{m}")[:1], runs.right)[0] for m in MODES}
        hears = {"a": "delivered", "av": "not delivered"}
        assert [item["hears"] for item in items.values()] == [hears] * 5
        assert {m: item["sound"] for m, item in items.items()} == {
            **dict.fromkeys(MODES, ""),
            **hears,
        }

    def test_an_answer_outlives_its_files(self) -> None:
        """It was paid for: it counts although the subtitle file is gone by now."""
        doc = {**runs.docs()[0], "subtitle_path": "/gone/x.srt"}
        item = task_functions.process_results(doc, [doc["answer"]])[CARRIER]
        assert (item["right"], item["media"]) == (1, None)


@pytest.mark.usefixtures("sample")
def test_what_a_class_does_with_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    """One hears the track alone; one cannot take a wav alone and ignores it beside a video."""
    both = SimpleNamespace(video="muted.mp4", video_with_sound="both.mp4", sound="a.wav")
    monkeypatch.setattr(tasks, "cut", lambda *_: both)
    doc, forms = runs.docs("maverix_av")[0], {}
    for name in ("aero_realtime_vllm", "openai"):
        with context.begun(context.RunModel(name, "chat")):
            (message,) = messages_of(tasks.choice_prompt(doc))
            assert (
                model_capabilities.sound_state(context.current().model, with_picture=True)[0]
                == "delivered"
            )
        forms[name] = [part.get("url", "") for part in message["content"]]
    assert forms == {"aero_realtime_vllm": ["both.mp4", ""], "openai": ["muted.mp4", "a.wav", ""]}
    with context.begun(context.RunModel("neo_ov", "chat")):
        every = [[f"maverix_{mode}" for mode in MODES]]
        message = refused(
            DataError, "^neo_ov .chat. cannot take the sound: ", prepare.check_tasks, *every
        )
        assert message.endswith("Leave maverix_a, maverix_av out of --tasks")
        prepare.check_tasks(["maverix_s", "maverix_vs"])
    with context.begun(context.RunModel("aero_realtime_vllm", "chat")):
        asked = ("maverix_a", "maverix_av", "maverix_long_a_oe")
        refused(
            DataError,
            r"Leave maverix_a, maverix_long_a_oe out of --tasks$",
            prepare.check_tasks,
            asked,
        )
        prepare.check_tasks(["maverix_av"])


# --- the cuts -----------------------------------------------------------------------------------


def test_what_cannot_be_cut(root: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that would break stops before its model is loaded, or goes on without the item."""
    BENCHMARK.prepare(source, root, link=True)
    windows = [(doc["video_path"], doc["start"], doc["end"]) for doc in runs.docs()]
    bad, broken = "lights-1-q01", {windows[0]}

    def segment(*window: Any) -> Any:
        if window in broken:
            raise MediaError(f"{window[0]}: is damaged after {window[1]} s")
        return SimpleNamespace(video="x.mp4", sound="x.wav", video_with_sound="y.mp4")

    def check(*own: str) -> None:
        prepare.check_tasks(own)
        prepare.make_media(own, None)

    monkeypatch.setattr(tasks, "cut", segment)
    says = rf"1 of 20 items cannot be run:\n  {bad}: .*is damaged .*\n.*--allow-bad-items"
    with pytest.raises(DataError, match=says):
        check("maverix_s", "maverix_v")
    check("maverix_s")
    monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
    counts = {
        "maverix_s": 20,
        "maverix_v": 19,
        "maverix_a_oe": 38,
        "maverix_av_circular": 152,
        "maverix_long_v": 20,
    }
    check(*counts)
    asked = {name: prepare.usable_docs(BENCHMARK, name) for name in counts}
    assert {name: len(docs) for name, docs in asked.items()} == counts
    assert bad not in {doc["question_id"] for doc in asked["maverix_a_oe"]}
    broken |= set(windows)
    for task in ("maverix_v", "maverix_v_oe"):
        with pytest.raises(DataError, match=f"none of the segments of {task} can be cut:\n"):
            check("maverix_s", task)
