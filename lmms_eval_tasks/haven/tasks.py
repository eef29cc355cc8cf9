"""HAVEN's tasks: summaries, keyframes, and order, grounding and saliency of a video's shots.

There are six kinds of tasks. Each also exists as a text proxy, which shows text in place of the
video. Some also exist with the video's document (paper, 3.4 and C; its task and annotations are
those of Multimodal Video Summarization).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from lmms_eval_tasks import context, settings
from lmms_eval_tasks.benchmark import (
    Benchmark,
    Doc,
    Items,
    JointMetric,
    KnownAnswer,
    KnownAnswers,
    LoadedData,
    MediaJob,
    Ran,
    Task,
    option_set,
    select_fields,
)
from lmms_eval_tasks.haven import data, inputs, metrics, options
from lmms_eval_tasks.haven import judge as judging
from lmms_eval_tasks.haven.items import (
    HavenDoc,
    HavenScore,
    HavenVideo,
    KeptHaven,
    Reading,
    Sometimes,
)
from lmms_eval_tasks.haven.metrics import ORDER
from lmms_eval_tasks.haven.options import OF_SENTENCES, SELECTIONS, SUMMARIES, TASKS
from lmms_eval_tasks.haven.records import release as released
from lmms_eval_tasks.haven.settings import CLIPSCORE, HAVEN
from lmms_eval_tasks.judges import Criterion, JudgeConfig, geval
from lmms_eval_tasks.judges.verdict import ScoringSteps
from lmms_eval_tasks.prompts import Prompt
from lmms_eval_tasks.report import provenance
from lmms_eval_tasks.utils.conditions import Condition, Kind
from lmms_eval_tasks.utils.metrics import clipscore, local_models, selections, text_metrics
from lmms_eval_tasks.utils.replies import alignments, orders, reasoning, summaries

V2T_SENTENCES = (3, 5)  # number of sentences, from and to, in V2T's prompt (Appendix C)


# --- the log's fields ---------------------------------------------------------------------------

# The fields of a saved item that `score` reads; items from before 2.0 have no key shots and no
# layout.
_READ = {*HavenVideo.__annotations__, "asked", "video", "n_frames"} - {"key_shots", "layout"}
# The fields of an item without scores.
BLANK: HavenScore = {
    "parts": {},
    "violations": {},
    "undefined": "",
    "scores": {},
    "authors": {},
    "baselines": {},
    "candidate": "",
    "sentences": [],
    "frames": [],
    "ranked": [],
    "clips": [],
    "geval": None,
    "status": "",
}


def log_fields(doc: HavenDoc) -> KeptHaven:
    """Return the doc's fields for the log: all that `rescore` needs."""
    tagged: Sometimes = {"tagged": doc["tagged"]} if doc["tagged"] else {}
    return {
        **select_fields(doc, HavenVideo),
        **tagged,
        "release": doc["data"],
        "asked": doc["sentences"],
        "video": doc["id"],
        "n_frames": len(doc["picks"]),
    }


def _media_log(doc: HavenDoc) -> dict[str, object]:
    """Return the number of pictures in the prompt, and the frames of each unit that are shown."""
    return {"media": {"images": doc["n_images"], "unit_frames": doc["unit_frames"]}}


# --- scoring ------------------------------------------------------------------------------------


def score(doc: KeptHaven, reply: str) -> HavenScore:
    """Score a reply: return what was read, its scores, and the baselines' scores for the item."""
    result: HavenScore = {**BLANK, **_READERS[doc["kind"]](doc, reply)}
    failed = (status for status in result["parts"].values() if status != "ok")
    return {**result, "status": next(failed, "ok")}


def score_summary(doc: KeptHaven, reply: str) -> ScoringSteps[HavenScore]:
    """Score a reply with a summary, which a judge rates from 1 to 5.

    Without a summary, the rating is 0, which is below the scale and counts as 0 in means
    (rating_means.py).
    """
    result = score(doc, reply)
    fields = {
        "reference": judging.reference(doc),
        "document": " ".join(doc["document"]).strip() or judging.prompt().text["no_document"],
    }
    criteria = {judging.GEVAL: judging.geval_criterion()}
    status = result["parts"]["summary"]
    text = reply if status == "refused" else result["candidate"]
    rated = yield from geval.rated(criteria, fields, text, status)
    rating: geval.TextRating = {
        "score": rated["score"],
        "status": rated["status"],
        "mode": rated["mode"],
    }
    return {**result, "geval": rating}


