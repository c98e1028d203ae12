"""The usage of versions by clients: deltas, totals and history."""
