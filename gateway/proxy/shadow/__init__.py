"""Shadows: requests captured, replayed in the background, and their answers compared."""