def _v2t(doc: KeptHaven, reply: str) -> Reading:
    """Read a summary: a free text, or for a text proxy numbered sentences."""
    if doc["text"]:
        read = summaries.read_summary(reply, doc["n_sentences"])
        return _summary(doc, read, read.text, read.violations)
    read = summaries.read_summary(reply)
    if read.status != "ok":
        return _summary(doc, read, "", {})
    (least, most), found = V2T_SENTENCES, len(read.sentences)
    broken = {"too_few_sentences": least - found, "too_many_sentences": found - most}
    whole = reasoning.strip_reasoning(reply)[0].strip()
    return _summary(doc, read, whole, {kind: n for kind, n in broken.items() if n > 0})


def _summary(
    doc: KeptHaven, summary: summaries.Summary, candidate: str, violations: Mapping[str, int]
) -> Reading:
    return {
        "parts": {"summary": summary.status},
        "candidate": candidate,
        "sentences": list(summary.sentences),
        "violations": dict(violations),
        "scores": text_metrics.rouge(candidate, judging.reference(doc)),
    }


def _v2v(doc: KeptHaven, reply: str) -> Reading:
    limits = doc["n_frames"], doc["budget"]
    strict = summaries.read_frames(reply, *limits, at_limit=doc.get("at_limit", False))
    return _score_frames(doc, strict, summaries.read_leniently(reply, *limits))


def _score_frames(
    doc: KeptHaven, strict: summaries.FrameSelection, lenient: Collection[int]
) -> Reading:
    """Score selected frames against two truths: the key shots' frames, as published, and `is_gt`.

    The scores against `is_gt` have the suffix IS_GT. They use the strict selection, or the lenient
    one if the strict one is empty; the others always use the lenient one. Scores are None if the
    truth has no frame.

    Args:
        doc: the item.
        strict: the reply's selection, by our rules; it may have frames that do not exist.
        lenient: the reply's frames as the authors' code reads them (`read_leniently`).
    """
    n_frames, k = doc["n_frames"], doc["budget"]
    of_shots = [frame for shot in doc["key_shots"] for frame in doc["shots"][shot - 1]]
    scores: dict[str, float | None] = {}
    baselines: dict[str, float | None] = {}
    for form, true, chosen in (
        ("", of_shots, lenient),
        (metrics.IS_GT, doc["keyframes"], strict.selected or lenient),
    ):
        if not true:
            scores |= {f"{name}{form}": None for name in metrics.KEYFRAMES}
            continue
        met = functools.partial(selections.set_scores, true=true)
        own = met(chosen)
        chance, every = selections.random_frames(n_frames, len(true), k), range(1, n_frames + 1)
        baselines |= _beside(metrics.KEYFRAMES, form, random=chance, all=met(every))
        scores |= {f"{name}{form}": getattr(own, name) for name in metrics.KEYFRAMES}
    read = strict.status == "ok" or not lenient
    return {
        "parts": {"frames": strict.status if read else "ok"},
        "frames": list(lenient),
        "violations": dict(strict.violations) if read else {"other_form": 1},
        "scores": scores,
        "baselines": baselines,
    }


def _beside(
    names: Sequence[str], form: str = "", **baselines: selections.SetScores | selections.Correlation
) -> dict[str, float | None]:
    """Return the scores of baselines, which ignore the video, by name: METRIC_BASELINE."""
    return {f"{m}{form}_{one}": getattr(own, m) for one, own in baselines.items() for m in names}


def _v2vt(doc: KeptHaven, reply: str) -> Reading:
    limits = doc["n_frames"], doc["budget"], doc["n_sentences"]
    summary, selection = summaries.read_joint(reply, *limits, at_limit=doc.get("at_limit", False))
    text = _summary(doc, summary, summary.text, summary.violations)
    # Frames beyond the K requested ones count, too. So they did in the published figures, since
    # their recall is up to 2.6 times the precision.
    frames = _score_frames(doc, selection, summaries.read_leniently(reply, doc["n_frames"], None))
    counts = {
        f"{part}_{kind}": n
        for part, made in (("summary", text), ("frames", frames))
        for kind, n in made["violations"].items()
    }
    return {
        **text,
        **frames,
        "parts": {**text["parts"], **frames["parts"]},
        "scores": {**text["scores"], **frames["scores"]},
        "violations": counts,
    }


def _temporal(doc: KeptHaven, reply: str) -> Reading:
    """Score a temporal order of units. A unit's name in the reply is its place in the prompt.

    Units with lower numbers are earlier in the video.
    """
    by_number = sorted(doc["units"])
    truth = [float(1 + by_number.index(unit)) for unit in doc["units"]]
    # Before 2.0, the text proxy showed sentences.
    layout = doc.get("layout", OF_SENTENCES if doc["text"] else "")
    return _order(doc, reply, truth, "Sentence" if layout == OF_SENTENCES else "Shot")


