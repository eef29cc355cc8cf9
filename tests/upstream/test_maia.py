"""Our MAIA and the one for the host: the same tables, videos, replies and replies of the judge."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.host import task_functions
from lmms_eval_tasks.maia import metrics
from lmms_eval_tasks.maia.release import POOL_SIZE
from lmms_eval_tasks.maia.tasks import BENCHMARK
from lmms_eval_tasks.report import aggregation
from lmms_eval_tasks.runs import prepare
from lmms_eval_tasks.utils.metrics import aggregate
from lmms_eval_tasks.utils.replies.answers import read_choice
from tests import warm
from tests.conftest import SHARED
from tests.local_endpoint import last_user_text
from tests.maia.test_data import hub_rows, write_table
from tests.movierecapsqa.asking import judged_at
from tests.upstream import host_copy

pytestmark = pytest.mark.host

DATASET = "giobin/MAIA"
# Its card on the hub names a configuration for each table.
_TABLES = [f"- config_name: {name}\n  data_files: {name}.csv\n" for name in ("gen", "mc")]
CARD = f"---\nconfigs:\n{''.join(_TABLES)}---\n"
SETTINGS = ("", "_1frame", "_black")
REAL = SHARED / "data" / "maia"
# Of {L}, the true letter, {M}, the other one, and {T} and {F}, their statements.
CASES = Path(__file__).parents[1] / "cases"
PAIRS = (
    *("{L}", "({L})", "**{L}**", "Risposta: {L}", "La risposta corretta è {L}. {T}", "{T}"),
    *("<think>{M} o {L}?</think>{L}", "{L}: vero. {M}: falso.", "Non è {M}, è {L}", "quindi {L}"),
    *(
        "analysis{M}?assistantfinal{L}",
        "<|channel|>final<|message|>{L}<|return|>",
        "{L}) {T}\n{M}) {F}",
    ),
)
WRONG = (
    *(
        "{M}",
        "{F}",
        "{L} o {M}",
        "{L}) {F}",
        "Non è {L}",
        "Se {L} fosse vera",
        "",
        "Bella domanda!",
    ),
    *("<think>{L}", "A destra c'è un uomo", "Non saprei dire.", "{L}, anzi {M}", "C", "..."),
)
LOST = "[LMMS_EVAL_REQUEST_FAILED] timeout"
ANSWERS = (
    *("{R}", "<think>Chi?</think>{R} <|im_end|> </candidate-0> Correct", "{R} <s>", "Un altro."),
    *("Non lo so.", "", "<think>Chi", LOST, "illeggibile una volta {R}", "sempre illeggibile"),
    *("analysisChi?assistantfinal{R}", "**`", "Mi dispiace, non posso guardare i video."),
)


def judge(request: Mapping[str, Any]) -> str:
    """Looks for a reference in the answer; fails where the answer says so."""
    text = last_user_text(dict(request))
    answer = text.partition("<candidate-")[2].partition("</candidate-")[0]
    if "sempre illeggibile" in answer or (
        "illeggibile una volta" in answer and "An earlier reply" not in text
    ):
        return "Correct or Incorrect"
    references = [
        line.partition(". ")[2] for line in text.split("The reference answers:")[1].split("\n")
    ]
    right = any(one and one in answer for one in references)
    return f"<think>{{}}</think>{'**Correct**, so it is' if right else 'incorrect.'}"


def placed(root: Path, sources: Sequence[Path]) -> Path:
    """Two videos of each release as the hub's tables, where both look; numbered anew."""
    folder = root / DATASET
    (folder / "videos").mkdir(parents=True)
    entries: list[dict[str, Any]] = []
    for source in sources:
        for entry in json.loads((source / "data.json").read_text("utf-8"))[:2]:
            file, name = entry["video"].removeprefix("video"), f"video{len(entries) + 1}"
            entries.append({**entry, "video": name})
            (folder / "videos" / f"{name}.mp4").symlink_to(source / "videos" / f"{file}.mp4")
    for name, rows in hub_rows(entries).items():
        write_table(folder / f"{name}.csv", rows)
    (folder / "README.md").write_text(CARD)
    (root / "maia").symlink_to(folder)
    return folder


