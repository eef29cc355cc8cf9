"""MAIA's tasks: statement verification in pools of eight, open-ended QA, and both joined.

Source: Testa et al. (2025). Each task exists in three settings (4.3, 4.4), statement verification
also without a video. Instructions are Italian or English.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from lmms_eval_tasks import prompts, settings
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
    Task,
    Units,
    option_set,
    select_fields,
)
from lmms_eval_tasks.judges.asking import judge_reply
from lmms_eval_tasks.judges.verdict import Criterion, ScoringSteps
from lmms_eval_tasks.maia import data, metrics
from lmms_eval_tasks.maia import judge as judging
from lmms_eval_tasks.maia import release as files
from lmms_eval_tasks.maia.items import (
    Categorised,
    KeptOevqa,
    KeptPair,
    OevqaDoc,
    OevqaItem,
    OevqaScore,
    PairDoc,
    PairItem,
    PairScore,
)
from lmms_eval_tasks.maia.release import POOL_SIZE
from lmms_eval_tasks.maia.settings import MAIA
from lmms_eval_tasks.media import clip_specs, clips
from lmms_eval_tasks.models.fake_replies import read_lm_pairs
from lmms_eval_tasks.prompts import Prompt
from lmms_eval_tasks.report import provenance
from lmms_eval_tasks.utils.conditions import Condition
from lmms_eval_tasks.utils.metrics import aggregate, text_metrics
from lmms_eval_tasks.utils.replies import answers

if TYPE_CHECKING:
    from PIL.Image import Image


MaiaDoc = PairDoc | OevqaDoc


class MaiaTask(NamedTuple):
    """The properties of one task."""

    kind: str  # first part of the task's name
    setting: str  # 32frames, 1frame, black or text
    language: str  # language of the instructions


# Part of a task's name -> setting.
SETTINGS = {"": "32frames", "_1frame": "1frame", "_black": "black"}
LANGUAGES = {"": "it", "_en": "en"}  # last part of a task's name -> language
ENDS = [f"{setting}{language}" for language in LANGUAGES for setting in SETTINGS]
TASKS = {
    f"{kind}{setting}{end}": MaiaTask(kind, shown, language)
    for end, language in LANGUAGES.items()
    for kind in ("maia_vsv", "maia_oevqa")
    for setting, shown in SETTINGS.items()
}
TASKS["maia_unimodal"] = MaiaTask("maia_unimodal", "text", "it")


# --- prompts --------------------------------------------------------------------------------------

task_prompts = {
    language: prompts.file("maia", language, {"vsv": {"A", "B"}, "oevqa": {"question"}})
    for language in LANGUAGES.values()
}


def pair_prompt(language: str, doc: PairDoc) -> list[Part]:
    """Return the video in the doc's setting, then the pair as A and B (4.1)."""
    first, second = doc["options"]
    text = prompts.fill(task_prompts[language]().text["vsv"], {"A": first, "B": second})
    return [*_seen(doc), Part("text", text)]


def question_prompt(language: str, doc: OevqaDoc) -> list[Part]:
    """Return the video in the doc's setting, then the question (4.2)."""
    text = prompts.fill(task_prompts[language]().text["oevqa"], {"question": doc["question"]})
    return [*_seen(doc), Part("text", text)]


def _seen(doc: MaiaDoc) -> list[Part]:
    """Return the part with the doc's clip, its frames, or one image; [] in the setting `text`."""
    if doc["setting"] == "text":
        return []
    makes = {
        "video": lambda: media_of(doc).path,
        "images": lambda: list(_taken(*_recipe_of(doc))),
        "image": lambda: _image(doc),
    }
    return [Part(form := _form(doc), makes[form])]


def _form(doc: MaiaDoc) -> Literal["video", "images", "image"]:
    if doc["setting"] == "32frames":
        return "images" if data.options()["media"] == "images" else "video"
    return "video" if data.still() else "image"


def _image(doc: MaiaDoc) -> Image:
    """Return the video's first frame, or in the setting `black` a black picture of that size."""
    from PIL import Image as pillow  # noqa: N813

    (picture,) = clips.images(media_of(doc))
    if doc["setting"] == "black":
        picture = pillow.new("RGB", picture.size)
    return _fitted(picture)


# The longest side of an image in pixels, as in the authors' code; a clip keeps the video's size.
LONGEST_SIDE = 900


def _fitted(picture: Image) -> Image:
    from PIL.Image import Resampling

    share = min(1, LONGEST_SIDE / max(picture.size))
    width, height = (max(1, round(side * share)) for side in picture.size)
    return picture.resize((width, height), Resampling.BICUBIC) if share < 1 else picture


def media_of(doc: MaiaDoc) -> clip_specs.ClipFile:
    """Return a doc's clip or image, which is made only once for a video and a setting.

    Raises:
        MediaError: the video cannot be read.
    """
    return _made(*_recipe_of(doc))


