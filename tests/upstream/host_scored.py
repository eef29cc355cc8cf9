"""Run in the host's copy: what its tasks make of scripted replies, as JSON.

python host_scored.py BENCHMARK JOBS OUT

Of each job: `root` with the dataset beneath it, `env`, `tasks` and the `replies` by doc.
"""

import hashlib
import json
import os
import sys
from importlib import import_module

from lmms_eval.tasks import TaskManager, get_task_dict


def scored(task, replies):
    """Of one task: prompts and media by doc, records, and the numbers from them."""
    docs = {doc["id"]: doc for doc in task.test_docs() if doc["id"] in replies}
    records = {name: task.process_results(doc, [replies[name]]) for name, doc in docs.items()}
    prompts = {name: task.doc_to_text(doc) for name, doc in docs.items()}
    visuals = {name: list(map(seen, task.doc_to_visual(doc))) for name, doc in docs.items()}
    messages = {
        name: [
            part.get("text") or seen(part["url"])
            for part in task.doc_to_messages(doc)[0]["content"]
        ]
        for name, doc in docs.items()
    }
    return {
        "prompts": prompts,
        "visuals": visuals,
        "messages": messages,
        "records": records,
        "numbers": {
            metric: of([own[metric] for own in records.values()])
            for metric, of in task.aggregation().items()
        },
    }


def seen(visual):
    """A file's path, or a picture's size and what its pixels hash to."""
    if isinstance(visual, str):
        return visual
    return [*visual.size, hashlib.sha256(visual.tobytes()).hexdigest()]


def main(benchmark, jobs, out):
    """Every job, one task after the other."""
    # The host's other tasks would take seconds to look through.
    own = os.path.dirname(import_module(f"lmms_eval.tasks.{benchmark}").__file__)
    made, manager = [], TaskManager("ERROR", include_path=own, include_defaults=False)
    with open(jobs) as file:
        wanted = json.load(file)
    for job in wanted:
        os.chdir(job["root"])
        os.environ.update(job["env"])
        tasks = get_task_dict(job["tasks"], manager, "chat")
        made.append({name: scored(tasks[name], job["replies"]) for name in tasks})
    with open(out, "w") as file:
        json.dump(made, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
