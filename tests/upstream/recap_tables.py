"""MovieRecapsQA's tables as its card on the hub has them, of segments in the site's form."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lmms_eval_tasks.movierecapsqa.release import without_numbers
from lmms_eval_tasks.utils.media import subtitles

DATASET = "sshaar/movierecapsqa"
# Its card names a split for each table; they have other columns, so only one loads at a time.
_SPLITS = ("questions", "recaps", "segments", "facts")
_CARD = "---\nconfigs:\n- config_name: default\n  data_files:\n{}\n---\n".format(
    "\n".join(f'  - split: {name}\n    path: "data/{name}.json"' for name in _SPLITS)
)


def write(root: Path, entries: Sequence[dict[str, Any]]) -> Path:
    """Write the dataset beneath `root`, with the subtitles beside its tables; returns its folder.

    A segment's window in the movie is all of its own subtitles: give no two of one recap.
    """
    made: dict[str, list[dict[str, Any]]] = {name: [] for name in _SPLITS}
    folder = root / DATASET
    (folder / "subtitles").mkdir(parents=True)
    (folder / "data").mkdir()
    (folder / "README.md").write_text(_CARD)
    for entry in entries:
        video, _, number = entry["id"].rpartition(".")
        place = {"video_id": video, "segment_id": int(number)}
        url = f"https://example.org/{video}.srt"
        recap = {"video_id": video, "movie_name": entry["movie"], "subtitle_url": url}
        made["recaps"].append({**recap, "imdb_url": ""})
        (folder / "subtitles" / f"{video}.srt").write_text(entry["srt"], encoding="utf-8")
        ends = [cue.end for cue in subtitles.parse(entry["srt"])]
        facts = {
            f"{entry['id']}-{n}": fact for n, fact in enumerate(without_numbers(entry["facts"]))
        }
        made["facts"] += [{**place, "fact_id": name, "fact": fact} for name, fact in facts.items()]
        times = {"movie_start_time": 0.0, "movie_end_time": max(ends, default=0.0) + 1}
        times |= {f"recap_{end}_time": entry[f"{end}Time"] for end in ("start", "end")}
        made["segments"].append({**place, **times, "fact_ids": list(facts)})
        for one in entry["questions"]:
            asked = {"question": one["question"], "answer": one["datasetAnswer"]}
            row = {**place, "question_id": one["qid"], **asked, "aligned_fact_ids": list(facts)[:1]}
            made["questions"].append(row)
    for name, rows in made.items():
        (folder / "data" / f"{name}.json").write_text(json.dumps(rows), encoding="utf-8")
    return folder
