"""Reports: numbers as pages, as tables, and as records for other programs."""
