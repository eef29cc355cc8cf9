"""Contradictions within and between HAVEN's tables, and what keyframe scores are worth."""

import json
import random
from decimal import Decimal
from pathlib import Path
from statistics import fmean

import pytest

from lmms_eval_tasks.leaderboards import haven_chance, leaderboard
from lmms_eval_tasks.leaderboards import haven_checks as checks
from lmms_eval_tasks.leaderboards.haven_contradictions import contradictions
from lmms_eval_tasks.leaderboards.haven_keyframe_checks import above_harmonic
from lmms_eval_tasks.leaderboards.haven_paper import Paper
from tests.leaderboards.haven_boards import NAME, changed, figures, names, replaced, states
from tests.leaderboards.maverix_boards import of

CASES_FILE = Path(__file__).resolve().parents[1] / "cases" / "haven_contradictions.json"
PINNED = json.loads(CASES_FILE.read_text(encoding="utf-8"))["contradictions"]
PROXY, GLM = "text-proxy LLM", "GLM-4.6V"
INTERN, QWEN3, QWEN25, LLAMA = "InternVideo2.5", "Qwen3-VL", "Qwen2.5-VL", "VideoLLaMA3"
PAPER = Paper(leaderboard(NAME))


def findings(board, kind):
    return [f for each in contradictions(board) if each.kind == kind for f in each.findings]


def test_all_contradictions_are_the_pinned_ones():
    found = contradictions(leaderboard(NAME))
    assert {
        each.kind: [[f.setting, f.model, f.column, f.figures] for f in each.findings]
        for each in found
    } == PINNED
    assert all(each.follow for each in found)


def with_modalities(text):
    board = leaderboard(NAME)
    row = of(board, 1).row("", "VideoXum")
    return replaced(board, 1, row, attributes={"modalities": text})


def named_as_in_4_1():
    board = leaderboard(NAME)
    return replaced(board, 3, of(board, 3).row("open", GLM), name="GLM-4.6V-Flash")


# kind, board, rows still found
CASES = [
    # 1841562 / 11055 is 166.58; rounding of the whole and of the sources is 0.1 together.
    ("averages", changed(1, "HAVEN", frames="166.5"), []),
    ("averages", changed(1, "HAVEN", frames="166.7"), ["HAVEN"]),
    ("averages", changed(1, "HAVEN", frames="166.5", shots="16.1"), ["HAVEN"]),
    ("tenths", changed(1, "SumMe", shots="29.6"), ["MR.HiSum", "OVP", "TVSum", "VideoXum",
                                                   "YouTube"]),
    ("tenths", changed(1, "SumMe", shots="29.7"), ["MR.HiSum", "OVP", "SumMe", "TVSum",
                                                   "VideoXum", "YouTube"]),
    ("modalities", with_modalities("V+TV"), []),
    ("modalities", names(videoxum_title=["Visual"]), []),
    ("constants", changed(2, "Conciseness", rho="0.01"), []),
    ("constants", changed(2, "Conciseness", kappa="0.01"), []),
    ("constants", changed(2, "Informativeness", group="frame", kappa="0.00", rho="0.00"),
     ["Conciseness", "Informativeness"]),
    ("budget", changed(4, QWEN25, v2vt_r="0.240"), [INTERN, QWEN3, LLAMA]),
    ("budget", changed(4, PROXY, v2v_r="0.220"), [INTERN, QWEN25, QWEN3, LLAMA, PROXY]),
    ("budget", changed(4, PROXY, v2v_p="0.220"), [INTERN, QWEN25, QWEN3, LLAMA, PROXY]),
    ("below_both", changed(3, QWEN3, v2v_f1="0.182"), [QWEN25, QWEN25, PROXY]),
    # 0.171 and 0.172 may be the same value.
    ("below_both", changed(3, PROXY, v2vt_f1="0.172"), [QWEN25, QWEN25, QWEN3]),
    ("lead", changed(3, QWEN3, v2vt_f1="0.237"), [INTERN, QWEN25, LLAMA]),
    ("lead", changed(3, QWEN3, v2vt_f1="0.236"), [INTERN, QWEN25, QWEN3, LLAMA]),
    ("lead", changed(4, LLAMA, v2vt_r="0.230"), [INTERN, QWEN25, QWEN3]),
    ("unprinted", names(announced_metrics=["ROUGE", "BERTScore", "CLIPScore", "G-Eval"]), []),
    ("spelling", named_as_in_4_1(), []),
    ("name", names(benchmark_names=["HAVEN", "HAVEN"]), []),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "board", "rows"), CASES)
