"""What tasks say together about a video: CLIPScore joint and separate, consistency, by hand."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from lmms_eval_tasks.haven import joined, scores, text_values
from lmms_eval_tasks.haven.labels import TASKS
from lmms_eval_tasks.haven.text_values import Asked
from lmms_eval_tasks.utils.aggregate import Carrier
from tests.haven.docs import doc
from tests.haven.scored import FAILED, FIRST, Made, broken, made, values

CLIP = ("joined_clip_joint", "joined_clip_separate", "joined_clip_gain", "joined_clip_videos")
RECORD = doc("haven_v2v")["record"]
JOINT = "SUMMARY:\n1. Joint {n}.\nIMPORTANT FRAMES: [Frame {n}, Frame 12]"


@pytest.fixture(autouse=True)
def nobody_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMMS_EVAL_TASKS_JUDGE", "none")


def video(number: int) -> dict[str, str]:
    return {"id": f"tvsum/video_{number}"}


def carriers(task: str, some: Sequence[Made]) -> dict[str, Carrier]:
    """What a task hands to its group, by metric."""
    names = joined.metrics(TASKS[task])
    return {name: scores.SCORES[task][name]([one[name] for one in some]) for name in names}


def of_group(tasks: Mapping[str, Sequence[Made]]) -> dict[str, Any]:
    """The group's numbers, as the host asks for them: the tasks' values of one name."""
    by_name: dict[str, list[Any]] = {}
    for task, some in tasks.items():
        for name, one in carriers(task, some).items():
            by_name.setdefault(name, []).append(one)
    return {name: joined.join(own, [1] * len(own), False) for name, own in by_name.items()}


class Clip:
    """Stands for text_values.clip_values: known values of a video's sentences and frames."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, known: Mapping[Any, float | None]) -> None:
        self.known = known
        self.asked: set[Any] = set()
        self.records: set[str] = set()
        monkeypatch.setattr(text_values, "clip_values", self)

    def __call__(self, asked: Sequence[Asked]) -> list[float | None]:
        keys = [(one.video[-1], " ".join(one.sentences), *one.frames) for one in asked]
        self.asked |= set(keys)
        self.records |= {one.record for one in asked}
        return [self.known[key] for key in keys]


def three(suffix: str = "") -> dict[str, list[Made]]:
    """V2T, V2V and V2VT of videos 1 to 3; the first two tasks of 4 and 5 too."""
    numbers = (1, 2, 3)
    alone = "SUMMARY:\n1. {}" if suffix else "{}"
    return {
        f"haven_v2t{suffix}": [
            made(f"haven_v2t{suffix}", alone.format(f"Alone {n}."), **video(n)) for n in range(1, 6)
        ],
        f"haven_v2v{suffix}": [
            made(f"haven_v2v{suffix}", f"[{n}]", **video(n)) for n in range(1, 6)
        ],
        f"haven_v2vt{suffix}": [
            made(f"haven_v2vt{suffix}", JOINT.format(n=n), **video(n)) for n in numbers
        ],
    }


KNOWN: dict[Any, float | None] = {
    **{("1", "Joint 1.", 1, 12): 0.9, ("2", "Joint 2.", 2, 12): 0.5, ("3", "Joint 3.", 3, 12): 0.7},
    **{("1", "Alone 1.", 1): 0.8, ("2", "Alone 2.", 2): 0.6, ("3", "Alone 3.", 3): 0.2},
}


