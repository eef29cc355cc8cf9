"""What HAVEN's text says about the selection of keyframes (4.2), against Tables 3 and 4."""

from __future__ import annotations

from decimal import Decimal

from lmms_eval_tasks.leaderboards.checking import apart
from lmms_eval_tasks.leaderboards.haven_chance import expected_f1, true_share
from lmms_eval_tasks.leaderboards.haven_paper import (
    FRAMES,
    INTERNVIDEO,
    PROXY,
    QWEN3,
    VIDEOLLAMA3,
    Paper,
    Statement,
    descending,
    only_best,
    ranked,
    short,
)

SUBSTANTIAL = Decimal("1.5")  # times chance: our "substantially above"


def _above_proxy(p: Paper) -> tuple[bool, str]:
    leads = {
        (model, name): (figure, p(PROXY, name))
        for name in FRAMES
        for model, figure in p.column(name).items()
    }
    least, (model, name) = min((one - other, key) for key, (one, other) in leads.items())
    holds = all(one > other and apart(one, other) for one, other in leads.values())
    return (
        holds,
        f"Tables 3 and 4, F1, P and R: by {least} at least ({model}, {short(name)})",
    )


def _best_selection(p: Paper) -> tuple[bool, str]:
    f1 = p.column("v2v_f1")
    first, second, third, *_ = descending(f1)
    quoted = {"v2v_p": "videollama3_p", "v2v_r": "videollama3_r"}
    holds = (first, second) == (VIDEOLLAMA3, INTERNVIDEO)
    holds = holds and f1[first] - f1[second] < f1[second] - f1[third]
    for column, key in quoted.items():
        figures = p.column(column)
        holds = holds and only_best(figures, VIDEOLLAMA3)
        holds = holds and figures[VIDEOLLAMA3] == p.stated(key)
    return holds, f"Tables 3 and 4: F1 {ranked(f1)}; P {ranked(p.column('v2v_p'))}"


def _f1_range(p: Paper) -> tuple[bool, str]:
    figures = p.with_proxy("v2v_f1").values()
    holds = p.stated("f1_low") <= min(figures) and max(figures) <= p.stated("f1_high")
    joint = p.with_proxy("v2vt_f1").values()
    return holds, f"Table 3: {min(figures)} to {max(figures)}; joint {min(joint)} to {max(joint)}"


def _above_random(p: Paper) -> tuple[bool, str]:
    true, asked = true_share(p), p.stated("budget_percent") / 100
    chance = expected_f1(asked, true)
    figures = p.with_proxy("v2v_f1")
    above = [name for name, figure in figures.items() if figure >= SUBSTANTIAL * chance]
    every = expected_f1(Decimal(1), true)
    below = [name for name, figure in figures.items() if figure < every]
    low = p.stated("f1_low")
    quoted = f" (the range that it quotes begins at {low})" if low <= chance else ""
    return len(above) == len(figures), (
        f"Random frames get {chance:.3f} where as many are given as are true{quoted}; Table 3: "
        f"{ranked(figures)}; all frames, were they allowed, would get {every:.3f}, "
        f"more than {', '.join(below) or 'no row'}"
    )


def _qwen3_frames(p: Paper) -> tuple[bool, str]:
    gains = {model: p.change(model, "v2v_f1") for model in p.column("v2v_f1")}
    own = ", ".join(f"{short(n)} {p(QWEN3, n)} to {p(QWEN3, FRAMES[n])}" for n in FRAMES)
    return gains[QWEN3] > 0 and only_best(gains, QWEN3), f"Tables 3 and 4: {own}"


STATEMENTS = (
    Statement("above_proxy", "4.2", "V2V: all models are above the text proxy", _above_proxy),
    Statement(
        "best_selection",
        "4.2",
        "V2V: VideoLLaMA3 is best (P 0.292, R 0.319), InternVideo2.5 close (read as: closer to it "
        "than to the third)",
        _best_selection,
    ),
    Statement("f1_range", "4.2", "V2V: all F1, the proxy's too, are 0.15 to 0.30", _f1_range),
    Statement(
        "above_random",
        "4.2",
        "V2V: all F1 are far above random selection (read as: half as much again)",
        _above_random,
        "We print what random, first, uniform and all frames get beside every score.",
    ),
    Statement(
        "qwen3_frames",
        "4.2",
        "Qwen3-VL gains in keyframes in the joint task (read as: in F1, and most)",
        _qwen3_frames,
    ),
)
