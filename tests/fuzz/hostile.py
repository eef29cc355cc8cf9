"""Texts that must stay texts wherever they are shown, and saved runs that are full of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

MARKUP = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    '<img src=x onerror="alert(1)">',
    "\"'><svg/onload=alert(1)>",
    '" onmouseover="alert(1)" x="',
    "' onfocus='alert(1)' autofocus='",
    "javascript:alert(1)",
    "<!--",
    "--><b>",
    "]]><![CDATA[<b>]]>",
    "</style><style>*{display:none}",
    "</title></td></table></dialog></main><h1>",
    "<textarea><plaintext>",
    "<a href=javascript:alert(1)>",
    "{{ 7 * 7 }}{% raw %}${alert(1)}`${1}`",
    "&lt;b&gt;&#60;b&#62;&amp;",
    "a\u2028b\u2029c",
    "nul\0 esc\x1b[31m bell\x07 delete\x7f \x9b31m",
    "bidi\u202egnp.exe\u2066",
    "half\ud83d",
    "\\\"'\\u003cb\\u003e\\",
)
TABLES = (
    '=HYPERLINK("http://x","y")',
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "\t=1+1",
    "\r=1+1",
    "=1\n=2",
    "a|b|c",
    "`a|b`",
    "**a** _b_ ~c~ [x](javascript:1) ![x](http://x/y)",
    "<br>\n| - |",
    "\\input{/etc/passwd} 50% & $x_1^2$ {a} ~ #1",
    "[bold]x[/] [/nothing] [link=http://x]y[/link] :smile:",
    "\x1b[2J\x1b]8;;http://x\x07y\x1b]8;;\x07",
    'a,b;"c"',
)
TEXTS = (*MARKUP, *TABLES)
# What says how an item is read, is one of a few names, or is read in a form of its own.
_KEPT = {"status", "kind", "mode", "layout", "round", "labels", "letter", "letter_authors"}
_KEPT |= {"dimension", "parts", "provider", "mean", "setup"}


class Dresser:
    """Puts another text in the place of each, always the same one for the same."""

    def __init__(self, dress: Callable[[int], str]) -> None:
        self.dress = dress
        self.known: dict[str, str] = {}

    def __call__(self, value: Any) -> Any:
        """All texts in a value; an answer's letter is none."""
        if isinstance(value, str):
            made = self.known.setdefault(value, self.dress(len(self.known)))
            return value if len(value) < 2 else made
        if isinstance(value, list):
            return [self(one) for one in value]
        if isinstance(value, dict):
            return {key: one if key in _KEPT else self(one) for key, one in value.items()}
        return value


def harmless(number: int) -> str:
    """A text that nothing can take for something else."""
    return f"t{number:05}"


def hostile(number: int) -> str:
    """One of TEXTS at its beginning and at its end, in the same order as the harmless ones."""
    text = TEXTS[number % len(TEXTS)]
    return f"{text} t{number:05}{text}"


def dressed(run: Path, folder: Path, dress: Callable[[int], str]) -> Path:
    """A copy of a saved run with other texts in all that a model, a judge or a user wrote."""
    shutil.copytree(run, folder)
    own = Dresser(dress)
    for file in sorted(folder.glob("*_samples_*.jsonl")):
        samples = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        file.write_text("".join(json.dumps(own(one)) + "\n" for one in samples), encoding="utf-8")
    (file,) = folder.glob("*_results.json")
    results = json.loads(file.read_text("utf-8"))
    told = results.pop("lmms_eval_tasks", {})
    sections = {name: own(one) for name, one in told.items() if isinstance(one, dict)}
    file.write_text(json.dumps({**own(results), "lmms_eval_tasks": sections}), encoding="utf-8")
    return folder