class TestClip:
    """Joint minus V2T's text with V2V's frames, over the videos that have all three."""

    @pytest.mark.parametrize("suffix", ["", "_text"])
    def test_by_hand(self, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
        clip = Clip(monkeypatch, KNOWN)
        found = of_group(three(suffix))
        assert found["joined_clip_joint"] == pytest.approx(0.7)
        assert found["joined_clip_separate"] == pytest.approx(1.6 / 3)
        assert found["joined_clip_gain"] == pytest.approx(0.5 / 3)
        assert found["joined_clip_videos"] == 3
        assert clip.asked == set(KNOWN)
        assert clip.records == {RECORD}

    @pytest.mark.parametrize(
        ("task", "reply"),
        [
            ("haven_v2t", ""),
            ("haven_v2t", FAILED),
            ("haven_v2v", "none of them"),
            ("haven_v2v", "[99]"),
            ("haven_v2vt", "SUMMARY:\n1. Joint 2."),
            ("haven_v2vt", "IMPORTANT FRAMES: [Frame 2, Frame 12]"),
        ],
    )
    def test_a_reply_is_missing(
        self, task: str, reply: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Clip(monkeypatch, KNOWN)
        some = three()
        some[task][1] = made(task, reply, **video(2))
        found = of_group(some)
        assert [found[name] for name in CLIP] == pytest.approx([0.8, 0.5, 0.3, 2])

    def test_scoring_broke(self, monkeypatch: pytest.MonkeyPatch) -> None:
        Clip(monkeypatch, KNOWN)
        some = three()
        for task, own in some.items():
            own[1] = broken(task, **video(2))
        assert [of_group(some)[name] for name in CLIP] == pytest.approx([0.8, 0.5, 0.3, 2])

    def test_a_value_is_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A picture that cannot be opened: the video is in neither mean."""
        Clip(monkeypatch, {**KNOWN, ("3", "Joint 3.", 3, 12): None})
        found = of_group(three())
        assert [found[name] for name in CLIP] == pytest.approx([0.7, 0.7, 0.0, 2])
        Clip(monkeypatch, {**KNOWN, ("3", "Alone 3.", 3): None})
        assert [of_group(three())[name] for name in CLIP] == pytest.approx([0.7, 0.7, 0.0, 2])
        Clip(monkeypatch, dict.fromkeys(KNOWN))
        assert [of_group(three())[name] for name in CLIP] == [None, None, None, 0]

    @pytest.mark.parametrize("absent", ["haven_v2t", "haven_v2v", "haven_v2vt"])
    def test_a_task_is_absent(self, absent: str, monkeypatch: pytest.MonkeyPatch) -> None:
        clip = Clip(monkeypatch, KNOWN)
        some = three()
        del some[absent]
        found = of_group(some)
        assert {found[name] for name in CLIP} == {None}
        assert clip.asked == set()

    def test_without_a_model(self) -> None:
        assert [of_group(three())[name] for name in CLIP] == [None, None, None, 0]


def consistent(
    keyframes: Sequence[tuple[int, str]],
    other: str,
    replies: Sequence[tuple[int, str]],
    **more: Any,
) -> list[Any]:
    kind = other.partition("_")[0]
    suffix = "_text" if other.endswith("_text") else ""
    v2v = f"haven_v2v{suffix}"
    found = of_group(
        {
            f"haven_{other}": [made(f"haven_{other}", r, **video(n), **more) for n, r in replies],
            v2v: [made(v2v, r, **video(n)) for n, r in keyframes],
        }
    )
    return [found[f"joined_{kind}{form}"] for form in ("", "_chance", "_videos")]


class TestConsistency:
    """Twelve frames in four shots of three: 1-3, 4-6, 7-9, 10-12."""

    @pytest.mark.parametrize("suffix", ["", "_text"])
    def test_saliency(self, suffix: str) -> None:
        """Upper half shots 4 and 2: of frames 5, 11, 1 two lie there, of 1, 2 none."""
        order = "Shot 4 > Shot 2 > Shot 1 > Shot 3"
        found = consistent(
            [(1, "[5, 11, 1]"), (2, "[1, 2]"), (3, "[1]")],
            f"saliency{suffix}",
            [(1, order), (2, order), (4, order)],
        )
        assert found == pytest.approx([1 / 3, 1 / 2, 2])

    def test_ranked_places_are_mapped_to_shots(self) -> None:
        """Shown are shots 4, 1 and 3: "Shot 2 > Shot 1 > Shot 3" is 1, 4, 3; 1 and 4 on top."""
        found = consistent(
            [(1, "[2, 11, 12, 8, 5]")],
            "saliency",
            [(1, "Shot 2 > Shot 1 > Shot 3")],
            units=[4, 1, 3],
        )
        # Frame 5 lies in shot 2, which was not shown.
        assert found == pytest.approx([3 / 4, 6 / 9, 1])

    @pytest.mark.parametrize("suffix", ["", "_text"])
    def test_grounding(self, suffix: str) -> None:
        """Clips 2 and 4, which are half of the frames; a clip that does not exist has none."""
        lines = "Summary 1: Clip 2\nSummary 2: Clip 2, Clip 4\nSummary 3: Clip 9"
        found = consistent([(1, "[4, 5, 12, 1]")], f"grounding{suffix}", [(1, lines)])
        assert found == pytest.approx([3 / 4, 1 / 2, 1])

    def test_all_clips_are_chance(self) -> None:
        lines = "\n".join(f"Summary {n}: Clip 1, Clip 2, Clip 3, Clip 4" for n in (1, 2, 3))
        assert consistent([(1, "[1]")], "grounding", [(1, lines)]) == [1.0, 1.0, 1]

    @pytest.mark.parametrize(
        ("keyframes", "order"),
        [("[99]", "Shot 4 > Shot 2 > Shot 1 > Shot 3"), ("[1]", "Shot 4 > Shot 2"), ("", "")],
    )
    def test_what_was_not_read_has_no_say(self, keyframes: str, order: str) -> None:
        assert consistent([(1, keyframes)], "saliency", [(1, order)]) == [None, None, 0]

    def test_no_clip_at_all(self) -> None:
        lines = "\n".join(f"Summary {n}: None" for n in (1, 2, 3))
        assert consistent([(1, "[1]")], "grounding", [(1, lines)]) == [None, None, 0]

    def test_a_task_with_the_document_is_not_joined(self) -> None:
        assert joined.metrics(TASKS["haven_saliency_doc"]) == {}
        assert joined.metrics(TASKS["haven_temporal"]) == {}

    def test_a_ranking_that_cannot_be_is_none(self, capsys: pytest.CaptureFixture[str]) -> None:
        known = {"a": {"frames": [1], "shots": [[1]]}}
        sides = [
            Carrier("v2v", known, "saliency"),
            Carrier("saliency", {"a": {"ranked": [1, 2]}}, "saliency"),
        ]
        assert joined.join(sides) is None
        assert "join failed and is reported as N/A" in capsys.readouterr().err


class TestCarriers:
    """nan for a task's own row; the payload survives what the host does with values."""

    def test_copies(self, monkeypatch: pytest.MonkeyPatch) -> None:
        Clip(monkeypatch, KNOWN)
        own = [carriers(task, some)["joined_clip_gain"] for task, some in three().items()]
        assert all(math.isnan(one) for one in own)
        for copied in (
            pickle.loads(pickle.dumps(own)),
            copy.deepcopy(own),
            [copy.copy(one) for one in own[::-1]],
        ):
            assert joined.join(copied) == pytest.approx(0.5 / 3)

    @pytest.mark.parametrize("given", [[], [0.5], [None, math.nan]])
    def test_other_values(self, given: list[Any]) -> None:
        assert joined.join(given) is None

    def test_every_task_hands_over_what_is_needed(self) -> None:
        for suffix in ("", "_text"):
            handed: dict[str, set[str]] = {}
            for kind in ("v2t", "v2v", "v2vt", "grounding", "saliency", "temporal"):
                for name in joined.metrics(TASKS[f"haven_{kind}{suffix}"]):
                    handed.setdefault(name, set()).add(kind)
            assert handed == {f"joined_{one}": set(needs) for one, needs in joined.NEEDS.items()}

    def test_payloads(self) -> None:
        """What each kind knows, and nothing of a reply that gave nothing."""
        one = made("haven_v2vt", JOINT.format(n=3))
        assert one["joined_clip_gain"]["payload"] == {
            "record": RECORD,
            "sentences": ["Joint 3."],
            "frames": [3, 12],
            "shots": [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]],
        }
        frames_alone = made("haven_v2vt", "[Frame 1]")["joined_clip_gain"]["payload"]
        assert frames_alone == {
            "record": RECORD,
            "frames": [1],
            "shots": [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]],
        }
        ranked = made("haven_saliency", "Shot 2 > Shot 1 > Shot 3 > Shot 4")
        assert ranked["joined_saliency"]["payload"] == {
            "record": RECORD,
            "ranked": [2, 1, 3, 4],
        }
        for task in ("haven_v2t", "haven_v2v", "haven_v2vt", "haven_saliency", "haven_grounding"):
            for empty in (made(task, ""), broken(task)):
                (payload,) = {
                    str(item["payload"]) for name, item in empty.items() if "joined" in name
                }
                assert payload == str({"record": RECORD})
                assert empty[FIRST]["status"] in ("empty", "error")


def test_a_task_alone_shows_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    found = values("haven_v2v", three()["haven_v2v"])
    own = {name: value for name, value in found.items() if "joined" in name}
    assert own.keys() >= {*CLIP, "joined_saliency", "joined_grounding_videos"}
    assert all(isinstance(value, Carrier) and math.isnan(value) for value in own.values())