def _saliency(doc: KeptHaven, reply: str) -> Reading:
    importance = [doc["importance"][unit - 1] for unit in doc["units"]]
    return _order(doc, reply, selections.importance_ranks(importance), "Shot")


def _order(doc: KeptHaven, reply: str, truth: list[float], unit: str) -> Reading:
    n = len(truth)
    read = orders.read_order(reply, n, unit, at_limit=doc.get("at_limit", False))
    identity = selections.identity(truth)
    found = selections.correlations(selections.predicted_ranks(read.units, n), truth)
    worth: dict[str, float | None] = {name: getattr(found, name) or 0.0 for name in ORDER}
    if identity.reason:
        worth = dict.fromkeys(ORDER)
    elif len(read.units) < 2:  # an order of fewer than two units has the score 0 (docs/metrics.md)
        worth = dict.fromkeys(ORDER, 0.0)
    theirs = orders.authors_order(reply, n, unit, in_time=doc["kind"] == "temporal")
    by_theirs = selections.correlations(selections.predicted_ranks(theirs, n), truth)
    return {
        "parts": {"reply": read.status},
        "ranked": [doc["units"][place - 1] for place in read.units],
        "violations": dict(read.violations),
        "undefined": identity.reason,
        "scores": worth,
        "authors": {name: getattr(by_theirs, name) for name in ORDER} if theirs else {},
        "baselines": _beside(ORDER, random=selections.chance(truth), identity=identity),
    }


def _grounding(doc: KeptHaven, reply: str) -> Reading:
    """Score an alignment of sentences with clips.

    In the reply, a sentence's name is its place in the prompt, and a clip's name is its number.
    """
    n = len(doc["units"])
    true = [doc["summary_shots"][sentence - 1] for sentence in doc["asked"]]
    read = alignments.read_alignment(reply, len(true), n, at_limit=doc.get("at_limit", False))
    found = selections.aligned(read.sets, true)
    chance = selections.random_clips(true, n)
    every = selections.aligned([range(1, n + 1)] * len(true), true)
    names = metrics.ALIGNMENT
    return {
        "parts": {"reply": read.status},
        "clips": [sorted(clips) for clips in read.sets],
        "violations": dict(read.violations),
        "scores": {name: getattr(found, name) for name in names},
        "baselines": _beside(names, random=chance, all=every),
    }


_READERS: Mapping[str, Callable[[KeptHaven, str], Reading]] = {
    "v2t": _v2t,
    "v2v": _v2v,
    "v2vt": _v2vt,
    "temporal": _temporal,
    "grounding": _grounding,
    "saliency": _saliency,
}


def example_reply(doc: HavenDoc, number: int) -> str:  # noqa: ARG001
    """Return the reference summary in the form that the prompt asks for."""
    if doc["kind"] == "v2t" and not doc["text"]:
        return " ".join(doc["summary"])
    lines = [f"{place}. {sentence}" for place, sentence in enumerate(doc["summary"], 1)]
    return "\n".join(["SUMMARY:", *lines])


# --- the tasks ------------------------------------------------------------------------------------


_TASKS = {
    name: Task(
        name,
        inputs.request_prompt,
        log_fields,
        score_summary if variant.kind in SUMMARIES else score,
        metrics.of_kind(variant.kind),
        # `record` is a hash of all data of the release about the video.
        identity=("record", "units", "asked", "layout", "budget", "n_sentences", "tagged"),
        media_log=_media_log,
        system=inputs.system_text,
        judgements=(judging.GEVAL,) if variant.kind in SUMMARIES else (),
        required_fields={*_READ, "key_shots"} if variant.kind in SELECTIONS else _READ,
        failed_item=BLANK,
        example_reply=example_reply,
        splits={"source": "dots"},
    )
    for name, variant in TASKS.items()
}


