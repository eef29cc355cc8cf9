"""HAVEN: hierarchically aligned video understanding in six tasks (../shared/papers/haven.txt)."""
