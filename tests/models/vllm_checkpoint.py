"""A checkpoint folder for the stub of vLLM: a tokenizer whose chat template writes typed parts."""

from __future__ import annotations

from pathlib import Path

from lmms_eval_tasks.sample import tiny

TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {% for part in message['content'] %}"
    "{% if part['type'] == 'text' %}{{ part['text'] }}{% else %}<{{ part['type'] }}>{% endif %}"
    "{% endfor %} {% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"
    "{% if enable_thinking is defined and not enable_thinking %}no thoughts{% endif %}"
)


def build(folder: Path) -> Path:
    """Save it."""
    end = "<|end|>"
    tokenizer = tiny.tokenizer_of((end,), eos_token=end, pad_token=end)
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(str(folder))
    return folder
