"""The models of `conversions` in gateway.yaml, and the version links compiled from them."""
