"""MovieRecapsQA's packaged sample: the released form, every label, answers of a known worth."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from lmms_eval_tasks import judges, settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.host import names
from lmms_eval_tasks.judges import Judge
from lmms_eval_tasks.movierecapsqa import demo, sample, schema
from lmms_eval_tasks.movierecapsqa.judge import DIMENSIONS, Context
from lmms_eval_tasks.movierecapsqa.metrics import METRICS
from lmms_eval_tasks.movierecapsqa.sample import MODELS, NO_CLAIMS, Claim, replies, score, text
from lmms_eval_tasks.movierecapsqa.sample_scenes import number_of, seconds, stories
from lmms_eval_tasks.movierecapsqa.schema import SPLITS, UNLABELLED
from lmms_eval_tasks.movierecapsqa.tasks import BENCHMARK
from lmms_eval_tasks.runs import before
from lmms_eval_tasks.sample import players, second_code
from lmms_eval_tasks.sample.demo import TINY
from tests.movierecapsqa.asking import judge_reply

MOVIES = {story.movie_id for story in stories()}


@pytest.fixture(scope="module")
def folder(sample_root: Path) -> Path:
    return sample_root / "movierecapsqa"


@pytest.fixture(scope="module")
def release(folder: Path) -> schema.Release:
    return schema.read(folder)


@pytest.fixture(scope="module")
def content(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "segments.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def key(folder: Path) -> players.AnswerKey:
    return players.AnswerKey.load(folder / "key.json")


@pytest.fixture
def judge(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Judge:
    monkeypatch.setenv(settings.JUDGE, demo.judge("oracle", folder))
    before.check_judge(BENCHMARK)
    return judges.make(before.judge_config(BENCHMARK))


# --- videos -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", seconds())
def test_every_picture_and_sound_tells_its_time(name: str, folder: Path) -> None:
    """Movies have a tone a second, recaps no sound."""
    with av.open(str(folder / ("movies" if name in MOVIES else "recaps") / f"{name}.mp4")) as clip:
        kinds = [stream.type for stream in clip.streams]
        frames = [frame.to_ndarray(format="rgb24") for frame in clip.decode(video=0)]
        clip.seek(0)
        sound = [block.to_ndarray() for block in clip.decode(audio=0)] if name in MOVIES else []
    assert kinds == (["video", "audio"] if name in MOVIES else ["video"])
    assert len(frames) == 10 * seconds()[name]
    for index, frame in enumerate(frames):
        # The strip above the scene, where its colours do not run into the code's.
        assert second_code.number_of_frame(frame, 0.03, 0.13) == number_of(name, index // 10)
        assert second_code.tick_of_frame(frame) == index % 10
    for second in range(seconds()[name] if sound else 0):
        samples = np.concatenate(sound, axis=1)
        piece = samples[:, int((second + 0.1) * 44_100) : int((second + 0.9) * 44_100)]
        assert second_code.number_of_sound(piece, 44_100) == number_of(name, second)


def test_windows_lie_in_their_videos_and_leave_something_out(release: schema.Release) -> None:
    assert sum(seconds().values()) <= second_code.COUNT
    for story in stories():
        for windows, total in (
            ([scene.recap for scene in story.scenes], story.recap_seconds),
            ([scene.movie for scene in story.scenes], story.movie_seconds),
        ):
            assert windows[0][0] > 0.5
            assert windows[-1][1] < total - 0.5
            assert all(a[1] <= b[0] for a, b in pairwise(windows))
    for segment in release.segments:
        movie = release.movie_path(segment)
        assert movie is not None
        assert movie.is_file()
        assert release.recap_path(segment).is_file()


# --- segments -----------------------------------------------------------------------------------


def test_the_forms_of_the_release_and_of_our_schema(
    release: schema.Release, content: list[dict[str, Any]], folder: Path
) -> None:
    assert release.problems == {}
    expected = {"videos": 2, "segments": 5, "questions": 24, "facts": 37, "bad_segments": 0}
    assert release.counts == expected
    assert sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) < 2_000_000
    for split, slugs in SPLITS.items():
        found = Counter(getattr(q, split) or UNLABELLED for _, q in release.questions())
        assert set(found) == set(slugs)
        assert min(found.values()) >= 2
    numbered = [all(re.match(r"\d+\. ", f) for f in s["facts"]) for s in content]
    assert set(numbered) == {True, False}
    asked = [q for segment in content for q in segment["questions"]]
    assert {"humanAnswer" in q for q in asked} == {True, False}
    assert {q.get("humanAnswer", "several") is None for q in asked} == {True, False}
    assert {q["category"].isupper() for q in asked if "category" in q} == {True, False}
    for segment, read, part in zip(content, release.segments, sample.parts(), strict=True):
        # As in the release, the indexes of facts count from 0 and from 1 inside a segment.
        pairs = zip(segment["questions"], part.questions, strict=True)
        assert {one.facts[0] - q["factsUsed"][0] for q, one in pairs} == {0, 1}
        assert read.facts == tuple(fact for _, fact in part.facts)


def test_dialogue(release: schema.Release, content: list[dict[str, Any]]) -> None:
    plain, marked, none, windows, counted = (segment["srt"] for segment in content)
    assert plain.startswith("00:00:04,000 --> 00:00:05,500\nAda, ")
    assert marked.startswith("\ufeff1\n00:00:15,245")
    assert "<font color" in marked
    assert "{\\an8}" in marked
    assert none == ""
    assert "\r\n" in windows
    times = re.findall(r"(\S+) --> (\S+)", windows)
    assert times[1][0] < times[0][1]  # cues overlap
    assert counted.startswith("1\n00:00:18,")
    assert [segment.dialogue for segment in release.segments][1:3] == [
        "Wait for the sign, Bo.\nThe first at the lantern carries it.\n"
        "The river is afraid of light.\nI promised my mother to bring it home.",
        "",
    ]
    silent = {"to", "the", "a", "is", "has", "who", "have", "it", "at", "been", "given", "and"}
    shapes = {"circle", "square", "triangle", *second_code.NAMES}
    for segment, part in zip(release.segments, sample.parts(), strict=True):
        spoken = set(re.findall(r"\w+", segment.dialogue.lower()))
        # A vision question must not be answered by the dialogue: no colour or shape is named.
        assert not shapes & spoken
        for kind, fact in part.facts:
            words = set(re.findall(r"\w+", fact.lower())) - silent
            assert kind != "said" or words <= spoken, words - spoken
        for question, one in zip(segment.questions, part.questions, strict=True):
            kinds = {part.facts[number - 1][0] for number in one.facts}
            own = {"vision": {"seen"}, "dialogue": {"said"}}
            if question.modality in own:
                assert kinds == own[question.modality]
            elif question.modality:
                assert "both" in kinds


def test_the_key_holds_every_question_once(
    key: players.AnswerKey, release: schema.Release, sample_root: Path
) -> None:
    asked = {question.question: question.reference for _, question in release.questions()}
    assert len(asked) == 24
    assert key.answers == asked
    assert set(key.lures) == set(asked)
    assert all(key.lures[question] != asked[question] for question in asked)
    assert not [(a, b) for a, b in combinations(sorted(key.answers, key=len), 2) if a in b]
    for other in ("maia", "maverix"):  # keys of all samples go into one
        theirs = json.loads((sample_root / other / "key.json").read_text(encoding="utf-8"))
        for part in ("answers", "choices"):
            assert not set(theirs.get(part, ())) & set(key.answers)


def test_oracle_and_coin_see_the_prompt_alone(
    key: players.AnswerKey, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(settings.CACHE, str(cache))
    monkeypatch.setenv(settings.DATA, "sample")
    monkeypatch.setattr(before, "_checked", {})
    drawn = []
    for end in ("", "_frames", "_dialogue"):
        docs = before.docs(BENCHMARK, f"movierecapsqa_segment{end}")
        for doc in docs:
            told = names.doc_to_text(doc)
            assert players.oracle(told, key) == doc["reference"]
            drawn.append(players.coin(told, key) == doc["reference"])
    assert 20 < sum(drawn) < 52
    # The lure of a doc answers a question of another segment; replay.jsonl has it as well.
    lures = [sample.lure(n) for n, part in enumerate(sample.parts()) for _ in part.questions]
    assert [doc["lure"] for doc in docs] == lures
    assert {players.scripted(doc) for doc in docs} & set(lures)


def test_two_builds_are_the_same(folder: Path, tmp_path: Path) -> None:
    sample.write(tmp_path)
    files = sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file())
    assert len(files) == 7
    for name in files:
        assert (folder / name).read_bytes() == (tmp_path / name).read_bytes(), name


# --- answers and the recorded judge -------------------------------------------------------------

RIGHT = Claim("r", "supported", "relevant")
FALSE = Claim("f", "contradictory", "relevant", "contradictory")
HALF = Claim("h", "partially_supported", "relevant")
BESIDE = Claim("b", "unsupported", "irrelevant")


def every() -> Iterator[tuple[int, int, sample.Asked, str]]:
    for number, part in enumerate(sample.parts()):
        for qid, one in enumerate(part.questions):
            yield number, qid, one, sample.lure(number)


def ask(judge: Judge, segment: schema.Segment, question: str, answer: str) -> dict[str, Any]:
    context = Context(segment.id, segment.facts, segment.dialogue)
    return judge_reply(judge, answer, context=context, question=question)


def test_every_built_answer_gets_its_labels_and_score(
    judge: Judge, release: schema.Release
) -> None:
    worth: list[tuple[tuple[Claim, ...], tuple[int, int, int]]] = [
        ((RIGHT,), (5, 5, 5)),
        ((RIGHT, RIGHT._replace(coherence="redundant")), (5, 5, 4)),
        ((FALSE,), (0, 5, 0)),
        ((RIGHT, RIGHT, FALSE), (2, 5, 2)),
        ((HALF,), (3, 5, 5)),
        ((RIGHT, HALF), (4, 5, 5)),
        ((BESIDE,), (0, 0, 5)),
        ((RIGHT, RIGHT, BESIDE), (3, 2, 5)),
    ]
    for claims, expected in worth:
        assert tuple(score(name, claims) for name in DIMENSIONS) == expected
    seen: Counter[str] = Counter()
    for number, qid, one, lure in every():
        segment = release.segments[number]
        for claims in replies(one, lure).values():
            found = ask(judge, segment, segment.questions[qid].question, text(claims))
            assert found["status"] == "ok"
            assert found["claims"] == [claim.text for claim in claims]
            for name, rated in found["dimensions"].items():
                assert rated["labels"] == sample.labels(name, claims)
                assert rated["score"] == score(name, claims)
                assert rated["consistent"] is True
                seen.update(rated["labels"])
    assert set(seen) == set(sample._WORTH) - {"partially_relevant"}
    # Nothing else has a verdict.
    segment, question = release.segments[0], release.segments[0].questions[0]
    assert ask(judge, segment, question.question, "Since May.")["status"] == "judge_skipped"
    other = segment.model_copy(update={"facts": (*segment.facts, "One more.")})
    found = ask(judge, other, question.question, question.reference)
    assert (found["status"], found["claims"]) == ("judge_skipped", [question.reference])


def test_released_answers_and_published_scores(judge: Judge, release: schema.Release) -> None:
    gaps: Counter[tuple[str, int]] = Counter()
    kinds: Counter[str] = Counter()
    people: Counter[int] = Counter()
    given: set[str] = set()
    careful: list[list[int]] = [[], []]
    for segment, question in release.questions():
        assert [answer.model for answer in question.model_answers] == list(MODELS)
        people[len(question.human_answers)] += 1
        for place, answer in enumerate(question.model_answers):
            if answer.scores.factuality is not None:
                careful[place].append(answer.scores.factuality)
        for answer in (*question.human_answers, *question.model_answers):
            given.add(answer.answer)
            found = ask(judge, segment, question.question, answer.answer)
            kinds[found["status"]] += 1
            for name in ("factuality", "relevance"):
                published = getattr(answer.scores, name)
                if found["status"] == "empty":
                    assert published is None
                else:
                    assert 0 <= published <= 5
                    gaps[name, abs(published - found["dimensions"][name]["score"])] += 1
    assert set(people) == {0, 1, 2}
    assert set(kinds) == {"ok", "empty", "refused", "no_claims"}
    assert min(kinds.values()) >= 3
    # Not the recorded judge's own scores, or agreement with them would prove nothing.
    assert {gap for _, gap in gaps} == {0, 1}
    assert min(gaps["factuality", 1], gaps["relevance", 1]) > 10
    first, second = (sum(own) / len(own) for own in careful)
    assert first > second + 1
    assert set(NO_CLAIMS.values()) <= given
    for kind in ("right", "wrong", "partly", "twice", "torn", "padded", "dreamy", "lure"):
        assert {text(replies(one, lure)[kind]) for *_, one, lure in every()} & given, kind


def test_what_the_demo_checks_of_the_coin(
    tmp_path: Path, judge: Judge, release: schema.Release, folder: Path
) -> None:
    asked = list(every())
    for task in demo.ORACLE:
        items = []
        for number, (segment, question) in enumerate(release.questions()):
            one = asked[number][2]
            reply = one.wrong if (number + len(task)) % 2 else one.reference
            about = {"question": question.question, "reference": question.reference}
            found = ask(judge, segment, question.question, reply)
            items.append({"id": segment.question_id(question), **about, **found})
        lines = [json.dumps({"failed": item}) for item in items]
        (tmp_path / f"now_samples_{task}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    chance, false = demo.check_coin({}, tmp_path, folder / "key.json")
    assert chance == "coin: 50.0% of 72 MovieRecapsQA answers (chance 50.0%)"
    assert false.startswith("coin: gave 36 false answers about the right thing")
    file = min(tmp_path.glob("*.jsonl"))
    kept = file.read_text(encoding="utf-8")
    first, _, rest = kept.partition("\n")
    fours = {name: {"score": 4} for name in DIMENSIONS}
    for changes, said in (
        ({"dimensions": fours}, r"\['recap-lantern\.1/0'\]"),
        ({"candidate": "Nobody knows."}, "its key does not hold"),
    ):
        changed = json.dumps({"failed": {**json.loads(first)["failed"], **changes}})
        file.write_text(f"{changed}\n{rest}", encoding="utf-8")
        with pytest.raises(TasksError, match=said):
            demo.check_coin({}, tmp_path, folder / "key.json")
    assert demo.judge(TINY, folder) == "none"
    for metrics in demo.ORACLE.values():
        assert set(metrics) <= {metric.name for metric in METRICS}
