"""Which order of VSV's questions lets a server reuse a video's prefix: shares of prompt tokens.

    LMMS_EVAL_TASKS_DATA=ROOT python benchmarks/scale.py [--video-tokens 4096]

No server runs: the prompts are ours, the cache is simulated as vLLM's is built, least recently used
blocks of 16 tokens, each known by all that stands before it. Text is counted as 4 bytes a token.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from lmms_eval_tasks import benchmarks
from lmms_eval_tasks.benchmark import Part
from lmms_eval_tasks.runs import before

BLOCK, BYTES = 16, 4  # tokens in a block; bytes in a token
TASK = "maia_vsv"


def blocks(doc_video: str, parts: Sequence[Part], video_tokens: int) -> list[int]:
    """A prompt's whole blocks, each a hash of everything up to its end."""
    units: list[object] = []
    for part in parts:
        if part.kind == "text":
            text = str(part.given).encode()
            units += [text[at : at + BYTES] for at in range(0, len(text), BYTES)]
        else:
            units += [(doc_video, place) for place in range(video_tokens)]
    found, known = [], 0
    for at in range(0, len(units) - BLOCK + 1, BLOCK):
        known = hash((known, *units[at : at + BLOCK]))
        found.append(known)
    return found


def share_found(prompts: Iterable[Sequence[int]], capacity: int) -> float:
    """Share (0..1) of blocks in a prefix that is still in a cache of `capacity` blocks."""
    cache: OrderedDict[int, None] = OrderedDict()
    hits = asked = 0
    for prompt in prompts:
        asked += len(prompt)
        whole = True
        for block in prompt:
            whole = whole and block in cache
            hits += whole
            cache[block] = None
            cache.move_to_end(block)
        while len(cache) > capacity:
            cache.popitem(last=False)
    return hits / asked


def main() -> None:
    """Print the shares by order and capacity."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--video-tokens", type=int, default=4096, help="of one video")
    told = parser.parse_args()
    started = time.perf_counter()
    benchmark = benchmarks.load("maia")
    docs = list(before.docs(benchmark, TASK))
    prompt = benchmark.tasks[TASK].prompt
    ours = [blocks(doc["video_path"], prompt(doc), told.video_tokens) for doc in docs]
    videos = [doc["video_path"] for doc in docs]
    changes = 1 + sum(one != other for one, other in pairwise(videos))
    print(f"{len(docs)} docs, {len(set(videos))} videos, {changes} runs of one video in our order")
    orders = {"ours": ours, "shuffled": random.Random(0).sample(ours, len(ours))}
    orders |= {f"rank 0 of {ranks}": ours[::ranks] for ranks in (2, 4, 8)}
    each = -(-told.video_tokens // BLOCK)
    for held in (2, 4, 100):
        capacity = held * each
        shares = (f"{name} {share_found(one, capacity):.3f}" for name, one in orders.items())
        print(f"room for {held} videos:", ", ".join(shares))
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
