"""What the user is told of how a task's replies were read, and what is told of none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import registry
from lmms_eval_tasks.benchmark import Metric
from lmms_eval_tasks.maia.tasks import BENCHMARK
from lmms_eval_tasks.models.fake_replies import UNREADABLE
from lmms_eval_tasks.notify import visible
from lmms_eval_tasks.report import aggregation, readings
from lmms_eval_tasks.runs.rescore import Rescored, rescore_saved
from lmms_eval_tasks.utils import saved_runs
from lmms_eval_tasks.utils.replies import reasoning
from tests.checks import table
from tests.report import made

Item = dict[str, Any]
PAIRS = BENCHMARK.tasks["maia_vsv"]
OPTIONS = ["A white van", "The grey tower"]
UNCLEAR = "It is unclear which of the two"


def pair(number: int, reply: str, letter: str | None = None, **changes: Any) -> Item:
    """One pair whose truth is A, as a run leaves it."""
    right = int(letter == "A")
    return {
        **{"id": f"video1/causal/x/{number:04}", "video": "video1", "category": "causal"},
        **{"setting": "32frames", "data": "d", "options": OPTIONS, "answer": "A"},
        **{"letter": letter, "status": "ok" if letter else "unparsed"},
        **{"right": right, "right_authors": right, "reply": reply, **changes},
    }


def pairs(*counted: tuple[int, Item]) -> list[Item]:
    """So many items like each, with ids of their own."""
    items = [item for count, item in counted for _ in range(count)]
    return [{**item, "id": f"video1/causal/x/{number:04}"} for number, item in enumerate(items)]


def told(items: Sequence[Item], task: str = "maia_vsv") -> list[str]:
    own = registry.of(task).tasks[task]
    return [note.text for note in readings.reply_notes(own, items)]


RIGHT, WRONG = pair(0, "A", "A"), pair(0, "B", "B")


# --- replies that were not read -------------------------------------------------------------------


@table("habits")
def test_commonest(habits: Any) -> None:
    """Each habit is one form, in whatever order its replies come."""
    replies = [reply for replies in habits[0] for reply in replies]
    for order in (replies, replies[::-1]):
        found = readings.commonest([pair(0, reply, options=OPTIONS) for reply in order])
        assert [count for count, _ in found] == sorted(map(len, habits[0]), reverse=True)


@table("unread, lines", [(0, 0), (12, 0), (13, 1), (240, 1)])
def test_a_twentieth_may_be_unread(unread: int, lines: int) -> None:
    items = pairs((240 - unread, RIGHT), (unread, pair(0, UNCLEAR)))
    found = told(items)
    assert len(found) == lines
    share = {13: "5.42", 240: "100"}.get(unread)
    assert all(f"{unread} of 240 replies were not read ({share} %)" in line for line in found)
    assert all(f'{unread} like "{UNCLEAR}"' in line for line in found)


def test_three_forms_with_their_counts() -> None:
    forms = [(9, UNCLEAR), (3, "Both of them"), (2, '{"caption": "x"}'), (1, "Well"), (1, "No.")]
    items = pairs((224, RIGHT), *((count, pair(0, reply)) for count, reply in forms))
    expected = f'9 like "{UNCLEAR}", 3 like "Both of them", 2 like "{{"caption": "x"}}"'
    assert told(items) == [
        f"16 of 240 replies were not read (6.67 %); most common forms: {expected}"
    ]
    assert told(items[::-1]) == told(items)


@table(
    "statuses, rests",
    [
        ({"unparsed": 2}, "none of 2"),
        ({"unparsed": 3, "ok": 1}, "1 of 4"),
        ({"unparsed": 1, "truncated": 1, "ok": 1}, "1 of 3"),
        ({"unparsed": 2, "ok": 2}, ""),
        ({"unparsed": 1, "refused": 1}, ""),  # to decline is an answer
    ],
)
def test_numbers_that_rest_on_few_readings(statuses: dict[str, int], rests: str) -> None:
    items = pairs(*((count, pair(0, "Hm", status=name)) for name, count in statuses.items()))
    (line,) = told(items)
    assert (f", so the numbers rest on {rests};" in line) is bool(rests)
    assert ("rest on" in line) is bool(rests)


def test_an_order_that_was_not_read_looks_like_chance() -> None:
    """The headline of the shared case: 2 of 2 replies unread, and 0.000 beside a chance of 0."""
    item = {"source": "tvsum", "video": "v", "status": "unparsed", "violations": {}}
    item |= {"undefined": "", "scores": {"spearman": 0.0, "kendall": 0.0}, "authors": {}}
    item |= {"baselines": {}, "parts": {"reply": "unparsed"}, "reply": "The first shot comes last."}
    items = [{**item, "id": f"tvsum/{number}"} for number in range(2)]
    (line,) = told(items, "haven_temporal")
    assert line.startswith("2 of 2 replies were not read (100 %), so the numbers rest on none of 2")


# --- unknown marks, and the authors' rule ---------------------------------------------------------


def test_unknown_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    def mark(text: str) -> str:
        return next((one for one in ("<|new|>", "[[odd]]") if text.startswith(one)), "")

    monkeypatch.setattr(reasoning, "unknown_mark", mark)
    items = pairs((5, RIGHT), (2, pair(0, "<|new|>B", "B")), (1, pair(0, "[[odd]] B", "B")))
    assert told(items) == [
        "3 of 8 replies begin with an unknown special token: "
        '"<|new|>", as in video1/causal/x/0005: "<|new|>B"'
    ]
    assert told(items[:5]) == []


@table(
    "ours, theirs, lines",
    [(50, 50, 0), (50, 52, 0), (50, 53, 1), (53, 50, 1)],
)
def test_two_points_apart(ours: int, theirs: int, lines: int) -> None:
    flags = [(int(number < ours), int(number < theirs)) for number in range(100)]
    items = pairs(*((1, pair(0, "B", "B", right=a, right_authors=b)) for a, b in flags))
    assert told(items) == lines * [
        f"pair_acc is {ours / 100:.3f}, but {theirs / 100:.3f} when the authors' rule reads the "
        'same replies: 3 of 100 items differ, such as video1/causal/x/0050: "B"'
    ]


def test_what_differs_by_its_formula_is_no_reading() -> None:
    """A kappa over other levels differs with every reply read alike; an item alone has none."""
    found = [
        Metric(name, lambda items, value=value: value if len(items) > 1 else None)
        for name, value in (("kappa", 0.5), ("kappa_authors", 0.8))
    ]
    task = replace(PAIRS, metrics=found)
    assert readings.reply_notes(task, pairs((4, RIGHT))) == []


# --- a judge that always says the same ------------------------------------------------------------

LOCAL = "m@http://gpu:1/v1"


def answered(
    *scores: float | None, ask: str = "agrees", label: bool = True, **verdict: Any
) -> list[Item]:
    """Items with one verdict each, in the order of their ids."""
    made = []
    for number, score in enumerate(scores):
        given = {"score": score, "status": "ok", "judge": LOCAL, **verdict}
        item = {
            "id": f"video1/{number:04}",
            "status": "ok",
            "reply": "Sì.",
            "verdicts": {ask: given},
        }
        made.append({**item, **({"right": score} if label else {})})
    return made


def asked(name: str = "maia", judge: str = LOCAL) -> str:
    command = f"lmms-eval-tasks agreement {name} --judge {judge}"
    return f"check the judge before you use the number ({command})"


SAME = "the judge gave the same verdict"
HALF = [1.0, 0.0] * 10


@table(
    "scores,said",
    [
        ([1.0] * 19, ""),  # too few to tell
        ([1.0] * 20, "(correct) to 20 of 20 answers"),
        ([0.0] * 247 + [1.0] * 3, "(incorrect) to 247 of 250 answers"),
        ([1.0] * 95 + [0.0] * 5, "(correct) to 95 of 100 answers"),
        ([1.0, 1.0, 1.0, 0.0] * 50, ""),
        # A row among others that are half of them right.
        ([*HALF, *[1.0] * 19, *HALF], "(correct) to 20 answers in a row, of 59"),
        ([*HALF, *[1.0] * 18, *HALF], ""),
        # Nine in ten are right: 21 right ones in a row are chance.
        (([*[1.0] * 9, 0.0] * 30)[:-1] + [1.0] * 12, ""),
        # Four in five of the others are right.
        ([*[1.0] * 30, *[0.0, *[1.0] * 4] * 20], ""),
        ([*[1.0] * 40, *[0.0, *[1.0] * 4] * 20], "(correct) to 40 answers in a row, of 140"),
        # Failures are no verdicts.
        ([*[1.0] * 19, *[None] * 30], ""),
        ([*[1.0] * 20, *[None] * 30], "(correct) to 20 of 20 answers"),
    ],
)
def test_one_and_the_same_verdict(scores: list[float | None], said: str) -> None:
    assert told(answered(*scores), "maia_oevqa") == ([f"{SAME} {said}: {asked()}"] if said else [])


def test_one_and_the_same_rating_claim_and_judge() -> None:
    """Ratings and claims are counted alike; an answer's form, and recorded verdicts, are not."""
    same = [3.0] * 30
    for task, ask, name, said in (
        ("maverix_av_oe", "temporal", "maverix", "(temporal 3) to 30 of 30 answers"),
        ("movierecapsqa_segment", "claims", "movierecapsqa", "(claims 3) to 30 of 30 answers"),
        ("haven_v2t", "geval", "haven", "(geval 3) to 30 of 30 answers"),
    ):
        items = answered(*same, ask=ask, label=False)
        found = [note.text for note in filter(None, [readings.judged_alike(task_of(task), items)])]
        assert found == [f"{SAME} {said}: {asked(name)}"]
    both = [
        {**one, "verdicts": dict.fromkeys(("detail", "context"), one["verdicts"]["detail"])}
        for one in answered(*same, ask="detail", label=False)
    ]
    note = readings.judged_alike(task_of("maverix_av_oe"), both)
    assert note
    assert "(detail 3) to 30 of 30 answers, (context 3) to 30 of 30 answers: check" in note.text
    recap = task_of("movierecapsqa_segment")
    assert not readings.judged_alike(recap, answered(*same, ask="coherence", label=False))
    oevqa = task_of("maia_oevqa")
    assert not readings.judged_alike(oevqa, answered(*same, judge="replay:f.jsonl"))
    # Only the file of a panel says who judges.
    panel = readings.judged_alike(oevqa, answered(*same, parts=[{"judge": "one"}]))
    assert panel
    assert panel.text.endswith("agreement maia --judge SPEC)")


