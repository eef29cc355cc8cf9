"""What HAVEN's text says about data, protocol and ratings (1, 3, 4.1, B, C), compared."""

from __future__ import annotations

from decimal import Decimal

from lmms_eval_tasks.leaderboards import Row
from lmms_eval_tasks.leaderboards.checking import half, listed
from lmms_eval_tasks.leaderboards.haven_checks import over_videos
from lmms_eval_tasks.leaderboards.haven_keyframe_checks import above_harmonic
from lmms_eval_tasks.leaderboards.haven_paper import PROXY, WHOLE, Paper, Statement

# Landis and Koch's words for kappa.
MODERATE = (Decimal("0.41"), Decimal("0.60"))
LEVELS = ("frame", "shot", "document", "summary")
SUMMARIES = ("v2t_bs", "v2v_f1", "v2vt_bs", "v2vt_f1")


def _datasets(p: Paper) -> tuple[bool, str]:
    sources = list(p.sources())
    return len(sources) == p.stated("datasets"), f"Table 1: {len(sources)} ({', '.join(sources)})"


def _videos(p: Paper) -> tuple[bool, str]:
    whole = p.table(1).row("", WHOLE).printed("videos")
    total = sum(row.printed("videos") for row in p.sources().values())
    return whole == total, f"Table 1: {whole} are printed, the sum is {total}"


def _shots(p: Paper) -> tuple[bool, str]:
    whole, follows = p.table(1).row("", WHOLE).printed("shots"), over_videos(p, "shots")
    slack = max(half(row.printed("shots")) for row in p.sources().values())
    holds = abs(whole - follows) <= half(whole) + slack
    return holds, f"Table 1: {whole} are printed, the mean is {follows:.2f}"


def _frames(p: Paper) -> tuple[bool, str]:
    whole = p.table(1).row("", WHOLE).printed("frames")
    return p.stated("frames_per_video") == whole, f"Table 1: {whole}"


def _tasks(p: Paper) -> tuple[bool, str]:
    kinds = dict.fromkeys(c.title.replace(".", " ").split()[0] for c in p.table(3).columns)
    return len(kinds) == p.stated("tasks"), f"Table 3: {', '.join(kinds)}"


def _dimensions(p: Paper) -> tuple[bool, str]:
    names = p.names("dimensions")
    return len(names) == p.stated("dimensions"), f"It lists {', '.join(names)}"


def _budget(p: Paper) -> tuple[bool, str]:
    values = [p.stated(f"{key}_percent") for key in ("keyframe", "key_shot", "budget")]
    return len(set(values)) == 1, f"3.2 twice, 4.1: {', '.join(map(str, values))} %"


def _models(p: Paper) -> tuple[bool, str]:
    names = p.names("evaluated_models")
    rows = {row.name: row.identity for row in p.table(3).rows if row.name != PROXY}
    return sorted(filter(None, rows.values())) == sorted(names), f"Table 3: {', '.join(rows)}"


def _not_run(p: Paper) -> tuple[bool, str]:
    rows = p.table(3).rows
    empty = [r for r in rows if all(r.figures[column] is None for column in SUMMARIES)]
    partly = [r for r in rows if r not in empty and any(r.figures[c] is None for c in SUMMARIES)]
    in_four = {row.name for row in p.table(4).rows}
    named = p.names("without_summaries")
    holds = len(named) == len(empty) and not partly and not in_four & {r.name for r in empty}
    holds = holds and all(any(row.name.startswith(name) for name in named) for row in empty)
    return holds, (
        f"Table 3 has no summaries of {', '.join(r.name for r in empty)}; Table 4 has neither"
        if not in_four & {r.name for r in empty}
        else f"Table 4 has {', '.join(sorted(in_four))}"
    )


def _proxy_tasks(p: Paper) -> tuple[bool, str]:
    row = next(row for row in p.table(3).rows if row.name == PROXY)
    empty = [name for name, figure in row.figures.items() if figure is None]
    documents = [name for name in row.figures if name.endswith("_doc")]
    titles = {column.name: column.title for column in p.table(3).columns}
    return empty == documents, f"Table 3, dashes: {', '.join(titles[name] for name in empty)}"


def _proxy_orders(p: Paper) -> tuple[bool, str]:
    text, prompt = (" ".join(p.names(f"proxy_orders_in_{where}")) for where in ("text", "prompt"))
    return text == prompt, f"Appendix C shuffles and asks for {prompt}"


def _assessed(p: Paper) -> tuple[bool, str]:
    here = (p.stated("assessed_videos"), p.stated("raters"))
    there = (p.stated("rated_videos"), p.stated("video_raters"))
    return here == there, f"B.1: {there[0]} videos, {there[1]} raters for each"


def _rated(p: Paper) -> tuple[bool, str]:
    here = {level: [r.name for r in p.table(2).rows if r.group == level] for level in LEVELS}
    counts = ", ".join(f"{level} {len(names)}" for level, names in here.items())
    return all(p.names(f"{level}_ratings") == names for level, names in here.items()), (
        f"Table 2: {counts}"
    )


def units(p: Paper, row: Row) -> int:
    """Pairs of ratings behind a row of Table 2: of videos, or of the frames or shots of each."""
    videos = int(p.stated("rated_videos"))
    per_video = {"frame": "rated_frames", "shot": "rated_shots"}
    return videos * int(p.stated(per_video[row.group])) if row.group in per_video else videos


