"""CVRR-ES, and the judge study: video models that answer, and video models that judge answers."""
