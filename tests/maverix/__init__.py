"""A package, because other benchmarks' tests have files of the same names."""
