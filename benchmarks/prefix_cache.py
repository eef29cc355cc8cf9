"""The share of VSV's prompts that a server's prefix cache finds, by their order and batch size.

    LMMS_EVAL_TASKS_DATA=ROOT python benchmarks/prefix_cache.py [--video-tokens 4096]

No server runs. The prompts are ours, and the cache is simulated like vLLM's: least recently used
blocks of 16 tokens, each identified by everything before it. A token of text is counted as 4 bytes.
"""

from __future__ import annotations

import argparse
import os
import random
from collections import OrderedDict
from collections.abc import Sequence
from itertools import chain, pairwise, product, takewhile
from unittest.mock import patch

from lmms_eval_tasks import context, registry
from lmms_eval_tasks.benchmark import Part
from lmms_eval_tasks.runs import prepare

BLOCK, BYTES = 16, 4  # tokens of a block; bytes of a token
TASK = "maia_vsv"
BATCHES = (1, 16, 192)  # the last one: all questions on a video


def blocks(doc_video: str, parts: Sequence[Part], video_tokens: int) -> list[int]:
    """Return a prompt's complete blocks, each a hash of everything up to its end."""
    units: list[object] = []
    for part in parts:
        if part.kind == "text":
            text = str(part.content).encode()
            units += [text[at : at + BYTES] for at in range(0, len(text), BYTES)]
        else:
            units += [(doc_video, place) for place in range(video_tokens)]
    found, known = [], 0
    for at in range(0, len(units) - BLOCK + 1, BLOCK):
        known = hash((known, *units[at : at + BLOCK]))
        found.append(known)
    return found


def share_found(prompts: Sequence[Sequence[int]], capacity: int, batch: int = 1) -> float:
    """Return the share (0..1) of blocks in a prefix that is still in a cache of `capacity` blocks.

    Args:
        prompts: each prompt's blocks, in the order in which they are sent.
        capacity: blocks of the cache; the least recently used one is dropped first.
        batch: prompts sent together. Each is looked up before a block of any is stored, which is
            the worst case: a server that computes them one after another finds more.
    """
    cache: OrderedDict[int, None] = OrderedDict()
    hits = 0
    for at in range(0, len(prompts), batch):
        together = prompts[at : at + batch]
        for prompt in together:
            hits += sum(1 for _ in takewhile(cache.__contains__, prompt))
        for block in chain.from_iterable(together):
            cache[block] = None
            cache.move_to_end(block)
        while len(cache) > capacity:
            cache.popitem(last=False)
    return hits / sum(map(len, prompts))


def main() -> None:
    """Print the shares by order, capacity and batch size."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--video-tokens", type=int, default=4096, help="of one video")
    told = parser.parse_args()
    docs = prepare.usable_docs(registry.load_benchmark("maia"), TASK)
    prompt = registry.of(TASK).tasks[TASK].prompt
    ours = [blocks(doc["video_path"], prompt(doc), told.video_tokens) for doc in docs]
    videos = [doc["video_path"] for doc in docs]
    changes = 1 + sum(one != other for one, other in pairwise(videos))
    print(f"{len(docs)} docs, {len(set(videos))} videos, {changes} runs of one video in our order")
    orders = {"ours": ours, "shuffled": random.Random(0).sample(ours, len(ours))}
    for ranks in (2, 4, 8):
        with patch.dict(os.environ, WORLD_SIZE=str(ranks)):
            orders[f"rank 0 of {ranks}"] = list(context.by_rank(ours))[::ranks]
    each = -(-told.video_tokens // BLOCK)
    for batch, held in product(BATCHES, (2, 4, 100)):
        shares = (
            f"{name} {share_found(one, held * each, batch):.3f}" for name, one in orders.items()
        )
        print(f"{batch:3} at a time, room for {held} videos:", ", ".join(shares), flush=True)


if __name__ == "__main__":
    main()
