"""The connection of a replica to its database."""
