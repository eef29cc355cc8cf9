"""Before, during and after a run, whatever the benchmark."""
