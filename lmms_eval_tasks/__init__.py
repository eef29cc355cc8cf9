"""Published video benchmarks as lmms-eval tasks. Importing this package imports nothing heavy."""

__version__ = "0.1.0"
