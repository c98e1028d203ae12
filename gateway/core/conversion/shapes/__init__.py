"""Changes of the shape of documents: envelopes, lists in texts, values of a parent, groups."""
