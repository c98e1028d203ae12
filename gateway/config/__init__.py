"""The configuration: from the text of gateway.yaml to a Snapshot, or to a list of mistakes."""
