"""The cost of a page of two runs of all of MAIA: seconds, megabytes, memory.

    python benchmarks/report_page.py [--videos ../shared/data/maia/videos] [--keep FOLDER]

The data are 100 videos, 2,400 questions and 19,200 pairs: the packaged sample's two videos (or
those of --videos) 50 times with different names. The letters of all words are shuffled, because
repeated texts would compress better than any release. Two models answer at random, and the replies
are scored as in a run. The page is made twice, in separate processes, the first time without clips
in the cache, as on another machine. Then it is opened in Chromium, if that is installed.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

from lmms_eval_tasks import registry, sample, settings

TASKS = ("maia_vsv", "maia_oevqa")
RUNS = {"model-a": 0.8, "model-b": 0.75}  # share of right answers


def with_other_letters(value: Any, draw: random.Random) -> Any:
    """Return the same value with the letters of each word shuffled."""
    if isinstance(value, dict):
        return {key: with_other_letters(one, draw) for key, one in value.items()}
    if isinstance(value, list):
        return [with_other_letters(one, draw) for one in value]
    return " ".join("".join(draw.sample(word, len(word))) for word in value.split())


def write_data(root: Path, videos: list[Path]) -> None:
    """Write a release of 100 videos, whose files differ only in their last bytes."""
    own = sample.build_sample(settings.data_root()) / "maia"
    entries = json.loads((own / "data.json").read_text(encoding="utf-8"))
    folder = root / "maia" / "videos"
    folder.mkdir(parents=True)
    made = []
    draw = random.Random(0)
    for number, entry in zip(range(100), itertools.cycle(entries), strict=False):
        name = f"video{number + 1}"
        made.append(other := copy.deepcopy({**entry, "video": name}))
        for one in itertools.chain(other["question_categories_A"], other["question_categories_B"]):
            texts = {key: text for key, text in one.items() if key != "category"}
            one.update(with_other_letters(texts, draw))
        source = (videos or sorted((own / "videos").iterdir()))[number % len(videos or entries)]
        free = b"\0\0\0\x08free" * number  # boxes that readers skip
        (folder / f"{name}.mp4").write_bytes(source.read_bytes() + free)
    text = json.dumps(made, ensure_ascii=False)
    (root / "maia" / "data.json").write_text(text, encoding="utf-8")


def write_runs(out: Path) -> None:
    """Write saved runs in lmms-eval's form, without lmms-eval."""
    benchmark = registry.load_benchmark("maia")
    found = benchmark.load(TASKS, only=())
    for model, right in RUNS.items():
        draw = random.Random(model)
        folder = out / model
        folder.mkdir(parents=True)
        for name in TASKS:
            task = benchmark.tasks[name]
            with (folder / f"20260101_000000_samples_{name}.jsonl").open("w") as file:
                for number, doc in enumerate(benchmark.docs(found, name)):
                    good = draw.random() < right
                    item = {**task.log_fields(doc), **task.media_log({**doc, "task": name})}
                    if "options" in doc:
                        reply = doc["answer"] if good else "AB"[doc["answer"] == "A"]
                        made = task.score(item, reply)
                    else:
                        reply = doc["references"][number % 8]
                        raw = "Correct" if good else "Incorrect"
                        verdict = {"score": float(good), "status": "ok", "raw": raw, "reason": ""}
                        made = {"candidate": reply, "status": "ok", "right": int(good)}
                        made |= {"rouge_l": 1.0, "meteor": 1.0, "verdicts": {"agrees": verdict}}
                    item = {**item, **made, "reply": reply}
                    text = task.prompt({**doc, "task": name})[-1].content
                    sample = {"doc_id": number, "failed": item, "input": text}
                    file.write(json.dumps(sample, ensure_ascii=False) + "\n")
        results = {"config": {"model": model, "model_args": ""}, "results": {}, "model_name": model}
        (folder / "20260101_000000_results.json").write_text(json.dumps(results))


def make(out: Path) -> None:
    """Write the page, and print its time and size."""
    from lmms_eval_tasks.report import compared_runs, run_page

    started = time.perf_counter()
    page = out / "report.html"
    page.write_text(
        run_page.html(compared_runs.read_sides([out / name for name in RUNS])), encoding="utf-8"
    )
    seconds = time.perf_counter() - started
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    size = page.stat().st_size / 1e6
    print(f"{seconds:.1f} s, {size:.1f} MB, at most {memory:,.0f} MB of memory: {page}", flush=True)


# A reader's waiting time in the page: milliseconds from an action to the frame that shows its
# result. A filter waits 120 ms for the next letter of a search.
_USE = """async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const since = async (act, done) => {
    const started = performance.now();
    act();
    do await frame(); while (!done());
    return performance.now() - started;
  };
  const count = document.getElementById("count");
  const filter = (name, value) => {
    const box = document.querySelector(`[name=${name}]`);
    const before = count.textContent;
    box.value = value;
    const told = new Event("input", { bubbles: true });
    return since(() => box.dispatchEvent(told), () => count.textContent !== before);
  };
  const found = { "filter by task": await filter("task", "maia_vsv") };
  found["by flipped"] = await filter("flipped", "-1 1");
  found["by text"] = await filter("search", "video10");
  await filter("search", "");
  await filter("flipped", "");
  await filter("task", "");
  const click = () => document.querySelector(".tabulator-row").click();
  found["an item"] = await since(click, () => document.querySelector("dialog[open] .answers"));
  document.querySelector("dialog").close();
  const holder = document.querySelector(".tabulator-tableholder");
  const frames = [];
  for (let step = 0, last = performance.now(); step < 300; step += 1) {
    holder.scrollTop += 120;
    await new Promise(requestAnimationFrame);
    frames.push(performance.now() - last);
    last = performance.now();
  }
  const slow = frames.filter((one) => one > 50).length;
  const longest = Math.max(...frames);
  return [found, slow, frames.length, longest];
}"""


def look(page: Path) -> None:
    """Print a reader's waiting times: for the table, filters, an item, and scrolling."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("no Chromium on this machine: not opened")
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as played:
        browser = played.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page()
        tab.goto(page.as_uri(), wait_until="commit")
        tab.wait_for_selector("body[data-ready] .tabulator-row")
        shown = tab.evaluate("performance.now()")
        found, slow, frames, longest = tab.evaluate(_USE)
        browser.close()
    told = ", ".join(f"{name} {one:.0f} ms" for name, one in found.items())
    print(f"rows shown after {shown:.0f} ms; {told}")
    print(f"scrolling: {slow} of {frames} frames over 50 ms, the longest {longest:.0f} ms")


def main() -> None:
    """Write data, runs and page, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--videos", type=Path, help="folder of videos, instead of the sample's")
    parser.add_argument("--keep", type=Path, help="folder for runs and page")
    parser.add_argument("--page", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.page:
        make(given.page)
        return
    with tempfile.TemporaryDirectory() as scratch:
        root, out = Path(scratch), given.keep or Path(scratch) / "runs"
        with patch.dict(os.environ, {settings.DATA: settings.SAMPLE}):
            write_data(root, sorted(given.videos.iterdir()) if given.videos else [])
        own = {settings.DATA: str(root), settings.CACHE: str(root / "cache")}
        with patch.dict(os.environ, own):
            write_runs(out)
            for kind in ("no clip in the cache", "clips in the cache"):
                print(f"{kind}: ", end="", flush=True)
                subprocess.run([sys.executable, __file__, "--page", str(out)], check=True)
        look(out / "report.html")


if __name__ == "__main__":
    main()
