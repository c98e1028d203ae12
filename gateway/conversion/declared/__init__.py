"""The models of `conversions` in gateway.yaml, which are compiled to version links."""
