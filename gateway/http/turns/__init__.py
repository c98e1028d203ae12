"""Fair shares of the event loop."""
