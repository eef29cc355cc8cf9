"""What would stop or spoil a run, looked for before it."""
