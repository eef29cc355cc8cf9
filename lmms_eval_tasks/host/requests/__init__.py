"""Requests between lmms-eval and a model: how many at a time, what arrives, what is kept."""
