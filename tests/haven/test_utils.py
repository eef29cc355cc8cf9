"""HAVEN as the host sees it: requests for both kinds of models, and items that lose nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from lmms_eval_tasks.haven import inputs, items, pictures, scores, scoring, utils
from lmms_eval_tasks.haven.labels import TASKS
from tests.haven.docs import doc
from tests.haven.scored import FIRST, no_encoder, values

NAMES = list(TASKS)
PICTURED = [name for name in NAMES if not TASKS[name].text]


@pytest.fixture(autouse=True)
def by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures are the frames' numbers as texts; nobody judges."""
    monkeypatch.setenv("LMMS_EVAL_TASKS_JUDGE", "none")
    no_encoder(monkeypatch)
    monkeypatch.setattr(pictures, "pictures", lambda doc, numbers: [f"<{n}>" for n in numbers])


def texts(message: list[dict[str, Any]]) -> list[str]:
    (one,) = message
    assert one["role"] == "user"
    return [part["text"] for part in one["content"] if part["type"] == "text"]


class TestRequests:
    @pytest.mark.parametrize("name", NAMES)
    def test_chat(self, name: str) -> None:
        (message,) = utils.doc_to_messages(doc(name))
        assert message == {"role": "user", "content": inputs.content(doc(name))}
        kinds = {part["type"] for part in message["content"]}
        assert kinds == ({"text"} if TASKS[name].text else {"text", "image"})

    @pytest.mark.parametrize("name", PICTURED)
    def test_a_placeholder_for_each_picture(self, name: str) -> None:
        given = doc(name)
        shown = utils.doc_to_visual(given)
        assert len(shown) == items.n_images(given) > 0
        assert utils.doc_to_text(given).count("<image>") == len(shown)
        numbered = utils.doc_to_text(given, {"placeholder": "<image {n}>"})
        assert [f"<image {n}>" in numbered for n in (1, len(shown))] == [True, True]
        assert f"<image {len(shown) + 1}>" not in numbered
        images = [p["url"] for p in inputs.content(given) if p["type"] == "image"]
        assert images == shown

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize(
        "given",
        [{}, {"pre_prompt": "A"}, {"post_prompt": "Z"}, {"pre_prompt": "A", "post_prompt": "Z"}],
    )
    def test_what_the_user_adds(self, name: str, given: Mapping[str, str]) -> None:
        before, after = given.get("pre_prompt", ""), given.get("post_prompt", "")
        plain = utils.doc_to_text(doc(name))
        assert utils.doc_to_text(doc(name), given) == f"{before}{plain}{after}"
        own = texts(utils.doc_to_messages(doc(name)))
        added = [*filter(None, [before]), *own, *filter(None, [after])]
        message = utils.doc_to_messages(doc(name), given)
        assert texts(message) == added
        if after:
            assert message[0]["content"][-1] == {"type": "text", "text": after}

    @pytest.mark.parametrize("name", NAMES)
    def test_the_truth_has_no_say(self, name: str) -> None:
        """Keyframes, importance, alignments, ids and sources change no request."""
        other = {
            "keyframes": [3],
            "importance": [0.9] * 4,
            "summary_shots": [[4], [4], [4]],
            "document_shots": [[1]] * 4,
            "id": "ovp/video_99",
            "source": "ovp",
            "video": "video_99",
            "picks": [7 * n for n in range(12)],
            "data": "x",
        }
        if TASKS[name].kind != "grounding":
            other["summary"] = ["Something else."] * 3
        assert utils.doc_to_messages(doc(name, **other)) == utils.doc_to_messages(doc(name))
        assert utils.doc_to_text(doc(name, **other)) == utils.doc_to_text(doc(name))


class TestItems:
    @pytest.mark.parametrize("name", NAMES)
    def test_identity(self, name: str) -> None:
        found = utils.identity(doc(name))
        assert json.loads(json.dumps(found)) == found
        assert (found["id"], found["video"], found["n_frames"]) == ("tvsum/video_7",) * 2 + (12,)
        assert found["asked"] == doc(name)["sentences"]
        assert found["media"]["images"] == items.n_images(doc(name))
        # What a model was shown and needs no one to score is in the data alone.
        assert not {"descriptions", "shot_texts", "picks", "video_path", "sentences"} & found.keys()

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("results", [[], [None], [["a"]], [3], [""]])
    def test_no_text_is_an_empty_reply(self, name: str, results: list[Any]) -> None:
        found = utils.process_results(doc(name), results)
        assert (found[FIRST]["status"], found[FIRST]["reply"]) == ("empty", "")
        assert found.keys() == {
            metric for metric in scores.SCORES[name] if scores.of_item(metric, found[FIRST])
        }

    @pytest.mark.parametrize("name", NAMES)
    def test_an_exception_loses_nothing(
        self, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        def broken(*_: Any) -> Any:
            raise RuntimeError("a mistake of ours")

        monkeypatch.setitem(scoring._READERS, TASKS[name].kind, broken)
        found = utils.process_results(doc(name), ["[1, 7]"])
        assert (found[FIRST]["status"], found[FIRST]["reply"]) == ("error", "[1, 7]")
        said = capsys.readouterr().err
        assert "scoring tvsum/video_7 failed; kept as status error" in said
        assert "a mistake of ours" in said
        numbers = values(name, [found])
        assert numbers["failed"] == 1
        assert "failed and is reported" not in capsys.readouterr().err

    def test_cut_off_replies_of_every_length(self) -> None:
        """No prefix of a good reply raises or scores more than the whole."""
        reply = "SUMMARY:\n1. In short: thing ba.\nIMPORTANT FRAMES: [Frame 1, Frame 7]"
        whole = utils.process_results(doc("haven_v2vt"), [reply])
        assert whole["f1"]["value"] == 1
        for end in range(len(reply)):
            found = utils.process_results(doc("haven_v2vt"), [reply[:end]])
            assert found[FIRST]["status"] != "error"
            assert found["f1"]["value"] <= whole["f1"]["value"]
