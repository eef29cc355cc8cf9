"""Clips, frames and sound of videos, made once for all processes and kept in the user's cache."""
