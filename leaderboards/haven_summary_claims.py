"""What HAVEN's text says about summaries, separate and joint (4.2, 5.1), against Tables 3 and 4."""

from __future__ import annotations

from decimal import Decimal

from lmms_eval_tasks.leaderboards.checking import listed
from lmms_eval_tasks.leaderboards.haven_paper import (
    INTERNVIDEO,
    JOINT,
    PROXY,
    QWEN3,
    QWEN25,
    TEXT,
    VIDEOLLAMA3,
    Paper,
    Statement,
    descending,
    ranked,
    short,
    spread,
)

TENTH = Decimal("0.1")  # of the highest, or the separate, figure: our "near" and "stable"


def _near_highest(p: Paper) -> tuple[bool, str]:
    columns = {name: p.with_proxy(name) for name in TEXT}
    holds = all(
        figures[model] >= (1 - TENTH) * max(figures.values())
        for figures in columns.values()
        for model in (VIDEOLLAMA3, QWEN25)
    )
    shown = "; ".join(f"{short(name)} {ranked(figures)}" for name, figures in columns.items())
    return holds, f"Tables 3 and 4: {shown}"


def _internvideo(p: Paper) -> tuple[bool, str]:
    own = {name: p(INTERNVIDEO, name) for name in TEXT}
    holds = all(p(PROXY, name) > figure for name, figure in own.items())
    holds = holds and own["v2t_rouge"] == p.stated("internvideo_rouge")
    holds = holds and own["v2t_geval"] < p.stated("internvideo_geval")
    pairs = (f"{short(n)} {figure} against {p(PROXY, n)}" for n, figure in own.items())
    return holds, f"Tables 3 and 4: {', '.join(pairs)}"


def _not_improved(p: Paper) -> tuple[bool, str]:
    changes = p.with_proxy("clipscore_change")
    better = [name for name, change in changes.items() if change > 0]
    return len(better) < len(changes), (
        f"Table 4: {', '.join(f'{name} {change:+f}' for name, change in changes.items())}"
    )


def _changes(p: Paper, model: str) -> dict[str, Decimal]:
    """Changes from the separate to the joint figure, as shares of the separate one."""
    return {name: p.change(model, name) / p(model, name) for name in JOINT}


def _percents(changes: dict[str, Decimal]) -> str:
    return ", ".join(f"{short(name)} {100 * change:+.1f} %" for name, change in changes.items())


def _stable(p: Paper, model: str) -> tuple[bool, str]:
    changes = _changes(p, model)
    holds = all(abs(change) <= TENTH for change in changes.values())
    return holds, f"Tables 3 and 4: {_percents(changes)}"


def _degrade(p: Paper) -> tuple[bool, str]:
    names = [name for name in JOINT if name not in ("v2v_p", "v2v_r")]
    falls = {n: [m for m in p.column(n) if p.change(m, n) < 0] for n in names}
    total = len(p.column(names[0]))
    change = p.column("clipscore_change")
    holds = all(2 * len(models) > total for models in falls.values())
    holds = holds and 2 * sum(value < 0 for value in change.values()) > total
    shown = ", ".join(f"{short(name)} {len(models)}" for name, models in falls.items())
    fallen = sum(value < 0 for value in change.values())
    return holds, f"Tables 3 and 4, of {total} models fall: {shown}, CLIPScore {fallen}"


def _strong(p: Paper) -> tuple[bool, str]:
    columns = ("v2t_bs", "v2v_f1", "v2vt_bs", "v2vt_f1")
    figures = {name: p.with_proxy(name) for name in columns}
    holds = all(f[VIDEOLLAMA3] == max(f.values()) for f in figures.values())
    own = ", ".join(f"{p.title(name)} {p(VIDEOLLAMA3, name)}" for name in columns)
    geval = p.with_proxy("v2t_geval")
    place = descending(geval).index(VIDEOLLAMA3) + 1
    return holds, f"Table 3: {own}; Table 4: place {place} of {len(geval)} in V2T. G-Eval"


def _trade_off(p: Paper) -> tuple[bool, str]:
    text = {name: p.change(INTERNVIDEO, name) for name in TEXT}
    frames = p.change(INTERNVIDEO, "v2v_f1")
    others = [p.change(m, "v2v_f1") for m in p.column("v2v_f1") if m != INTERNVIDEO]
    holds = all(change > 0 for change in text.values()) and frames < min(others)
    shown = ", ".join(f"{short(name)} {change:+f}" for name, change in text.items())
    return holds and frames < 0, (
        f"Tables 3 and 4: {shown}, F1 {frames:+f} (P {p.change(INTERNVIDEO, 'v2v_p'):+f}, "
        f"R {p.change(INTERNVIDEO, 'v2v_r'):+f})"
    )


