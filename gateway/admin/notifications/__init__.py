"""Notifications: what happened, how far word of it has got, and the messages about it."""
