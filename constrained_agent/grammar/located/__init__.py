"""Patches of real lines: what may be edited, as a grammar, and a text of it read along."""
