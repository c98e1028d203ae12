"""Tracing: which requests are traced, how a trace goes on, and the spans that it has."""
