"""The sections of gateway.yaml, one a file: the pydantic model, and how it is built."""
