"""The published tables of each paper, as data."""
