"""How far judges can be relied on: the study's tables and what it leaves open."""
