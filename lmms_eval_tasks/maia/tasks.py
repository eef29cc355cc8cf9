"""MAIA: statement verification in pools of eight, open-ended QA on the same questions, both joined.

Testa et al. (2025). Three settings of each (4.3, 4.4) and the pairs without a video, in Italian and
with English instructions.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from lmms_eval_tasks import prompts, settings
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
    Part,
    Ran,
    Task,
    Units,
    option_set,
)
from lmms_eval_tasks.judges.asking import judged
from lmms_eval_tasks.judges.verdict import Criterion, Scoring
from lmms_eval_tasks.maia import data, metrics
from lmms_eval_tasks.maia import judge as judging
from lmms_eval_tasks.maia import release as files
from lmms_eval_tasks.maia.release import POOL_SIZE
from lmms_eval_tasks.maia.settings import MAIA
from lmms_eval_tasks.media import clip_specs, clips
from lmms_eval_tasks.models.fake_replies import read_lm_pairs
from lmms_eval_tasks.prompts import Prompt
from lmms_eval_tasks.report import provenance
from lmms_eval_tasks.utils.conditions import Condition, Kind
from lmms_eval_tasks.utils.metrics import text_metrics
from lmms_eval_tasks.utils.replies import answers

if TYPE_CHECKING:
    from PIL.Image import Image


class Asked(NamedTuple):
    """What a task asks."""

    kind: str  # begin of its name
    setting: str
    language: str  # of the instructions


SETTINGS = {"": "32frames", "_1frame": "1frame", "_black": "black"}  # in a task's name
LANGUAGES = {"": "it", "_en": "en"}  # at its end
ENDS = [f"{setting}{language}" for language in LANGUAGES for setting in SETTINGS]
TASKS = {
    f"{kind}{setting}{end}": Asked(kind, shown, language)
    for end, language in LANGUAGES.items()
    for kind in ("maia_vsv", "maia_oevqa")
    for setting, shown in SETTINGS.items()
}
TASKS["maia_unimodal"] = Asked("maia_unimodal", "text", "it")


# --- what the model is given ------------------------------------------------------------------

task_prompts = {
    language: prompts.file("maia", language, {"vsv": {"A", "B"}, "oevqa": {"question"}})
    for language in LANGUAGES.values()
}


def prompt(language: str, doc: Doc) -> list[Part]:
    """The video in the doc's setting, then the pair as A and B, or the question (4.1, 4.2)."""
    texts = task_prompts[language]().text
    if "options" in doc:
        text = prompts.fill(texts["vsv"], {"A": doc["options"][0], "B": doc["options"][1]})
    else:
        text = prompts.fill(texts["oevqa"], {"question": doc["question"]})
    return [*_seen(doc), Part("text", text)]


def _seen(doc: Doc) -> list[Part]:
    """The path of a clip, its frames, or one image; nothing without a video."""
    makes: dict[Any, Callable[[], Any]] = {
        "video": lambda: media_of(doc).path,
        "images": lambda: list(_taken(*_recipe_of(doc))),
        "image": lambda: _image(doc),
    }
    return [] if doc["setting"] == "text" else [Part(_form(doc), makes[_form(doc)])]


def _form(doc: Doc) -> Literal["video", "images", "image"]:
    if doc["setting"] == "32frames":
        return "images" if data.options()["media"] == "images" else "video"
    return "video" if data.still() else "image"


def _image(doc: Doc) -> Image:
    """The first frame; or a black picture of its size, one for the whole video."""
    from PIL import Image as pillow  # noqa: N813

    (picture,) = clips.images(media_of(doc))
    if doc["setting"] == "black":
        picture = pillow.new("RGB", picture.size)
    return _fitted(picture)


LONGEST_SIDE = 900  # of an image, in pixels (authors, bicubic); a clip keeps the video's size


def _fitted(picture: Image) -> Image:
    from PIL.Image import Resampling

    share = min(1, LONGEST_SIDE / max(picture.size))
    width, height = (max(1, round(side * share)) for side in picture.size)
    return picture.resize((width, height), Resampling.BICUBIC) if share < 1 else picture


def media_of(doc: Doc) -> clip_specs.ClipFile:
    """The clip or image of a doc, made once per video and setting; else MediaError."""
    return _made(*_recipe_of(doc))


