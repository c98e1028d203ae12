"""The reverse proxy: receives requests, forwards them to services and returns the responses."""
