"""MAVERIX's tasks: audio-visual questions with eight options, rotated options, open questions.

Source: Xie et al. Five input modes measure the effects of sound, picture and subtitles, for an
item's segment and for the whole video.
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
from lmms_eval_tasks.judges.verdict import (
    Criterion,
    JudgedAnswer,
    JudgeRequest,
    ScoringSteps,
    judged_answer,
)
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
from lmms_eval_tasks.notify import notify
from lmms_eval_tasks.prompts import Prompt
from lmms_eval_tasks.utils.conditions import Condition, Kind
from lmms_eval_tasks.utils.media import sounds, subtitles
from lmms_eval_tasks.utils.metrics import aggregate
from lmms_eval_tasks.utils.metrics.aggregate import CANDIDATE_FAILURES
from lmms_eval_tasks.utils.metrics.rating_means import DimensionRating
from lmms_eval_tasks.utils.replies import answers, reasoning, reply_text

MaverixDoc = ChoiceDoc | OpenDoc

# --- prompts --------------------------------------------------------------------------------------


def choice_prompt(doc: ChoiceDoc) -> list[Part]:
    """Return the mode's picture and sound, then the question with its options."""
    options = "\n".join(map("{}. {}".format, LETTERS, doc["options"]))
    return [*_shown(doc), _text(doc, "choice", {"options": options})]


def open_prompt(doc: OpenDoc) -> list[Part]:
    """Return the mode's picture and sound, then the question."""
    return [*_shown(doc), _text(doc, "open", {})]


