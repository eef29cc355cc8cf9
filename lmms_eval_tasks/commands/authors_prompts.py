"""The authors' own prompts, read from a user's clone of their repository into a prompts folder.

The authors own these texts, so this package does not contain them. A benchmark's
`prompts/authors.json` lists, for each part of our prompt files, where its text is in the authors'
files. Their Python code is parsed, never run.

    [{"repository": "OWNER/NAME", "files": {"judge.yml": {"system": {
        "in": ["eval/judge.py"], "at": "ask.system", "names": {"pred": "candidate"}}}}}]

`in` lists the files in which the text may be. `at` is the place of the text: a constant's name; or
a function's name and a place in the function. The place is a variable (`ask.user`, its second value
`ask.user[1]`), a key in a literal dict (`get.prompt.tasks.score`), the role of a message
(`ask.system`), a message's `text`, the argument of `append`, or the function's `return`. In its
place, `of` lists pieces: texts; `@` before such a place; or `@` before a place in a YAML file
beside it (`@FILE:key.key`). Without both, the whole file is a jinja template.

`names` maps the authors' expressions to our placeholders (`.join` for a list that they join), or
lists our placeholders for each `{}` in order; "" removes an expression. The text begins where a
text `starts` (or `after` it), and stops where one `ends`. `strip` removes white space at both ends,
and `then` is appended. `ours` keeps our part if no file of `in` exists, and gives the reason. A
file for another package than the benchmark's is `judges/debate.yml`.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path

import yaml

from lmms_eval_tasks import registry
from lmms_eval_tasks.errors import DataError, PromptError
from lmms_eval_tasks.prompts import placeholders
from lmms_eval_tasks.utils import json_files
from lmms_eval_tasks.utils.json_files import Json
from lmms_eval_tasks.utils.released_files import read_text

Source = Mapping[str, Json]  # the place of one part's text
Names = Mapping[str, str] | list[str]

_JINJA = re.compile(r"\{\{-?\s*(\w+)[^}]*?-?\}\}")
_JINJA_BLOCK = re.compile(r"\{%-?\s*(?:end)?raw\s*-?%\}\n?|\{#.*?#\}", re.DOTALL)


def write_prompts(benchmark: str, clone: Path, folder: Path) -> list[str]:
    """Write `folder/<benchmark>/*.yml` for `--prompts folder`.

    Args:
        benchmark: the benchmark's name.
        clone: the user's copy of the authors' repository.
        folder: folder of prompts; its files of these names are replaced.

    Returns:
        Lines about the written files, and about the parts that stay ours.

    Raises:
        PromptError: a text cannot be found or read; the message names the file and the part.
    """
    place = resources.files(registry.package(benchmark)) / "prompts"
    if not (place / "authors.json").is_file():
        raise PromptError(
            f"{benchmark}: the authors' prompts cannot be converted for this benchmark"
        )
    entries = json.loads((place / "authors.json").read_text(encoding="utf-8"))
    usable = [entry for entry in entries if any((clone / file).is_file() for file in _files(entry))]
    if not usable:
        where = "; ".join(
            f"{', '.join(sorted(_files(entry)))} of https://github.com/{entry['repository']}"
            for entry in entries
        )
        raise PromptError(
            f"{clone}: not the expected repository, or an older state of it; expected: {where}"
        )
    notes: list[str] = []
    outputs = {}
    for name, parts in [pair for entry in usable for pair in entry["files"].items()]:
        owner, file = Path(benchmark, name).parts[-2:]
        ours = resources.files(registry.package(owner)) / "prompts" / file
        text = yaml.safe_load(ours.read_text(encoding="utf-8"))
        for part in {**text, **parts}:
            source = parts.get(part, {"ours": "the authors have none"})
            present = [clone / path for path in source.get("in", ()) if (clone / path).is_file()]
            if present:
                text[part] = _part(present[0], f"{name}, {part}", source)
            elif "ours" in source:
                notes.append(f"{name}, {part}: ours ({source['ours']})")
            else:
                raise PromptError(f"{name}, {part}: {clone} has no {' or '.join(source['in'])}")
        outputs[name] = folder / owner / file, text
    packaged = {file.name for file in place.iterdir() if file.name.endswith(".yml")}
    if unchanged := packaged - outputs.keys():
        notes.append(f"{', '.join(sorted(unchanged))}: our prompts (the authors publish none)")
    for target, text in outputs.values():
        target.parent.mkdir(parents=True, exist_ok=True)
        lines = yaml.safe_dump(text, allow_unicode=True, sort_keys=False, width=10_000)
        target.write_text(lines, encoding="utf-8")
    return [
        f"written: {', '.join(str(target) for target, _ in outputs.values())}",
        *notes,
        "as in our prompts, a model's text stands between tagged lines, and lists are "
        "numbered 1., 2.",
        f"use them with --prompts {folder}",
    ]


def _files(constants: Mapping[str, Json]) -> set[str]:
    sources = (source for parts in constants["files"].values() for source in parts.values())
    return {file for source in sources for file in source.get("in", ())}


def _part(file: Path, part: str, source: Source) -> str:
    """Return the text of one part, with our placeholders."""
    try:
        text = _text(file, source)
        for kind, keep in (("starts", slice(1, 3)), ("after", slice(2, 3)), ("ends", slice(0, 1))):
            if kind in source:
                parts = text.partition(source[kind])
                if not parts[1]:
                    raise ValueError(f"it does not contain {source[kind]!r}")
                text = "".join(parts[keep])
    except (DataError, ValueError, OSError, SyntaxError, RecursionError, MemoryError) as error:
        raise PromptError(f"{part}: {file}: {error}; the file has an unknown form") from None
    text = f"{text.strip() if 'strip' in source else text}{source.get('then', '')}"
    if not text.strip():
        raise PromptError(f"{part}: {file}: an empty text; the file has an unknown form")
    if lost := set(source.get("needs", ())) - placeholders(text):
        raise PromptError(f"{part}: the authors' text lacks {sorted(lost)}")
    return text


def _text(file: Path, source: Source) -> str:
    """Return the text of all pieces, or of a whole template."""
    content, names = read_text(file), source.get("names", {})
    if "of" not in source and "at" not in source:
        content = _JINJA_BLOCK.sub("", content)
        if "{%" in content:
            raise ValueError("a jinja statement")
        return _JINJA.sub(lambda match: _named(match[1], names), content)
    tree, made = ast.parse(content), []
    for piece in source.get("of") or [f"@{source['at']}"]:
        name, colon, keys = piece.removeprefix("@").partition(":")
        if not piece.startswith("@"):
            made.append(piece)
        elif colon:
            made.append(_of_yaml(file.parent / name, keys))
        else:
            made.append(_string(_placed(tree, name), names))
    text = "".join(made)
    if isinstance(names, list):
        if text.count("{}") != len(names):
            raise ValueError(f"{source['at']} has {text.count('{}')} places for {names}")
        for name in names:
            text = text.replace("{}", f"{{{name}}}", 1)
    return text


def _named(expression: str, names: Names) -> str:
    """Return our placeholder for an expression of the authors'."""
    if isinstance(names, list) or expression not in names:
        raise ValueError(f"the placeholder {expression!r}")
    return f"{{{names[expression]}}}" if names[expression] else ""


