"""Patches as pure values: text to hunks, hunks to places, places to new texts."""
