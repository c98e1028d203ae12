"""The state of one gateway in an SQLite file."""
