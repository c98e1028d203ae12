"""Turns: who goes on when, of clients that wait for the same and in the event loop."""
