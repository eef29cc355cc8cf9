"""The `lmms-eval-tasks` command: one file for each group of commands."""
