"""Judges of a release's own answers, compared with their published scores."""
