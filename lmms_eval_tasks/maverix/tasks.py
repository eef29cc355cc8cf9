"""MAVERIX: audio-visual questions with eight options, in rotations, and asked openly.

Xie et al. Five input modes tell what sound, picture and subtitles are worth, on an item's segment
and on the whole video.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, cast

from lmms_eval_tasks import context, prompts, settings
from lmms_eval_tasks.benchmark import (
    Benchmark,
    Doc,
    JointMetric,
    KnownAnswer,
    KnownAnswers,
    LoadedData,
    MediaJob,
    Part,
    Ran,
    TableRow,
    Task,
    select_fields,
)
from lmms_eval_tasks.errors import DataError, MediaError, TasksError
from lmms_eval_tasks.judges.verdict import Ask, Criterion, Judged, Scoring, graded
from lmms_eval_tasks.maverix import data, metrics, tables
from lmms_eval_tasks.maverix import judge as judging
from lmms_eval_tasks.maverix import release as files
from lmms_eval_tasks.maverix.items import (
    ChoiceDoc,
    ChoiceItem,
    ChoiceQuestion,
    ChoiceScore,
    KeptChoice,
    KeptOpen,
    MaverixHanded,
    OpenDoc,
    OpenItem,
    OpenQuestion,
    OpenScore,
)
from lmms_eval_tasks.maverix.labels import CONSISTENCY, DIMENSIONS, LETTERS, MODES, SPLITS, TASKS
from lmms_eval_tasks.media import segments
from lmms_eval_tasks.models import model_capabilities
from lmms_eval_tasks.notify import say
from lmms_eval_tasks.prompts import Prompt
from lmms_eval_tasks.utils.conditions import Condition, Kind
from lmms_eval_tasks.utils.media import sounds, subtitles
from lmms_eval_tasks.utils.metrics import aggregate
from lmms_eval_tasks.utils.metrics.aggregate import CANDIDATE_FAILURES
from lmms_eval_tasks.utils.metrics.rating_means import DimensionRating
from lmms_eval_tasks.utils.replies import answers, reasoning, reply_text

MaverixDoc = ChoiceDoc | OpenDoc

# --- what the model is given --------------------------------------------------------------------


def choice_prompt(doc: ChoiceDoc) -> list[Part]:
    """The mode's picture and sound, then the question with its options."""
    options = "\n".join(map("{}. {}".format, LETTERS, doc["options"]))
    return [*_shown(doc), _text(doc, "choice", {"options": options})]


def open_prompt(doc: OpenDoc) -> list[Part]:
    """The mode's picture and sound, then the question."""
    return [*_shown(doc), _text(doc, "open", {})]


def _shown(doc: MaverixDoc) -> list[Part]:
    """The mode's picture and sound.

    The video is muted with sound too: most chat classes read sound from the audio item alone, and
    one that did not would hear it twice; one that reads a video's own track gets it. For simple
    classes, which use the first visual only (docs/design.md), picture and sound travel as one mp4
    with its track; sound alone is the wav's path, or its samples for classes that take no path
    (models/classes.json).
    """
    mode = MODES[doc["mode"]]

    def made(name: str) -> str:
        path: str | None = getattr(media_of(doc), name)
        if path is None:
            raise MediaError(
                f"{doc['video_path']}: no audio stream, and {doc['mode']} requires sound"
            )
        return path

    def alone() -> list[object]:
        path, rate = made("sound"), sounds.RATE
        wants = model_capabilities.sound_form(context.current().model) == "samples"
        return [{"array": segments.samples(path), "sampling_rate": rate} if wants else path]

    muted, sound, both = (
        functools.partial(made, name) for name in ("video", "sound", "video_with_sound")
    )
    if (
        mode.picture
        and mode.sound
        and model_capabilities.sound_form(context.current().model) == "track"
    ):
        return [Part("video", both)]
    if mode.picture and mode.sound:
        return [Part("video", muted, lambda: [both()]), Part("audio", sound, [])]
    if mode.picture:
        return [Part("video", muted)]
    return [Part("audio", sound, alone)] if mode.sound else []


