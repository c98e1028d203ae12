"""The lifecycle of a version up to its end: deprecation, brownouts and sunset."""
