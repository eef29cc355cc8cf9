"""A user's videos: looked at, cut, made into what a model is given, kept."""
