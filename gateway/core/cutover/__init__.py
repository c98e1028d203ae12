"""Cutovers and shadows: moving clients to another version's service, and comparing first."""
