"""The proxy: one way for a request, from the client to a service and back."""
