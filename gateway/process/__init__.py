"""Processes: the supervisor, its workers, the channel between them, and reloads."""
