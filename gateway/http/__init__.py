"""HTTP/1.1 with clients and services; it knows no versions."""