def task_of(name: str) -> Any:
    return registry.of(name).tasks[name]


# --- where the lines stand ------------------------------------------------------------------------

HOSTILE = [
    "\x1b[2J\x1b]0;title\x07 red",
    "\u202eevil\u2066",
    "one\ntwo\r\nthree\u2028four\x85five",
    "\ud800 half",
    "x" * 100_000,
    "Z" + "\u0301" * 500,
    "\ufdfa" * 3000,
    "",
    "[link](javascript:x) `code` | cell <b>",
]


@pytest.mark.parametrize("reply", HOSTILE)
def test_lines_are_safe_to_print(reply: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reasoning, "unknown_mark", lambda text: text[:40])
    odd = pair(0, reply, right_authors=1)
    items = [{**odd, "id": f"v\x1b[1m{number}/x"} for number in range(3)]
    found = readings.reply_notes(PAIRS, items)
    assert len(found) == 2 + bool(reply)
    for note in found:
        assert visible(note.text) == note.text
        assert len(note.text.splitlines()) == 1
        assert len(note.text) < 300
    assert aggregation.details(PAIRS, items)["reading"] == [one._asdict() for one in found]


def test_a_mistake_of_ours_loses_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readings, "reply_notes", lambda *_: 1 / 0)
    found = aggregation.details(PAIRS, pairs((2, RIGHT)))
    assert (found["items"], "reading" in found) == (2, False)