def _text(doc: MaverixDoc, part: str, more: Mapping[str, str]) -> Part:
    """Subtitles or that there are none, instruction, question, closing cue (paper, C.1)."""
    parts = task_prompts().text
    cues = data.cues(doc) if MODES[doc["mode"]].subtitles else []
    shown = {"cues": subtitles.render(cues), "texts": "\n".join(cue.text for cue in cues)}
    told = prompts.fill(parts["subtitles"], shown) if cues else parts["no_subtitles"]
    values = {"subtitles": told, "question": doc["question"], **more}
    return Part("text", prompts.fill(parts[part], values))


_PARTS: dict[str, set[str]] = {
    "subtitles": {"cues|texts"},  # with their times, or without
    "no_subtitles": set(),
    "choice": {"subtitles", "question", "options"},
    "open": {"subtitles", "question"},
}
task_prompts = prompts.file("maverix", "task", _PARTS)


def media_of(doc: MaverixDoc) -> segments.CutSegment:
    """The doc's segment, or the whole video, cut once for all modes (media/segments.py)."""
    return cut(doc["video_path"], doc["start"], doc["end"])


cut = functools.lru_cache(maxsize=4096)(segments.segment)


# --- what the reply is worth --------------------------------------------------------------------


def keep_choice(doc: ChoiceDoc) -> KeptChoice:
    """The fields for the log: all that `rescore` needs."""
    return {**select_fields(doc, ChoiceQuestion), **_unknown(doc)}


def keep_open(doc: OpenDoc) -> KeptOpen:
    """The fields for the log: all that `rescore` needs."""
    return {**select_fields(doc, OpenQuestion), **_unknown(doc)}


def _unknown(doc: MaverixDoc) -> MaverixHanded:
    """Nothing is known of the run's sound and media, unless `handed` tells of them."""
    hears = dict.fromkeys(metrics.WITH_SOUND, "unknown")
    return {"hears": hears, "sound": hears.get(doc["mode"], ""), "media": None}


def handed(doc: MaverixDoc) -> MaverixHanded:
    """The media that were handed over, and what the running model does with sound.

    In modes without sound too: whether S stands in for A is up to the model, not to what was run.
    """
    hears = model_capabilities.hears(context.current().model)
    return {"hears": hears, "sound": hears.get(doc["mode"], ""), "media": _media(doc)}


def _media(doc: MaverixDoc) -> dict[str, object] | None:
    """None where a file is gone by now: the answer still counts."""
    mode = MODES[doc["mode"]]
    try:
        shown = {"subtitles": mode.subtitles and bool(data.cues(doc))}
        if not mode.picture and not mode.sound:
            return {**shown}
        made = media_of(doc)
    except (TasksError, OSError):
        return None
    n_frames = made.n_frames if mode.picture else 0
    return {"start": made.start, "end": made.end, "n_frames": n_frames, **shown}


def choice(doc: KeptChoice, reply: str) -> ChoiceScore:
    """One eight-option question, or one rotation of it."""
    found = answers.read_choice(reply, doc["options"])
    return {
        "letter": found.letter,
        "read_by": found.rule,
        "letter_authors": "" if found.status == "model_error" else letter_of_authors(reply),
        "status": found.status,
        "right": int(found.status == "ok" and found.letter == doc["answer"]),
        "words": _words(reply),
    }


_SET_PHRASES = re.compile(
    r"The (?:best|correct) (?:answer|option) is|The answer(?: is)?|Best (?:answer|option):"
)


def letter_of_authors(reply: str) -> str:
    """The letter that the authors' code reads: the first capital A to H anywhere; "" if none.

    Eight set phrases are deleted first, so that "The answer" is not A. Any other "Answer" is.
    """
    found = re.search(f"[{LETTERS}]", _SET_PHRASES.sub("", reply))
    return found[0] if found else ""


def open_answer(doc: KeptOpen, reply: str) -> Scoring[OpenScore]:
    """One open answer: four ratings of the judge.

    What is no answer (empty, cut off) is not put to the judge and has the score 0.
    """
    status, candidate = reply_text.to_judge(reply)
    done = dict.fromkeys(DIMENSIONS, Judged("", status, 0.0, None))
    if status == "ok":
        fields = {
            "question": doc["question"],
            "reference": doc["reference"],
            "candidate": candidate,
        }
        asked = [Ask(name, judging.criteria()[name], fields) for name in DIMENSIONS]
        verdicts = yield asked
        done = {
            ask.name: graded(candidate, verdict)
            for ask, verdict in zip(asked, verdicts, strict=True)
        }
        status = next((one.status for one in done.values() if one.status != "ok"), "ok")
    return {
        "candidate": candidate,
        "status": status,
        "dimensions": {name: _rating(one) for name, one in done.items()},
        "words": _words(reply),
    }


