"""`lmms-eval-tasks haven build`: a record of HAVEN's form from a user's own video (3.2, A)."""
