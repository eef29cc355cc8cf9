"""HTML pages from templates: every text in them is escaped."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def filled(template: Path, **values: Any) -> str:
    """A page from a jinja2 template; a value that it lacks is a bug and raises."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folder = FileSystemLoader(template.parent)
    env = Environment(loader=folder, autoescape=True, undefined=StrictUndefined)
    return env.get_template(template.name).render(values)
