"""HAVEN's records: reading, building from a user's own videos (3.2, A), and drawing them (B)."""