def _recipe_of(doc: MaiaDoc) -> tuple[str, clip_specs.MediaSpec]:
    """Return the path of the doc's video, and the specification of its clip (4.3, 4.4)."""
    setting, still = doc["setting"], data.still()
    # A black picture needs the first frame, too, for its size.
    if setting == "1frame" or (setting == "black" and not still):
        recipe = clip_specs.MediaSpec("first_frame", n_frames=1, still=still)
    else:
        kind: Literal["uniform", "black"] = "black" if setting == "black" else "uniform"
        recipe = clip_specs.MediaSpec(kind, n_frames=doc["n_frames"])
    return doc["video_path"], recipe


_made = functools.lru_cache(maxsize=4096)(clip_specs.make_clip_file)


@functools.lru_cache(maxsize=2)  # the questions about a video come in a row
def _taken(path: str, recipe: clip_specs.MediaSpec) -> tuple[Image, ...]:
    return tuple(map(_fitted, clips.images(_made(path, recipe))))


# --- scoring --------------------------------------------------------------------------------------


def _media_log(doc: MaiaDoc) -> dict[str, object]:
    """Return the field `media`, a description of the media in the prompt; None without a video."""
    if doc["setting"] == "text":
        return {"media": None}
    made, form = media_of(doc), _form(doc)
    is_picture = form == "image" and doc["setting"] == "black"
    told = {"kind": made.kind if form == "video" else form, "n_frames": made.n_frames}
    return {"media": {**told, "recipe": "black-image" if is_picture else made.recipe}}


# The authors' code reads the first such letter as the choice, even the preposition in "A destra".
_FIRST_LETTER = re.compile(r"(?<!\w)[AB](?!\w)")


def vsv(doc: KeptPair, reply: str) -> PairScore:
    """Score a reply to one pair: a letter, or a language model's scores (`read_lm_pairs`)."""
    if (scored := read_lm_pairs(reply)) is not None:
        letter, lm_scores = scored
        status, right = "ok" if letter in ("A", "B") else "unparsed", int(letter == doc["answer"])
        return {"letter": letter, "status": status, "right": right, "lm_scores": lm_scores}
    choice = answers.read_choice(reply, doc["options"])
    answered = choice.status != "model_error"  # the message of an error may contain a letter
    first = _FIRST_LETTER.search(reply) if answered else None
    return {
        "letter": choice.letter,
        "read_by": choice.rule,
        "status": choice.status,
        "right": int(choice.status == "ok" and choice.letter == doc["answer"]),
        "right_authors": int(first is not None and first[0] == doc["answer"]),
    }


def oevqa(doc: KeptOevqa, reply: str) -> ScoringSteps[OevqaScore]:
    """Score one open answer: the judge's verdict, and similarities to the eight references."""
    fields = {"question": doc["question"], "references": doc["references"]}
    done = yield from judge_reply("agrees", judging.agreement_criterion(), fields, reply)
    return {
        "candidate": done.candidate,
        "status": done.status,
        "right": done.number,
        "rouge_1": text_metrics.rouge_1(done.candidate, doc["references"]),
        "rouge_l": text_metrics.rouge_l(done.candidate, doc["references"]),
        "meteor": text_metrics.meteor(done.candidate, doc["references"]),
    }


# --- the tasks --------------------------------------------------------------------------------


_IDENTITY = ("video", "setting", "options", "answer", "question", "references")
_SPLITS: dict[str, Literal["star"]] = {"category": "star"}


def _frames(doc: MaiaDoc) -> int | None:
    """Return 32 frames (paper, 4.3), or the user's number, for the setting that shows a video."""
    return doc["n_frames"] if doc["setting"] == "32frames" else None


def _pairs(name: str, language: str) -> Task[PairDoc, KeptPair, PairItem]:
    return Task(
        name,
        functools.partial(pair_prompt, language),
        functools.partial(select_fields, kind=KeptPair),
        vsv,
        metrics.PAIRS,
        identity=_IDENTITY,
        frames=_frames,
        media_log=_media_log,
        failed_item={"right": None, "letter": None},
        splits=_SPLITS,
        pool=aggregate.pool_of,
    )


def _questions(name: str, language: str) -> Task[OevqaDoc, KeptOevqa, OevqaItem]:
    return Task(
        name,
        functools.partial(question_prompt, language),
        functools.partial(select_fields, kind=KeptOevqa),
        oevqa,
        metrics.ANSWERS,
        identity=_IDENTITY,
        frames=_frames,
        media_log=_media_log,
        judgements=("agrees",),
        extra="metrics",
        failed_item={"right": None, "candidate": ""},
        # The references in turn. People wrote them; a model with longer answers costs more.
        example_reply=lambda doc, number: doc["references"][number % POOL_SIZE],
        splits=_SPLITS,
    )


