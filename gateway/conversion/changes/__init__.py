"""The kinds of changes: the model of each, and what it does."""
