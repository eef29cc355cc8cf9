"""MAVERIX: audio-visual eight-option choice and open-ended QA in five input modes."""
