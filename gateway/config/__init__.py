"""The configuration: from the text of gateway.yaml to a Snapshot, or to what is wrong with it."""
