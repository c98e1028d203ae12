"""The upstream side of the proxy: connections, balancing, health checks."""
