"""Results in the forms of others: Every Eval Ever, the Hub, Inspect."""
