"""Errors that the user's input causes, each with a message of one line.

The message says what is wrong, where, and what to do next. The command line prints the message
alone, without a traceback.
"""

from __future__ import annotations

from collections.abc import Iterable

WRONG = 2  # exit code of a command some of whose runs could not be made


class TasksError(Exception):
    """Base class of all errors whose message is written for the user."""


class DataError(TasksError):
    """A benchmark's files are missing or do not match their schema."""


class MediaError(TasksError):
    """A media file cannot be read or a clip cannot be made; the message names the file."""


class CacheError(TasksError):
    """The cache folder, which the message names, takes no files; no video is at fault."""


class JudgeError(TasksError):
    """A judge cannot be used as configured, for example without a key.

    A failed verdict never raises this error.
    """


class PromptError(TasksError):
    """A prompt file of the user lacks a part or placeholder, or has an unknown one."""


def about_file(error: OSError) -> str:
    """Return Python's error about a file in one line, with the file's name.

    The line is "" if the error names no file.
    """
    return f"{error.filename}: {error.strerror}" if error.filename is not None else ""


def not_importable(error: ImportError) -> TasksError:
    """The error that a module which runs of our tasks need cannot be imported."""
    mend = "pip install --upgrade lmms-eval-tasks"
    return TasksError(f"tasks of lmms-eval-tasks cannot run here: {error}; {mend}")


def nearest(name: str, candidates: Iterable[str], prefix: str = "") -> str:
    """Return "; did you mean X?" for an unknown name, where X is the most similar known name.

    The text is "" if no known name is similar.

    Args:
        name: the name that does not exist.
        candidates: the names that exist, without `prefix`.
        prefix: first part of all names, which goes in front of X.
    """
    import difflib

    names = {one.lower(): one for one in candidates}
    found = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.7)
    return f"; did you mean {prefix}{names[found[0]]}?" if found else ""
