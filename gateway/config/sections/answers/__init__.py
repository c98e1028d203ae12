"""The sections of gateway.yaml about what the gateway itself answers."""
