"""Conversions between versions: changes, their chains, body formats and links."""