def rescored(items: Sequence[Item]) -> tuple[Rescored, list[Item]]:
    """What is said of a saved run of pairs, and its items now."""
    samples = [{"failed": item} for item in items]
    saved = saved_runs.SavedRun("maia_vsv", Path("1_samples_maia_vsv.jsonl"), samples, "m", {})
    now: list[Item] = []
    done = rescore_saved(BENCHMARK, [saved], take=lambda _, own: now.extend(own))
    return done, now


def test_rescore_says_what_is_read_otherwise() -> None:
    """Yesterday's reader found no letter; which rule finds the same one today is no difference."""
    unread = pair(0, "A", status="unparsed", right=0)
    items = pairs((8, unread), (232, {**RIGHT, "read_by": "another rule"}))
    done, now = rescored(items)
    names = [item["id"] for item in items[:8]]
    first = ", ".join(names[:3])
    assert done.notes == [
        "maia_vsv: 8 of 240 items are read differently than when they were "
        f"saved (the first: {first})"
    ]
    (found,) = done.numbers
    assert found.read_otherwise == names
    assert found.values["pair_acc"] == 1
    again = rescored(now)[0]
    assert (again.notes, again.numbers[0].read_otherwise) == ([], ())


def test_rescore_tells_how_replies_are_read_now() -> None:
    """Of all items that are read today, not of those that the run could not read."""
    done, _ = rescored(pairs((6, pair(0, UNREADABLE)), (6, RIGHT)))
    (line,) = (one for one in done.lines() if "not read" in one)
    assert line.startswith(
        "maia_vsv: 6 of 12 replies were not read (50 %); most common forms: 6 like "
    )


