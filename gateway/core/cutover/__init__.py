"""Cutovers, which move clients to another version's service, and shadows, which compare first."""
