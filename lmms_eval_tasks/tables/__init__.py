"""How tables and pages are laid out: the papers' tables, terminals of any width, HTML, CSV."""
