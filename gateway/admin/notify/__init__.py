"""Notify: word to webhooks of what happens, once for a whole fleet."""