class Haven(Benchmark):
    """The benchmark HAVEN, for the code that all benchmarks share (benchmark.py)."""

    name = "haven"
    title = "HAVEN"
    how_to_get = data.HOW_TO_GET
    downloads = data.DOWNLOADS
    by_hand = data.BY_HAND
    records = "videos"
    paper_counts = options.PAPER_COUNTS
    paper_judge = judging.PAPER_JUDGE
    one_judge = "and a G-Eval rating comes from one model"
    headline = 2
    media_messages = ("videos read", "videos of {} can be read")

    tasks = _TASKS
    joint_metrics = tuple(
        JointMetric(
            f"haven{end}",
            tuple(f"haven_{one}{end}" for one in metrics.JOINED),
            metrics.joint_clipscores,
        )
        for end in ("", "_text")
    )

    read_release = staticmethod(data.read_chosen_sources)
    sources = staticmethod(data.media_sources)
    docs = staticmethod(data.make_haven_docs)
    data_notes = staticmethod(data.list_gaps)
    describe_judge = staticmethod(judging.describe_rating)
    files = staticmethod(released.release_files)
    judge_prompt = staticmethod(judging.prompt)

    def load(
        self, names: Sequence[str], *, videos: bool = True, only: Collection[str] | None = None
    ) -> data.HavenData:
        """Load the data, and add the videos that each task cannot use."""
        data.require_sample()
        return data.with_gaps(super().load(names, videos=videos, only=only), names)

    def media_job(self, doc: Doc) -> MediaJob | None:
        """Return the job that reads the video's sampled frames; None for a text proxy.

        All tasks with pictures share these frames.
        """
        if doc["text"]:
            return None
        window = (doc["video_path"], tuple(doc["picks"]))
        return MediaJob(doc["id"], window, functools.partial(inputs.sampled_frames, *window))

    def known_answers(self, place: Path) -> KnownAnswers:
        """Return a video's reference summary, rated 5, and another video's, rated 1, as answers."""
        chosen, task = options.current(), self.tasks["haven_v2t"]
        release = released.read_haven(place, chosen)
        made = [
            data.make_doc(data.row(one, release.digest), TASKS[task.name], chosen)
            for one in release.records
            if one.summary
        ]
        answers = []
        for doc, other in zip(made, [*made[1:], *made[:1]], strict=True):
            right, wrong = (
                example_reply(doc, 0),
                example_reply({**doc, "summary": other["summary"]}, 0),
            )
            # If both summaries are the same text, the second entry counts: the text is right.
            known = {wrong: float(geval.LOWEST), right: float(geval.HIGHEST)}
            answers += [
                KnownAnswer(task.name, task.log_fields(doc), text, {judging.GEVAL: worth})
                for text, worth in known.items()
            ]
        told = (
            f"{release.place} (data {release.digest}): reference summaries, and another video's "
            "as wrong ones"
        )
        return KnownAnswers(answers, [told], range(geval.LOWEST, geval.HIGHEST + 1))

    def check(self, names: Sequence[str], loaded: LoadedData) -> None:  # noqa: ARG002
        """Check that the CLIP model exists, if the user named one."""
        if any(TASKS[name].kind in SUMMARIES for name in names):
            like = "openai/clip-vit-base-patch32"
            model = settings.value(CLIPSCORE)
            local_models.check_model(CLIPSCORE, model, clipscore.KIND, like)

    def prompts(self, names: Sequence[str]) -> dict[str, Prompt]:  # noqa: ARG002
        """Return the prompt file that all tasks use, and that of system texts if it is used."""
        files = {"task": inputs.task_prompts()}
        is_sent = options.current().system == "task"
        return {**files, "system": inputs.system_prompts()} if is_sent else files

    def configure_judge(self, judge: JudgeConfig) -> JudgeConfig:
        """Return the judge, marked as not comparable with the paper's, since that is unknown."""
        return replace(super().configure_judge(judge), comparable=False)

    def criteria(self) -> Sequence[Criterion]:
        """Return the criterion of a summary's quality."""
        return [judging.geval_criterion()]

    def describe(self, ran: Ran) -> tuple[dict[str, object], list[Condition]]:
        """Return data, options, left-out videos, and the implementations of text metrics."""
        section, conditions = super().describe(ran)
        if ran.loaded is not None:
            by_source = {
                name: [one.video for one in own]
                for name, own in ran.loaded.release.by_source.items()
            }
            chosen = cast(data.HavenData, ran.loaded).options
            section["options"] = {**chosen.asdict(), "sources": list(by_source)}
            section["subsets"] = {
                name: own for name, own in by_source.items() if name in options.LARGE_SOURCES
            }
        if any(TASKS[name].kind in SUMMARIES for name in ran.names):
            rouge = text_metrics.ROUGE_IMPLEMENTATION
            section["implementations"] = {
                "rouge": rouge,
                **provenance.implementation_notes("haven"),
            }
        doubts = [Condition(Kind.NOTE, line) for line in judging.doubts()]
        model = context.current().model
        if options.current().system == "task" and model is not None and model.interface != "chat":
            told = f"{HAVEN.option} system=task: a simple class gets no system text of a task"
            doubts.append(Condition(Kind.NOTE, told))
        return section, [*conditions, *option_set(HAVEN), *doubts]

    def notes(self, items_by_task: Mapping[str, Items]) -> Sequence[str]:  # noqa: ARG002
        """Return lines about text metrics that are missing or not comparable."""
        return judging.doubts()


BENCHMARK = Haven()