def _recipe_of(doc: Doc) -> tuple[str, clip_specs.ClipSpec]:
    """The video's file, and what is made of it in one of the paper's three settings (4.3, 4.4)."""
    setting, still = doc["setting"], data.still()
    if setting == "1frame" or (setting == "black" and not still):  # whose size the picture has
        recipe = clip_specs.ClipSpec("first_frame", n_frames=1, still=still)
    else:
        kind: Literal["uniform", "black"] = "black" if setting == "black" else "uniform"
        recipe = clip_specs.ClipSpec(kind, n_frames=doc["n_frames"])
    return doc["video_path"], recipe


_made = functools.lru_cache(maxsize=4096)(clip_specs.make)


@functools.lru_cache(maxsize=2)  # a video's questions follow each other
def _taken(path: str, recipe: clip_specs.ClipSpec) -> tuple[Image, ...]:
    return tuple(map(_fitted, clips.images(_made(path, recipe))))


# --- what the reply is worth ------------------------------------------------------------------

_KEPT = ("id", "video", "category", "setting", "data")


def keep(doc: Doc) -> dict[str, Any]:
    """What the log keeps of a doc: all that `rescore` needs; a pair's id tells its question."""
    item = {name: doc[name] for name in _KEPT}
    if "options" in doc:
        return {**item, "options": doc["options"], "answer": doc["answer"]}
    return {**item, "question": doc["question"], "references": list(doc["references"])}


def handed(doc: Doc) -> dict[str, Any]:
    """What was handed over for the doc; None without a video."""
    if doc["setting"] == "text":
        return {"media": None}
    made, form = media_of(doc), _form(doc)
    is_picture = form == "image" and doc["setting"] == "black"
    told = {"kind": made.kind if form == "video" else form, "n_frames": made.n_frames}
    return {"media": {**told, "recipe": "black-image" if is_picture else made.recipe}}


# By the authors' rule this is the letter that a reply chooses, also the preposition of "A destra".
_FIRST_LETTER = re.compile(r"(?<!\w)[AB](?!\w)")


def vsv(doc: Item, reply: str) -> dict[str, Any]:
    """One true/false pair: a letter, or scores of language models (`lm_pairs`)."""
    if (scored := read_lm_pairs(reply)) is not None:
        letter, lm_scores = scored
        status, right = "ok" if letter in ("A", "B") else "unparsed", int(letter == doc["answer"])
        return {"letter": letter, "status": status, "right": right, "lm_scores": lm_scores}
    choice = answers.read_choice(reply, doc["options"])
    answered = choice.status != "model_error"  # an error's text may hold a letter
    first = _FIRST_LETTER.search(reply) if answered else None
    return {
        "letter": choice.letter,
        "read_by": choice.rule,
        "status": choice.status,
        "right": int(choice.status == "ok" and choice.letter == doc["answer"]),
        "right_authors": int(first is not None and first[0] == doc["answer"]),
    }


def oevqa(doc: Item, reply: str) -> Scoring:
    """One open answer: the judge's verdict and the similarity to the eight references."""
    fields = {"question": doc["question"], "references": doc["references"]}
    done = yield from judged("agrees", judging.criterion(), fields, reply)
    return {
        "candidate": done.candidate,
        "status": done.status,
        "right": done.number,
        "rouge_1": text_metrics.rouge_1(done.candidate, doc["references"]),
        "rouge_l": text_metrics.rouge_l(done.candidate, doc["references"]),
        "meteor": text_metrics.meteor(done.candidate, doc["references"]),
    }


# --- the tasks --------------------------------------------------------------------------------


def _tasks() -> dict[str, Task]:
    pairs = functools.partial(
        Task,
        score=vsv,
        metrics=metrics.PAIRS,
        blank={"right": None, "letter": None},
        splits={"category": "star"},
        pool=lambda item: str(item["id"].rpartition("/")[0]),
    )
    questions = functools.partial(
        Task,
        score=oevqa,
        metrics=metrics.ANSWERS,
        splits={"category": "star"},
        asks=("agrees",),
        extra="metrics",
        blank={"right": None, "candidate": ""},
        # The references in turn: people's, so models that write more cost more.
        stand_in=lambda doc, number: str(doc["references"][number % POOL_SIZE]),
    )
    of_kind = {"maia_vsv": pairs, "maia_unimodal": pairs, "maia_oevqa": questions}
    return {
        name: of_kind[asked.kind](
            name,
            functools.partial(prompt, asked.language),
            keep=keep,
            identity=("video", "setting", "options", "answer", "question", "references"),
            # The paper's 32, or the user's, of the setting that shows a video (4.3).
            frames=lambda doc: int(doc["n_frames"]) if doc["setting"] == "32frames" else None,
            handed=handed,
        )
        for name, asked in TASKS.items()
    }


