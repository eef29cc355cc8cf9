"""Run in the host's copy: what its tasks make of scripted replies, as JSON.

python movierecapsqa_scored.py JOBS OUT

Of each job: `root` with the dataset beneath it, `env`, `tasks` and `replies` by the question's id.
"""

import json
import os
import sys

from lmms_eval.tasks import TaskManager, get_task_dict, movierecapsqa


def scored(task, replies):
    """Of one task: prompts and clips by the question's id, records, and the numbers from them."""
    docs = {doc["id"]: doc for doc in task.test_docs()}
    records = {name: task.process_results(doc, [replies[name]]) for name, doc in docs.items()}
    return {
        "prompts": {name: task.doc_to_text(doc) for name, doc in docs.items()},
        "clips": {name: task.doc_to_visual(doc) for name, doc in docs.items()},
        "records": records,
        "numbers": {
            metric: of([own[metric] for own in records.values()])
            for metric, of in task.aggregation().items()
        },
    }


def main(jobs, out):
    """Every job, one task after the other."""
    # The host's other tasks would take seconds to look through.
    own = os.path.dirname(movierecapsqa.__file__)
    made, manager = [], TaskManager("ERROR", include_path=own, include_defaults=False)
    with open(jobs) as file:
        wanted = json.load(file)
    for job in wanted:
        os.chdir(job["root"])
        os.environ.update(job["env"])
        tasks = get_task_dict(job["tasks"], manager)
        made.append({name: scored(tasks[name], job["replies"]) for name in tasks})
    with open(out, "w") as file:
        json.dump(made, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
