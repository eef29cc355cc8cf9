"""Requests between lmms-eval and a model: their number at a time, delivered media, kept replies."""
