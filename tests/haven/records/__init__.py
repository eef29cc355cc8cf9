"""Tests of `lmms-eval-tasks haven build`."""
