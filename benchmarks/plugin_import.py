"""What the hook adds to the host's start: `register()` in a fresh interpreter, beside a bare one.

Run: python benchmarks/plugin_import.py. The two are started in turn, so that a noisy machine slows
both. Prints the medians, their difference in ms (the bound is 50) and their ratio.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

ROUNDS = 15
# The host has imported these when it loads the entry points; they are not the hook's cost.
HOST_SIDE = "import functools, importlib.metadata, importlib.util, pathlib, dataclasses, re, typing"
BARE = HOST_SIDE
HOOKED = f"{HOST_SIDE}; import lmms_eval_tasks.host.plugin as p; p.install()"


def seconds(code: str) -> float:
    """Wall time of a fresh interpreter that runs `code`."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - started


def main() -> None:
    """Measure and print."""
    bare, hooked = [], []
    for _ in range(ROUNDS):
        bare.append(seconds(BARE))
        hooked.append(seconds(HOOKED))
    one, two = statistics.median(bare), statistics.median(hooked)
    print(f"bare interpreter {1000 * one:.1f} ms, with the hook {1000 * two:.1f} ms")
    print(f"the hook adds {1000 * (two - one):.1f} ms; ratio {two / one:.2f}")


if __name__ == "__main__":
    main()
