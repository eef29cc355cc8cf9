"""Judges: who gives a verdict on an answer, and what a verdict is. Installed as `lmms_eval_tasks.judges`."""
