"""Telemetry: what one process logs and measures."""
