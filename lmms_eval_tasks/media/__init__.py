"""What models are given of videos, made once for all processes and kept in the user's cache."""
