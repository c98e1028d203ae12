"""Bounds on what slow peers hold."""
