"""The sections of gateway.yaml: their models, and how they are built."""
