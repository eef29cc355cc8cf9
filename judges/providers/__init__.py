"""Where a judge's replies come from: an endpoint, a model in this process, a file."""
