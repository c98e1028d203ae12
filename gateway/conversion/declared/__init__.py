"""The declarations of conversions in gateway.yaml, and the links built from them."""
