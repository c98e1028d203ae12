"""The connections to services."""
