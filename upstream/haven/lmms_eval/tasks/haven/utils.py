import hashlib
import json
import os
import random
import re
import unicodedata
from functools import lru_cache
from typing import Any, Collection, Iterator, Mapping, Optional, Sequence

import av
import datasets
from PIL import Image

from lmms_eval.tasks._task_utils.open_answers import answer_of, fill, mean, user_file

Document = Mapping[str, Any]
TaskKwargs = Optional[Mapping[str, Any]]
Record = dict[str, Any]

# --- Prompts: inputs, order, what is asked and output formats are those of the paper's Appendix C; the wording is ours.

PROMPTS = {
    "v2v_open": "{n_frames} frames of a video follow in chronological order, each behind its number:",
    "v2v_ask": """Which of these frames matter most? Choose those that together represent the key moments of the video best.
Reply with ONLY a JSON array of frame numbers (integers, 1-indexed) that has exactly {k} element(s). Example of the form, for {n_example} frame(s): {example}
Give no explanation.""",
    "v2v_text_open": "A video's sampled frames are described below in chronological order, one frame a line.",
    "v2v_text_ask": """Choose exactly {k} frame number(s): the frames that capture the key content and events of the video best.
Reply with ONLY a JSON array of 1-indexed integers that has exactly {k} element(s). Example of the form, for {n_example} frame(s): {example}
Give no explanation.""",
    "temporal_open": "{n} shots of one video follow. Their order is shuffled.",
    "temporal_ask": """These were {n} shots ({names}) in shuffled order. Put ALL of them into the order in which they follow each other in the video, from the first to the last.
Reply with ONLY the order, in exactly this format (with > between the shots):
{form}
Every shot has to be there exactly once.""",
    "grounding_open": "{n} clips of a video follow, labelled Clip 1 through Clip {n}:",
    "grounding_text_open": "{n} clips of a video follow as text descriptions, labelled Clip 1 through Clip {n}:",
    "grounding_sentences": """The video has a text summary. These are {n_sentences} of its sentences, in shuffled order:
{lines}""",
    "grounding_ask": """Decide for each summary sentence which clip or clips it describes.
Reply in exactly this format, one line for each sentence (with commas between the numbers of clips):
Summary 1: Clip X, Clip Y""",
}
UNITS = {"v2v": "Frame", "temporal": "Shot", "grounding": "Clip"}

# --- Data: the released JSON of each source, one document a file, as HAVEN_DIR has it.

SOURCES = ("summe", "tvsum", "ovp", "youtube", "videoxum", "mrhisum")
FILES = [os.path.join(os.getenv("HAVEN_DIR", "haven"), f"{source}_data.json") for source in SOURCES]
FILES = list(filter(os.path.exists, FILES)) or FILES
DATASET_KWARGS = {"data_files": {"test": FILES}, "sample_by": "document"}
# Shots to order and sentences to ground, at most; if there are more, so many are drawn.
MOST = {"temporal": 5, "grounding": 3}


def haven_v2v_docs(rows: datasets.Dataset) -> datasets.Dataset:
    """A doc for each video with a key shot."""
    return _docs(rows, "v2v")


def haven_temporal_docs(rows: datasets.Dataset) -> datasets.Dataset:
    """A doc for each video with two shots."""
    return _docs(rows, "temporal")


def haven_grounding_docs(rows: datasets.Dataset) -> datasets.Dataset:
    """A doc for each video with a summary."""
    return _docs(rows, "grounding")


