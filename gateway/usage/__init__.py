"""Usage of the versions by clients: deltas, totals and history."""
