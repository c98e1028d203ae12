"""What outlives a request: counts, cutovers, overrides."""
