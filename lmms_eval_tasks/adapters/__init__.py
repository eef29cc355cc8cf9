"""The tasks for hosts other than lmms-eval; `benchmark.py` and what it imports know no host."""
