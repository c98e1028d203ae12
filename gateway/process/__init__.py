"""Processes: the supervisor, its workers, the channel between them, tasks, and reloads."""
