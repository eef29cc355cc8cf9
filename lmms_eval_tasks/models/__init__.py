"""Our model classes for lmms-eval, and the table of what lmms-eval's classes can do."""
