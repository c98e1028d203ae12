"""Counting, totals and history of who uses which version."""
