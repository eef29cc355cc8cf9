"""The user's videos: checks, cuts and conversion into the media of requests."""
