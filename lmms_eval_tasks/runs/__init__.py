"""The work before, during and after a run, for all benchmarks."""