def _docs(rows: datasets.Dataset, kind: str) -> datasets.Dataset:
    """Frames, shots and sentences are numbered from 1. A shot without a sampled frame is dropped, as is its place in the alignments."""
    docs = []
    for file, row in zip(FILES, rows):
        source = os.path.basename(file).removesuffix("_data.json")
        for video, entry in json.loads(row["text"]).items():
            picks = [frame["frame_id"] for frame in entry["frames"]]
            clips = [(place, clip) for place, clip in enumerate(entry["clips"]) if clip["frames"]]
            number = {place: n for n, (place, _) in enumerate(clips, 1)}
            block = entry.get("aligned_text_summary") or {"sentences": [], "alignments": []}
            aligned = {one["sentence_id"]: sorted({number[shot] for shot in one["shot_ids"] if shot in number}) for one in block["alignments"] or ()}
            doc = {"id": f"{source}/{video}", "source": source, "video": video, "name": entry.get("video_name") or "", "kind": kind, "picks": picks}
            doc["shots"] = [[1 + picks.index(frame) for frame in clip["frames"]] for _, clip in clips]
            doc["key_frames"] = [frame for shot, (_, clip) in zip(doc["shots"], clips) if clip.get("gt") for frame in shot]
            doc["frame_texts"] = [_described(frame.get("description")) for frame in entry["frames"]]
            doc["shot_texts"] = [_described(clip.get("summary")) for _, clip in clips]
            summary = [re.sub(r"(?i)^\s*\[Shots?\s*[\d\s,;&and–-]*\]\s*", "", sentence).strip() for sentence in block["sentences"] or ()]
            doc["units"] = _drawn(kind, len(clips), doc) if kind == "temporal" else list(range(1, 1 + len(clips)))
            drawn = _drawn(kind, len(summary), doc) if kind == "grounding" else []
            doc["sentences"], doc["sentence_shots"] = [summary[n - 1] for n in drawn], [aligned.get(n - 1, []) for n in drawn]
            if {"v2v": doc["key_frames"], "temporal": len(clips) > 1, "grounding": drawn}[kind]:
                docs.append(doc)
    return datasets.Dataset.from_list(docs)


def _described(text: Optional[str]) -> str:
    return "(not described)" if text in (None, "", "[CONTENT_FILTERED]") else text.strip()


def _drawn(kind: str, n: int, doc: Document) -> list[int]:
    """Return some of the numbers 1 to n, shuffled, in the draw of the authors' code."""
    digest = hashlib.md5((doc["video"] if kind == "temporal" else f"42:{doc['source']}:{doc['video']}").encode()).hexdigest()
    draw = random.Random((42 + int(digest[:8], 16)) % 2**32 if kind == "temporal" else int(digest[-8:], 16))
    some = sorted(draw.sample(range(1, n + 1), min(MOST[kind], n)))
    draw.shuffle(some)
    return some


# --- What a model sees: pictures behind their labels, or the release's descriptions (`text`).


