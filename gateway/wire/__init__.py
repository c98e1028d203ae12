"""The wire: bytes in and out, on the client's side and on the services' side."""
