"""Acting when a module is imported by someone else: the host's modules are heavy, and not ours."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def when_imported(
    name: str,
    act: Callable[[ModuleType], None],
    failed: Callable[[str, Exception], None],
) -> None:
    """Call `act(module)` now if `name` is imported, else right after its import.

    An exception of `act` is raised now; after an import, which it must not break, `failed(name,
    exception)` is called instead.
    """
    if (module := sys.modules.get(name)) is not None:
        act(module)
    elif not any(isinstance(f, _Finder) and f.name == name for f in sys.meta_path):
        sys.meta_path.insert(0, _Finder(name, act, failed))


class _Finder(importlib.abc.MetaPathFinder):
    """One shot: steps aside at the first import of `name`, and acts once it has been executed."""

    def __init__(self, name: str, act: Any, failed: Any) -> None:
        self.name, self._act, self._failed = name, act, failed

    def find_spec(self, fullname: str, *_: Any) -> Any:
        if fullname != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            try:
                self._act(module)
            except Exception as error:
                self._failed(fullname, error)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
