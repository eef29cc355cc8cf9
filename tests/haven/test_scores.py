"""Means over videos and over sources, three forms, baselines, G-Eval's modes; the host's lists."""

from __future__ import annotations

import copy
import math
import pickle
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from lmms_eval_tasks import haven
from lmms_eval_tasks.haven import data, joined, scores
from lmms_eval_tasks.haven.labels import SOURCES, TASKS
from lmms_eval_tasks.haven.utils import identity
from lmms_eval_tasks.utils.aggregate import Carrier
from tests.haven.docs import doc
from tests.haven.scored import FAILED, FIRST, Made, broken, made, no_encoder, values

NAMES = list(TASKS)
JUDGED = [name for name in NAMES if TASKS[name].kind in ("v2t", "v2vt")]
FRAMES = {"frames": 20, "keyframes": [1, 4, 11]}  # K = 3


@pytest.fixture(autouse=True)
def no_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMMS_EVAL_TASKS_JUDGE", "none")
    no_encoder(monkeypatch)


def video(number: int, source: str = "tvsum") -> dict[str, str]:
    return {"id": f"{source}/video_{number}", "source": source}


def four(*replies: str, task: str = "haven_v2v", **more: Any) -> list[Made]:
    """Replies to three videos of TVSum and one of SumMe."""
    places = [video(1), video(2), video(3), video(1, "summe")]
    return [made(task, r, **p, **more) for r, p in zip(replies, places, strict=True)]


class TestForms:
    """NAME, NAME_valid, NAME_sources, NAME_SOURCE."""

    def test_over_videos_and_over_sources(self) -> None:
        """F1 1, 0 and 0 of TVSum, 2/3 of SumMe."""
        found = values("haven_v2v", four("[1,4,11]", "[2,3,5]", "[2,3,5]", "[1,4,2]", **FRAMES))
        assert found["f1"] == found["f1_valid"] == pytest.approx(5 / 12)
        assert found["f1_tvsum"] == pytest.approx(1 / 3)
        assert found["f1_summe"] == pytest.approx(2 / 3)
        assert found["f1_sources"] == pytest.approx(1 / 2)
        assert "f1_ovp" not in found
        assert found["precision_sources"] == found["recall_sources"] == pytest.approx(1 / 2)

    @pytest.mark.parametrize(
        ("reply", "status", "valid"),
        [
            ("All of them.", "unparsed", 1.0),
            (FAILED, "model_error", 1.0),
            ("", "empty", 0.75),
            ("I'm sorry, but I can't help with that.", "refused", 0.75),
            ("<think>[1,4,11]", "truncated", 0.75),
        ],
    )
    def test_whose_failure_it_is(self, reply: str, status: str, valid: float) -> None:
        """0 in the plain number; only what is not the candidate's own leaves `_valid`."""
        right = "[1,4,11]"
        found = values("haven_v2v", four(right, right, right, reply, **FRAMES))
        assert found["f1"] == found["recall"] == 0.75
        assert found["f1_valid"] == found["recall_valid"] == valid
        counted = [found[name] for name in ("failed", "videos", "f1_summe", "f1_sources")]
        assert counted == [1, 4, 0.0, 0.5]
        assert made("haven_v2v", reply, **FRAMES)[FIRST]["status"] == status

    def test_baselines_are_the_items(self) -> None:
        """K is 3 and G is 3 or 1: random 3/20 and 6/80; best 1 and 1/2."""
        some = [made("haven_v2v", "?", **video(1), **FRAMES)]
        some += [made("haven_v2v", "", **video(2), frames=20, keyframes=[1])]
        found = values("haven_v2v", some)
        assert found["f1_random"] == pytest.approx((3 / 20 + 6 / 80) / 2)
        assert found["f1_best"] == pytest.approx(3 / 4)
        assert found["f1_first"] == pytest.approx((1 / 3 + 1 / 2) / 2)
        assert found["f1_uniform"] == pytest.approx((2 / 3 + 0) / 2)
        assert found["f1_all"] == pytest.approx((6 / 23 + 2 / 21) / 2)

    def test_scoring_that_broke(self) -> None:
        """Counts 0, is told as failed, and is in no baseline's mean."""
        some = [made("haven_v2v", "[1,4,11]", **FRAMES), broken("haven_v2v", **video(2))]
        found = values("haven_v2v", some)
        assert (found["f1"], found["f1_valid"], found["failed"]) == (0.5, 1.0, 1)
        assert found["f1_random"] == pytest.approx(3 / 20)

    def test_nothing_at_all(self) -> None:
        for name, function in scores.SCORES["haven_v2vt"].items():
            found = function([])
            if isinstance(found, Carrier):
                assert found.scores == {}
            else:
                assert found in (None, 0), name


