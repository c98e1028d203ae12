"""HTTP/1.1 with clients and services, independent of versions."""
