"""Model classes of ours for the host that load other people's checkpoints."""