def _shown(doc: MaverixDoc) -> list[Part]:
    """Return the parts with the mode's picture and sound.

    The form depends on the model's class (models/model_capabilities.py):

    - A chat class gets a muted video, and the sound as a separate part. Most chat classes read
      sound only from such a part, and a class that reads both would hear the sound twice.
    - A class that reads the sound track of a video gets the video with its sound.
    - A simple class uses only the first visual (docs/design.md), so it gets picture and sound in
      one mp4 file.
    - In a mode without picture, the sound is the path of a wav file, or its samples for classes
      that take no path.
    """
    mode = MODES[doc["mode"]]

    def path_of(name: str) -> str:
        path: str | None = getattr(media_of(doc), name)
        if path is None:
            raise MediaError(
                f"{doc['video_path']}: no audio stream, and {doc['mode']} requires sound"
            )
        return path

    def alone() -> list[object]:
        path, rate = path_of("sound"), sounds.RATE
        wants = model_capabilities.sound_form(context.current().model) == "samples"
        return [{"array": segments.samples(path), "sampling_rate": rate} if wants else path]

    muted, sound, both = (
        functools.partial(path_of, name) for name in ("video", "sound", "video_with_sound")
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
    """Return the text part: subtitles, instruction, question and closing cue (paper, C.1)."""
    parts = task_prompts().text
    cues = data.cues(doc) if MODES[doc["mode"]].subtitles else []
    shown = {"cues": subtitles.render(cues), "texts": "\n".join(cue.text for cue in cues)}
    told = prompts.fill(parts["subtitles"], shown) if cues else parts["no_subtitles"]
    values = {"subtitles": told, "question": doc["question"], **more}
    return Part("text", prompts.fill(parts[part], values))


_PARTS: dict[str, set[str]] = {
    "subtitles": {"cues|texts"},  # `cues`: subtitles with their times; `texts`: without
    "no_subtitles": set(),
    "choice": {"subtitles", "question", "options"},
    "open": {"subtitles", "question"},
}
task_prompts = prompts.file("maverix", "task", _PARTS)


def media_of(doc: MaverixDoc) -> segments.CutSegment:
    """Return the files of the doc's segment or whole video, which are cut once for all modes."""
    return cut(doc["video_path"], doc["start"], doc["end"])


cut = functools.lru_cache(maxsize=4096)(segments.segment)


# --- scoring --------------------------------------------------------------------------------------


def keep_choice(doc: ChoiceDoc) -> KeptChoice:
    """Return the doc's fields for the log: all that `rescore` needs."""
    return {**select_fields(doc, ChoiceQuestion), **_unknown(doc)}


def keep_open(doc: OpenDoc) -> KeptOpen:
    """Return the doc's fields for the log: all that `rescore` needs."""
    return {**select_fields(doc, OpenQuestion), **_unknown(doc)}


def _unknown(doc: MaverixDoc) -> MaverixHanded:
    """Return the fields of `media_log` with unknown values; in a run, `media_log` replaces them."""
    hears = dict.fromkeys(metrics.WITH_SOUND, "unknown")
    return {"hears": hears, "sound": hears.get(doc["mode"], ""), "media": None}


def _media_log(doc: MaverixDoc) -> MaverixHanded:
    """Return the media in the prompt, and whether the running model hears sound (`hears`).

    Docs of modes without sound also have `hears`: whether the mode S (subtitles) replaces A (audio)
    in the tables depends on the model, not on the tasks that were run.
    """
    hears = model_capabilities.hears(context.current().model)
    return {"hears": hears, "sound": hears.get(doc["mode"], ""), "media": _media(doc)}


def _media(doc: MaverixDoc) -> dict[str, object] | None:
    """Return the media in the prompt; None, and no error, if a file has disappeared."""
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
    """Score a reply to one eight-option question, or to one rotation of it."""
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
    """Return the letter that the authors' code reads: the first capital A to H; "" if none.

    Eight set phrases are deleted first, so that no letter of "The answer is" counts. The A of
    "Answer" in any other phrase counts.
    """
    found = re.search(f"[{LETTERS}]", _SET_PHRASES.sub("", reply))
    return found[0] if found else ""


def open_answer(doc: KeptOpen, reply: str) -> ScoringSteps[OpenScore]:
    """Score one open answer: the judge's four ratings.

    A reply without an answer, such as an empty or truncated one, is not sent to the judge and has
    the score 0.
    """
    status, candidate = reply_text.to_judge(reply)
    done = dict.fromkeys(DIMENSIONS, JudgedAnswer("", status, 0.0, None))
    if status == "ok":
        fields = {
            "question": doc["question"],
            "reference": doc["reference"],
            "candidate": candidate,
        }
        asked = [JudgeRequest(name, judging.criteria()[name], fields) for name in DIMENSIONS]
        verdicts = yield asked
        done = {
            ask.name: judged_answer(candidate, verdict)
            for ask, verdict in zip(asked, verdicts, strict=True)
        }
        status = next((one.status for one in done.values() if one.status != "ok"), "ok")
    return {
        "candidate": candidate,
        "status": status,
        "dimensions": {name: _rating(one) for name, one in done.items()},
        "words": _words(reply),
    }


def consistency(items: Sequence[OpenItem]) -> Iterator[tuple[str, ScoringSteps[dict[str, object]]]]:
    """Yield, for each question, the id of its first wording and the rating of its two answers."""
    for first, second in metrics.pairs(items):
        yield first["id"], _consistent(first, second)


def _consistent(first: OpenItem, second: OpenItem) -> ScoringSteps[dict[str, object]]:
    """Rate the consistency of the answers to both wordings of a question.

    If an answer is missing, no request is sent. Then the score is 0, or None if the request to the
    model failed.
    """
    lost = [one["status"] for one in (first, second) if not one["candidate"]]
    done = JudgedAnswer("", min(lost, key=CANDIDATE_FAILURES.__contains__, default=""), 0.0, None)
    if not lost:
        fields = {
            "question": first["question"],
            "reference": first["reference"],
            "candidate": first["candidate"],
            "paraphrase": second["question"],
            "candidate_paraphrase": second["candidate"],
        }
        (verdict,) = yield [JudgeRequest(CONSISTENCY, judging.criteria()[CONSISTENCY], fields)]
        done = judged_answer(first["candidate"], verdict)
    return {"dimensions": {**first["dimensions"], CONSISTENCY: _rating(done)}}


def _rating(judged: JudgedAnswer) -> DimensionRating:
    return {"score": judged.number, "status": judged.status}


def _words(reply: str) -> int:
    """Return the number of words of a reply without its reasoning."""
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
        media_log=_media_log,
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
        media_log=_media_log,
        score_jointly=consistency,
        judgements=(*DIMENSIONS, CONSISTENCY),
        failed_item={"candidate": "", "dimensions": no_rating, "words": 0},
        # The reference, since it is as long as an answer that a person wrote.
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
    """The benchmark MAVERIX, for the code that all benchmarks share (benchmark.py)."""

    name = "maverix"
    title = "MAVERIX"
    how_to_get = data.HOW_TO_GET
    downloads = data.DOWNLOADS
    records = "items"
    paper_counts = files.PAPER_COUNTS
    paper_judge = "gpt-4o"  # paper, Dual-Format Evaluation; it names no dated version

    tasks: Mapping[str, Task] = {name: _KINDS[one.kind](name) for name, one in TASKS.items()}
    joint_metrics = (
        JointMetric(
            "maverix_table3",
            tuple(f"maverix_{mode}" for mode in MODES),
            metrics.table3,
            dict.fromkeys(metrics.JOINED, metrics.JOINT_FIELDS),
            metrics.table3_notes,
            share_names=("best_uni", "best_multi"),
        ),
    )

    read_release = staticmethod(files.read_maverix)
    sources = staticmethod(data.media_sources)
    docs = staticmethod(data.make_maverix_docs)
    data_notes = staticmethod(data.status_notes)
    judge_prompt = staticmethod(judging.prompt)

    def load(
        self, names: Sequence[str], *, videos: bool = True, only: Collection[str] | None = None
    ) -> data.MaverixData:
        """Load the data, and add lines about items without subtitles."""
        loaded = super().load(names, videos=videos, only=only)
        return data.MaverixData(loaded.release, loaded.sources, data.silent(loaded, names))

    def table_rows(self, rows: Sequence[TableRow]) -> list[TableRow]:
        """Return the rows, with further rows by mode, and with marks if sound did not arrive."""
        return list(tables.marked_rows(rows))

    def media_job(self, doc: Doc) -> MediaJob | None:
        """Return the job that cuts the doc's segment or video; None without picture and sound."""
        mode = MODES[doc["mode"]]
        if not mode.picture and not mode.sound:
            return None
        window = doc["video_path"], doc["start"], doc["end"]
        return MediaJob(doc["question_id"], window, functools.partial(cut, *window))

    def prompts(self, names: Sequence[str]) -> dict[str, Prompt]:  # noqa: ARG002
        """Return the prompt file that all tasks use."""
        return {"task": task_prompts()}

    def criteria(self) -> Sequence[Criterion]:
        """Return the criteria of the four ratings and of the consistency rating."""
        return list(judging.criteria().values())

    def known_answers(self, place: Path) -> KnownAnswers:
        """Return two answers to each question: the reference, and a wrong option.

        The right ratings of the reference are HIGHEST in all dimensions. Of a wrong option, only
        the rating of correctness is known, LOWEST.
        """
        release = files.read_maverix(place)
        task = self.tasks["maverix_v_oe"]
        answers = []
        for doc in cast(Sequence[OpenDoc], data.make_maverix_docs(LoadedData(release), task.name)):
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
        """Check that the model does not fail on sound; print lines about missing subtitles.

        Raises:
            DataError: the model would raise an error on sound, which would end the run; the message
                names the tasks to leave out.
        """
        if raising := [name for name, state in _sound(names).items() if state == "raises"]:
            raise DataError(f"{_heard(raising[0])[1]} Leave {', '.join(raising)} out of --tasks")
        for line in cast(data.MaverixData, loaded).silent:
            notify(f"MAVERIX: {line}")

    def describe(self, ran: Ran) -> tuple[dict[str, object], list[Condition]]:
        """Return facts about data, subtitles and sound, and their conditions."""
        # `hears` also has modes that were not run, since S may replace A in the tables.
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
    """Return the state of sound in the running model, for each task with sound."""
    return {name: _heard(name)[0] for name in names if TASKS[name].mode.sound}


def _heard(task: str) -> tuple[str, str | None]:
    """Return the state of a task's sound in the running model, and why it does not arrive.

    The reason is None if the sound arrives.
    """
    return model_capabilities.sound_state(context.current().model, TASKS[task].mode.picture)


BENCHMARK = Maverix()
