"""Versions of an API: labels and their order, mechanisms that read them, and selection."""
