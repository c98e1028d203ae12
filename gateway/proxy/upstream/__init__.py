"""The upstream side of the proxy: connections, balancing, concurrency limits, health checks."""
