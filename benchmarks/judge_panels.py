"""What panels of judges are worth where the truth is known: made-up judges in made-up worlds.

    python benchmarks/judge_panels.py [--seeds 20] [--world NAME ...] [--weight 0.5]

For each world (simulation.WORLDS) a table: every judge alone with its kappa computed by hand, every
panel, and a final judge alone, in the collective and with mixtures; mean and range over the seeds
of kappa and of its differences to the best single judge and to the mean of the judges. The same
seeds give the same table. It takes 20 s, and needs no GPU, key or network.
"""

from __future__ import annotations

import argparse

import simulated_study
from simulation import WORLDS


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=simulated_study.SEEDS, help="how many")
    parser.add_argument("--world", action="append", choices=list(WORLDS), help="default: all")
    parser.add_argument(
        "--weight", type=float, default=simulated_study.WEIGHT, help="how far others sway, 0 to 1"
    )
    options = parser.parse_args()
    for name in options.world or WORLDS:
        rows = simulated_study.study(WORLDS[name], range(options.seeds), options.weight)
        about = f"{name}: {WORLDS[name].about} ({options.seeds} seeds)"
        print(simulated_study.table(about, rows), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
