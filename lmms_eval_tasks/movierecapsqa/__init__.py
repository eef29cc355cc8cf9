"""MovieRecapsQA: open-ended movie questions, scored against atomic facts without a reference."""
