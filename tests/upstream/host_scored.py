"""Run in the host's copy: what its tasks make of scripted replies, as JSON.

python host_scored.py BENCHMARK JOBS OUT

Of each job: `root` with the dataset beneath it, `env`, `tasks` and by the task's name or `*` the
`replies` by doc, of those that are wanted; `group`, if there is one, whose numbers are wanted too.
"""

import hashlib
import json
import os
import sys
from collections import defaultdict
from importlib import import_module

from lmms_eval.evaluator_utils import consolidate_group_results
from lmms_eval.tasks import TaskManager, get_task_dict


def scored(task, replies):
    """Of one task: prompts and media by doc, records, and the numbers from them."""
    docs = {doc["id"]: doc for doc in task.test_docs() if doc["id"] in replies}
    records = {name: task.process_results(doc, [replies[name]]) for name, doc in docs.items()}
    return {
        "prompts": {name: task.doc_to_text(doc) for name, doc in docs.items()},
        "visuals": {name: list(map(seen, task.doc_to_visual(doc))) for name, doc in docs.items()},
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


def joined(group, manager, made):
    """A group's numbers."""
    results = defaultdict(dict)
    for name, own in made.items():
        results[name] = {"samples": len(own["records"])}
        for metric, number in own["numbers"].items():
            results[name] |= {f"{metric},none": number, f"{metric}_stderr,none": "N/A"}
    consolidate_group_results(results, {}, get_task_dict([group], manager))
    return {key.partition(",")[0]: n for key, n in results[group].items()}


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
        tasks = get_task_dict(job["tasks"], manager)
        said = job["replies"]
        found = {name: scored(tasks[name], said.get(name, said.get("*"))) for name in tasks}
        if "group" in job:
            found["group"] = joined(job["group"], manager, found)
        made.append(found)
    with open(out, "w") as file:
        json.dump(made, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
