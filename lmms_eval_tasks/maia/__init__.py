"""MAIA: Italian video statement verification and open-ended QA on the same questions."""
