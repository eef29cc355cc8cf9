"""Results for others and from others: Every Eval Ever, the Hub, leaderboards/results/."""
