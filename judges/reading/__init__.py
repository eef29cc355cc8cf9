"""Objects, ratings and labels in the text of a judge's reply (judges/reader.py)."""
