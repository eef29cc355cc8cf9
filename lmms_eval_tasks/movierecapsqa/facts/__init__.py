"""The command `lmms-eval-tasks facts`: facts and questions for a user's own recap (3.2)."""
