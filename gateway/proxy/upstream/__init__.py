"""The service's side of the proxy: connections, balancing, concurrency limits, health checks."""
