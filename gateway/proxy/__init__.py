"""The reverse proxy: receives requests, forwards them to services, returns the responses."""