def consistency(items: Sequence[OpenItem]) -> Iterator[tuple[str, Scoring[dict[str, object]]]]:
    """One rating of the answers to both wordings of a question, kept by the first wording's."""
    for first, second in metrics.pairs(items):
        yield first["id"], _consistent(first, second)


def _consistent(first: OpenItem, second: OpenItem) -> Scoring[dict[str, object]]:
    """Nobody is asked where one of the two is no answer: 0, or none where its request failed."""
    lost = [one["status"] for one in (first, second) if not one["candidate"]]
    done = Judged("", min(lost, key=CANDIDATE_FAILURES.__contains__, default=""), 0.0, None)
    if not lost:
        fields = {
            "question": first["question"],
            "reference": first["reference"],
            "candidate": first["candidate"],
            "paraphrase": second["question"],
            "candidate_paraphrase": second["candidate"],
        }
        (verdict,) = yield [Ask(CONSISTENCY, judging.criteria()[CONSISTENCY], fields)]
        done = graded(first["candidate"], verdict)
    return {"dimensions": {**first["dimensions"], CONSISTENCY: _rating(done)}}


def _rating(done: Judged) -> DimensionRating:
    return {"score": done.number, "status": done.status}


def _words(reply: str) -> int:
    """Length of a reply without its reasoning, which is no part of the answer."""
    return len(reasoning.strip_reasoning(reply)[0].split())


# --- the tasks ----------------------------------------------------------------------------------


_IDENTITY = (
    *("question_id", "video", "mode", "length", "start", "end", "options", "answer"),
    *("question", "reference"),
)
_SPLITS: dict[str, Literal["dots"]] = dict.fromkeys(SPLITS, "dots")


def _choice(name: str, *, circular: bool = False) -> Task[ChoiceDoc, KeptChoice, ChoiceItem]:
    unread = dict.fromkeys(("right", "letter", "read_by", "letter_authors"))
    return Task(
        name,
        choice_prompt,
        keep_choice,
        choice,
        metrics.CIRCULAR if circular else metrics.CHOICE,
        identity=_IDENTITY,
        media_log=handed,
        failed_item={**unread, "words": 0},
        splits=_SPLITS,
        pool=aggregate.pool_of if circular else lambda item: "",  # noqa: ARG005
    )


def _open(name: str) -> Task[OpenDoc, KeptOpen, OpenItem]:
    no_rating = {name: {"score": None, "status": "error"} for name in DIMENSIONS}
    return Task(
        name,
        open_prompt,
        keep_open,
        open_answer,
        metrics.OPEN,
        identity=_IDENTITY,
        media_log=handed,
        score_jointly=consistency,
        judgements=(*DIMENSIONS, CONSISTENCY),
        failed_item={"candidate": "", "dimensions": no_rating, "words": 0},
        # The reference in the place of the model's answer: as long as people's.
        example_reply=lambda doc, number: doc["reference"],  # noqa: ARG005
        splits=_SPLITS,
        pool=aggregate.pool_of,
    )


_KINDS: Mapping[str, Callable[[str], Task]] = {
    "choice": _choice,
    "circular": functools.partial(_choice, circular=True),
    "open": _open,
}