def replies(
    pairs: Sequence[Mapping[str, Any]], asked: Sequence[Mapping[str, Any]]
) -> dict[str, dict[str, str]]:
    """Whole pools right, some pairs wrong, some requests lost; answers of all kinds."""
    said: dict[str, dict[str, str]] = {"vsv": {}, "oevqa": {}}
    right, wrong = itertools.cycle(PAIRS), itertools.cycle(WRONG)
    for number, doc in enumerate(pairs):
        pool, place = divmod(number, 8)
        form = next(right) if pool % 3 or place != pool % 7 else next(wrong)
        true = "AB".index(doc["answer"])
        words = {"L": "AB"[true], "M": "BA"[true], "T": doc["options"][true]}
        lost = pool % 11 == 5 and place == 2
        said["vsv"][doc["id"]] = LOST if lost else form.format(**words, F=doc["options"][1 - true])
    for doc, form in zip(asked, itertools.cycle(ANSWERS)):
        said["oevqa"][doc["id"]] = form.replace("{R}", doc["references"][len(said["oevqa"]) % 8])
    return said


def some(said: dict[str, str], end: str) -> dict[str, str]:
    """All, of the setting with clips; of two videos in the others, which score in the same way."""
    return {
        doc: one for doc, one in said.items() if not end or doc.startswith(("video2/", "video3/"))
    }


class Made(NamedTuple):
    """What one of them makes of all tasks, and all that its judge was asked."""

    tasks: dict[str, dict[str, Any]]
    asked: list[list[str]]


def ours(name: str, said: Mapping[str, str]) -> dict[str, Any]:
    """What this package makes of a task."""
    docs = [doc for doc in prepare.usable_docs(BENCHMARK, name) if doc["id"] in said]
    made = (task_functions.process_results(doc, [said[doc["id"]]]) for doc in docs)
    return {
        "prompts": {doc["id"]: task_functions.doc_to_text(doc) for doc in docs},
        "visuals": {
            doc["id"]: list(map(seen, task_functions.doc_to_visual(doc))) for doc in docs[::8]
        },
        "items": [json.loads(json.dumps(one["failed"])) for one in made],
    }


def seen(visual: Any) -> Any:
    """As host_scored.py has it."""
    if isinstance(visual, str):
        return visual
    return [*visual.size, hashlib.sha256(visual.tobytes()).hexdigest()]


@pytest.fixture(scope="module")
def both(
    tmp_path_factory: pytest.TempPathFactory, sample_root: Path, cache: Path, server: warm.Server
) -> tuple[Made, Made]:
    """Ours, and the host's copy with the contribution."""
    root = tmp_path_factory.mktemp("jobs")
    folder = placed(root, [sample_root / "maia", *([REAL] if REAL.is_dir() else [])])
    with pytest.MonkeyPatch.context() as patch, judged_at(judge, patch) as endpoint:
        patch.setenv(settings.CACHE, str(cache))
        patch.setenv("LMMS_EVAL_TASKS_JUDGE_CACHE", "off")
        patch.setenv(settings.DATA, str(root))
        said = replies(
            *(prepare.usable_docs(BENCHMARK, f"maia_{kind}") for kind in ("vsv", "oevqa"))
        )
        of = {f"maia_{kind}{end}": some(said[kind], end) for end in SETTINGS for kind in said}
        made = Made(
            {name: ours(name, own) for name, own in of.items()}, host_copy.messages(endpoint)
        )
    env = {"MAIA_VIDEO_DIR": str(folder / "videos")}
    jobs = [
        {
            **{"root": str(root), "env": env, "tasks": [f"maia{end}"]},
            "replies": of[f"maia_vsv{end}"] | of[f"maia_oevqa{end}"],
        }
        for end in SETTINGS
    ]
    found, asked = host_copy.scored("maia", jobs, judge, root, server)
    return made, Made({name: task for one in found for name, task in one.items()}, asked)


def test_models_and_judges_are_asked_the_same(both: tuple[Made, Made]) -> None:
    """Every byte of each prompt and of each message to the judge, repairs among them."""
    for end in SETTINGS:
        own = [both[0].tasks[f"maia_{kind}{end}"]["prompts"] for kind in ("vsv", "oevqa")]
        theirs = both[1].tasks[f"maia{end}"]
        assert own[0] | own[1] == theirs["prompts"]
        for doc, prompt in theirs["prompts"].items():
            assert theirs["messages"][doc] == [*theirs["visuals"][doc], prompt]
    assert both[0].asked == both[1].asked
    assert len(both[0].asked) > 70  # of the packaged sample alone; more with shared data
    assert [one for one in both[0].asked if "An earlier reply to this" in one[-1]]