def _of_yaml(file: Path, keys: str) -> str:
    """Return the text at a place of a task's YAML."""
    here = json_files.parsed_yaml(read_text(file), _Yaml)
    for key in keys.split("."):
        here = here.get(key) if isinstance(here, dict) else None
    if not isinstance(here, str):
        raise ValueError(f"{file.name}: no text under {keys}")
    return here


class _Yaml(yaml.SafeLoader):
    """A loader for a task's YAML that ignores its functions."""


_Yaml.add_multi_constructor("!", lambda *_: None)


# --- Python ---------------------------------------------------------------------------------------


def _placed(tree: ast.AST, place: str) -> ast.expr:
    """Return the expression at a place of a module."""
    for step in place.split("."):
        name, _, number = step.rstrip("]").partition("[")
        found = list(_inside(tree, name))
        if len(found) <= int(number or 0):
            raise ValueError(f"{place}: no {step}")
        tree = found[int(number or 0)]
    if not isinstance(tree, ast.expr):
        raise ValueError(f"{place} is not a text")
    return tree


def _inside(here: ast.AST, name: str) -> Iterator[ast.AST]:
    """Yield the nodes with a name in a module, a function or a dict, in the file's order."""
    if isinstance(here, ast.Dict):
        for key, value in zip(here.keys, here.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == name:
                yield value
        return
    for node in sorted(ast.walk(here), key=lambda one: getattr(one, "lineno", 0)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            yield node
        elif isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(name in (getattr(one, "id", ""), getattr(one, "attr", "")) for one in targets):
                yield node.value
        elif isinstance(node, ast.Return) and name == "return" and node.value:
            yield node.value
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == name == "append":
            yield node.args[0]
        elif isinstance(node, ast.Dict) and name == "text":
            yield from _inside(node, name)
        elif isinstance(node, ast.Dict):
            roles = list(_inside(node, "role"))
            if any(isinstance(one, ast.Constant) and one.value == name for one in roles):
                yield from _inside(node, "content")


def _string(node: ast.expr, names: Names) -> str:
    """Return the text of constants, of f-strings, and of expressions that combine these."""
    while isinstance(node, ast.BoolOp | ast.IfExp):  # "... or USUAL", "... if special else USUAL"
        node = node.values[-1] if isinstance(node, ast.BoolOp) else node.orelse
    pieces: list[ast.expr] = []
    if isinstance(node, ast.JoinedStr | ast.List):
        pieces = node.values if isinstance(node, ast.JoinedStr) else node.elts
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        pieces = [node.left, node.right]
    if pieces:
        return "".join(_string(piece, names) for piece in pieces)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    code = ast.unparse(node.value if isinstance(node, ast.FormattedValue) else node)
    is_joined = isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".join")
    try:
        return _named(".join" if is_joined else code, names)
    except ValueError as error:
        raise ValueError(f"line {node.lineno}: {error}") from None
