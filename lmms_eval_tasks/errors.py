"""Errors of the user's input, each with a message of one line.

Every class here is raised with a message that says what is wrong, where, and what to do next; the
command line prints that message alone, without a traceback.
"""

from __future__ import annotations

from collections.abc import Iterable

WRONG = 2  # exit code of a command some of whose runs could not be made


class TasksError(Exception):
    """Base of all errors whose message is written for the user."""


class DataError(TasksError):
    """A benchmark's files are missing or do not match their schema."""


class MediaError(TasksError):
    """A media file cannot be read or a clip cannot be made; the message names the file."""


class CacheError(TasksError):
    """Nothing can be kept in the cache folder, which the message names; no video is at fault."""


class JudgeError(TasksError):
    """A judge cannot be used as configured (no key, unknown form); never a failed verdict."""


class PromptError(TasksError):
    """A prompt file that the user put in place of ours does not fit."""


def about_file(error: OSError) -> str:
    """Python's own error about a file of the user's, in one line; "" for another one."""
    return f"{error.filename}: {error.strerror}" if error.filename is not None else ""


def not_importable(error: ImportError) -> TasksError:
    """The error that a module which runs of our tasks need cannot be imported."""
    mend = "pip install --upgrade lmms-eval-tasks"
    return TasksError(f"tasks of lmms-eval-tasks cannot run here: {error}; {mend}")


def nearest(name: str, known: Iterable[str], prefix: str = "") -> str:
    """For a message about a name that does not exist: "; did you mean X?", or nothing.

    `prefix` is common to all names, and in none of these.
    """
    import difflib

    names = {one.lower(): one for one in known}
    found = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.7)
    return f"; did you mean {prefix}{names[found[0]]}?" if found else ""
