"""The client side of the proxy: accepts connections, reads requests, writes responses."""