def _qwen(p: Paper) -> tuple[bool, str]:
    changes = {(m, n): p.change(m, n) for m in (QWEN3, QWEN25) for n in TEXT}
    rises = [
        f"{model} {short(n)} {p(model, n)} to {p(model, TEXT[n])}"
        for (model, n), change in changes.items()
        if change >= 0
    ]
    return not rises, (
        f"Tables 3 and 4: {len(changes) - len(rises)} of {len(changes)} figures fall; "
        f"{', '.join(rises) or 'none'} does not"
    )


def _bertscore(p: Paper) -> tuple[bool, str]:
    values = [v for name in ("v2t_bs", "v2vt_bs") for v in p.with_proxy(name).values()]
    holds = p.stated("bertscore_low") <= min(values) and max(values) <= p.stated("bertscore_high")
    return holds, f"Table 3: {min(values)} to {max(values)}"


def _comparable(p: Paper) -> tuple[bool, str]:
    wide = {
        n: spread(p.with_proxy(c).values()) for s, j in TEXT.items() for n, c in ((s, s), (j, j))
    }
    shown = ", ".join(f"{p.title(name)} {100 * value:.0f} %" for name, value in wide.items())
    low, high = (f(p.with_proxy("v2t_geval").values()) for f in (min, max))
    return all(value <= TENTH for value in wide.values()), (
        f"Tables 3 and 4, spread as a share of the highest: {shown}; V2T. G-Eval {low} to {high}"
    )


def _separation(p: Paper) -> tuple[bool, str]:
    summaries = {name: spread(p.with_proxy(name).values()) for name in (*TEXT, "v2v_f1")}
    ranks = {name: spread(p.column(name).values()) for name in ("saliency", "saliency_doc")}
    holds = min(ranks.values()) > max(summaries.values())
    both = listed((p.title(n), round(v, 2)) for n, v in {**summaries, **ranks}.items())
    return holds, f"Tables 3 and 4, spread as a share of the highest: {both}"


STATEMENTS = (
    Statement(
        "near_highest",
        "4.2",
        "V2T: VideoLLaMA3 and Qwen2.5-VL are highest or nearly so in every metric (read as: within "
        "a tenth of the highest)",
        _near_highest,
    ),
    Statement(
        "internvideo_text",
        "4.2",
        "V2T: InternVideo2.5 is below the text proxy, with ROUGE of 0.152 and G-Eval below 2.5",
        _internvideo,
    ),
    Statement(
        "not_improved",
        "4.2",
        "joint summaries do not always have a higher CLIPScore",
        _not_improved,
    ),
    Statement(
        "proxy_stable",
        "4.2",
        "the text proxy is stable from separate to joint (read as: within a tenth)",
        lambda p: _stable(p, PROXY),
    ),
    Statement(
        "degrade",
        "4.2",
        "most models are worse in the joint task (read as: more than half of them, in each metric)",
        _degrade,
        "We print each metric of both beside each other; Fig. 5, which it is said of, has no "
        "figures in our copy.",
    ),
    Statement(
        "videollama3_stable",
        "4.2",
        "VideoLLaMA3 stays about the same in the joint task (read as: within a tenth)",
        lambda p: _stable(p, VIDEOLLAMA3),
        "We follow Table 4: F1 hides that precision falls and recall rises, as more frames do.",
    ),
    Statement(
        "videollama3_strong",
        "4.2",
        "VideoLLaMA3 is strong in all of these tasks (read as: highest in each of Table 3's)",
        _strong,
    ),
    Statement(
        "trade_off",
        "4.2",
        "InternVideo2.5 gains in text and loses most in keyframes in the joint task",
        _trade_off,
    ),
    Statement(
        "qwen_text",
        "4.2",
        "the Qwen models' text is worse in the joint task (read as: both, in each metric)",
        _qwen,
        "We follow Table 4: Qwen2.5-VL's joint summaries are rated higher by G-Eval.",
    ),
    Statement("bertscore", "4.2", "BERTScore is 0.84 to 0.88 in both settings", _bertscore),
    Statement(
        "comparable",
        "4.2",
        "text summaries are about equally good (read as: all within a tenth of the highest, in "
        "each metric)",
        _comparable,
        "We follow Table 4: it is so in BERTScore, which hardly tells them apart, and not in "
        "ROUGE and G-Eval.",
    ),
    Statement(
        "separation",
        "5.1",
        "saliency separates the models more than summaries do",
        _separation,
    ),
)
