"""Results for others: Every Eval Ever, the Hub."""
