"""Locks on one path are one lock, whatever filelock's private modules are called."""

import os
import sys

import filelock
import pytest
from datasets.utils import _filelock as datasets_filelock

from lmms_eval.evaluator import _enable_reentrant_filelocks

META = type(filelock.FileLock)

pytestmark = pytest.mark.skipif("__call__" not in vars(META), reason="this filelock has no singletons of its own")


@pytest.fixture(autouse=True)
def enabled(monkeypatch):
    """Takes `_api` away, which filelock 4.3 does not have: importing it raises ModuleNotFoundError."""
    monkeypatch.setattr(META, "__call__", vars(META)["__call__"])
    monkeypatch.setitem(sys.modules, "filelock._api", None)
    monkeypatch.setattr(_enable_reentrant_filelocks, "_patched", False, raising=False)
    _enable_reentrant_filelocks()


def test_both_classes_give_one_lock_that_can_be_nested(tmp_path):
    path = str(tmp_path / "data.lock")
    outer, inner = filelock.FileLock(path), datasets_filelock.FileLock(path)
    assert outer is inner is datasets_filelock.FileLock(path)
    with outer.acquire(timeout=0), inner.acquire(timeout=0):
        assert outer.is_locked
    assert datasets_filelock.FileLock(str(tmp_path / "other.lock")) is not outer


def test_a_lock_of_datasets_has_the_mode_of_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        with datasets_filelock.FileLock(str(tmp_path / "data.lock")) as lock:
            mode = os.stat(lock.lock_file).st_mode & 0o777
    finally:
        os.umask(before)
    assert mode == 0o640


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_locks_of_its_own(tmp_path):
    path = str(tmp_path / "data.lock")
    with datasets_filelock.FileLock(path):
        pass
    child = os.fork()
    if not child:
        try:
            with datasets_filelock.FileLock(path).acquire(timeout=0):
                os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
