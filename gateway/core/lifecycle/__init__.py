"""The end of a version: deprecation, sunset, brownouts."""
