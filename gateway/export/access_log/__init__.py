"""The access log of a front proxy, whose configuration `export envoy` writes: read and counted."""