JUDGED = {
    "maia_oevqa": "candidate",
    "movierecapsqa_segment": "candidate",
    "haven_v2t": "candidate",
    "cvrr_es_partial_actions": "answer",
}


@pytest.mark.usefixtures("on_sample")
@pytest.mark.parametrize("task", JUDGED)
def test_verdicts_stand_for_the_text_that_they_are_on(
    task: str, sample_root: Path, tmp_path: Path
) -> None:
    """The same judge keeps what it gave, unless the text that it was given is read otherwise."""
    judge = made.recorded(sample_root, tmp_path / "replay.jsonl")
    folder = made.saved_run(tmp_path / "run", "m", [task], made.right, judge, 4)
    run = saved_runs.read_saved_run(next(folder.glob("*_samples_*.jsonl")))
    items = saved_runs.saved_items(run)
    assert all(item["verdicts"] and item[JUDGED[task]] for item in items)
    for item in items:
        for verdict in item["verdicts"].values():
            verdict["reason"] = "as saved"

    def kept(judge: str | None) -> set[bool]:
        now: list[Item] = []
        lines = replace(run, samples=[{"failed": item} for item in items])
        rescore_saved(registry.of(task), [lines], judge, take=lambda _, own: now.extend(own))
        pairs = zip(items, now, strict=True)  # a verdict on two answers comes only now
        found = (after["verdicts"][name] for before, after in pairs for name in before["verdicts"])
        return {one["reason"] == "as saved" for one in found}

    assert kept(judge) == {True}
    for item in items:
        item[JUDGED[task]] = f"<notes>Hm.</notes>{item[JUDGED[task]]}"
    assert (kept(None), kept(judge)) == ({True}, {False})
