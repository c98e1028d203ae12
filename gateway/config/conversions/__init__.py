"""The section `conversions:` of gateway.yaml: its model, the links it makes, and its clashes."""
