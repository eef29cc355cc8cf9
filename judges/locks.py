"""Locks that a fork leaves free on both sides."""

from __future__ import annotations

import os
import threading


def fork_safe_lock() -> threading.RLock:
    """A lock for a module's whole life, taken for the moment of every fork.

    Otherwise a child could inherit it held by a thread that does not exist there, for ever.
    """
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )
    return lock
