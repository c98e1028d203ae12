"""The state that replicas share in PostgreSQL."""
