"""Reliability of judges: the study's tables, and further statistics."""
