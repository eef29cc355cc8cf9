"""What a judge's reply says: objects, ratings and labels in its text (judges/reader.py)."""
