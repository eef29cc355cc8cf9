"""Sources of a judge's replies: an endpoint, a model in this process, a file."""
