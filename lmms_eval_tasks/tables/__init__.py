"""The layout of tables: the papers' tables, terminals of any width, cells of CSV and Markdown."""
