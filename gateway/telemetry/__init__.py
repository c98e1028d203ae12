"""Telemetry: the log and the counters of one process."""
