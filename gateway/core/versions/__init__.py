"""Versions: read from a request, matched, and selected."""
