"""Reports: numbers as pages, tables and records for others."""