def test_checks_follow_the_figures(kind, board, rows):
    assert sorted(f.model for f in findings(board, kind)) == sorted(rows)


def test_averages_by_hand():
    frames = 25 * 293.4 + 50 * 470.2 + 50 * 103 + 40 * 409.8 + 5300 * 124 + 5590 * 202.5
    assert float(checks.over_videos(PAPER, "frames")) == pytest.approx(frames / 11055)
    few = 25 * 293.4 + 50 * 470.2 + 50 * 103 + 40 * 409.8 + 100 * 124 + 100 * 202.5
    assert float(checks.over_videos(PAPER, "frames", sample=True)) == pytest.approx(few / 365)
    text = findings(leaderboard(NAME), "averages")[0].text
    assert "166.6 over videos, 267.2 over sources and 233.0 over the evaluated videos" in text


def test_the_subset_decides_what_the_evaluated_videos_have():
    text = findings(states(subset="50"), "averages")[0].text
    few = 25 * 293.4 + 50 * 470.2 + 50 * 103 + 40 * 409.8 + 50 * 124 + 50 * 202.5
    assert f"{few / 265:.1f} over the evaluated videos" in text


def test_quotients_are_those_of_the_printed_figures():
    texts = {f.model: f.text for f in findings(leaderboard(NAME), "budget")}
    assert texts[QWEN3].endswith("2.36 frames given for each true one (0.98 in V2V)")
    assert texts[INTERN].endswith("0.09 frames given for each true one (1.11 in V2V)")
    frames = haven_chance.given(PAPER, QWEN25, "v2vt_p", "v2vt_r")
    assert float(frames.low) == pytest.approx(0.2485 / 0.2005)
    assert float(frames.high) == pytest.approx(0.2495 / 0.1995)


def test_no_more_than_all_frames_are_given_by_chance():
    board = changed(4, LLAMA, v2vt_p="0.050", v2vt_r="0.900")
    by_chance = haven_chance.by_chance(Paper(board), LLAMA, "v2vt_p", "v2vt_r")
    assert float(by_chance) == pytest.approx(2 * 0.15 / 1.15)


# --- the arithmetic against draws ------------------------------------------------------------


def score(given, true):
    """(F1, P, R) of a set of frames."""
    hits = len(given & true)
    return 2 * hits / (len(given) + len(true)), hits / len(given), hits / len(true)


@pytest.mark.parametrize("number", [3, 15, 36, 100])
def test_chance_is_what_random_frames_get(number):
    draw, true = random.Random(number), set(range(0, 90, 6))  # 15 of 100
    drawn = [score(set(draw.sample(range(100), number)), true)[0] for _ in range(10_000)]
    expected = haven_chance.expected_f1(Decimal(number) / 100, Decimal("0.15"))
    # The standard error of a mean of shares over 10,000 draws is below 0.002.
    assert fmean(drawn) == pytest.approx(float(expected), abs=0.006)


def test_what_the_checks_rest_on_holds_for_any_videos():
    draw = random.Random(6)
    for _ in range(300):
        # Videos of other lengths, budgets that are broken by other amounts.
        scores, quotients = [], []
        for _ in range(draw.randint(1, 8)):
            frames = draw.randint(4, 40)
            true = set(draw.sample(range(frames), draw.randint(1, frames)))
            given = set(draw.sample(range(frames), draw.randint(1, frames)))
            scores.append(score(given, true))
            quotients.append(len(given) / len(true))
        f1, p, r = (fmean(column) for column in zip(*scores, strict=True))
        if not p:
            continue
        slack = 1e-9
        assert min(quotients) - slack <= r / p <= max(quotients) + slack
        assert f1 <= 2 * p * r / (p + r) + slack
        if min(quotients) >= 1 or max(quotients) <= 1:
            assert f1 >= min(p, r) - slack


def test_f1_above_the_harmonic_mean_is_told():
    assert above_harmonic(PAPER) == []
    # Of 0.4335 and 0.0385, the highest that P and R can stand for, it is 0.0707.
    assert above_harmonic(Paper(changed(3, INTERN, v2vt_f1="0.071"))) == []
    over = above_harmonic(Paper(figures((3, INTERN, {"v2vt_f1": "0.072"}))))
    assert over == [(INTERN, "v2vt_f1")]
