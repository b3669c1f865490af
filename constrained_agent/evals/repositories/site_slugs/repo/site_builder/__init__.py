"""Turns a folder of notes into pages and a feed."""
