"""Readers of a model's reply: letters, orders, alignments, summaries, ratings' text, refusals."""
