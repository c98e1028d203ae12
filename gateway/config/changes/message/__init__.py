"""The changes between a body and another place of its message, one file a place."""
