"""The pure core: standard library only, no I/O, every type frozen."""
