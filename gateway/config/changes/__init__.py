"""The changes between versions that gateway.yaml declares: models, building, checks."""
