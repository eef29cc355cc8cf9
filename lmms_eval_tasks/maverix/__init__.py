"""MAVERIX: audio-visual questions with eight options, and open questions, in five input modes."""
