"""How statements reach the database of a fleet: in a transaction, and at what cost."""