def test_models_see_the_same(both: tuple[Made, Made]) -> None:
    """The same pixels of pictures; of a video our clip has 32 uniform frames at their times."""
    pairs: dict[str, str] = {}
    for name, one in both[0].tasks.items():
        theirs = both[1].tasks["maia" + name.removeprefix("maia_vsv").removeprefix("maia_oevqa")]
        for doc, shown in one["visuals"].items():
            if isinstance(shown[0], str):
                pairs[shown[0]] = theirs["visuals"][doc][0]
            else:
                assert shown == theirs["visuals"][doc], (name, doc)
    assert len(pairs) == len(set(pairs.values())) >= 2
    for mine, video in pairs.items():
        (times, frames), (all_times, all_frames) = look(mine), look(video)
        places = np.linspace(0, len(all_times) - 1, min(32, len(all_times))).astype(int)
        expected = np.array(all_times)[places] - all_times[0]
        assert np.allclose(times, expected, atol=1e-3)
        error = ((frames.astype(float) - all_frames[places]) ** 2).mean(axis=(1, 2))
        assert error.max() < 6.5, (mine, video)  # 40 dB


def look(path: str) -> tuple[list[float], np.ndarray]:
    """The times and the luma of a clip's frames, at an eighth of the memory."""
    import av

    with av.open(path) as file:
        shown = [(frame.time or 0.0, frame.to_image()) for frame in file.decode(video=0)]
    luma = [np.asarray(image.convert("L"))[::2, ::4] for _, image in shown]
    return [time for time, _ in shown], np.stack(luma)


@pytest.mark.parametrize("end", SETTINGS)
def test_letters_scores_and_numbers_are_equal(both: tuple[Made, Made], end: str) -> None:
    """Of every reply, and every number of the host's table; failures are left out there."""
    pairs, answers = (both[0].tasks[f"maia_{kind}{end}"]["items"] for kind in ("vsv", "oevqa"))
    theirs = both[1].tasks[f"maia{end}"]
    for item in pairs:
        record = theirs["records"][item["id"]]["maia_pair_acc"]
        assert record["letter"] == item["letter"], item
        assert item["status"] == "model_error" or record["right_authors"] == item["right_authors"]
    for item in answers:
        record = theirs["records"][item["id"]]["maia_judge_acc"]
        right = item["right"] if aggregate.is_valid(item) else None
        assert (record.get("score"), record["answer"]) == (right, item["candidate"]), item

    kept = [item for item in pairs if item["status"] != "model_error"]
    lost = {pool_of(item) for item in pairs if item["status"] == "model_error"}
    whole = [item for item in pairs if pool_of(item) not in lost]
    judged = [item for item in answers if aggregate.is_valid(item)]
    assert 0 < len(whole) < len(kept) < len(pairs)
    assert 0 < len(judged) < len(answers)
    joined = metrics.agg_acc(whole, judged)
    assert 0 < joined["agg_acc"] < 1
    found = aggregation.numbers(BENCHMARK.tasks[f"maia_oevqa{end}"], answers)
    assert theirs["numbers"] == {
        "maia_pair_acc": aggregate.accuracy(kept),
        "maia_pair_acc_authors": aggregate.mean(item["right_authors"] for item in kept),
        "maia_pool_acc": aggregate.accuracy(aggregate.pools(whole, POOL_SIZE)),
        "maia_judge_acc": found["judge_acc_valid"],
        "maia_agg_acc": joined["agg_acc"],
        "maia_failed": len(pairs) - len(kept) + found["judge_acc_failed"],
    }


def pool_of(item: Mapping[str, Any]) -> str:
    return str(item["id"]).rpartition("/")[0]


def cases() -> Iterator[tuple[str, Sequence[str]]]:
    """The replies to two options of the readers' tables, but those in other languages (K8)."""
    for case in json.loads((CASES / "choice_letters.json").read_text("utf-8")):
        options = case.get("options") or [f"testo {n + 1}" for n in range(case["n_options"])]
        if len(options) == 2 and not case["id"].startswith("K8"):
            yield case["text"], options
    shared = SHARED / "cases" / "readers.jsonl"
    for line in shared.read_text("utf-8").splitlines() if shared.is_file() else ():
        case = json.loads(line)
        if case["area"] == "answers.read_choice" and not case["id"].startswith("K8"):
            yield case["input"], case["options"]


def test_letters_of_the_readers_cases() -> None:
    """150 lines read what our reader reads, and no other letter."""
    own, tasks = host_copy.UPSTREAM, "lmms_eval/tasks"
    open_answers = host_copy.module(own / "task_utils" / tasks / "_task_utils/open_answers.py")
    letters = host_copy.module(own / "maia" / tasks / "maia/letters.py")
    read = [
        (
            *(text, letters.read_letter(open_answers.answer_of(text)[0], options)),
            read_choice(text, options).letter,
        )
        for text, options in cases()
    ]
    assert len(read) > 480
    assert [one for one in read if one[1] != one[2]] == []