def _join(end: str) -> Join:
    pairs, open_ended = f"maia_vsv{end}", f"maia_oevqa{end}"

    def of(sides: Mapping[str, Items]) -> dict[str, Any]:
        if sides.keys() != {pairs, open_ended}:
            return {}
        return metrics.agg_acc(sides[pairs], sides[open_ended])

    def both(sides: Mapping[str, Items]) -> Units:
        is_whole = sides.keys() == {pairs, open_ended}
        return metrics.agg_units(sides[pairs], sides[open_ended]) if is_whole else {}

    shown = {"agg_acc": metrics.JOIN_NEEDS}
    return Join(
        f"maia{end}",
        (pairs, open_ended),
        of,
        shown,
        counted="agg_acc_n_joined",
        shares=("agg_acc",),
        units={"agg_acc": both},
    )


class Maia(Benchmark):
    """MAIA for the shared code."""

    name = "maia"
    title = "MAIA"
    how_to_get = data.HOW_TO_GET
    paper_judge = "gpt-4o"  # paper, 4.2; it names no dated version
    cuts = ("videos read", "videos of {} can be read")
    whole_videos = True

    tasks = _tasks()
    joins = tuple(map(_join, ENDS))

    look = staticmethod(data.look)
    seen = staticmethod(data.seen)
    files = staticmethod(data.placed)
    suited = staticmethod(judging.suited)
    judge_prompt = staticmethod(judging.prompt)

    def docs(self, found: Found, task: str) -> Sequence[Doc]:
        """One doc per pair, or per question."""
        asked = TASKS[task]
        make = data.questions if asked.kind == "maia_oevqa" else data.pairs
        return make(found, asked.setting)

    def cut(self, doc: Doc) -> Cut | None:
        """The clip or image of its video, the same for all docs of a setting; none of a text."""
        if doc["setting"] == "text":
            return None
        window = _recipe_of(doc)
        return Cut(doc["video"], window, functools.partial(_made, *window))

    def prompts(self, names: Sequence[str]) -> dict[str, Prompt]:
        """The instructions, by language."""
        return {one: task_prompts[one]() for one in sorted({TASKS[n].language for n in names})}

    def criteria(self) -> Sequence[Criterion]:
        """Does an answer agree with a reference?"""
        return [judging.criterion()]

    def known_answers(self, place: Path, *, whole: bool = False) -> KnownAnswers:  # noqa: ARG002
        """The statements of every question as answers to it: true ones are right, others wrong."""
        release = files.read(place)
        found, task = Found(release, release.digest), self.tasks["maia_oevqa"]
        kept = {doc["id"]: task.keep(doc) for doc in data.questions(found, "32frames")}
        answers = [
            KnownAnswer(
                *(task.name, kept[pair["question_id"]], text),
                {"agrees": float(letter == pair["answer"])},
            )
            for pair in data.pairs(found, "text")
            for letter, text in zip("AB", pair["options"], strict=True)
        ]
        told = f"{release.files[0]} (data {release.digest}): true and false statements as answers"
        return KnownAnswers(answers, [told], scale=(0, 1))

    def describe(self, ran: Ran) -> tuple[dict[str, Any], list[Condition]]:
        """Data, left-out videos, and how texts were compared."""
        section: dict[str, Any] = {}
        conditions = option_set(MAIA)
        if settings.text(settings.FRAMES) != "32":  # the paper's
            conditions = [*option_set(settings.FRAMES), *conditions]
        if ran.found is not None:
            release = ran.found.release
            lost = {video: why for own in ran.left_out.values() for video, why in own.items()}
            questions = sum(len(v.questions) for v in release.videos if v.video in lost)
            section = {
                "data": {"file": str(release.files[0]), "hash": release.digest, **release.counts},
                "options": data.options(),
                "left_out": lost,
                "questions_left_out": questions,
            }
            told = f"{questions} questions of {len(lost)} videos left out: {', '.join(lost)}"
            conditions += [Condition(Kind.LEFT_OUT, told)] if lost else []
        how = text_metrics.IMPLEMENTATIONS | provenance.notes("maia")
        return {**section, "implementations": how}, conditions


BENCHMARK = Maia()
