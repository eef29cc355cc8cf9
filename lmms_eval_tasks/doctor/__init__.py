"""Checks before a run for everything that would stop or spoil it."""
