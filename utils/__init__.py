"""Pure shared code: media, answers, metrics, statistics. Installed as `lmms_eval_tasks.utils`."""