def _budget(doc: Document) -> int:
    """Return K, the number of keyframes to choose (paper, 4.1)."""
    return -(-len(doc["picks"]) * 15 // 100)


def _paragraphs(doc: Document, is_text: bool) -> Iterator[tuple[str, list[int]]]:
    """Yield texts, and labels with the frames that they are of."""
    kind, unit, every = doc["kind"], UNITS[doc["kind"]], range(1, 1 + len(doc["picks"]))
    shown = [[frame] for frame in every] if kind == "v2v" else [doc["shots"][n - 1] for n in doc["units"]]
    if kind == "grounding":  # the first 0.3 n frames of a clip, 4 to 8, as in the authors' code
        shown = [frames[: max(4, min(8, round(0.3 * len(frames))))] for frames in shown]
    names, k = [f"{unit} {place}" for place, _ in enumerate(shown, 1)], _budget(doc)
    few = [number for number in (1, 5, 12)[:k] if number <= len(every)]
    values = {"n_frames": str(len(every)), "n": str(len(shown)), "k": str(k), "example": json.dumps(few), "n_example": str(len(few)), "n_sentences": str(len(doc["sentences"]))}
    values["names"] = ", ".join(names if len(names) < 4 else [*names[:2], "...", names[-1]])
    values["form"] = " > ".join([*(f"{unit} {letter}" for letter in "XYZ"[: len(shown)]), *["..."] * (len(shown) > 3)])
    values["lines"] = _lines("Summary", doc["sentences"])
    end = "_text" if is_text and kind != "temporal" else ""
    yield fill(PROMPTS[f"{kind}{end}_open"], **values), []
    if is_text:
        yield _lines(unit, doc["frame_texts"] if kind == "v2v" else [doc["shot_texts"][n - 1] for n in doc["units"]]), []
    else:
        yield from zip(names, shown)
    if kind == "grounding":
        yield fill(PROMPTS["grounding_sentences"], **values), []
    yield fill(PROMPTS[f"{kind}{end if kind == 'v2v' else ''}_ask"], **values), []


def _lines(label: str, texts: Sequence[str]) -> str:
    return "\n".join(f"{label} {place}: {' '.join(text.split())}" for place, text in enumerate(texts, 1))


def _is_text(kwargs: TaskKwargs) -> bool:
    return bool((kwargs or {}).get("text"))


def haven_doc_to_visual(doc: Document, lmms_eval_specific_kwargs: TaskKwargs = None) -> list[Image.Image]:
    """Return the pictures in the prompt's order; none of a text proxy."""
    if _is_text(lmms_eval_specific_kwargs):
        return []
    names = [f"{doc['source']}/{doc['video']}.mp4", *(f"{folder}{doc['name']}.mp4" for folder in (f"{doc['source']}/", "") if doc["name"])]  # each source has a video_1
    video = user_file(names, "haven", "HAVEN_VIDEO_DIR", "videos")
    if video is None:
        raise FileNotFoundError(f"HAVEN: no file of {doc['id']} ({', '.join(names)}). Set HAVEN_VIDEO_DIR to the folder of the videos.")
    pictures = _pictures(video, tuple(doc["picks"]))
    return [pictures[frame - 1] for _, frames in _paragraphs(doc, False) for frame in frames]


@lru_cache(maxsize=2)
def _pictures(video: str, picks: tuple[int, ...]) -> list[Image.Image]:
    """Return the frames with these indices, at most 512 pixels long."""
    wanted, found = set(picks), []
    with av.open(video) as file:
        for place, frame in enumerate(file.decode(video=0)):
            if place in wanted:
                found.append(frame.to_image())
                found[-1].thumbnail((512, 512), Image.Resampling.BICUBIC)
            if len(found) == len(wanted):
                return found
    raise ValueError(f"HAVEN: {video} ends before frame {picks[-1]}: it is not the video of the annotations")


def haven_doc_to_text(doc: Document, lmms_eval_specific_kwargs: TaskKwargs = None) -> str:
    """Return the texts; a label says which pictures it is of, since simple models see these first."""
    texts, before = [], 0
    for text, frames in _paragraphs(doc, _is_text(lmms_eval_specific_kwargs)):
        first, before = before + 1, before + len(frames)
        texts.append(f"{text} (image {first})" if first == before else f"{text} (images {first} to {before})" if frames else text)
    return "\n\n".join(texts)


def haven_doc_to_messages(doc: Document, lmms_eval_specific_kwargs: TaskKwargs = None) -> list[dict[str, Any]]:
    """Return texts and pictures in turn."""
    pictures, content, before = iter(haven_doc_to_visual(doc, lmms_eval_specific_kwargs)), [], ""
    for place, (text, frames) in enumerate(_paragraphs(doc, _is_text(lmms_eval_specific_kwargs))):
        before += ("\n\n" if place else "") + text + (":\n" if frames else "")
        if frames:
            content += [{"type": "text", "text": before}, *({"type": "image", "url": next(pictures)} for _ in frames)]
            before = ""
    return [{"role": "user", "content": [*content, {"type": "text", "text": before}]}]


# --- Scores. A reply without an order, clips or frames is worth 0. A reply whose request failed is left out and counted.


def haven_process_results(doc: Document, results: Sequence[str]) -> dict[str, Any]:
    """Score a reply. With --log_samples `read` is what was read of it: an order, the clips of each sentence, or frames."""
    answer, status = answer_of(results[0] if results else "")
    scores, read = ({}, []) if status == "request_failed" else _SCORES[doc["kind"]](doc, re.sub(r"[*`]", "", answer))
    record = {"id": doc["id"], "source": doc["source"], "status": status, "read": read}
    return {f"haven_{name}": {**record, "score": value} for name, value in scores.items()} | {"haven_failed": {**record, "failed": status == "request_failed"}}


_ARROW = re.compile(r"(?:-{1,3}|={1,2})>|[\u2192\u21d2\u2794]|&gt;|>{2,3}")
_SHOT = r"[(\[\"']{0,2}(?:shots?[ _#]{0,2})?[0-9]{1,9}(?!\w|\.[0-9])[)\]\"']{0,2}(?: ?\([^()\n>0-9]{1,200}\))?"
_CHAIN = re.compile(rf"(?<![\w.])(?<!\w-){_SHOT}(?:\s*>\s*{_SHOT})+", re.IGNORECASE)
_LIST = re.compile(rf"(?m:^)[^0-9\n>]{{0,80}}?(?<!\w){_SHOT}(?: ?, ?{_SHOT})+\W*(?m:$)", re.IGNORECASE)
_ROWS = re.compile(r"(?m:^)(?:(?:[0-9]+[.)] ?|[-\u2022] ?)?shots?[ _#]{0,2}[0-9]+[.,;]?(?:\n|\Z)){2,}", re.IGNORECASE)
_DENIED = re.compile(r"(?:\bnot?\b|n't\b)[^.:\n]*\Z", re.IGNORECASE)
_BACKWARDS = re.compile(r"\b(?:last to (?:the )?first|latest to (?:the )?earliest)\b", re.IGNORECASE)


def read_order(reply: str, n: int) -> list[int]:
    """Return the places of the order that a reply states, each once; [] if it states none, or two.

    A chain ("Shot 3 > Shot 1 > 2", also with arrows) counts before a list alone on its lines ("3, 1, 2", one shot a line). Only those with most shots
    count; of two that differ, the last, if words stand between them. A chain with a tie ("Shot 1, Shot 2 > Shot 3") or a denied one is none.
    """
    text, orders = _ARROW.sub(">", reply), []
    for place in list(_CHAIN.finditer(text)) or [*_LIST.finditer(text), *_ROWS.finditer(text)]:
        before, after = text[: place.start()].rpartition("\n")[2], text[place.end() :]
        if place.re is _CHAIN and (re.search(r"[0-9]\W{0,2}[,=/&+<]\s*\Z", before) or re.match(r"\s*[,=/&+<]\s*(?:shots? )?#?[0-9]", after, re.IGNORECASE)):
            return []
        is_bare = place.re is _CHAIN and "shot" not in place[0].lower() and re.match(r"[ ,]*\w", after)  # "5 > 3 is true"
        rows = re.sub(r"(?m)^[0-9]+[.)] ?", "", place[0]) if place.re is _ROWS else place[0]
        order = list(dict.fromkeys(number for number in map(int, re.findall(r"[0-9]{1,9}", rows)) if 1 <= number <= n))
        line = f"{before} {after.split(chr(10))[0]}"
        if not is_bare and not _DENIED.search(before) and not re.search(r"(?i)\brevers", line):
            orders.append((order[::-1] if _BACKWARDS.search(line) else order, place))
    most = max((len(order) for order, _ in orders), default=0)
    orders = [(order, place) for order, place in orders if len(order) == most]
    differing = [place for order, place in orders if order != orders[-1][0]]
    if not orders or (differing and not re.search(r"[^\W\d_]", text[differing[-1].end() : orders[-1][1].start()])):
        return []
    return orders[-1][0]


_SENTENCE = re.compile(
    r"(?:^\W{0,6}(?:[0-9]{1,3}[.)] ?)?|(?<!\w))(?:summary sentence|summary|sentence)[ _#]{0,2}([0-9]{1,3})(?![0-9]|[.,][0-9])[\"')\]]{0,2}(?: \([^()\n]{1,400}\))? ?(?::|=?-?>| - |(?<=\|)|\|(?= )|\n)",
    re.IGNORECASE | re.MULTILINE,
)
_RANGE = r"[0-9]{1,9}(?![0-9]|\w|[.:][0-9])(?: ?(?:-{1,2}|\u2013|to|through) ?(?:clips? )?[0-9]{1,9}(?![\w:]))?"
_BOUNDS = r"([0-9]{1,9})(?: ?(?:-{1,2}|\u2013|to|through) ?(?:clips? )?([0-9]{1,9}))?"
_CLIPS = rf"{_RANGE}(?:(?: ?[,;&+/] ?(?:and )?| and )(?:clips?[ _#]{{0,2}}{_RANGE}|{_RANGE}(?= ?(?:[,;&+/\n.)\]\"'-]|and\b|\Z))))*"


def read_clips(reply: str, n_sentences: int, n_clips: int) -> list[list[int]]:
    """Return the clips stated for each sentence: those named ("Clip 1, Clip 4", "Clips 2-4"), or numbers alone; [] if there are none.

    A statement ends before the next sentence's name. None is one with a denied clip or a range that runs backwards, or two that differ uncorrected.
    """
    stated: dict[int, list[int]] = {}
    heads = list(_SENTENCE.finditer(reply))
    for head, end in zip(heads, [*(head.start() for head in heads[1:]), len(reply)]):
        sentence, body = int(head[1]), re.sub(r"[\"'\[\]{}|]", " ", reply[head.end() : end]).strip()
        body = re.sub(r"\n[-\u2022\s]*", ", ", re.split(r"\n\s*(?![-\u2022]? ?(?:clips?\b|[0-9]+\b))", body, flags=re.IGNORECASE)[0]).strip(" .,;()")
        named = [match[0] for match in re.finditer(rf"(?<!\w)clips?[ _#]{{0,2}}{_CLIPS}", body, re.IGNORECASE)]
        bounds = [(int(first), int(last or first)) for first, last in re.findall(_BOUNDS, ", ".join(named or re.findall(rf"\A{_CLIPS}\Z", body)), re.IGNORECASE)]
        if re.search(r"(?i)\b(?:not|none|no|except|but)\b|n't\b", body) or any(first > last for first, last in bounds):
            bounds = []
        clips = [clip for first, last in bounds for clip in range(first, max(first, min(last, n_clips + 1)) + 1)]
        is_corrected = re.search(r"(?i)\b(?:correct\w*|final|actually|revised|wait)\b", reply[: head.start()][-80:])
        stated[sentence] = clips if sentence not in stated or is_corrected or {*clips} == {*stated[sentence]} else []
    return [stated.get(sentence, []) for sentence in range(1, n_sentences + 1)]


def _temporal(doc: Document, reply: str) -> tuple[dict[str, float], list[int]]:
    """Spearman's rho and Kendall's tau-b; places that are left out share the mean of the last ranks."""
    from scipy.stats import kendalltau, spearmanr  # slow to import

    n = len(doc["units"])
    order = read_order(unicodedata.normalize("NFKC", reply), n)
    if len(order) < 2:
        return {"spearman": 0.0, "kendall": 0.0}, order
    ranks = [order.index(place) + 1 if place in order else (len(order) + 1 + n) / 2 for place in range(1, n + 1)]
    return {"spearman": float(spearmanr(ranks, doc["units"]).statistic), "kendall": float(kendalltau(ranks, doc["units"]).statistic)}, order


def _set_scores(chosen: Collection[int], true: Collection[int]) -> dict[str, float]:
    hits, either = len({*chosen} & {*true}), len({*chosen} | {*true})
    shares = {"precision": hits / max(1, len({*chosen})), "recall": hits / max(1, len({*true})), "f1": 2 * hits / max(1, either + hits)}
    return {**shares, "iou": hits / either if either else 1.0, "hit1": float(hits > 0)}


def _grounding(doc: Document, reply: str) -> tuple[dict[str, float], list[list[int]]]:
    """F1, IoU and Hit@1 of each sentence's clips, and then their mean."""
    named = read_clips(unicodedata.normalize("NFKC", reply), len(doc["sentences"]), len(doc["units"]))
    scores = [_set_scores(clips, true) for clips, true in zip(named, doc["sentence_shots"])]  # a clip that does not exist is wrong
    return {name: mean(score[name] for score in scores) for name in ("f1", "iou", "hit1")}, named


def _v2v(doc: Document, reply: str) -> tuple[dict[str, float], list[int]]:
    """Precision, recall and F1 of the first K frames of the first JSON array, or of all numbers, as in the authors' code."""
    array = re.search(r"\[\s*[0-9]+(?:\s*,\s*[0-9]+)*\s*\]", reply)
    numbers = map(int, re.findall(r"\b[0-9]{1,9}\b", array[0] if array else reply))
    chosen = list(dict.fromkeys(number for number in numbers if 1 <= number <= len(doc["picks"])))[: _budget(doc)]
    return {name: _set_scores(chosen, doc["key_frames"])[name] for name in ("precision", "recall", "f1")}, chosen


_SCORES = {"temporal": _temporal, "grounding": _grounding, "v2v": _v2v}


def haven_aggregate(records: Sequence[Record]) -> float:
    """Mean over the videos."""
    return mean(record["score"] for record in records)


def haven_count_failed(records: Sequence[Record]) -> int:
    """Number of replies whose request failed."""
    return sum(record["failed"] for record in records)
