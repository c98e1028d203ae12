"""The changes that gateway.yaml may declare between two versions, one file a change."""