def test_undefined_items_are_in_no_mean() -> None:
    """Importance that is all equal; one right order of three defined ones is 1, -1 and 0."""
    order = "Shot 4 > Shot 3 > Shot 2 > Shot 1"
    some = [
        made("haven_saliency", order, **video(1)),
        made("haven_saliency", "Shot 1 > Shot 2 > Shot 3 > Shot 4", **video(2)),
        made("haven_saliency", "no idea", **video(3)),
        made("haven_saliency", order, **video(4), importance=[2, 2, 2, 2]),
        made("haven_saliency", "no idea", **video(1, "ovp"), importance=[0, 0, 0, 0]),
    ]
    found = values("haven_saliency", some)
    assert (found["undefined"], found["failed"]) == (2, 2)
    assert found["spearman"] == pytest.approx(0)
    assert found["spearman_valid"] == pytest.approx(0)
    assert found["spearman_best"] == pytest.approx(1)
    assert found["spearman_ovp"] is None
    assert found["spearman_sources"] == pytest.approx(0)
    assert values("haven_saliency", some[:1] + some[3:])["kendall"] == pytest.approx(1)
    assert values("haven_saliency", some[:1] + some[3:])["kendall_sources"] == pytest.approx(1)


def test_violations_are_replies() -> None:
    found = values("haven_v2v", four("[1,4,11]", "[1,1,99,3]", "[2]", "nothing", **FRAMES))
    assert (found["violations"], found["failed"]) == (3, 1)


def test_clips_predicted() -> None:
    """2, 0 and 1 clips a sentence; a reply whose scoring broke has no number."""
    lines = ["Clip 1, Clip 2", "None", "Clip 3"]
    replies = ["\n".join(f"Summary {n}: {line}" for n in (1, 2, 3)) for line in lines]
    some = [made("haven_grounding", r, **video(n)) for n, r in enumerate(replies)]
    some.append(broken("haven_grounding", **video(9)))
    assert values("haven_grounding", some)["clips_predicted"] == pytest.approx(1)


class TestJoint:
    """Each part of a joint reply fails for itself."""

    def test_no_summary(self) -> None:
        full = "SUMMARY:\n1. In short: thing ba. In short: thing ca. In short: thing da.\n"
        frames = "IMPORTANT FRAMES: [Frame 1, Frame 4, Frame 11]"
        replies = (full + frames, frames, frames, full)
        found = values("haven_v2vt", four(*replies, task="haven_v2vt", **FRAMES))
        assert (found["failed"], found["summary_failed"], found["frames_failed"]) == (3, 2, 1)
        assert (found["rouge"], found["rouge_valid"]) == (0.5, 1.0)
        assert (found["f1"], found["f1_valid"]) == (0.75, 1.0)
        assert (found["bertscore"], found["bertscore_valid"]) == (0.5, 1.0)
        assert found["bertscore_sources"] == pytest.approx((1 / 3 + 1) / 2)
        assert found["clipscore"] is None  # no model was named


# --- G-Eval -----------------------------------------------------------------------------------


def rated(task: str, *given: tuple[float | None, str, str | None]) -> list[Made]:
    """Items with these ratings: score, status, mode."""
    found = []
    for n, (score, status, mode) in enumerate(given):
        one = made(task, "A cat runs.", **video(n))
        for item in one.values():
            if "geval" in item:
                item["geval"] = {"score": score, "status": status, "mode": mode}
        found.append(one)
    return found


class TestGeval:
    """1 to 5, as `_valid` only; the two modes never in one column."""

    def test_one_mode(self) -> None:
        """3, 5, 0 for the refusal; the judge's failure is left out: mean 8/3, variance 38/9."""
        failed = (None, "judge_api_error", None)
        given = rated(
            "haven_v2t", (3, "ok", "samples"), (5, "ok", "samples"), failed, (0.0, "refused", None)
        )
        found = values("haven_v2t", given)
        assert found["geval_samples_valid"] == pytest.approx(8 / 3)
        assert found["geval_samples_var"] == pytest.approx(38 / 9)
        assert (found["geval_samples_failed"], found["geval_samples_coverage"]) == (1, 0.75)
        assert found["geval_samples_valid_tvsum"] == pytest.approx(8 / 3)
        assert found["geval_samples_valid_sources"] == pytest.approx(8 / 3)
        assert found["geval_logprobs_valid"] is None
        assert found["geval_logprobs_failed"] == 0
        assert not {"geval_samples", "geval_logprobs"} & found.keys()

    def test_both_modes(self) -> None:
        found = values(
            "haven_v2t", rated("haven_v2t", (2.0, "ok", "logprobs"), (5, "ok", "samples"))
        )
        assert (found["geval_logprobs_valid"], found["geval_samples_valid"]) == (2.0, 5.0)
        assert found["geval_logprobs_failed"] == found["geval_samples_failed"] == 1

    def test_an_unparsed_summary_has_no_rating(self) -> None:
        frames_alone = made("haven_v2vt", "[Frame 1]", **video(7))
        found = values("haven_v2vt", [*rated("haven_v2vt", (4, "ok", "samples")), frames_alone])
        assert (found["geval_samples_valid"], found["geval_samples_failed"]) == (4.0, 1)

    def test_before_the_judge(self) -> None:
        found = values(
            "haven_v2t", [made("haven_v2t", "A cat."), made("haven_v2t", "", **video(2))]
        )
        assert found["geval_samples_valid"] is None
        assert found["geval_logprobs_valid"] is None


