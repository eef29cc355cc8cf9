"""The command `models`: what the host's model classes do with our media."""

from __future__ import annotations

from typing import Annotated

import typer


def models(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Models, as in --model.")
    ] = None,
    markdown: Annotated[bool, typer.Option(help="Print docs/models.md instead.")] = False,
) -> None:
    """Say how each model class takes videos, pictures and sound, and what to pass for 32 frames."""
    from lmms_eval_tasks.running import class_pages

    if markdown:
        print(class_pages.markdown(), end="")
        return
    for place, name in enumerate(names or ()):
        print("\n" * bool(place) + "\n".join(class_pages.facts(name)))
    if names:
        return
    print(f"To pass for {class_pages.FRAMES} of a clip; more with NAME, all in docs/models.md\n")
    for row in class_pages.rows():
        needs = f"; needs: {row.needs}" if row.needs else ""
        print(f"{row.model} {row.interface}: {row.frames}; sound: {row.sound}{needs}")
    print(f"\nTake none of our media: {', '.join(class_pages.others())}")
