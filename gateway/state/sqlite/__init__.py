"""The state in one SQLite file, which one gateway writes."""
