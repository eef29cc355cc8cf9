"""What a user did wrong, in one line each.

Every class here is raised with a message that says what is wrong, where, and what to do next; the
command line prints that message alone, without a traceback.
"""

from __future__ import annotations


class TasksError(Exception):
    """Base of all errors whose message is written for the user."""


class DataError(TasksError):
    """A benchmark's files are missing or do not match their schema."""


class MediaError(TasksError):
    """A media file cannot be read or a clip cannot be made; the message names the file."""


class JudgeError(TasksError):
    """A judge cannot be used as configured (no key, unknown form); never a failed verdict."""


class PromptError(TasksError):
    """A prompt file that the user put in place of ours does not fit."""
