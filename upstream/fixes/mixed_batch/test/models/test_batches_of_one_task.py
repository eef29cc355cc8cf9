"""A batch holds requests of one task and split, whatever else their arguments share."""

import pytest

from lmms_eval.utils import Collator

KWARGS = {"until": [], "max_new_tokens": 16}


def _simple(number, task, split="test", kwargs=KWARGS):
    return (f"Question {number}?", kwargs, lambda doc: [task], number, task, split)


def _chat(number, task, split="test", kwargs=KWARGS):
    return (f"Question {number}?", lambda doc: [task], kwargs, number, task, split)


def _batches(requests, place, size=2):
    collator = Collator(requests, lambda x: (x[0], x[0]), group_fn=lambda x: x[place], grouping=True)
    batches = list(collator.get_batched(n=size, batch_fn=None))
    flat = [request for batch in batches for request in batch]
    assert collator.get_original(flat) == requests
    return batches


@pytest.mark.parametrize("form, place", [(_simple, 1), (_chat, 2)], ids=["simple", "chat"])
def test_no_batch_mixes_tasks_or_splits(form, place):
    requests = [form(number, task, split) for number in range(3) for task, split in (("a", "test"), ("b", "test"), ("b", "train"))]
    batches = _batches(requests, place)
    assert all(len({request[-2:] for request in batch}) == 1 for batch in batches)
    assert sorted(len(batch) for batch in batches) == [1, 1, 1, 2, 2, 2]


def test_generation_arguments_still_split_batches():
    requests = [_simple(number, "a", kwargs={"max_new_tokens": 16 if number % 2 else 64}) for number in range(4)]
    assert [[request[1]["max_new_tokens"] for request in batch] for batch in _batches(requests, 1)] == [[64, 64], [16, 16]]