# --- the host's lists -------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
class TestLists:
    """What the host is told of each task."""

    def test_the_yaml(self, name: str) -> None:
        class Loader(yaml.SafeLoader):
            """Names of functions as they are."""

        Loader.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))
        text = (Path(haven.__file__).parent / f"{name}.yaml").read_text(encoding="utf-8")
        found = yaml.load(text, Loader)
        short = name.removeprefix("haven_")
        assert found["task"] == name
        assert found["process_docs"] == f"lmms_eval_tasks.haven.data.{short}"
        assert found["metric_list"] == f"lmms_eval_tasks.haven.scores.METRICS_{short.upper()}"
        assert found["metadata"]["judged"] is (name in JUDGED)
        assert getattr(data, short) is data.process_docs(name)
        listed = getattr(scores, f"METRICS_{short.upper()}")
        assert [one["metric"] for one in listed] == list(scores.SCORES[name])

    def test_names_do_not_collide(self, name: str) -> None:
        """The group's `joined` is in no other metric; no name reads as another metric's form."""
        metrics = list(scores.SCORES[name])
        assert metrics[0] == FIRST
        carriers = {m for m in metrics if "joined" in m}
        assert carriers == set(joined.metrics(TASKS[name]))
        assert all(metric.startswith(joined.PREFIX) for metric in carriers)
        assert not (carriers and name.endswith("_doc"))
        for metric in set(metrics) - carriers:
            assert metric.startswith(scores.plain_name(metric))
            assert scores.split_name(metric)[1] in ("", *SOURCES)

    def test_an_item_has_the_metrics_of_its_source_alone(self, name: str) -> None:
        one = made(name, "", **video(1, "ovp"))
        others = [source for source in SOURCES if source != "ovp"]
        foreign = {m for m in scores.SCORES[name] if m.endswith(tuple(f"_{s}" for s in others))}
        assert len(foreign) % len(others) == 0 < len(foreign)
        assert one.keys() == set(scores.SCORES[name]) - foreign
        assert {name for name in scores.names(one) if name.endswith("_ovp")} == set()

    def test_order_and_copies_do_not_matter(self, name: str) -> None:
        replies = ["[1, 7]", "Shot 2 > Shot 1", "Summary 1: Clip 2", "", FAILED]
        some = [made(name, r, **video(n, ["ovp", "tvsum"][n % 2])) for n, r in enumerate(replies)]
        shuffled = pickle.loads(pickle.dumps(copy.deepcopy(some)))
        random.Random(0).shuffle(shuffled)
        assert plain(values(name, some)) == plain(values(name, shuffled))

    def test_higher_is_better(self, name: str) -> None:
        listed = getattr(scores, f"METRICS_{name.removeprefix('haven_').upper()}")
        told = {one["metric"]: one["higher_is_better"] for one in listed}
        assert (told["failed"], told["violations"], told["videos"]) == (False, False, None)
        main = next(iter(scores.MEASURED[TASKS[name].kind]))
        assert told[main] is told[f"{main}_valid"] is told[f"{main}_tvsum"] is True
        for metric, better in told.items():
            if metric.endswith(("_random", "_best", "_var")) or metric.startswith("joined_"):
                assert better is None

    def test_an_aggregation_never_raises(
        self, name: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        listed = getattr(scores, f"METRICS_{name.removeprefix('haven_').upper()}")
        for one in listed:
            if one["metric"] == "videos":  # len, of anything
                continue
            assert one["aggregation"]([None]) is None
            assert f"{one['metric']} failed and is reported as N/A" in capsys.readouterr().err


def plain(found: dict[str, Any]) -> dict[str, Any]:
    assert all(math.isnan(n) for n in found.values() if isinstance(n, Carrier))
    return {
        name: (n.side, n.scores, n.reduce) if isinstance(n, Carrier) else n
        for name, n in found.items()
    }


def test_an_unknown_list() -> None:
    for name in ("METRICS_V2X", "METRICS_", "V2T"):
        with pytest.raises(AttributeError, match=name):
            getattr(scores, name)
    with pytest.raises(AttributeError, match="v2x"):
        data.v2x  # noqa: B018


def test_the_items_of_a_metric_are_small() -> None:
    """Only the first metric has the whole item, and it knows all that rescoring needs."""
    one = made("haven_v2v", "[1]")
    assert set(identity(doc("haven_v2v"))) < set(one[FIRST])
    assert set(one["f1_tvsum"]) == {"id", "video", "source", "status", "value"}
