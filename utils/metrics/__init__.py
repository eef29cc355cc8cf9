"""The way from items to numbers, and the certainty of these numbers."""