class Maverix(Benchmark):
    """MAVERIX for the shared code."""

    name = "maverix"
    title = "MAVERIX"
    how_to_get = data.HOW_TO_GET
    records = "items"
    paper_counts = files.PAPER_COUNTS
    paper_judge = "gpt-4o"  # paper, Dual-Format Evaluation; it names no dated version

    tasks: Mapping[str, Task] = {name: _KINDS[one.kind](name) for name, one in TASKS.items()}
    joint_metrics = (
        JointMetric(
            "maverix_table3",
            tuple(f"maverix_{mode}" for mode in MODES),
            metrics.table3,
            dict.fromkeys(metrics.JOINED, metrics.JOIN_NEEDS),
            metrics.table3_notes,
            share_names=("best_uni", "best_multi"),
        ),
    )

    read = staticmethod(files.read)
    sources = staticmethod(data.sources)
    docs = staticmethod(data.docs)
    data_notes = staticmethod(data.notes)
    judge_prompt = staticmethod(judging.prompt)

    def load(
        self, names: Sequence[str], *, videos: bool = True, only: Collection[str] | None = None
    ) -> data.MaverixData:
        """The data, with what there is no subtitle for."""
        loaded = super().load(names, videos=videos, only=only)
        return data.MaverixData(loaded.release, loaded.sources, data.silent(loaded, names))

    def table_rows(self, rows: Sequence[TableRow]) -> list[TableRow]:
        """With what stands by mode, and with marks of sound that did not arrive."""
        return list(tables.rows(rows))

    def media_job(self, doc: Doc) -> MediaJob | None:
        """Its segment, or the whole video; modes without picture and sound need none."""
        mode = MODES[doc["mode"]]
        if not mode.picture and not mode.sound:
            return None
        window = doc["video_path"], doc["start"], doc["end"]
        return MediaJob(doc["question_id"], window, functools.partial(cut, *window))

    def prompts(self, names: Sequence[str]) -> dict[str, Prompt]:  # noqa: ARG002
        """One file for all."""
        return {"task": task_prompts()}

    def criteria(self) -> Sequence[Criterion]:
        """The four ratings, and that of two answers."""
        return list(judging.criteria().values())

    def known_answers(self, place: Path, *, whole: bool = False) -> KnownAnswers:  # noqa: ARG002
        """The reference of every question, worth 5 in all four ratings; a wrong option is worth 0.

        What a wrong answer deserves in the other three ratings is not known.
        """
        release = files.read(place)
        task = self.tasks["maverix_v_oe"]
        answers = []
        for doc in cast(Sequence[OpenDoc], data.docs(LoadedData(release), task.name)):
            if not doc["borrowed"]:
                kept, right = (
                    task.log_fields(doc),
                    dict.fromkeys(DIMENSIONS, float(judging.HIGHEST)),
                )
                wrong = {DIMENSIONS[0]: float(judging.LOWEST)}
                answers.append(KnownAnswer(task.name, kept, doc["reference"], right))
                answers.append(KnownAnswer(task.name, kept, doc["lure"], wrong))
        told = f"{release.place} (data {release.digest}): references and wrong options as answers"
        return KnownAnswers(answers, [told], range(judging.LOWEST, judging.HIGHEST + 1))

    def check(self, names: Sequence[str], loaded: LoadedData) -> None:
        """A model that raises on sound would lose the run; missing subtitles are told of."""
        if raising := [name for name, state in _sound(names).items() if state == "raises"]:
            raise DataError(f"{_heard(raising[0])[1]} Leave {', '.join(raising)} out of --tasks")
        for line in cast(data.MaverixData, loaded).silent:
            say(f"MAVERIX: {line}")

    def describe(self, ran: Ran) -> tuple[dict[str, object], list[Condition]]:
        """Where data, subtitles and sound came from."""
        # `hears`: also of modes that were not run, since S may stand in for A.
        section, left_out = super().describe(ran)
        section["sound"] = _sound(ran.names)
        section["hears"] = model_capabilities.hears(context.current().model)
        release: files.MaverixRelease | None = ran.loaded.release if ran.loaded else None
        is_released = settings.is_sample() or (release is not None and release.released)
        conditions = [] if is_released else [Condition(Kind.NOTE, data.OUR_SCHEMA)]
        conditions += left_out
        if ran.loaded is not None and release is not None:
            cast(dict[str, object], section["data"])["items"] = len(data.items(ran.loaded))
            silent = cast(data.MaverixData, ran.loaded).silent
            conditions += [Condition(Kind.NOTE, line) for line in silent]
            if release.borrowed and any(TASKS[name].kind == "open" for name in ran.names):
                told = (
                    f"{len(release.borrowed)} questions have the open wording "
                    "of another question: numbers leave their answers out, and "
                    "metrics that end in _authors include them"
                )
                conditions.append(Condition(Kind.NOTE, told))
        for name in _sound(ran.names):
            why = _heard(name)[1]
            conditions += [Condition(Kind.SOUND, why, (name,))] if why else []
        return section, conditions


def _sound(names: Sequence[str]) -> dict[str, str]:
    """The state of sound in the running model, by task that has any."""
    return {name: _heard(name)[0] for name in names if TASKS[name].mode.sound}


def _heard(task: str) -> tuple[str, str | None]:
    """The state of a task's sound in the running model, and why it is not delivered or None."""
    return model_capabilities.heard(context.current().model, TASKS[task].mode.picture)


BENCHMARK = Maverix()
