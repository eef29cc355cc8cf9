"""A package, so that `tests.conftest` is ours and not a stray `tests` of some installed package."""
