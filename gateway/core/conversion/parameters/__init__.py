"""Changes that several query parameters or header fields take part in together."""
