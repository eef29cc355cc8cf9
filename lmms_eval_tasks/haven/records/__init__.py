"""HAVEN's records: read, made of a user's own videos (3.2, A), shown, rated by people (B)."""
