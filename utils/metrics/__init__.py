"""From items to numbers, and how sure they are."""
