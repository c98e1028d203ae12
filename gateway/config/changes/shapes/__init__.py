"""The changes of the shape of documents that gateway.yaml may declare, one file a change."""
