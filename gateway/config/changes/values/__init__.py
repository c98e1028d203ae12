"""The changes of gateway.yaml that write one value in another way, one file a change."""
