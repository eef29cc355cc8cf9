"""All code that depends on lmms-eval: the hook, the script, the functions that YAMLs name."""
