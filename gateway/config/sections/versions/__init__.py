"""The sections under `apis.NAME.versions.VERSION` of gateway.yaml."""
