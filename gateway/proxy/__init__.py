"""The reverse proxy: receives a client's request, forwards it to a service, returns the answer."""
