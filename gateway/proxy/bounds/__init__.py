"""What bounds the time, the places and the memory that one side makes the proxy spend on it."""
