"""A real vLLM engine on a CPU: `make test-engine` (.ci/test-engine makes its environment)."""