def _possible(p: Paper) -> tuple[bool, str]:
    raters, odd = int(p.stated("video_raters")), []
    for row in p.table(2).rows:
        n = units(p, row)
        score, exact = row.printed("score"), row.printed("exact")
        whole = [Decimal(round(score * n * raters)) / (n * raters)]
        whole.append(Decimal(100 * round(exact * n / 100)) / n)
        pairs = zip((score, exact), whole, strict=True)
        if any(abs(printed - near) > half(printed) for printed, near in pairs):
            odd.append(f"{row.group} {row.name}")
    return not odd, (
        f"Table 2: {', '.join(odd) or 'every score and rate'} "
        f"{'is' if not odd else 'are not'} a fraction with those denominators"
    )


def _high(p: Paper) -> tuple[bool, str]:
    rows, good = p.table(2).rows, p.stated("good")
    low = [(f"{r.group} {r.name}", r.printed("score")) for r in rows if r.printed("score") < good]
    scores = [row.printed("score") for row in rows]
    return (
        not low,
        f"Table 2: {min(scores)} to {max(scores)}; below {good}: {listed(low) or 'none'}",
    )


def _moderate(p: Paper) -> tuple[bool, str]:
    kappas = [row.printed("kappa") for row in p.table(2).rows]
    inside = sum(MODERATE[0] <= kappa <= MODERATE[1] for kappa in kappas)
    below = sum(kappa < 0 for kappa in kappas)
    return inside == len(kappas), (
        f"Table 2: kappa {min(kappas)} to {max(kappas)}, {below} of {len(kappas)} below 0 (less "
        f"than by chance), {inside} moderate; {p.stated('experts')} people rated, "
        f"{p.stated('raters')} for each video, so that not all videos have the same two"
    )


def _subjective(p: Paper) -> tuple[bool, str]:
    rows = p.table(2).rows
    lowest = min(rows, key=lambda row: row.printed("kappa"))
    names = ("Relevance", "Readability")
    about = [(f"{row.group} {row.name}", row.printed("kappa")) for row in rows if row.name in names]
    return lowest.name in names, (
        f"Table 2, kappa: {lowest.group} {lowest.name} {lowest.printed('kappa')} is lowest; "
        f"{listed(about)}; saliency was not rated (B.2)"
    )


def _same_videos(p: Paper) -> tuple[bool, str]:
    over = above_harmonic(p)
    named = ", ".join(f"{model} {p.title(column)}" for model, column in over)
    return not over, f"It is above it for {named or 'no row'}"


STATEMENTS = (
    Statement("datasets", "3", "it is built on six data sets", _datasets),
    Statement("videos", "Table 1", "the videos of the whole are the sum of the sources'", _videos),
    Statement(
        "shots", "Table 1", "the shots of the whole are the mean over the sources' videos", _shots
    ),
    Statement("frames", "3.2", "a video has 164.9 frames on average, as in Table 1", _frames),
    Statement("tasks", "4.1", "there are six tasks", _tasks),
    Statement("dimensions", "1", "there are four dimensions", _dimensions),
    Statement("budget", "3.2", "keyframes, key shots and the budget are the same share", _budget),
    Statement("models", "4.1", "the evaluated models are those of Table 3", _models),
    Statement(
        "not_run", "4.2", "GPT-5.2 and GLM take no part in the summarization tasks", _not_run
    ),
    Statement(
        "proxy_tasks", "C", "there is a text proxy of every task without the document", _proxy_tasks
    ),
    Statement(
        "proxy_orders",
        "4.3",
        "the text proxy of temporal order gets each shot's description in its place",
        _proxy_orders,
        "We follow Appendix C, the prompt: sentences of the document. A sentence may cover several "
        "shots, so that the proxy's figure is of another order than the models'.",
    ),
    Statement("assessed", "3.3", "the annotations of 15 videos were rated, by two each", _assessed),
    Statement("rated", "B.2", "what was rated of frames, shots, document and summary", _rated),
    Statement(
        "possible",
        "B.1",
        "two raters, two frames, one shot, one document and one summary of each of 15 videos (read "
        "as: scores are sixtieths for frames and thirtieths else, rates of exact agreement "
        "thirtieths and fifteenths)",
        _possible,
    ),
    Statement(
        "high_scores",
        "3.3",
        "the scores are high throughout (read as: good, 4 on the scale of B.3, or better)",
        _high,
        "We follow Table 2; all but one are.",
    ),
    Statement(
        "moderate",
        "3.3",
        "the raters agree moderately (read as: kappa of 0.41 to 0.60)",
        _moderate,
        "We follow Table 2: agreement is near or below chance. A rating sheet of ours is summed up "
        "by the same three measures.",
    ),
    Statement(
        "subjective",
        "3.3",
        "agreement suffers most in saliency and language (read as: the lowest kappa is of "
        "Relevance or Readability)",
        _subjective,
        "We follow Table 2.",
    ),
    Statement(
        "same_videos",
        "Tables 3 and 4",
        "F1, P and R are means over the same videos (read as: no F1 is above the harmonic mean of "
        "P and R, which is the most they allow)",
        _same_videos,
    ),
)