def _joint_metric(end: str) -> JointMetric[Categorised]:
    pairs, open_ended = f"maia_vsv{end}", f"maia_oevqa{end}"

    def of(by_task: Mapping[str, Sequence[Categorised]]) -> dict[str, float | None]:
        is_whole = by_task.keys() == {pairs, open_ended}
        return metrics.agg_acc(by_task[pairs], by_task[open_ended]) if is_whole else {}

    def both(by_task: Mapping[str, Sequence[Categorised]]) -> Units:
        is_whole = by_task.keys() == {pairs, open_ended}
        return metrics.agg_units(by_task[pairs], by_task[open_ended]) if is_whole else {}

    host_fields = {"agg_acc": metrics.JOINT_FIELDS}
    return JointMetric(
        f"maia{end}",
        (pairs, open_ended),
        of,
        host_fields,
        count_name="agg_acc_n_joined",
        share_names=("agg_acc",),
        per_unit={"agg_acc": both},
    )


class Maia(Benchmark):
    """The benchmark MAIA, for the code that all benchmarks share (benchmark.py)."""

    name = "maia"
    title = "MAIA"
    how_to_get = data.HOW_TO_GET
    downloads = data.DOWNLOADS
    by_hand = data.BY_HAND
    records = "videos"
    paper_counts = files.PAPER_COUNTS
    paper_judge = "gpt-4o"  # paper, 4.2; it names no dated version
    media_messages = ("videos read", "videos of {} can be read")
    whole_videos = True

    tasks: Mapping[str, Task] = {
        name: (_questions if one.kind == "maia_oevqa" else _pairs)(name, one.language)
        for name, one in TASKS.items()
    }
    joint_metrics = tuple(map(_joint_metric, ENDS))

    read_release = staticmethod(files.read_maia)
    sources = staticmethod(data.media_sources)
    configure_judge = staticmethod(judging.limit_reply)
    judge_prompt = staticmethod(judging.prompt)

    def complaints(self, release: files.MaiaRelease, names: Sequence[str]) -> list[str]:  # noqa: ARG002
        """Check the options of `--maia`, which raises an error if one is wrong; return []."""
        data.options()
        return []

    def docs(self, loaded: LoadedData, task: str) -> Sequence[Doc]:
        """Return one doc for each pair or each question."""
        asked = TASKS[task]
        make = data.questions if asked.kind == "maia_oevqa" else data.pairs
        return make(loaded, asked.setting, loaded.left_out(task))

    def media_job(self, doc: Doc) -> MediaJob | None:
        """Return the job that makes the doc's clip or image; None without a video.

        All docs with the same video and setting share the job.
        """
        if doc["setting"] == "text":
            return None
        window = _recipe_of(cast(MaiaDoc, doc))
        return MediaJob(doc["video"], window, functools.partial(_made, *window))

    def prompts(self, names: Sequence[str]) -> dict[str, Prompt]:
        """Return the prompt files of these tasks, by language."""
        return {one: task_prompts[one]() for one in sorted({TASKS[n].language for n in names})}

    def criteria(self) -> Sequence[Criterion]:
        """Return the criterion that an answer agrees with a reference."""
        return [judging.agreement_criterion()]

    def known_answers(self, place: Path) -> KnownAnswers:
        """Return the statements of every question as answers; true ones are right, others wrong."""
        release = files.read_maia(place)
        loaded, task = LoadedData(release), self.tasks["maia_oevqa"]
        kept = {doc["id"]: task.log_fields(doc) for doc in data.questions(loaded, "32frames")}
        answers = [
            KnownAnswer(
                *(task.name, kept[pair["question_id"]], text),
                {"agrees": float(letter == pair["answer"])},
            )
            for pair in data.pairs(loaded, "text")
            for letter, text in zip("AB", pair["options"], strict=True)
        ]
        told = f"{release.place} (data {release.digest}): true and false statements as answers"
        return KnownAnswers(answers, [told], scale=(0, 1))

    def describe(self, ran: Ran) -> tuple[dict[str, object], list[Condition]]:
        """Return data, left-out videos, options, and implementations of text metrics."""
        section, left_out = super().describe(ran)
        conditions = option_set(MAIA)
        if settings.text(settings.FRAMES) != "32":  # the paper's number
            conditions = [*option_set(settings.FRAMES), *conditions]
        conditions += left_out
        if ran.loaded is not None:
            lost = {video for own in ran.left_out.values() for video in own}
            videos = [one for one in ran.loaded.release.videos if one.video in lost]
            section["questions_left_out"] = sum(len(one.questions) for one in videos)
            section["options"] = data.options()
        how = text_metrics.IMPLEMENTATIONS | provenance.implementation_notes("maia")
        return {**section, "implementations": how}, conditions


BENCHMARK = Maia()
