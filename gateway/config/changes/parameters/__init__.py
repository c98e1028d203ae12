"""The changes of query parameters and header fields alone, one file a change."""
