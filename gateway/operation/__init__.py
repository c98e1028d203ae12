"""Operation: what a running gateway needs around the requests."""
