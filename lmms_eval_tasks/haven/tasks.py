"""HAVEN: text summaries and keyframes of a video, order, grounding and saliency of its shots.

Six kinds of tasks, some with the video's document, all with a text proxy (paper, 3.4, C; its task
and annotations are Multimodal Video Summarization's).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

from lmms_eval_tasks import settings
from lmms_eval_tasks.benchmark import (
    Benchmark,
    Cut,
    Doc,
    Found,
    Item,
    Items,
    Join,
    KnownAnswer,
    KnownAnswers,
    Ran,
    Task,
    option_set,
)
from lmms_eval_tasks.haven import data, inputs, metrics, options
from lmms_eval_tasks.haven import judge as judging
from lmms_eval_tasks.haven.metrics import ORDER
from lmms_eval_tasks.haven.options import OF_SENTENCES, SELECTIONS, SUMMARIES, TASKS
from lmms_eval_tasks.haven.records import release as released
from lmms_eval_tasks.haven.settings import CLIPSCORE, HAVEN
from lmms_eval_tasks.judges import Criterion, JudgeConfig, geval
from lmms_eval_tasks.judges.verdict import Scoring
from lmms_eval_tasks.media.video_checks import stop
from lmms_eval_tasks.prompts import Prompt
from lmms_eval_tasks.report import provenance
from lmms_eval_tasks.utils.conditions import Condition, Kind
from lmms_eval_tasks.utils.metrics import clipscore, local_models, selections, text_metrics
from lmms_eval_tasks.utils.released_files import listed
from lmms_eval_tasks.utils.replies import numbered, reasoning, summaries

V2T_SENTENCES = (3, 5)  # asked for by V2T's prompt with pictures (Appendix C)


# --- what the log keeps ---------------------------------------------------------------------------

_KEPT = (
    *("id", "source", "kind", "text", "with_document", "record", "keyframes", "key_shots", "shots"),
    *("importance", "document", "summary", "summary_shots", "units", "budget", "n_sentences"),
    "layout",
)
# What `score` reads of a saved item; before 2.0 there were no key shots and no layout.
_READ = {*_KEPT, "asked", "video", "n_frames"} - {"key_shots", "layout"}
# An item without scores; what only some kinds have is empty.
BLANK: Mapping[str, Any] = {
    "parts": {},  # part of the reply -> its status
    "violations": {},  # kind -> how often
    "undefined": "",  # why no reply can have a score
    "scores": {},
    "authors": {},  # scores of the order that their code reads
    "baselines": {},
    "candidate": "",
    "sentences": [],
    "frames": [],
    "ranked": [],
    "clips": [],
    "geval": None,
}


def keep(doc: Doc) -> dict[str, Any]:
    """What the log keeps of a doc: all that `rescore` needs; `video` is the cluster of intervals.

    The release's digest is `release`, not `data`: runs of other releases are joined over the videos
    whose record is the same.
    """
    return {
        **{name: doc[name] for name in _KEPT},
        **({"tagged": doc["tagged"]} if doc["tagged"] else {}),
        "release": doc["data"],
        "asked": doc["sentences"],  # an item's `sentences` are the reply's
        "video": doc["id"],
        "n_frames": len(doc["picks"]),
    }


def handed(doc: Doc) -> dict[str, Any]:
    """How many pictures were handed over, and which frames of each unit."""
    return {"media": {"images": doc["n_images"], "unit_frames": doc["unit_frames"]}}


# --- what a reply is worth ------------------------------------------------------------------------


def score(doc: Item, reply: str) -> dict[str, Any]:
    """One reply: what could be read of it, its scores, and what the same item gives without it."""
    made = {**BLANK, **_READERS[doc["kind"]](doc, reply)}
    failed = (status for status in made["parts"].values() if status != "ok")
    return {**made, "status": next(failed, "ok")}


def score_summary(doc: Item, reply: str) -> Scoring:
    """The same of a reply that holds a summary, which a judge rates: one that is none is worth 0.

    That is below the scale of 1 to 5, and counts as 0 in means of ratings too (rating_means.py).
    """
    made = score(doc, reply)
    shown = {
        "reference": judging.reference(doc),
        "document": " ".join(doc["document"]).strip() or judging.prompt().text["no_document"],
    }
    asked = {judging.GEVAL: judging.criterion()}
    status = made["parts"]["summary"]
    text = reply if status == "refused" else made["candidate"]
    rated = yield from geval.rated(asked, shown, text, status)
    return {**made, "geval": {name: rated[name] for name in ("score", "status", "mode")}}


def _at_limit(doc: Item) -> bool:
    """Whether the reply is known to be as long as its limit of tokens, which may have cut it."""
    return bool(doc.get("at_limit"))


def _v2t(doc: Item, reply: str) -> dict[str, Any]:
    """A free text, or numbered sentences of a text proxy."""
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
    doc: Item, read: summaries.Summary, candidate: str, violations: Mapping[str, int]
) -> dict[str, Any]:
    found = text_metrics.rouge(candidate, judging.reference(doc))
    return {
        "parts": {"summary": read.status},
        "candidate": candidate,
        "sentences": list(read.sentences),
        "violations": dict(violations),
        "scores": {name: getattr(found, name) for name in metrics.ROUGE},
    }


def _v2v(doc: Item, reply: str) -> dict[str, Any]:
    limits = doc["n_frames"], doc["budget"]
    strict = summaries.read_frames(reply, *limits, at_limit=_at_limit(doc))
    return _frames(doc, strict, summaries.read_leniently(reply, *limits))


def _frames(
    doc: Item, strict: summaries.FrameSelection, lenient: Collection[int]
) -> dict[str, Any]:
    """Against the frames of the key shots as the published figures are; beside, against `is_gt`.

    There what was given is scored, in whatever form it is read, and frames that do not exist too.
    None where nothing is true.
    """
    n_frames, k = doc["n_frames"], doc["budget"]
    of_shots = [frame for shot in doc["key_shots"] for frame in doc["shots"][shot - 1]]
    scores: dict[str, Any] = {}
    baselines: dict[str, Any] = {}
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


def _beside(names: Sequence[str], form: str = "", **given: NamedTuple) -> dict[str, Any]:
    """What looking at nothing is worth, by metric and baseline."""
    return {f"{m}{form}_{one}": getattr(own, m) for one, own in given.items() for m in names}


def _v2vt(doc: Item, reply: str) -> dict[str, Any]:
    limits = doc["n_frames"], doc["budget"], doc["n_sentences"]
    summary, selection = summaries.read_joint(reply, *limits, at_limit=_at_limit(doc))
    text = _summary(doc, summary, summary.text, summary.violations)
    # Not cut to K, as the published figures are not: their recall is up to 2.6 times the precision.
    frames = _frames(doc, selection, summaries.read_leniently(reply, doc["n_frames"], None))
    counts = {
        f"{part}_{kind}": n
        for part, made in (("summary", text), ("frames", frames))
        for kind, n in made["violations"].items()
    }
    both = {name: {**text[name], **frames[name]} for name in ("parts", "scores")}
    return {**text, **frames, **both, "violations": counts}


def _temporal(doc: Item, reply: str) -> dict[str, Any]:
    """Units are named by place shown; the unit with the lowest number comes first in time."""
    by_number = sorted(doc["units"])
    truth = [float(1 + by_number.index(unit)) for unit in doc["units"]]
    # Before 2.0 the text proxy showed sentences.
    layout = doc.get("layout", OF_SENTENCES if doc["text"] else "")
    return _order(doc, reply, truth, "Sentence" if layout == OF_SENTENCES else "Shot")


def _saliency(doc: Item, reply: str) -> dict[str, Any]:
    importance = [doc["importance"][unit - 1] for unit in doc["units"]]
    return _order(doc, reply, selections.importance_ranks(importance), "Shot")


def _order(doc: Item, reply: str, truth: list[float], unit: str) -> dict[str, Any]:
    n = len(truth)
    read = numbered.read_order(reply, n, unit, at_limit=_at_limit(doc))
    identity = selections.identity(truth)
    found = selections.correlations(selections.predicted_ranks(read.units, n), truth)
    worth: dict[str, float | None] = {name: getattr(found, name) or 0.0 for name in ORDER}
    if identity.reason:
        worth = dict.fromkeys(ORDER)
    elif len(read.units) < 2:  # an order of fewer than two units is worth 0 (docs/metrics.md)
        worth = dict.fromkeys(ORDER, 0.0)
    theirs = numbered.authors_order(reply, n, unit, in_time=doc["kind"] == "temporal")
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


def _grounding(doc: Item, reply: str) -> dict[str, Any]:
    """Sentences by place shown; clips are the shots, by number."""
    n = len(doc["units"])
    true = [doc["summary_shots"][sentence - 1] for sentence in doc["asked"]]
    read = numbered.read_alignment(reply, len(true), n, at_limit=_at_limit(doc))
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


_READERS: Mapping[str, Callable[[Item, str], dict[str, Any]]] = {
    "v2t": _v2t,
    "v2v": _v2v,
    "v2vt": _v2vt,
    "temporal": _temporal,
    "grounding": _grounding,
    "saliency": _saliency,
}


def stand_in(doc: Doc, number: int) -> str:  # noqa: ARG001
    """The reference summary in the form that is asked for."""
    if doc["kind"] == "v2t" and not doc["text"]:
        return " ".join(doc["summary"])
    lines = [f"{place}. {sentence}" for place, sentence in enumerate(doc["summary"], 1)]
    return "\n".join(["SUMMARY:", *lines])


# --- the tasks ------------------------------------------------------------------------------------


_TASKS = {
    name: Task(
        name,
        inputs.prompt,
        keep,
        score_summary if variant.kind in SUMMARIES else score,
        metrics.of_kind(variant.kind),
        # The record is a hash of what the release says of the video.
        identity=("record", "units", "asked", "layout", "budget", "n_sentences", "tagged"),
        handed=handed,
        asks=(judging.GEVAL,) if variant.kind in SUMMARIES else (),
        kept={*_READ, "key_shots"} if variant.kind in SELECTIONS else _READ,
        blank=BLANK,
        stand_in=stand_in,
        splits={"source": "dots"},
    )
    for name, variant in TASKS.items()
}


class Haven(Benchmark):
    """HAVEN for the shared code."""

    name = "haven"
    title = "HAVEN"
    how_to_get = data.HOW_TO_GET
    paper_judge = judging.PAPER_JUDGE
    one_judge = "and G-Eval's rating is one model's"
    headline = 2
    cuts = ("videos read", "videos of {} can be read")

    tasks = _TASKS
    joins = tuple(
        Join(f"haven{end}", tuple(f"haven_{one}{end}" for one in metrics.JOINED), metrics.joined)
        for end in ("", "_text")
    )

    look = staticmethod(data.look)
    docs = staticmethod(data.docs)
    judge_notes = staticmethod(judging.notes)
    seen = staticmethod(data.seen)
    files = staticmethod(released.placed)
    judge_prompt = staticmethod(judging.prompt)

    def cut(self, doc: Doc) -> Cut | None:
        """The sampled frames of its video, the same for all tasks; none of a text proxy."""
        if doc["text"]:
            return None
        window = (doc["video_path"], tuple(doc["picks"]))
        return Cut(doc["id"], window, functools.partial(inputs.frames, doc))

    def known_answers(self, place: Path, *, whole: bool = False) -> KnownAnswers:  # noqa: ARG002
        """The reference summary of every video, worth 5; another video's is worth 1."""
        chosen, task = options.current(), self.tasks["haven_v2t"]
        release = released.read(place, chosen)
        made = [
            data.make_doc(data.row(one, release.digest), TASKS[task.name], chosen)
            for one in release.records
            if one.summary
        ]
        answers = []
        for doc, other in zip(made, [*made[1:], *made[:1]], strict=True):
            right, wrong = stand_in(doc, 0), stand_in({**doc, "summary": other["summary"]}, 0)
            # In this order the text is right where both are the same.
            known = {wrong: float(geval.LOWEST), right: float(geval.HIGHEST)}
            answers += [
                KnownAnswer(task.name, task.keep(doc), text, {judging.GEVAL: worth})
                for text, worth in known.items()
            ]
        told = (
            f"{release.folder} (data {release.digest}): reference summaries, and another video's "
            "as wrong ones"
        )
        return KnownAnswers(answers, [told], range(geval.LOWEST, geval.HIGHEST + 1))

    def check(self, names: Sequence[str], found: Found) -> None:
        """Each task has an item, and a CLIP model that was named is there."""
        known = cast(data.Checked, found)
        total = len(known.rows) + len(known.release.problems)
        told = [
            f"{task}: not one of {total} items can be run:\n{listed(own)}"
            for task, own in known.reasons.items()
            if len(own) == total
        ]
        good = [task for task, own in known.reasons.items() if len(own) < total]
        told += [f"Leave out what cannot be run: --tasks {','.join(good)}"] if told and good else []
        stop(known.release.folder, told)
        if any(TASKS[name].kind in SUMMARIES for name in names):
            like = "openai/clip-vit-base-patch32"
            model = settings.value(CLIPSCORE)
            local_models.check(CLIPSCORE, model, clipscore.KIND, like)

    def prompts(self, names: Sequence[str]) -> dict[str, Prompt]:  # noqa: ARG002
        """The one file of all tasks."""
        return {"task": inputs.task_prompts()}

    def suited(self, judge: JudgeConfig) -> JudgeConfig:
        """Never the paper's (`comparable`), which is not known."""
        return replace(super().suited(judge), comparable=False)

    def criteria(self) -> Sequence[Criterion]:
        """How good is a summary?"""
        return [judging.criterion()]

    def describe(self, ran: Ran) -> tuple[dict[str, Any], list[Condition]]:
        """Data, options, left-out videos, and how texts were compared."""
        known = cast(data.Checked | None, ran.found)
        section, conditions = data.describe(known, ran.left_out) if known else ({}, [])
        if any(TASKS[name].kind in SUMMARIES for name in ran.names):
            rouge = text_metrics.ROUGE_IMPLEMENTATION
            section["implementations"] = {"rouge": rouge, **provenance.notes("haven")}
        doubts = [Condition(Kind.NOTE, line) for line in judging.doubts()]
        return section, [*conditions, *option_set(HAVEN), *doubts]

    def notes(self, asked: Mapping[str, Items]) -> Sequence[str]:  # noqa: ARG002
        """Metrics of texts that are missing or not comparable."""
        return judging.doubts()


BENCHMARK = Haven()
