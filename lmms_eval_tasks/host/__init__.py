"""What knows the host: the hook, the script, what YAMLs name, facts about model classes."""
