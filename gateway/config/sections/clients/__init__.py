"""The sections under `clients` of gateway.yaml: what gives a client its name."""
