"""Golden numbers: what the package said before its inside was rebuilt, to the last digit.

- judge.py, replies.json: a judge and two models under test whose replies never change;
- run.py: all benchmarks through the host, in one process (session fixture `golden_runs`);
- numbers.py: numbers by task and name, wherever they are stored, and their comparison;
- commands.py, test_interface.py: what the commands say, and every name that a user can type;
- record.py: `python -m tests.golden.record` records all of it again.

A commit that changes a number on purpose records again and says why; `git diff` shows which.
"""
