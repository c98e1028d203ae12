"""Shadow, comparison, cutover and its gates."""
