"""The pure core: it uses the standard library alone, does no I/O, and freezes every type."""
